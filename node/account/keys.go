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

// KeyPrefix is the beginning of every API key, before 64 hex digits.
const KeyPrefix = "shoal_"

const (
	idDigits   = 8         // number of digits that are the public id
	touchEvery = time.Hour // interval of recording the last use of keys
)

// KeyInfo describes an API key without its secret.
type KeyInfo struct {
	ID      string       `json:"id"`
	Name    string       `json:"name"`
	Role    catalog.Role `json:"role"`
	Prefix  string       `json:"prefix"` // the beginning of the key, to recognise it
	Created time.Time    `json:"createdAt"`
	Expires time.Time    `json:"expiresAt,omitzero"`       // zero: never
	User    string       `json:"user,omitzero"`            // e-mail address of the account; "": none
	All     bool         `json:"allRepositories,omitzero"` // sees every repository
	Used    time.Time    `json:"lastUsedAt,omitzero"`      // last use, to about an hour; zero: never
}

// CreateKeyRequest describes a new API key.
type CreateKeyRequest struct {
	Name    string
	Role    catalog.Role  // RoleMember, RoleOwner or RoleMetrics; RoleNone means RoleMember
	Expires time.Duration // from now; 0 means never
	User    string        // e-mail address or id of its account; "": the caller's
	// All makes a key without an account that sees every repository, whatever is enforced. Only an
	// owner may set it.
	All bool
}

// CreateKeyResponse contains the key, which is never shown again.
type CreateKeyResponse struct {
	Info KeyInfo `json:",inline"`
	Key  string  `json:"key"` // shoal_<64 hex>
}

// Catalog is the part of *cluster.Cluster that accounts use.
type Catalog interface {
	// View returns the catalog as applied by this node.
	View() *catalog.View
	// Age returns for how long this node may have missed changes.
	Age() time.Duration
	// Outlived returns why this node's catalog is no longer valid, or nil.
	Outlived() error
	// Faults returns what is wrong with this node and separates it from the others.
	Faults() []string
	// Propose changes the catalog, and returns when this node has applied the change.
	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
	// Sync returns when this node has applied everything acknowledged before the call.
	Sync(ctx context.Context) (uint64, error)
	Others
	// Secret returns a secret of the cluster, which is the same on every node.
	Secret(ctx context.Context, name string) ([]byte, error)
}

// Keyring creates and checks API keys. The catalog stores their HMAC under a secret of the cluster,
// so a copy of the catalog opens nothing. It is safe for concurrent use.
type Keyring struct {
	catalog Catalog
	lookup  Lookup
	now     func() time.Time
	log     *slog.Logger
	unknown *unknownKeys
	macs    *macs
	used    *usedIDs // ids of used keys
}

// NewKeyring returns the keyring of a catalog. The caller must call Run.
func NewKeyring(c Catalog, lookup Lookup, now func() time.Time, log *slog.Logger) *Keyring {
	return &Keyring{
		catalog: c,
		lookup:  lookup,
		now:     Later(c, now),
		log:     log,
		unknown: newUnknownKeys(c.Sync, now),
		macs:    newMACs(c, "api-keys"),
		used:    newUsedIDs(),
	}
}

