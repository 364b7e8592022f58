package account

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// KeyPrefix begins every API key; 64 hex digits follow.
const KeyPrefix = "shoal_"

const (
	idDigits   = 8         // of a key are its public id
	touchEvery = time.Hour // the last use of keys is written down
)

// KeyInfo describes an API key without its secret.
type KeyInfo struct {
	ID      string       `json:"id"`
	Name    string       `json:"name"`
	Role    catalog.Role `json:"role"`
	Prefix  string       `json:"prefix"` // how the key begins, to recognise it
	Created time.Time    `json:"createdAt"`
	Expires time.Time    `json:"expiresAt,omitzero"`       // zero: never
	User    string       `json:"user,omitzero"`            // e-mail address of the account; "" for a key of nobody
	All     bool         `json:"allRepositories,omitzero"` // sees every repository
	Used    time.Time    `json:"lastUsedAt,omitzero"`      // last use, to the hour; zero: never
}

// CreateKeyRequest asks for a new API key.
type CreateKeyRequest struct {
	Name    string
	Role    catalog.Role  // RoleMember or RoleOwner; RoleNone means RoleMember
	Expires time.Duration // from now; 0 means never
	User    string        // e-mail address or id of the account that it is for; "" for whoever asks
	// All makes a key of nobody that sees every repository, also those whose
	// permissions are enforced. Only an owner makes one.
	All bool
}

// CreateKeyResponse carries the key, which is shown this once only.
type CreateKeyResponse struct {
	Info KeyInfo `json:",inline"`
	Key  string  `json:"key"` // shoal_<64 hex>
}

// Catalog is what keys need of the agreement; *cluster.Cluster has it.
type Catalog interface {
	// View is the catalog as this node has applied it.
	View() *catalog.View
	// Age is for how long this node may have missed changes.
	Age() time.Duration
	// Outlived is why the catalog of this node counts no more, nil while it does.
	Outlived() error
	// Propose changes it and returns when this node has applied the change.
	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
	// Sync returns when this node has applied all that was confirmed before.
	Sync(ctx context.Context) (uint64, error)
	Others
	// Secret is a secret of the cluster, the same on every node.
	Secret(ctx context.Context, name string) ([]byte, error)
}

// Keyring makes and checks API keys. The catalog has their HMAC under a secret of
// the cluster, so a copy of the catalog opens nothing. It is safe for
// concurrent use.
type Keyring struct {
	catalog Catalog
	lookup  Lookup
	now     func() time.Time
	log     *slog.Logger
	unknown *unknownKeys
	macs    *macs
	used    *marks // ids of keys
}

// NewKeyring makes the keyring of a catalog. The caller must call Run.
func NewKeyring(c Catalog, lookup Lookup, now func() time.Time, log *slog.Logger) *Keyring {
	return &Keyring{
		catalog: c,
		lookup:  lookup,
		now:     Later(c, now),
		log:     log,
		unknown: newUnknownKeys(c.Sync, now),
		macs:    newMACs(c, "api-keys"),
		used:    newMarks(),
	}
}

