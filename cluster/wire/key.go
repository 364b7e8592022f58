package wire

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Key is a cluster key, the secret that all nodes share.
type Key [32]byte

// NewKey returns a random key.
func NewKey() Key {
	var k Key
	rand.Read(k[:]) // never fails: crypto/rand ends the program if it cannot read
	return k
}

// Text returns the key as 64 hexadecimal digits, as in a key file.
func (k Key) Text() string { return hex.EncodeToString(k[:]) }

// String returns the fingerprint, so that logs cannot contain the key.
func (k Key) String() string { return "key " + k.Fingerprint() }

// Fingerprint returns 8 hexadecimal digits that identify the key without revealing it.
func (k Key) Fingerprint() string { return hex.EncodeToString(k.Derive("fingerprint", 4)) }

// Derive returns n bytes for a purpose, n at most 8160. They reveal nothing about the key or other
// purposes.
func (k Key) Derive(purpose string, n int) []byte {
	out, err := hkdf.Key(sha256.New, k[:], nil, "shoal/1 "+purpose, n)
	if err != nil { // impossible: callers pass constants
		panic(err)
	}
	return out
}

// Keys are the valid keys: the first one signs, all are accepted. During a rotation there are two.
type Keys []Key

// maxKeys limits the number of valid keys.
const maxKeys = 4

// ParseKeys parses a key file: one key of 64 hexadecimal digits per line. It ignores blank lines,
// and text after #.
func ParseKeys(text []byte) (Keys, error) {
	var keys Keys
	for i, line := range bytes.Split(text, []byte("\n")) {
		// A remark after # helps to tell two keys apart.
		s, _, _ := strings.Cut(string(line), "#")
		if s = strings.TrimSpace(s); s == "" {
			continue
		}

		raw, err := hex.DecodeString(s)
		if err != nil || len(raw) != len(Key{}) {
			return nil, fmt.Errorf("cluster key: line %d: expected 64 hexadecimal digits, as shoal cluster-key new prints them", i+1)
		}
		if k := Key(raw); !keys.Has(k) {
			keys = append(keys, k)
		}
	}

	// A file without a key is a mistake: the node could reach no other node.
	switch {
	case len(keys) == 0:
		return nil, errors.New("cluster key: the file holds no key; make one with shoal cluster-key new")
	case len(keys) > maxKeys:
		return nil, fmt.Errorf("cluster key: %d keys; at most %d are valid at a time", len(keys), maxKeys)
	}
	return keys, nil
}

// Has reports whether k is one of the keys.
func (ks Keys) Has(k Key) bool {
	for _, other := range ks {
		if k == other {
			return true
		}
	}
	return false
}

// Seal encrypts and authenticates data under the first key. Open must name the same purpose.
func (ks Keys) Seal(purpose string, plain []byte) ([]byte, error) {
	if len(ks) == 0 {
		return nil, errors.New("seal: no cluster key")
	}
	box, err := ks[0].cipherFor(purpose)
	if err != nil {
		return nil, err
	}
	return box.Seal(nil, nil, plain, nil), nil
}

// Open decrypts what Seal encrypted under any of the keys.
func (ks Keys) Open(purpose string, sealed []byte) ([]byte, error) {
	for _, k := range ks {
		box, err := k.cipherFor(purpose)
		if err != nil {
			return nil, err
		}
		if plain, err := box.Open(nil, nil, sealed, nil); err == nil {
			return plain, nil
		}
	}
	return nil, fmt.Errorf("unseal %s: it was sealed under another cluster key, or is damaged", purpose)
}

// cipherFor returns the cipher for a purpose, with a key derived for it.
func (k Key) cipherFor(purpose string) (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.Derive("seal "+purpose, 32))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return box, nil
}
