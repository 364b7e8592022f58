package node

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// keyPrefix begins every API key; 64 hex digits follow.
const keyPrefix = "shoal_"

// idDigits is how many digits of a key are its public id.
const idDigits = 8

// touchEvery is how often the last use of keys is written down.
const touchEvery = time.Hour

// keyring makes and checks API keys. The catalog has their HMAC under a
// secret of the cluster, so a copy of the catalog opens nothing.
type keyring struct {
	n *Node

	mu     sync.Mutex // guards the fields below
	secret []byte
	used   map[string]time.Time // ids of keys, since the last writing down
}

func newKeyring(n *Node) *keyring { return &keyring{n: n, used: map[string]time.Time{}} }

// hmac is the form in which a key is kept.
func (k *keyring) hmac(ctx context.Context, label, text string) ([]byte, error) {
	k.mu.Lock()
	secret := k.secret
	k.mu.Unlock()
	if secret == nil {
		var err error
		if secret, err = k.n.cluster.Secret(ctx, "api-keys"); err != nil {
			return nil, err
		}
		k.mu.Lock()
		k.secret = secret
		k.mu.Unlock()
	}
	h := hmac.New(sha256.New, secret)
	fmt.Fprintf(h, "%s\x00%s", label, text)
	return h.Sum(nil), nil
}

// run writes down when keys were used, once an hour.
func (k *keyring) run(ctx context.Context) error {
	for {
		if !pause(ctx, touchEvery, nil) {
			return nil
		}
		k.mu.Lock()
		touch := &catalog.TouchKeys{Used: k.n.opt.Now()}
		for id := range k.used {
			touch.IDs = append(touch.IDs, id)
		}
		clear(k.used)
		k.mu.Unlock()
		if len(touch.IDs) > 0 {
			k.n.cluster.Propose(ctx, touch) // a lost one is no loss
		}
	}
}

// catalog is the viewer as the catalog knows viewers.
func (v Viewer) catalog() catalog.Viewer {
	w := catalog.Viewer{KeyID: v.KeyID}
	switch v.Role {
	case RoleMember:
		w.Role = catalog.RoleMember
	case RoleOwner:
		w.Role = catalog.RoleOwner
	}
	return w
}

// Authenticate finds the viewer of an API key. It fails with
// ErrUnauthenticated when the key is unknown, revoked or expired.
func (n *Node) Authenticate(ctx context.Context, key string) (Viewer, error) {
	bad := fail(ErrUnauthenticated, "Not authenticated")
	text, ok := strings.CutPrefix(key, keyPrefix)
	if _, err := hex.DecodeString(text); !ok || len(text) != 64 || err != nil {
		return Viewer{}, bad
	}
	sum, err := n.keys.hmac(ctx, "key", key)
	if err != nil {
		return Viewer{}, unavailable(err)
	}
	k := n.cluster.View().KeyByHash(sum)
	if k == nil || !hmac.Equal(k.Hash, sum) || !k.Expires.IsZero() && !n.opt.Now().Before(k.Expires) {
		return Viewer{}, bad
	}
	n.keys.mu.Lock()
	n.keys.used[k.ID] = n.opt.Now()
	n.keys.mu.Unlock()
	return Viewer{Role: roleOf(k.Role), Name: k.Name, KeyID: k.ID}, nil
}

func roleOf(r catalog.Role) Role {
	if r == catalog.RoleOwner {
		return RoleOwner
	}
	return RoleMember
}

// owner fails unless the viewer is an owner.
func owner(v Viewer) error {
	switch v.Role {
	case RoleOwner:
		return nil
	case RoleNone:
		return fail(ErrUnauthenticated, "Not authenticated")
	}
	return fail(ErrForbidden, "Only owners may do this")
}

