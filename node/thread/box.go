package thread

import (
	"crypto/sha256"
	"encoding/hex"
)

// Purposes of sealed bytes. Bytes sealed for one cannot be opened for another.
const (
	boxFile  = "turn"
	boxTitle = "title"
)

// secretName names the cluster's secret that seals conversations, because they contain code.
const secretName = "threads"

// nameOf returns the file name for sealed bytes.
func nameOf(sealed []byte) string {
	sum := sha256.Sum256(sealed)
	return hex.EncodeToString(sum[:])
}

// isName reports whether a text can be a file name.
func isName(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == sha256.Size
}