// WellFormed reports whether text has the form of an API key: the prefix and 64 hexadecimal digits.
func WellFormed(key string) bool {
	digits, ok := strings.CutPrefix(key, KeyPrefix)
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// Run records the last use of keys once an hour, until ctx ends.
func (k *Keyring) Run(ctx context.Context) error {
	for clock.Wait(ctx, touchEvery) {
		if ids := k.used.takeAll(); len(ids) > 0 {
			// On failure the next use is recorded again.
			k.catalog.Propose(ctx, &catalog.TouchKeys{Used: k.now(), IDs: ids})
		}
	}
	return nil
}

// Authenticate returns the viewer of an API key. It returns ErrUnauthenticated if the key is
// unknown, revoked or expired, or only opens the metrics. For a key that this node does not know it
// asks the leader. If that is impossible it returns ErrNoLeader or ErrOverloaded.
func (k *Keyring) Authenticate(ctx context.Context, text string) (catalog.Viewer, error) {
	v, err := k.viewerByText(ctx, text)
	if err == nil && v.Role == catalog.RoleMetrics {
		return catalog.Viewer{}, call.Fail(call.ErrUnauthenticated, "Not authenticated: this key opens /metrics and nothing else.")
	}
	return v, err
}

// MetricsViewer returns the viewer of a key with the role metrics. ok is false for other texts. It
// does not need a current catalog, because the metrics must show that a node has lost the leader.
func (k *Keyring) MetricsViewer(ctx context.Context, text string) (v catalog.Viewer, ok bool) {
	v, err := k.viewerByText(ctx, text)
	return v, err == nil && v.Role == catalog.RoleMetrics
}

// viewerByText returns the viewer of an API key with any role.
func (k *Keyring) viewerByText(ctx context.Context, text string) (catalog.Viewer, error) {
	unauthenticated := call.Fail(call.ErrUnauthenticated, "Not authenticated")
	if !WellFormed(text) {
		return catalog.Viewer{}, unauthenticated
	}

	sum, err := k.macs.sumOfClientText(ctx, k.unknown, "key", text)
	if err != nil {
		return catalog.Viewer{}, err
	}
	if sum == nil {
		return catalog.Viewer{}, unauthenticated // no key was ever created
	}

	// Another node may have just created the key.
	key := k.catalog.View().KeyByHash(sum)
	if key == nil {
		if err := k.unknown.askLeader(ctx, [sha256.Size]byte(sum)); err != nil {
			return catalog.Viewer{}, err
		}
		key = k.catalog.View().KeyByHash(sum)
	}
	if key == nil || !hmac.Equal(key.Hash, sum) || key.Expired(k.now()) {
		return catalog.Viewer{}, unauthenticated
	}

	// Read the account as it is now.
	v, ok := viewerOf(k.catalog.View(), key)
	if !ok {
		return catalog.Viewer{}, unauthenticated
	}
	if !keysWork(k.catalog.View(), v, k.lookup) {
		return catalog.Viewer{}, call.Fail(call.ErrUnauthenticated, "Not authenticated: keys of members do not work here. Sign in in a browser; agents are let in without a key.")
	}

	k.used.add(key.ID)
	return v, nil
}

// viewerOf returns the viewer of a key: the account with its present role, limited by the key's
// role. ok is false if the account may not sign in.
func viewerOf(view *catalog.View, key *catalog.Key) (catalog.Viewer, bool) {
	v := catalog.Viewer{Role: key.Role, Name: key.Name, KeyID: key.ID, All: key.All}
	// A key without an account has its own role.
	if key.Account == "" {
		return v, true
	}

	// The key ends with its account, without a change of its own.
	a := view.Account(key.Account)
	if a == nil || a.State != catalog.AccountActive {
		return catalog.Viewer{}, false
	}

	v.Account = a.ID
	// The key never has more than the account's present role.
	if a.Role == catalog.RoleMember {
		v.Role = catalog.RoleMember
	}
	return v, true
}

// keysWork reports whether the key of a viewer may be used. Members' keys may not if
// DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS is true. Keys without an account come from owners.
func keysWork(view *catalog.View, v catalog.Viewer, lookup Lookup) bool {
	if v.Account == "" || !boolVariable(lookup, "DISABLE_API_KEY_USAGE_FOR_NON_OWNER_USERS", false) {
		return true
	}

	// The owner's keys work even with the role of a member.
	a := view.Account(v.Account)
	return a != nil && a.Role == catalog.RoleOwner
}

// CreateKey creates an API key. An owner may create one for any account, or without an account.
// Others create keys for themselves, as members, unless
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

	// The first digits are the public id. The others are enough for a secret.
	var random [32]byte
	rand.Read(random[:])
	digits := hex.EncodeToString(random[:])
	text := KeyPrefix + digits

	sum, err := k.macs.macOf(ctx, "key", text)
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
		return nil, creationError(err, k.hasKeyNamed(account, req.Name))
	}
	return &CreateKeyResponse{Key: text, Info: keyInfo(k.catalog.View(), &key)}, nil
}

// hasKeyNamed reports whether an account has a key with a name; "": keys without an account.
func (k *Keyring) hasKeyNamed(account, name string) bool {
	for key := range k.catalog.View().Keys() {
		if key.Account == account && key.Name == name {
			return true
		}
	}
	return false
}

// check returns an error for a malformed request.
func (req *CreateKeyRequest) check() error {
	// A key is looked up by its id or name, so a name must not look like an id.
	looksLikeID := len(req.Name) == idDigits && strings.Trim(req.Name, "0123456789abcdef") == ""
	blank := strings.TrimSpace(req.Name) == ""

	switch {
	case looksLikeID:
		return call.Fail(call.ErrInvalid, "the name %q could be taken for the id of a key: choose another", req.Name)
	case blank || len(req.Name) > 100 || strings.ContainsAny(req.Name, "\n\r\t\x00"):
		return call.Fail(call.ErrInvalid, "a key needs a name of 1 to 100 bytes on one line")
	case req.Role != catalog.RoleMember && req.Role != catalog.RoleOwner && req.Role != catalog.RoleMetrics:
		return call.Fail(call.ErrInvalid, "the role of a key is member, owner or metrics")
	case req.Role == catalog.RoleMetrics && (req.All || req.User != ""):
		return call.Fail(call.ErrInvalid, "a key for metrics has no account and sees no repository")
	case req.Expires < 0:
		return call.Fail(call.ErrInvalid, "a key cannot expire in the past")
	}
	return nil
}

