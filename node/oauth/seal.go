package oauth

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
)

// A box is data that only this cluster can write and read:
//
//	prefix | base64url( version u8 | made varint | nonce 12 bytes | AES-256-GCM of JSON )
//
// made identifies the secret of the ring. The key depends on the secret and the kind of box, and
// the nonce also on the content. So equal content gives equal text, and a repeated request gets the
// same token. The head is authenticated, too, so a box of one kind never opens as another.
type box struct {
	prefix string
	ring   ring
}

// The kinds of boxes.
var (
	clientBox  = box{"shoal-c.", clientRing}
	pendingBox = box{"shoal-q.", accessRing}
	codeBox    = box{"shoal_ac_", accessRing}
	accessBox  = box{"shoal_at_", accessRing}
	refreshBox = box{"shoal_rt_", refreshRing}
)

const (
	boxVersion = 1
	nonceSize  = 12
	largestBox = 16 << 10 // bytes of text
)

// errNotSealed is returned for a text that this cluster has not sealed as this kind of box, or that
// was changed since.
var errNotSealed = errors.New("not a value of this service")

// hasPrefixOf reports whether a text begins like a box of this kind. It may still be forged.
func (k box) hasPrefixOf(text string) bool { return strings.HasPrefix(text, k.prefix) }

// seal encrypts and authenticates a value, and returns it as text. Equal values give equal texts.
func (s *rings) seal(ctx context.Context, k box, value any) (string, error) {
	secretTime, secret, err := s.newestSecret(ctx, k.ring)
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	key, mac, err := k.deriveKeys(secret)
	if err != nil {
		return "", err
	}

	// Derive the nonce from the content: equal content gives equal text, and different content
	// different nonces.
	h := hmac.New(sha256.New, mac)
	h.Write(plain)
	// Authenticate the head, so that version and secret cannot be changed.
	head := binary.AppendVarint([]byte{boxVersion}, secretTime)
	out := append(head, h.Sum(nil)[:nonceSize]...)
	return k.prefix + base64.RawURLEncoding.EncodeToString(key.Seal(out, out[len(head):], plain, k.bound(head))), nil
}

// open opens a box. It returns errNotSealed if it is not ours, and errNotReady if this node does not have
// its secret yet.
func (s *rings) open(ctx context.Context, k box, text string, value any) error {
	// Limit the size first: anybody can send a text.
	text, ok := strings.CutPrefix(text, k.prefix)
	if !ok || len(text) > largestBox {
		return errNotSealed
	}

	// Decode strictly, so that a box has only one spelling.
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) == 0 || raw[0] != boxVersion {
		return errNotSealed
	}

	// The box names its secret.
	secretTime, n := binary.Varint(raw[1:])
	if n <= 0 || len(raw) < 1+n+nonceSize {
		return errNotSealed
	}
	head, nonce, sealed := raw[:1+n], raw[1+n:1+n+nonceSize], raw[1+n+nonceSize:]

	secret, err := s.secretForOpening(ctx, k.ring, secretTime)
	if errors.Is(err, errSecret) {
		return errNotSealed
	}
	if err != nil {
		return err
	}

	// The key depends on the kind, so that a box of one kind never opens as another.
	key, _, err := k.deriveKeys(secret)
	if err != nil {
		return err
	}

	plain, err := key.Open(nil, nonce, sealed, k.bound(head))
	if err != nil {
		return errNotSealed
	}

	// This cluster has sealed the text, so it is JSON of the expected type.
	dec := json.NewDecoder(bytes.NewReader(plain))
	return dec.Decode(value)
}

// deriveKeys derives the keys of a kind of box from a secret.
func (k box) deriveKeys(secret []byte) (cipher.AEAD, []byte, error) {
	raw, err := hkdf.Key(sha256.New, secret, nil, "shoal oauth "+k.prefix, 64)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(raw[:32])
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCM(block)
	return aead, raw[32:], err
}

func (k box) bound(head []byte) []byte { return append([]byte(k.prefix), head...) }