// WellFormed reports whether a text has the form of an API key: the prefix and
// 64 hexadecimal digits.
func WellFormed(key string) bool {
	digits, ok := strings.CutPrefix(key, KeyPrefix)
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// Run writes down when keys were used, once an hour, until ctx ends.
func (k *Keyring) Run(ctx context.Context) error {
	for clock.Wait(ctx, touchEvery) {
		if ids := k.used.take(); len(ids) > 0 {
			// A lost one is no loss: the next use is written down again.
			k.catalog.Propose(ctx, &catalog.TouchKeys{Used: k.now(), IDs: ids})
		}
	}
	return nil
}

// Authenticate finds the viewer of an API key. It fails with
// ErrUnauthenticated when the key is unknown, revoked or expired. A key that
// this node does not have yet is looked for once more after the leader was
// asked; where that cannot be done it fails with ErrNoLeader or ErrOverloaded.
func (k *Keyring) Authenticate(ctx context.Context, text string) (catalog.Viewer, error) {
	bad := call.Fail(call.ErrUnauthenticated, "Not authenticated")
	if !WellFormed(text) {
		return catalog.Viewer{}, bad
	}

	sum, err := k.macs.sumOfShown(ctx, k.unknown, "key", text)
	if err != nil {
		return catalog.Viewer{}, err
	}
	if sum == nil {
		return catalog.Viewer{}, bad // no key was ever made
	}

	// A key that was made at another node a moment ago is not here yet.
	key := k.catalog.View().KeyByHash(sum)
	if key == nil {
		if err := k.unknown.ask(ctx, [sha256.Size]byte(sum)); err != nil {
			return catalog.Viewer{}, err
		}
		key = k.catalog.View().KeyByHash(sum)
	}
	if key == nil || !hmac.Equal(key.Hash, sum) || key.Expired(k.now()) {
		return catalog.Viewer{}, bad
	}

	// The account is looked at as it is now: it may have changed since the key was made.
	v, ok := viewerOf(k.catalog.View(), key)
	if !ok {
		return catalog.Viewer{}, bad
	}
	if !keysWork(k.catalog.View(), v, k.lookup) {
		return catalog.Viewer{}, call.Fail(call.ErrUnauthenticated, "Not authenticated: keys of members do not work here. Sign in in a browser; agents are let in without a key.")
	}

	k.used.add(key.ID)
	return v, nil
}

// viewerOf is who asks with a key: the account as it is now, and never more
// than the key says. It is nobody where the account may not sign in.
func viewerOf(view *catalog.View, key *catalog.Key) (catalog.Viewer, bool) {
	v := catalog.Viewer{Role: key.Role, Name: key.Name, KeyID: key.ID, All: key.All}
	// A key of nobody is what it says.
	if key.Account == "" {
		return v, true
	}

	// A session or key of an account ends with it, without a change of its own.
	a := view.Account(key.Account)
	if a == nil || a.State != catalog.AccountActive {
		return catalog.Viewer{}, false
	}

	v.Account = a.ID
	// An account that is no owner any more makes its keys those of a member; one that became an
	// owner does not raise them.
	if a.Role == catalog.RoleMember {
		v.Role = catalog.RoleMember
	}
	return v, true
}

// keysWork tells whether the key of a viewer works: that of a member does not
// where DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS is true. One of nobody was made
// by an owner.
func keysWork(view *catalog.View, v catalog.Viewer, lookup Lookup) bool {
	if v.Account == "" || !flag(lookup, "DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS", false) {
		return true
	}

	// A key of an owner as a member is still of an owner.
	a := view.Account(v.Account)
	return a != nil && a.Role == catalog.RoleOwner
}

// CreateKey makes an API key. An owner makes one for any account, or for
// nobody; everybody else for themselves, with their own role at most, unless
// DISABLE_API_KEY_CREATION_FOR_NON_OWNER_USERS is true.
func (k *Keyring) CreateKey(ctx context.Context, by Holder, req CreateKeyRequest) (*CreateKeyResponse, error) {
	if req.Role == catalog.RoleNone {
		req.Role = catalog.RoleMember
	}
	account, err := k.accountFor(ctx, by, req)
	if err != nil {
		return nil, err
	}
	if err := req.check(); err != nil {
		return nil, err
	}

	// The first digits are public, as the id; the rest are enough to be a secret.
	var random [32]byte
	rand.Read(random[:])
	digits := hex.EncodeToString(random[:])
	text := KeyPrefix + digits

	sum, err := k.macs.sum(ctx, "key", text)
	if err != nil {
		return nil, call.WriteError(err)
	}

	key := catalog.Key{
		ID:      digits[:idDigits],
		Hash:    sum,
		Name:    req.Name,
		Role:    req.Role,
		Created: k.now(),
		By:      by.Viewer().Name,
		Account: account,
		All:     req.All,
	}
	if req.Expires > 0 {
		key.Expires = key.Created.Add(req.Expires)
	}

	if _, err := k.catalog.Propose(ctx, &catalog.CreateKey{Key: key}); err != nil {
		return nil, notMade(err, k.named(account, req.Name))
	}
	return &CreateKeyResponse{Key: text, Info: keyInfo(k.catalog.View(), &key)}, nil
}

// named reports whether an account, "" for nobody, has a key of a name.
func (k *Keyring) named(account, name string) bool {
	for key := range k.catalog.View().Keys() {
		if key.Account == account && key.Name == name {
			return true
		}
	}
	return false
}

// check says what is wrong with a request, but for whom the key is.
func (req *CreateKeyRequest) check() error {
	// A name and an id are looked up in one place, and must not be taken for each other.
	looksLikeID := len(req.Name) == idDigits && strings.Trim(req.Name, "0123456789abcdef") == ""
	blank := strings.TrimSpace(req.Name) == ""

	switch {
	case looksLikeID:
		return call.Fail(call.ErrInvalid, "the name %q could be taken for the id of a key: choose another", req.Name)
	case blank || len(req.Name) > 100 || strings.ContainsAny(req.Name, "\n\r\t\x00"):
		return call.Fail(call.ErrInvalid, "a key needs a name of 1 to 100 bytes on one line")
	case req.Role != catalog.RoleMember && req.Role != catalog.RoleOwner:
		return call.Fail(call.ErrInvalid, "the role of a key is member or owner")
	case req.Expires < 0:
		return call.Fail(call.ErrInvalid, "a key cannot expire in the past")
	}
	return nil
}

// accountFor is the id of the account that a new key is for, "" for nobody's.
func (k *Keyring) accountFor(ctx context.Context, by Holder, req CreateKeyRequest) (string, error) {
	v := by.Viewer()
	if err := k.mayMake(v, req); err != nil {
		return "", err
	}
	if req.All {
		return "", nil
	}

	// What a script of an owner makes is the owner's; the operator's is nobody's.
	if req.User == "" {
		return v.Account, nil
	}

	if _, err := k.catalog.Sync(ctx); err != nil {
		return "", call.WriteError(err)
	}
	a := accountNamed(k.catalog.View(), req.User)
	if a == nil {
		return "", call.Fail(call.ErrNotFound, "there is no account %q", req.User)
	}
	return a.ID, nil
}

// mayMake says why a viewer does not make a key. Owners make any.
func (k *Keyring) mayMake(v catalog.Viewer, req CreateKeyRequest) error {
	_, notOwner := AsOwner(v)
	// It sees what its account might not: so it has none, and only an owner makes one.
	if req.All && (notOwner != nil || req.User != "") {
		return call.Fail(call.ErrForbidden, "only an owner makes a key that sees every repository, and it is of no account")
	}
	if notOwner == nil {
		return nil
	}

	if flag(k.lookup, "DISABLE_API_KEY_CREATION_FOR_NON_OWNER_USERS", false) {
		return call.Fail(call.ErrForbidden, "only owners make keys here: ask one of them")
	}

	// By what is meant: a person may name themselves by id or address.
	forOther := req.User != "" && !k.isSelf(v, req.User)
	if forOther || req.Role == catalog.RoleOwner {
		return call.Fail(call.ErrForbidden, "you make keys of your own account only, as a member")
	}
	return nil
}

func (k *Keyring) isSelf(v catalog.Viewer, user string) bool {
	a := accountNamed(k.catalog.View(), user)
	return a != nil && a.ID == v.Account
}

func keyInfo(view *catalog.View, k *catalog.Key) KeyInfo {
	info := KeyInfo{
		ID:      k.ID,
		Prefix:  KeyPrefix + k.ID,
		Name:    k.Name,
		Role:    k.Role,
		Created: k.Created,
		Expires: k.Expires,
		Used:    k.Used,
		All:     k.All,
	}

	// A key of nobody has none.
	if a := view.Account(k.Account); a != nil {
		info.User = a.Email
	}
	return info
}

// Keys lists the API keys that somebody may manage, as this node knows them
// or, when consistent, with all that was changed at any node before the call,
// which fails without a leader.
func (k *Keyring) Keys(ctx context.Context, by Holder, consistent bool) ([]KeyInfo, error) {
	// Only where it is asked for: it needs a leader, and looking must go on without.
	if consistent {
		if _, err := k.catalog.Sync(ctx); err != nil {
			return nil, call.WriteError(err)
		}
	}

	var out []KeyInfo
	view := k.catalog.View()
	for key := range view.Keys() {
		if manages(by, key) {
			out = append(out, keyInfo(view, key))
		}
	}
	return out, nil
}

// manages tells whether somebody may see and end a key.
func manages(by Holder, key *catalog.Key) bool {
	v := by.Viewer()
	return v.Role == catalog.RoleOwner || v.Account != "" && key.Account == v.Account
}

// RevokeKey ends an API key. It knows the keys that were made at any node
// before the call. Every node that can be reached refuses the key when
// RevokeKey returns; one that is cut off does once it hears of the leader
// again.
func (k *Keyring) RevokeKey(ctx context.Context, by Holder, name string) (*KeyInfo, error) {
	if _, err := k.catalog.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}
	key, err := keyNamed(k.catalog.View(), by, name)
	if err != nil {
		return nil, err
	}
	info := keyInfo(k.catalog.View(), key) // as it was

	index, err := k.catalog.Propose(ctx, &catalog.RevokeKey{ID: key.ID})
	if err != nil {
		return nil, call.WriteError(err)
	}

	// The key is refused here already; the others get a moment to follow.
	if behind := AwaitOthers(ctx, k.catalog, index); len(behind) > 0 {
		k.log.Warn("a revoked key works at nodes that could not be told until they hear of the leader", "key", key.ID, "nodes", behind)
	}
	return &info, nil
}

