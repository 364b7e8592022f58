package catalog

import (
	"iter"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// AccountState is the state of an account.
type AccountState uint8

// The states of an account. Stored records contain the numbers, which must never change.
const (
	AccountActive    AccountState = 1
	AccountSuspended AccountState = 2 // it cannot sign in, and its keys are refused
	AccountPending   AccountState = 3 // waits for an owner's approval; it cannot sign in
)

// String names the state as in the API: active, suspended, pending.
func (s AccountState) String() string { return nameOf(s, accountStates) }

var accountStates = []string{"unknown", AccountActive: "active", AccountSuspended: "suspended", AccountPending: "pending"}

// MarshalText implements encoding.TextMarshaler.
func (s AccountState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *AccountState) UnmarshalText(name []byte) error {
	*s = valueOf[AccountState](name, accountStates)
	return nil
}

// User is the account of a person.
type User struct {
	ID      string // random, never reused
	Email   string // in lower case; unique
	Name    string // for display; may be empty
	Role    Role   // RoleMember or RoleOwner
	State   AccountState
	Created time.Time
	By      string // who created it
	Changed uint64 // index of the entry that changed it last
	// Unproven means that neither an owner nor a provider has confirmed the address. So nobody gets
	// the account by proving the address.
	Unproven bool
}

// Grants are the repositories that one source lets an account see.
type Grants struct {
	Account string
	Source  string // GrantedByOwner, or the name of a synchronisation
	Repos   []byte // roaring bitmap of RepoIDs, as the library writes it
	At      time.Time
}

// GrantedByOwner is the source of grants that an owner gave one by one.
const GrantedByOwner = "owner"

// Key returns the key of the grants in their table.
func (g *Grants) Key() string { return grantsKey(g.Account, g.Source) }

func grantsKey(account, source string) string { return account + "\x00" + source }

// Set returns the repositories as a set that belongs to the caller.
func (g *Grants) Set() *roaring.Bitmap {
	set := roaring.New()
	if g == nil || len(g.Repos) == 0 {
		return set
	}
	// Apply checked every stored set, so this one can be read.
	if _, err := set.FromBuffer(g.Repos); err != nil {
		return roaring.New()
	}
	return set.Clone()
}

// PutAccount adds an account, or changes the name, role and state of an existing one. By and
// Created stay. It is refused if no active owner would be left. A suspended account is signed out.
type PutAccount struct {
	Account User
	// Instead is Changed of the account that the caller read, or 0 for a new account. It keeps two
	// concurrent changes from undoing each other.
	Instead uint64
}

// LastOwner is the reason of a refusal: after the change nobody could make owners.
const LastOwner = "this is the last owner who is active: make somebody else an owner first"

// DeleteAccount removes an account, its keys, grants, sessions and ways to sign in.
type DeleteAccount struct{ ID string }

// SetGrants adds and removes repositories that a source lets an account see.
type SetGrants struct {
	Account string
	Source  string
	Add     []RepoID
	Remove  []RepoID
}

// Limits of accounts.
const (
	maxAccounts     = 50000
	maxEmail        = 254
	maxNameText     = 200
	maxGrantChanges = 10000
)

// malformedReason returns why an account is malformed, or "".
func (a *User) malformedReason() string {
	switch {
	case a.ID == "" || len(a.ID) > 64 || strings.ContainsRune(a.ID, 0):
		return "an account needs an id"

	// The address is a key of an index. Lower case gives each address one spelling.
	case a.Email == "" || len(a.Email) > maxEmail || a.Email != strings.ToLower(a.Email) || !strings.Contains(a.Email, "@"):
		return "an account needs an e-mail address"
	case len(a.Name) > maxNameText:
		return "the account is malformed"

	case a.Role != RoleMember && a.Role != RoleOwner:
		return "the role of an account is member or owner"
	case a.State < AccountActive || a.State > AccountPending:
		return "the account has no state"
	}
	return ""
}

func (c *PutAccount) apply(t *txn) Result {
	a := c.Account
	if why := a.malformedReason(); why != "" {
		return refuse(Invalid, why)
	}

	// An address belongs to one account only.
	if id, taken := t.emails.Get(a.Email); taken && id != a.ID {
		return refuse(Conflict, "there is an account of "+a.Email+" already")
	}

	old := t.accounts.Get(a.ID)
	if old == nil {
		if t.accounts.Len() >= maxAccounts {
			return refuse(Conflict, "there are too many accounts")
		}
		a.Created, a.Changed = t.now, t.index
		t.setAccount(&a)
		return Result{ID: t.index}
	}

	if c.Instead != old.Changed {
		return refuse(Stale, "the account was changed meanwhile: try again")
	}

	if t.isLastOwner(old) && (a.Role != RoleOwner || a.State != AccountActive) {
		return refuse(Invalid, LastOwner)
	}

	a.Created, a.By, a.Changed = old.Created, old.By, t.index

	// An account that may not sign in keeps no session, link or consent.
	if a.State != AccountActive {
		t.signOut(a.ID)
	}

	if a.Email != old.Email {
		t.emails.Delete(old.Email)
	}

	t.setAccount(&a)
	return Result{ID: t.index}
}

// signOut ends everything by which an account is signed in.
func (t *txn) signOut(account string) {
	t.endSessions(func(s *Session) bool { return s.Account == account })
	t.endLinks(account)
	t.endConsents(func(x *Consent) bool { return x.Account == account })
	for _, x := range t.IdentitiesOf(account) {
		t.forgetHostToken(x.Key())
	}
}

func (t *txn) setAccount(a *User) {
	t.accounts.Set(a.ID, a)
	t.emails.Set(a.Email, a.ID)
}

// isLastOwner reports whether an account is the only active owner.
func (s *State) isLastOwner(a *User) bool {
	if a.Role != RoleOwner || a.State != AccountActive {
		return false
	}
	for other := range s.accounts.Records() {
		if other.ID != a.ID && other.Role == RoleOwner && other.State == AccountActive {
			return false
		}
	}
	return true
}

func (c *DeleteAccount) apply(t *txn) Result {
	a := t.accounts.Get(c.ID)
	if a == nil {
		return refuse(NotFound, "there is no such account")
	}

	if t.isLastOwner(a) {
		return refuse(Invalid, LastOwner)
	}

	// Delete what belongs to the account in the same entry.
	for _, k := range t.keys.Where(func(k *Key) bool { return k.Account == a.ID }) {
		t.keyHashes.Delete(string(k.Hash))
		t.keys.Delete(k.ID)
	}
	for _, g := range t.GrantsOf(a.ID) {
		t.grants.Delete(g.Key())
	}

	// Sessions, consents and linked identities must not outlive the account.
	t.endSessions(func(s *Session) bool { return s.Account == a.ID })
	t.endConsents(func(x *Consent) bool { return x.Account == a.ID })
	t.forgetWaysIn(a.ID)
	t.dropWatchesOf(a.ID)

	t.emails.Delete(a.Email)
	t.accounts.Delete(a.ID)
	return Result{ID: t.index}
}

// GrantsOf returns the grants of an account, by source.
func (t *tables) GrantsOf(account string) (all []*Grants) {
	for _, g := range tree.Under(t.grants.From, grantsKey(account, "")) {
		all = append(all, g)
	}
	return all
}

func (c *SetGrants) apply(t *txn) Result {
	if t.accounts.Get(c.Account) == nil {
		return refuse(NotFound, "there is no such account")
	}
	if c.Source == "" || len(c.Source) > maxNameText || len(c.Add)+len(c.Remove) > maxGrantChanges {
		return refuse(Invalid, "the grants are malformed")
	}
	for _, id := range c.Add {
		if t.repos.Get(id) == nil {
			return refuse(NotFound, "there is no such repository")
		}
	}

	// Apply a difference, so that two owners who grant at once do not undo each other.
	set := t.grants.Get(grantsKey(c.Account, c.Source)).Set()
	for _, id := range c.Remove {
		set.Remove(id)
	}
	set.AddMany(c.Add)
	return t.setGrants(c.Account, c.Source, set)
}

// setGrants stores what a source grants. An empty set deletes the record.
func (t *txn) setGrants(account, source string, set *roaring.Bitmap) Result {
	key := grantsKey(account, source)
	if set.IsEmpty() {
		t.grants.Delete(key)
		return Result{ID: t.index}
	}

	// Equal sets need equal bytes at every node: they are part of the state hash.
	set.RunOptimize()
	b, err := set.ToBytes()
	if err != nil {
		return refuse(Invalid, "the grants cannot be written")
	}

	t.grants.Set(key, &Grants{Account: account, Source: source, Repos: b, At: t.now})
	return Result{ID: t.index}
}

func (s *State) indexAccount(a *User) error {
	s.emails.Set(a.Email, a.ID)
	return nil
}

// Account returns the account with an id, or nil.
func (v *View) Account(id string) *User { return v.accounts.Get(id) }

// AccountByEmail returns the account with an address, or nil. Letter case is ignored.
func (v *View) AccountByEmail(email string) *User {
	return lookup(&v.emails, strings.ToLower(email), &v.accounts)
}

// Accounts iterates over all accounts by e-mail address.
func (v *View) Accounts() iter.Seq[*User] {
	return func(yield func(*User) bool) {
		for _, id := range v.emails.All() {
			if !yield(v.accounts.Get(id)) {
				return
			}
		}
	}
}
