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

// IsOperator reports whether key is the operator's for a cluster key file.
func IsOperator(clusterKeyFile, key string) bool {
	want, err := OperatorKey(clusterKeyFile)
	return err == nil && hmac.Equal([]byte(want), []byte(key))
}
