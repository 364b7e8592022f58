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
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
)

// Prefix begins every API key.
const Prefix = "shoal_"

// OperatorKey computes the owner's credential that goes with a cluster key file.
func OperatorKey(clusterKeyFile string) (string, error) {
	all, err := operatorKeys(clusterKeyFile)
	if err != nil {
		return "", err
	}
	return all[0], nil
}

// operatorKeys has one credential for each key of the file: more than one
// while the cluster key is being rotated.
func operatorKeys(clusterKeyFile string) ([]string, error) {
	text, err := os.ReadFile(clusterKeyFile)
	if err != nil {
		return nil, err
	}
	keys, err := wire.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", clusterKeyFile, err)
	}
	var all []string
	for _, k := range keys {
		all = append(all, Prefix+hex.EncodeToString(k.Derive("operator key", 32)))
	}
	if all == nil {
		return nil, fmt.Errorf("%s: no key in it", clusterKeyFile)
	}
	return all, nil
}

// Operator recognises the operator's key of a cluster key file. The file is
// read again at most every few seconds, so that a rotated key takes effect
// and a stream of bad keys costs no disk access. It is safe for concurrent use.
type Operator struct {
	path string
	now  func() time.Time

	mu   sync.Mutex // guards the fields below
	keys []string
	read time.Time
}

// NewOperator recognises the key of a file, which need not exist yet.
func NewOperator(clusterKeyFile string, now func() time.Time) *Operator {
	return &Operator{path: clusterKeyFile, now: now}
}

// Is reports whether key is the operator's.
func (o *Operator) Is(key string) bool {
	o.mu.Lock()
	if now := o.now(); o.keys == nil || now.Sub(o.read) > 5*time.Second {
		// A file that cannot be read has no operator's key: nobody is one.
		o.keys, _ = operatorKeys(o.path)
		o.read = now
	}
	keys := o.keys
	o.mu.Unlock()
	good := false
	for _, k := range keys {
		good = hmac.Equal([]byte(k), []byte(key)) || good
	}
	return good
}