// accountFor returns the id of the account for a new key; "": none.
func (k *Keyring) accountFor(ctx context.Context, by Holder, req CreateKeyRequest) (string, error) {
	v := by.Viewer()
	if err := k.checkMayCreate(v, req); err != nil {
		return "", err
	}
	if req.All || req.Role == catalog.RoleMetrics {
		return "", nil
	}

	// A key made by an owner's key belongs to that owner. The operator's keys have no account.
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

// checkMayCreate returns an error if a viewer may not create a key. Owners may create any.
func (k *Keyring) checkMayCreate(v catalog.Viewer, req CreateKeyRequest) error {
	_, notOwner := AsOwner(v)
	// It sees more than an account might, so it has none, and only owners create it.
	if req.All && (notOwner != nil || req.User != "") {
		return call.Fail(call.ErrForbidden, "only an owner makes a key that sees every repository, and it is of no account")
	}
	if notOwner == nil {
		return nil
	}

	if boolVariable(k.lookup, "DISABLE_API_KEY_CREATION_FOR_NON_OWNER_USERS", false) {
		return call.Fail(call.ErrForbidden, "only owners make keys here: ask one of them")
	}

	// People may name themselves by id or address.
	forOther := req.User != "" && !k.isSelf(v, req.User)
	if forOther || req.Role == catalog.RoleOwner || req.Role == catalog.RoleMetrics {
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

	// Keys without an account have no user.
	if a := view.Account(k.Account); a != nil {
		info.User = a.Email
	}
	return info
}

// Keys returns the API keys that a holder manages. With consistent it includes everything changed
// on any node before the call, which needs a leader.
func (k *Keyring) Keys(ctx context.Context, by Holder, consistent bool) ([]KeyInfo, error) {
	// Sync only on request: it needs a leader, and listing must work without one.
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

// manages reports whether a holder may see and revoke a key.
func manages(by Holder, key *catalog.Key) bool {
	v := by.Viewer()
	return v.Role == catalog.RoleOwner || v.Account != "" && key.Account == v.Account
}

// RevokeKey revokes an API key, even one that another node has just created. When it returns, every
// reachable node refuses the key. Others refuse it once they hear of the leader again.
func (k *Keyring) RevokeKey(ctx context.Context, by Holder, name string) (*KeyInfo, error) {
	if _, err := k.catalog.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}
	key, err := keyNamed(k.catalog.View(), by, name)
	if err != nil {
		return nil, err
	}
	info := keyInfo(k.catalog.View(), key) // before the change

	index, err := k.catalog.Propose(ctx, &catalog.RevokeKey{ID: key.ID})
	if err != nil {
		return nil, call.WriteError(err)
	}

	// This node refuses the key already. Wait until the other nodes do.
	if behind := AwaitOthers(ctx, k.catalog, index); len(behind) > 0 {
		k.log.Warn("a revoked key works at nodes that could not be told until they hear of the leader", "key", key.ID, "nodes", behind)
	}
	return &info, nil
}

// keyNamed returns a managed key by its id, or else by its name. If several accounts have keys with
// the name, only the id works.
func keyNamed(view *catalog.View, by Holder, text string) (*catalog.Key, error) {
	// Other people's keys look like missing ones.
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

// secretTime is how long to wait for a webhook secret.
const secretTime = 5 * time.Second

// WebhookSecret returns the secret that signs the events of a connection. It is derived from a
// secret of the cluster.
func (k *Keyring) WebhookSecret(connection string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()

	sum, err := k.macs.macOf(ctx, "webhook", connection)
	if err != nil {
		return "", call.WriteError(err)
	}
	return hex.EncodeToString(sum), nil
}

// KnownWebhookSecret returns the same for an event from a stranger: "" if no secret was ever
// created, so that nobody can have it.
func (k *Keyring) KnownWebhookSecret(ctx context.Context, connection string) (string, error) {
	sum, err := k.macs.sumOfClientText(ctx, k.unknown, "webhook", connection)
	return hex.EncodeToString(sum), err
}
