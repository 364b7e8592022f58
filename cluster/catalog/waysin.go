package catalog

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// Password is what is kept of the password of an account.
type Password struct {
	Account string
	Hash    string // of argon2id, with its parameters and salt
	Set     time.Time
}

// Link lets whoever has it sign in to an account once, to choose a password or
// to link a provider. The token in it is not kept, only a hash of it.
type Link struct {
	ID      string // public, in logs
	Hash    []byte // HMAC-SHA-256 of the token
	Account string
	By      string
	Created time.Time
	Expires time.Time
}

// Identity is who an account is at an identity provider. Names and addresses
// there change and are given to others; the subject is not.
type Identity struct {
	Provider string // who gives the subject: the issuer, or the address of a code host
	Subject  string // the provider's lasting id
	Account  string
	Login    string // what the provider calls the person, for people
	Email    string
	Created  time.Time
}

// Key is where the identity stands in its table.
func (x *Identity) Key() string { return identityKey(x.Provider, x.Subject) }

// owned is where the identity stands among those of its account.
func (x *Identity) owned() string { return x.Account + "\x00" + x.Key() }

func identityKey(provider, subject string) string { return provider + "\x00" + subject }

// SetPassword sets the password of an account, signs it out everywhere but in
// one session, and ends its links.
type SetPassword struct {
	Account string
	Hash    string // "" takes the password away
	Link    string // id of the link that was shown; "" where none was needed
	But     string // id of the session that stays
}

// PutLink makes a link, in place of those that the account had.
type PutLink struct{ Link Link }

// LinkIdentity says that an account is somebody at a provider. It is refused
// where that is another account already.
type LinkIdentity struct {
	Identity Identity
	Link     string // id of the link that was shown, which ends; "" where none was needed
	// ByEmail says that nothing but the address, which the provider proves,
	// leads to the account: it must be the account's, proven, and the account
	// nobody else at the provider.
	ByEmail bool
	Proven  bool // the provider proves the address of the identity
}

// UnlinkIdentity takes that back. The last way to sign in stays.
type UnlinkIdentity struct {
	Account           string
	Provider, Subject string
	SignIn            []string // providers by which people sign in now
	NoPassword        bool     // nobody signs in by password now
}

// Join makes an account of somebody whom a provider knows. Where very many
// wait for approval already it is refused.
type Join struct {
	Account  User
	Identity Identity
}

// Bounds of ways to sign in.
const (
	maxPasswordHash = 256
	maxSubject      = 500
	longestLink     = 30 * 24 * time.Hour
	maxIdentitiesOf = 20
	maxPending      = 1000 // accounts that wait for approval: anybody whom a provider knows makes one
)

func (c *SetPassword) apply(t *txn) Result {
	a := t.accounts.Get(c.Account)
	switch {
	case a == nil || a.State == AccountSuspended:
		return refuse(NotFound, "there is no such account")
	case len(c.Hash) > maxPasswordHash:
		return refuse(Invalid, "the password is malformed")
	case !t.shows(c.Link, a.ID):
		return refuse(NotFound, "the link was used or has ended")
	}

	// Nobody who knew the old password stays, but the session in which it was changed.
	if c.Hash == "" {
		t.passwords.Delete(a.ID)
	} else {
		t.passwords.Set(a.ID, &Password{a.ID, c.Hash, t.now})
	}
	t.endLinks(a.ID)
	t.endSessions(func(s *Session) bool { return s.Account == a.ID && s.ID != c.But })
	return Result{ID: t.index}
}

// shows reports whether a link is in force and of an account. None needs no proof.
func (t *txn) shows(link, account string) bool {
	if link == "" {
		return true
	}
	l := t.links.Get(link)
	return l != nil && l.Account == account && t.now.Before(l.Expires)
}

func (t *txn) endLinks(account string) {
	for _, l := range t.links.Where(func(l *Link) bool { return l.Account == account }) {
		t.links.Delete(l.ID)
	}
}

func (c *PutLink) apply(t *txn) Result {
	l := c.Link
	if l.ID == "" || len(l.ID) > 64 || len(l.Hash) != keyHashLen || len(l.By) > maxNameText || l.Expires.After(t.now.Add(longestLink)) {
		return refuse(Invalid, "the link is malformed")
	}
	if a := t.accounts.Get(l.Account); a == nil || a.State == AccountSuspended {
		return refuse(NotFound, "there is no such account, or it is suspended")
	}
	if t.links.Get(l.ID) != nil {
		return refuse(Conflict, "the link exists")
	}

	// One link at a time: the newest is the one that was sent last.
	t.endLinks(l.Account)
	l.Created, l.Expires = t.now, codec.FromMillis(codec.ToMillis(l.Expires))
	t.links.Set(l.ID, &l)
	return Result{ID: t.index}
}