// CreateKey makes an API key. Owners only.
func (n *Node) CreateKey(ctx context.Context, v Viewer, req CreateKeyRequest) (*CreateKeyResponse, error) {
	if err := owner(v); err != nil {
		return nil, err
	}
	if req.Role == RoleNone {
		req.Role = RoleMember
	}
	switch {
	case strings.TrimSpace(req.Name) == "" || len(req.Name) > 100 || strings.ContainsAny(req.Name, "\n\r\t\x00"):
		return nil, fail(ErrInvalid, "a key needs a name of 1 to 100 bytes on one line")
	case req.Role != RoleMember && req.Role != RoleOwner:
		return nil, fail(ErrInvalid, "the role of a key is member or owner")
	case req.Expires < 0:
		return nil, fail(ErrInvalid, "a key cannot expire in the past")
	}
	var random [32]byte
	rand.Read(random[:])
	digits := hex.EncodeToString(random[:])
	text := keyPrefix + digits
	sum, err := n.keys.hmac(ctx, "key", text)
	if err != nil {
		return nil, unavailable(err)
	}
	k := catalog.Key{ID: digits[:idDigits], Hash: sum, Name: req.Name, Role: catalog.RoleMember, Created: n.opt.Now(), By: v.Name}
	if req.Role == RoleOwner {
		k.Role = catalog.RoleOwner
	}
	if req.Expires > 0 {
		k.Expires = k.Created.Add(req.Expires)
	}
	if _, err := n.cluster.Propose(ctx, &catalog.CreateKey{Key: k}); err != nil {
		return nil, unavailable(err)
	}
	return &CreateKeyResponse{Key: text, Info: keyInfo(&k)}, nil
}

func keyInfo(k *catalog.Key) KeyInfo {
	return KeyInfo{ID: k.ID, Prefix: keyPrefix + k.ID, Name: k.Name, Role: roleOf(k.Role), Created: k.Created, Expires: k.Expires, Used: k.Used}
}

// Keys lists the API keys, as this node knows them or, when asked, with all
// that was changed at any node before the call. Owners only.
func (n *Node) Keys(ctx context.Context, v Viewer, req KeysRequest) (*KeysResponse, error) {
	if err := owner(v); err != nil {
		return nil, err
	}
	if req.Consistent {
		if _, err := n.cluster.Sync(ctx); err != nil {
			return nil, unavailable(err)
		}
	}
	out := &KeysResponse{}
	for k := range n.cluster.View().Keys() {
		out.Keys = append(out.Keys, keyInfo(k))
	}
	return out, nil
}

// RevokeKey ends an API key. It knows the keys that were made at any node
// before the call. Owners only.
func (n *Node) RevokeKey(ctx context.Context, v Viewer, req RevokeKeyRequest) (*RevokeKeyResponse, error) {
	if err := owner(v); err != nil {
		return nil, err
	}
	if _, err := n.cluster.Sync(ctx); err != nil {
		return nil, unavailable(err)
	}
	for k := range n.cluster.View().Keys() {
		if k.ID != req.Key && k.Name != req.Key {
			continue
		}
		if _, err := n.cluster.Propose(ctx, &catalog.RevokeKey{ID: k.ID}); err != nil {
			return nil, unavailable(err)
		}
		return &RevokeKeyResponse{Info: keyInfo(k)}, nil
	}
	return nil, fail(ErrNotFound, "there is no key %q", req.Key)
}

// unavailable gives the failures of a write their kinds.
func unavailable(err error) error {
	var refusal *catalog.Refusal
	switch {
	case errors.As(err, &refusal):
		switch refusal.Code {
		case catalog.NotFound:
			return fail(ErrNotFound, "%s", refusal.Reason)
		case catalog.Conflict, catalog.Stale:
			return fail(ErrExists, "%s", refusal.Reason)
		}
		return fail(ErrInvalid, "%s", refusal.Reason)
	case errors.Is(err, cluster.ErrNoLeader):
		return fail(ErrNoLeader, "the cluster has no leader now: %v", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(ErrTimeout, "the change was not confirmed in time")
	}
	return err
}

// WebhookSecret is the secret that signs the events of a connection, derived
// from a secret of the cluster.
func (n *Node) WebhookSecret(connection string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	sum, err := n.keys.hmac(ctx, "webhook", connection)
	if err != nil {
		return "", unavailable(err)
	}
	return hex.EncodeToString(sum), nil
}
