// Package auth gets from a credential in a request to the viewer that the
// request runs as.
//
//	Authorization: Bearer shoal_<64 hex>   or   X-Sourcebot-Api-Key: shoal_<64 hex>
//	   -> the operator's key (below)       -> owner
//	   -> a key of the catalog             -> the key's role
//	   -> anything else                    -> 401
//	no credential                          -> guest where anonymous access is on, else 401
//
// The operator's key is never stored or sent anywhere at its making: whoever
// can read the cluster key on a node's host can compute it, and so is an
// owner. It exists so that `shoal key create` works on a fresh node.
package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Prefix begins every API key.
const Prefix = "shoal_"

// OperatorKey computes the owner's credential that goes with a cluster key file.
func OperatorKey(clusterKeyFile string) (string, error) {
	secret, err := os.ReadFile(clusterKeyFile)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(secret)), "\n")
	if len(first) < 16 {
		return "", fmt.Errorf("%s: too short for a cluster key", clusterKeyFile)
	}
	mac := hmac.New(sha256.New, []byte(strings.TrimSpace(first)))
	mac.Write([]byte("shoal operator key v1"))
	return Prefix + hex.EncodeToString(mac.Sum(nil)), nil
}

// Operator recognises the operator's key of a cluster key file. The file is
// read again at most every few seconds, so that a rotated key takes effect
// and a stream of bad keys costs no disk access. It is safe for concurrent use.
type Operator struct {
	path string
	now  func() time.Time

	mu   sync.Mutex // guards the fields below
	key  string
	read time.Time
}

// NewOperator recognises the key of a file, which need not exist yet.
func NewOperator(clusterKeyFile string, now func() time.Time) *Operator {
	return &Operator{path: clusterKeyFile, now: now}
}

// Is reports whether key is the operator's.
func (o *Operator) Is(key string) bool {
	o.mu.Lock()
	if now := o.now(); o.key == "" || now.Sub(o.read) > 5*time.Second {
		// A file that cannot be read has no operator's key: nobody is one.
		o.key, _ = OperatorKey(o.path)
		o.read = now
	}
	want := o.key
	o.mu.Unlock()
	return want != "" && hmac.Equal([]byte(want), []byte(key))
}
