package catalog

import (
	"iter"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// AccountState is where an account is on its way.
type AccountState uint8

// The states of an account. The numbers stand in records and never change.
const (
	AccountActive    AccountState = 1
	AccountSuspended AccountState = 2 // its keys are refused
	AccountPending   AccountState = 3 // waits for an owner to approve it; nobody signs in to it
)

// String names the state as in the API: active, suspended, pending.
func (s AccountState) String() string { return nameOf(s, accountStates) }

var accountStates = []string{"unknown", AccountActive: "active", AccountSuspended: "suspended", AccountPending: "pending"}

// MarshalText implements encoding.TextMarshaler.
func (s AccountState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *AccountState) UnmarshalText(name []byte) error {
	*s = named[AccountState](name, accountStates)
	return nil
}

// User is the account of a person, who may have keys.
type User struct {
	ID      string // random, never used again
	Email   string // in lower case; no two accounts have the same
	Name    string // for people; may be empty
	Role    Role   // RoleMember or RoleOwner
	State   AccountState
	Created time.Time
	By      string // who made it
	Changed uint64 // index of the entry that changed it last
	// Unproven says that nobody has vouched for the address: neither an owner,
	// who made the account, nor a provider. It leads nobody to the account.
	Unproven bool
}

// Grants are the repositories that a source lets an account see.
type Grants struct {
	Account string
	Source  string // GrantedByOwner, or what synchronised them
	Repos   []byte // roaring bitmap of RepoIDs, as the library writes it
	At      time.Time
}

// GrantedByOwner is the source of grants that an owner gave one by one.
const GrantedByOwner = "owner"

// Key is where the grants stand in their table.
func (g *Grants) Key() string { return grantsKey(g.Account, g.Source) }

func grantsKey(account, source string) string { return account + "\x00" + source }

// Set is the repositories as a set that belongs to the caller.
func (g *Grants) Set() *roaring.Bitmap {
	set := roaring.New()
	if g == nil || len(g.Repos) == 0 {
		return set
	}
	// Apply has read every set that is kept, so this one can be read.
	if _, err := set.FromBuffer(g.Repos); err != nil {
		return roaring.New()
	}
	return set.Clone()
}

// PutAccount adds an account, or changes one of the same ID: its name, role
// and state. By and Created are kept. A change that leaves no active owner
// where there was one is refused. Whoever is suspended is signed out.
type PutAccount struct {
	Account User
	// Instead is Changed of the account that the change was made from, so
	// that two changes at once do not undo one another; for a new account 0.
	Instead uint64
}

// LastOwner is the reason for which a change of an account is refused, as Invalid,
// that would leave nobody who may make owners.
const LastOwner = "this is the last owner who is active: make somebody else an owner first"

// DeleteAccount removes an account, its keys, grants, sessions and ways to sign in.
type DeleteAccount struct{ ID string }

// SetGrants adds repositories to those that a source lets an account see, and
// takes some away.
type SetGrants struct {
	Account string
	Source  string
	Add     []RepoID
	Remove  []RepoID
}

// Bounds of people.
const (
	maxAccounts = 50000
	maxEmail    = 254
	maxNameText = 200
	maxGranted  = 10000
)

// mistake is why an account cannot be kept as it is; "" where it can.
func (a *User) mistake() string {
	switch {
	case a.ID == "" || len(a.ID) > 64 || strings.ContainsRune(a.ID, 0):
		return "an account needs an id"

	// The address is a key of the table of addresses: only lower case makes it one spelling a person.
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
	if why := a.mistake(); why != "" {
		return refuse(Invalid, why)
	}

	// One address is one account.
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

	if t.lastOwner(old) && (a.Role != RoleOwner || a.State != AccountActive) {
		return refuse(Invalid, LastOwner)
	}

	a.Created, a.By, a.Changed = old.Created, old.By, t.index

	// Whoever may not sign in has nothing left that signs in for them.
	if a.State != AccountActive {
		t.signOut(a.ID)
	}

	if a.Email != old.Email {
		t.emails.Delete(old.Email)
	}

	t.setAccount(&a)
	return Result{ID: t.index}
}

// signOut ends all that signs in for an account.
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

// lastOwner reports whether an account is the only active owner.
func (s *State) lastOwner(a *User) bool {
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

	if t.lastOwner(a) {
		return refuse(Invalid, LastOwner)
	}

	// What hangs on an account goes with it, in the same entry.
	for _, k := range t.keys.Where(func(k *Key) bool { return k.Account == a.ID }) {
		t.keyHashes.Delete(string(k.Hash))
		t.keys.Delete(k.ID)
	}
	for _, g := range t.GrantsOf(a.ID) {
		t.grants.Delete(g.Key())
	}

	// What signs in by itself must not outlive the account: a session, a program's consent, a linked identity.
	t.endSessions(func(s *Session) bool { return s.Account == a.ID })
	t.endConsents(func(x *Consent) bool { return x.Account == a.ID })
	t.forgetWaysIn(a.ID)

	t.emails.Delete(a.Email)
	t.accounts.Delete(a.ID)
	return Result{ID: t.index}
}

// GrantsOf are the grants of an account, by source.
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
	if c.Source == "" || len(c.Source) > maxNameText || len(c.Add)+len(c.Remove) > maxGranted {
		return refuse(Invalid, "the grants are malformed")
	}
	for _, id := range c.Add {
		if t.repos.Get(id) == nil {
			return refuse(NotFound, "there is no such repository")
		}
	}

	// Changes, not the whole: two owners who grant at once do not undo one another.
	set := t.grants.Get(grantsKey(c.Account, c.Source)).Set()
	for _, id := range c.Remove {
		set.Remove(id)
	}
	set.AddMany(c.Add)
	return t.setGrants(c.Account, c.Source, set)
}

// setGrants keeps what a source grants; an empty set is no record.
func (t *txn) setGrants(account, source string, set *roaring.Bitmap) Result {
	key := grantsKey(account, source)
	if set.IsEmpty() {
		t.grants.Delete(key)
		return Result{ID: t.index}
	}

	// Equal sets must have equal bytes at every node: they are part of the state hash.
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

// Account returns nil when there is none of that id.
func (v *View) Account(id string) *User { return v.accounts.Get(id) }

// AccountByEmail returns nil when there is none of that address, which is
// compared without regard to case.
func (v *View) AccountByEmail(email string) *User {
	return lookup(&v.emails, strings.ToLower(email), &v.accounts)
}

// Accounts goes through them by e-mail address.
func (v *View) Accounts() iter.Seq[*User] {
	return func(yield func(*User) bool) {
		for _, id := range v.emails.All() {
			if !yield(v.accounts.Get(id)) {
				return
			}
		}
	}
}
