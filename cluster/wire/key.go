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

// Key is a cluster key: the one secret that all nodes share.
type Key [32]byte

// NewKey makes a key.
func NewKey() Key {
	var k Key
	rand.Read(k[:]) // never fails: crypto/rand ends the program if it cannot read
	return k
}

// Text is the key as it stands in a key file: 64 hexadecimal digits.
func (k Key) Text() string { return hex.EncodeToString(k[:]) }

// String hides the key, so that no log can hold it.
func (k Key) String() string { return "key " + k.Fingerprint() }

// Fingerprint tells keys apart without giving them away: 8 hexadecimal
// digits.
func (k Key) Fingerprint() string { return hex.EncodeToString(k.Derive("fingerprint", 4)) }

// Derive makes n bytes for a purpose, n at most 8160. Nothing about the key or
// about other purposes follows from them.
func (k Key) Derive(purpose string, n int) []byte {
	out, err := hkdf.Key(sha256.New, k[:], nil, "shoal/1 "+purpose, n)
	if err != nil { // n is a constant of the callers
		panic(err)
	}
	return out
}

// Keys are the keys that are valid: the first one issues, all are accepted.
// While a key is rotated there are two.
type Keys []Key

// maxKeys bounds how many keys are valid at a time.
const maxKeys = 4

// ParseKeys reads a key file: a key of 64 hexadecimal digits on each line;
// blank lines and what follows a # do not count.
func ParseKeys(text []byte) (Keys, error) {
	var keys Keys
	for i, line := range bytes.Split(text, []byte("\n")) {
		// A remark behind a key says which one it is, while there are two.
		s, _, _ := strings.Cut(string(line), "#")
		if s = strings.TrimSpace(s); s == "" {
			continue
		}

		raw, err := hex.DecodeString(s)
		if err != nil || len(raw) != len(Key{}) {
			return nil, fmt.Errorf("cluster key: line %d: expected 64 hexadecimal digits, as shoal cluster-key new prints them", i+1)
		}
		keys = append(keys, Key(raw))
	}

	// None is a mistake, as of a file that was emptied: without a key a node would reach nobody.
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

// Seal encrypts under the first key, so that only who has it and names the
// same purpose can read and nobody else can write.
func (ks Keys) Seal(purpose string, plain []byte) ([]byte, error) {
	if len(ks) == 0 {
		return nil, errors.New("seal: no cluster key")
	}
	box, err := ks[0].box(purpose)
	if err != nil {
		return nil, err
	}
	return box.Seal(nil, nil, plain, nil), nil
}

// Open decrypts what Seal made under any of the keys.
func (ks Keys) Open(purpose string, sealed []byte) ([]byte, error) {
	for _, k := range ks {
		box, err := k.box(purpose)
		if err != nil {
			return nil, err
		}
		if plain, err := box.Open(nil, nil, sealed, nil); err == nil {
			return plain, nil
		}
	}
	return nil, fmt.Errorf("unseal %s: it was sealed under another cluster key, or is damaged", purpose)
}

func (k Key) box(purpose string) (cipher.AEAD, error) {
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
