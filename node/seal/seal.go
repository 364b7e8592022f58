// Package seal closes what stands in the catalog, or in files, for this cluster
// alone to open.
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

// Box seals things of one sort under a secret of the cluster, which stays the
// same when the key of the cluster changes. It is safe for concurrent use.
type Box struct {
	name   string
	what   string
	secret func(ctx context.Context, name string) ([]byte, error)

	turn chan struct{} // holds who gets the secret
	keys atomic.Pointer[keys]
}

// keys are what a box seals with.
type keys struct {
	aead cipher.AEAD
	tag  []byte
}

// New makes a box by the name of a secret. What it seals is named in errors, as
// "conversation".
func New(name, what string, secret func(ctx context.Context, name string) ([]byte, error)) *Box {
	return &Box{name: name, what: what, secret: secret, turn: make(chan struct{}, 1)}
}

// ready is the keys of the box, which it gets when they are first needed.
func (b *Box) ready(ctx context.Context) (*keys, error) {
	if k := b.keys.Load(); k != nil {
		return k, nil
	}
	k, err := b.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("seal of every %s: %w", b.what, err)
	}
	return k, nil
}

// get makes the keys out of the secret of the cluster.
func (b *Box) get(ctx context.Context) (*keys, error) {
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

// Seal seals bytes for one use: they cannot be opened for another.
func (b *Box) Seal(ctx context.Context, plain []byte, use string) ([]byte, error) {
	k, err := b.ready(ctx)
	if err != nil {
		return nil, err
	}
	return k.aead.Seal(nil, nil, plain, []byte(use)), nil
}

// Open opens what Seal sealed for the same use.
func (b *Box) Open(ctx context.Context, sealed []byte, use string) ([]byte, error) {
	k, err := b.ready(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := k.aead.Open(nil, nil, sealed, []byte(use))
	if err != nil {
		return nil, fmt.Errorf("a %s cannot be opened: its seal is broken, or is of another cluster", b.what)
	}
	return plain, nil
}

// Tag is a number that stands for a text, and says nothing of it outside this
// cluster. It is never 0.
func (b *Box) Tag(ctx context.Context, text string) (uint64, error) {
	k, err := b.ready(ctx)
	if err != nil {
		return 0, err
	}
	h := hmac.New(sha256.New, k.tag)
	h.Write([]byte(text))
	return binary.BigEndian.Uint64(h.Sum(nil)) | 1, nil
}
