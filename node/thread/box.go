package thread

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
)

// What is sealed for one use cannot be opened for another.
const (
	boxFile  = "turn"
	boxEntry = "entry"
	boxTitle = "title"
)

// secretName is the cluster's secret that conversations are sealed with. It
// stays the same when the key of the cluster changes.
const secretName = "threads"

// box seals conversations: they hold code. It is safe for concurrent use.
type box struct {
	secret func(ctx context.Context, name string) ([]byte, error)

	mu   sync.Mutex
	aead cipher.AEAD
	key  []byte
}

// ready gets the secret when it is first needed.
func (b *box) ready(ctx context.Context) (cipher.AEAD, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.aead != nil {
		return b.aead, nil
	}

	key, err := b.secret(ctx, secretName)
	if err != nil {
		return nil, fmt.Errorf("seal of conversations: %w", err)
	}

	block, err := aes.NewCipher(derived(key, "seal"))
	if err != nil {
		return nil, fmt.Errorf("seal of conversations: %w", err)
	}

	b.key = derived(key, "tag")
	b.aead, err = cipher.NewGCMWithRandomNonce(block)
	return b.aead, err
}

func derived(key []byte, use string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(use))
	return h.Sum(nil)
}

func (b *box) seal(ctx context.Context, plain []byte, use string) ([]byte, error) {
	a, err := b.ready(ctx)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, plain, []byte(use)), nil
}

func (b *box) open(ctx context.Context, sealed []byte, use string) ([]byte, error) {
	a, err := b.ready(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := a.Open(nil, nil, sealed, []byte(use))
	if err != nil {
		return nil, errors.New("a conversation cannot be opened: its seal is broken, or is of another cluster")
	}
	return plain, nil
}

func (b *box) tag(ctx context.Context, text string) (uint64, error) {
	if _, err := b.ready(ctx); err != nil {
		return 0, err
	}
	h := hmac.New(sha256.New, b.key)
	h.Write([]byte(text))
	return binary.BigEndian.Uint64(h.Sum(nil)) | 1, nil
}

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