func (c *LinkIdentity) apply(t *txn) Result {
	a := t.accounts.Get(c.Identity.Account)
	if a == nil || a.State == AccountSuspended {
		return refuse(NotFound, "there is no such account, or it is suspended")
	}
	if !t.shows(c.Link, a.ID) {
		return refuse(NotFound, "the link was used or has ended")
	}

	if r := t.linkable(&c.Identity); r != nil {
		return Result{Err: r}
	}
	if c.ByEmail && !c.mayByEmail(t, a) {
		return refuse(Conflict, "the account cannot be found by this address")
	}

	if c.Link != "" {
		t.endLinks(a.ID)
	}

	// The provider proves the address of the account by the way.
	if a.Unproven && c.Proven && c.Identity.Email == a.Email {
		proven := *a
		proven.Unproven, proven.Changed = false, t.index
		t.setAccount(&proven)
	}

	t.setIdentity(c.Identity)
	return Result{ID: t.index}
}

// mayByEmail reports whether the address alone leads to the account.
func (c *LinkIdentity) mayByEmail(t *txn, a *User) bool {
	if !c.Proven || a.Unproven || c.Identity.Email != a.Email {
		return false
	}
	return !slices.ContainsFunc(t.IdentitiesOf(a.ID), func(x *Identity) bool {
		return x.Provider == c.Identity.Provider && x.Subject != c.Identity.Subject
	})
}

// linkable says why an identity cannot be that of its account, nil where it can.
func (t *txn) linkable(x *Identity) *Refusal {
	switch {
	case x.Provider == "" || x.Subject == "" || strings.ContainsRune(x.Provider+x.Subject, 0):
		return &Refusal{Invalid, "the identity is malformed"}
	case len(x.Provider) > maxNameText || len(x.Subject) > maxSubject || len(x.Login) > maxNameText || len(x.Email) > maxEmail:
		return &Refusal{Invalid, "the identity is malformed"}
	}

	// One person at a provider is one account here.
	old := t.identities.Get(x.Key())
	if old != nil && old.Account != x.Account {
		return &Refusal{Conflict, "that is somebody with another account"}
	}

	if old == nil && len(t.IdentitiesOf(x.Account)) >= maxIdentitiesOf {
		return &Refusal{Conflict, "the account has too many identities"}
	}
	return nil
}

func (t *txn) setIdentity(x Identity) {
	if old := t.identities.Get(x.Key()); old != nil {
		x.Created = old.Created
	} else {
		x.Created = t.now
	}
	t.identities.Set(x.Key(), &x)
	t.persons.Set(x.owned(), x.Key())
}

func (t *txn) forgetIdentity(x *Identity) {
	t.forgetHostToken(x.Key())
	t.identities.Delete(x.Key())
	t.persons.Delete(x.owned())
}

func (c *UnlinkIdentity) apply(t *txn) Result {
	x := t.identities.Get(identityKey(c.Provider, c.Subject))
	if x == nil || x.Account != c.Account {
		return refuse(NotFound, "there is no such identity")
	}

	// Only ways count that are open now: providers that are in the configuration.
	another := t.passwords.Get(c.Account) != nil && !c.NoPassword
	for _, y := range t.IdentitiesOf(c.Account) {
		another = another || y.Key() != x.Key() && slices.Contains(c.SignIn, y.Provider)
	}

	if !another {
		return refuse(Conflict, "this is the only way to sign in: add another one first")
	}

	t.forgetIdentity(x)
	return Result{ID: t.index}
}

func (c *Join) apply(t *txn) Result {
	// Both or neither: an account that nobody can sign in to would hold the address.
	if t.accounts.Get(c.Account.ID) != nil || c.Identity.Account != c.Account.ID || t.identities.Get(c.Identity.Key()) != nil {
		return refuse(Conflict, "there is such an account already")
	}

	if r := t.linkable(&c.Identity); r != nil {
		return Result{Err: r}
	}
	pending := func(a *User) bool { return a.State == AccountPending }
	if pending(&c.Account) && len(t.accounts.Where(pending)) >= maxPending {
		return refuse(Conflict, "too many people wait for approval: an owner has to decide about them first")
	}

	// The last that can be refused, so that a refusal leaves nothing.
	if r := (&PutAccount{Account: c.Account}).apply(t); r.Err != nil {
		return r
	}

	t.setIdentity(c.Identity)
	return Result{ID: t.index}
}

// IdentitiesOf are the identities of an account, by provider.
func (t *tables) IdentitiesOf(account string) (all []*Identity) {
	for _, key := range tree.Under(t.persons.From, account+"\x00") {
		all = append(all, t.identities.Get(key))
	}
	return all
}

// forgetWaysIn removes what an account signs in with.
func (t *txn) forgetWaysIn(account string) {
	t.passwords.Delete(account)
	t.endLinks(account)
	for _, x := range t.IdentitiesOf(account) {
		t.forgetIdentity(x)
	}
}

// PasswordOf is the password of an account, nil for none.
func (v *View) PasswordOf(account string) *Password { return v.passwords.Get(account) }

// LinkByHash finds a link by the HMAC of its token, or returns nil.
func (v *View) LinkByHash(hash []byte) *Link {
	for l := range v.links.Records() {
		if bytes.Equal(l.Hash, hash) {
			return l
		}
	}
	return nil
}

// Identity finds who somebody of a provider is here; nil for nobody.
func (v *View) Identity(provider, subject string) *Identity {
	return v.identities.Get(identityKey(provider, subject))
}
