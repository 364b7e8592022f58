package thread

import (
	"crypto/sha256"
	"encoding/hex"
)

// What is sealed for one use cannot be opened for another.
const (
	boxFile  = "turn"
	boxTitle = "title"
)

// secretName is the cluster's secret that conversations are sealed with: they
// hold code.
const secretName = "threads"

// nameOf is the name of a file with these bytes.
func nameOf(sealed []byte) string {
	sum := sha256.Sum256(sealed)
	return hex.EncodeToString(sum[:])
}

// isName reports whether a text is the name of a file.
func isName(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == sha256.Size
}
