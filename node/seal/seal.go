// Package seal encrypts data in the catalog or in files, so that only this cluster can open it.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// Box encrypts one sort of data under a secret of the cluster. The secret stays the same when the
// cluster key changes. It is safe for concurrent use.
type Box struct {
	name   string
	what   string
	secret func(ctx context.Context, name string) ([]byte, error)

	turn chan struct{} // held while fetching the secret
	keys atomic.Pointer[keys]
}

// keys are derived from the secret.
type keys struct {
	aead cipher.AEAD
	tag  []byte
}

// New returns a box that uses the secret with this name. Errors name the sort of data as what, for
// example "conversation".
func New(name, what string, secret func(ctx context.Context, name string) ([]byte, error)) *Box {
	return &Box{name: name, what: what, secret: secret, turn: make(chan struct{}, 1)}
}

// derivedKeys returns the keys of the box. It derives them at the first call.
func (b *Box) derivedKeys(ctx context.Context) (*keys, error) {
	if k := b.keys.Load(); k != nil {
		return k, nil
	}
	k, err := b.deriveKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("seal of every %s: %w", b.what, err)
	}
	return k, nil
}

// deriveKeys derives the keys from the secret of the cluster.
func (b *Box) deriveKeys(ctx context.Context) (*keys, error) {
	// Only one goroutine fetches the key; the others wait until their own context ends.
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if k := b.keys.Load(); k != nil {
		return k, nil
	}

	secret, err := b.secret(ctx, b.name)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived(secret, "seal"))
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}

	k := &keys{aead, derived(secret, "tag")}
	b.keys.Store(k)
	return k, nil
}

func derived(key []byte, use string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(use))
	return h.Sum(nil)
}

// Seal encrypts data for one use. It cannot be opened for another use.
func (b *Box) Seal(ctx context.Context, plain []byte, use string) ([]byte, error) {
	k, err := b.derivedKeys(ctx)
	if err != nil {
		return nil, err
	}
	return k.aead.Seal(nil, nil, plain, []byte(use)), nil
}

// Open decrypts what Seal encrypted for the same use.
func (b *Box) Open(ctx context.Context, sealed []byte, use string) ([]byte, error) {
	k, err := b.derivedKeys(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := k.aead.Open(nil, nil, sealed, []byte(use))
	if err != nil {
		return nil, fmt.Errorf("a %s cannot be opened: its seal is broken, or is of another cluster", b.what)
	}
	return plain, nil
}

// Tag returns a keyed hash of a text, which reveals nothing outside this cluster. It is never 0.
func (b *Box) Tag(ctx context.Context, text string) (uint64, error) {
	k, err := b.derivedKeys(ctx)
	if err != nil {
		return 0, err
	}
	h := hmac.New(sha256.New, k.tag)
	h.Write([]byte(text))
	return binary.BigEndian.Uint64(h.Sum(nil)) | 1, nil
}
