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

// A box is something that only this cluster can have written and can read:
//
//	prefix | base64url( version u8 | made varint | nonce 12 bytes | AES-256-GCM of JSON )
//
// made names the secret of the ring. Key and nonce come from the secret and the
// kind of box, the nonce from what is in it too: what is equal is sealed to
// equal text, so that whoever asks again gets the same token. The head is
// authenticated with the rest, so a box of one kind never opens as another.
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
	largestBox = 16 << 10 // of its text
)

// errBox means that a text is no sealed value of the kind, or was changed.
var errBox = errors.New("not a value of this service")

// is tells whether a text claims to be of the kind.
func (k box) is(text string) bool { return strings.HasPrefix(text, k.prefix) }

// seal puts a value into a box.
func (s *rings) seal(ctx context.Context, k box, value any) (string, error) {
	// Secret, text and keys first: nothing is written where one is missing.
	made, secret, err := s.sealing(ctx, k.ring)
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	key, mac, err := k.keys(secret)
	if err != nil {
		return "", err
	}

	// The nonce comes from what is in it, so that what is equal becomes equal
	// and never two texts share one.
	h := hmac.New(sha256.New, mac)
	h.Write(plain)
	// The head is bound to the rest: neither the secret nor the version can be changed.
	head := binary.AppendVarint([]byte{boxVersion}, made)
	out := append(head, h.Sum(nil)[:nonceSize]...)
	return k.prefix + base64.RawURLEncoding.EncodeToString(key.Seal(out, out[len(head):], plain, k.bound(head))), nil
}

// open takes a value out of a box. It fails with errBox where it is none of
// ours, and with errNotReady where this node does not know its secret yet.
func (s *rings) open(ctx context.Context, k box, text string, value any) error {
	// Bounded before it is read: anybody may send one.
	text, ok := strings.CutPrefix(text, k.prefix)
	if !ok || len(text) > largestBox {
		return errBox
	}

	// Strict, so that a box has one spelling.
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) == 0 || raw[0] != boxVersion {
		return errBox
	}

	// It names its secret, so that all nodes try the same one.
	made, n := binary.Varint(raw[1:])
	if n <= 0 || len(raw) < 1+n+nonceSize {
		return errBox
	}
	head, nonce, sealed := raw[:1+n], raw[1+n:1+n+nonceSize], raw[1+n+nonceSize:]

	secret, err := s.opening(ctx, k.ring, made)
	if errors.Is(err, errSecret) {
		return errBox
	}
	if err != nil {
		return err
	}

	// The key is made for the kind, so that a box of one kind opens as no other.
	key, _, err := k.keys(secret)
	if err != nil {
		return err
	}

	plain, err := key.Open(nil, nonce, sealed, k.bound(head))
	if err != nil {
		return errBox
	}

	// What opens was written here: it is JSON of the right shape.
	dec := json.NewDecoder(bytes.NewReader(plain))
	return dec.Decode(value)
}

// keys are made of the secret for the kind of box.
func (k box) keys(secret []byte) (cipher.AEAD, []byte, error) {
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