// keyNamed finds a key that somebody manages by its id, else by its name. Two
// accounts may have keys of one name: then it takes the id.
func keyNamed(view *catalog.View, by Holder, text string) (*catalog.Key, error) {
	// What the caller does not manage is not there: neither its id nor its name tells anything.
	if key := view.Key(text); key != nil && manages(by, key) {
		return key, nil
	}

	var found *catalog.Key
	for key := range view.Keys() {
		if key.Name != text || !manages(by, key) {
			continue
		}
		if found != nil {
			return nil, call.Fail(call.ErrInvalid, "several accounts have a key %q: name it by its id", text)
		}
		found = key
	}

	if found == nil {
		return nil, call.Fail(call.ErrNotFound, "there is no key %q", text)
	}
	return found, nil
}

// secretTime is how long a webhook secret is waited for.
const secretTime = 5 * time.Second

// WebhookSecret is the secret that signs the events of a connection, derived
// from a secret of the cluster.
func (k *Keyring) WebhookSecret(connection string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()

	sum, err := k.macs.sum(ctx, "webhook", connection)
	if err != nil {
		return "", call.WriteError(err)
	}
	return hex.EncodeToString(sum), nil
}

// KnownWebhookSecret is the same for an event that somebody sends: "" where no
// secret was ever made, so that nobody can have it.
func (k *Keyring) KnownWebhookSecret(ctx context.Context, connection string) (string, error) {
	sum, err := k.macs.sumOfShown(ctx, k.unknown, "webhook", connection)
	return hex.EncodeToString(sum), err
}
