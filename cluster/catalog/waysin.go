package catalog

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// Password is the stored password hash of an account.
type Password struct {
	Account string
	Hash    string // argon2id, with its parameters and salt
	Set     time.Time
}

// Link signs in to an account once, to choose a password or to link a provider. Its token is not
// stored, only a hash.
type Link struct {
	ID      string // public, in logs
	Hash    []byte // HMAC-SHA-256 of the token
	Account string
	By      string
	Created time.Time
	Expires time.Time
}

// Identity is a person at an identity provider, linked to an account. Names and addresses there may
// change or be reassigned; the subject never does.
type Identity struct {
	Provider string // issuer of the subject, or the URL of a code host
	Subject  string // the provider's permanent id
	Account  string
	Login    string // name at the provider, for display
	Email    string
	Created  time.Time
}

// Key returns the key of the identity in its table.
func (x *Identity) Key() string { return identityKey(x.Provider, x.Subject) }

// accountKey returns the key of the identity in the index by account.
func (x *Identity) accountKey() string { return x.Account + "\x00" + x.Key() }

func identityKey(provider, subject string) string { return provider + "\x00" + subject }

// SetPassword sets the password of an account. It ends all its sessions but one, and all its links.
type SetPassword struct {
	Account string
	Hash    string // "" removes the password
	Link    string // id of the link that was used; "": none was needed
	But     string // id of a session that stays
}

// PutLink creates a link and ends all others of the account.
type PutLink struct{ Link Link }

// LinkIdentity links an identity to an account. It is refused if the identity belongs to another
// account.
type LinkIdentity struct {
	Identity Identity
	Link     string // id of the link that was used, which ends; "": none was needed
	// ByEmail means that only the address leads to the account. The provider must have proven it,
	// and so must the account. The account must have no other identity at the provider.
	ByEmail bool
	Proven  bool // the provider proved the address of the identity
}

// UnlinkIdentity removes an identity from an account. It is refused for the last way to sign in.
type UnlinkIdentity struct {
	Account           string
	Provider, Subject string
	SignIn            []string // providers that are configured for sign-in now
	NoPassword        bool     // password sign-in is turned off now
}

// Join creates an account for a person whom a provider knows. It is refused if too many accounts
// wait for approval.
type Join struct {
	Account  User
	Identity Identity
}

// Limits of ways to sign in.
const (
	maxPasswordHash = 256
	maxSubject      = 500
	maxLinkAge      = 30 * 24 * time.Hour
	maxIdentitiesOf = 20
	maxPending      = 1000 // accounts that wait for approval: anybody with a provider can create one
)

func (c *SetPassword) apply(t *txn) Result {
	a := t.accounts.Get(c.Account)
	switch {
	case a == nil || a.State == AccountSuspended:
		return refuse(NotFound, "there is no such account")
	case len(c.Hash) > maxPasswordHash:
		return refuse(Invalid, "the password is malformed")
	case !t.linkAllows(c.Link, a.ID):
		return refuse(NotFound, "the link was used or has ended")
	}

	// End all sessions but the current one: someone else may know the old password.
	if c.Hash == "" {
		t.passwords.Delete(a.ID)
	} else {
		t.passwords.Set(a.ID, &Password{a.ID, c.Hash, t.now})
	}
	t.endLinks(a.ID)
	t.endSessions(func(s *Session) bool { return s.Account == a.ID && s.ID != c.But })
	return Result{ID: t.index}
}

// linkAllows reports whether a link is valid for an account. "" needs no proof.
func (t *txn) linkAllows(link, account string) bool {
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
	if l.ID == "" || len(l.ID) > 64 || len(l.Hash) != keyHashLen || len(l.By) > maxNameText || l.Expires.After(t.now.Add(maxLinkAge)) {
		return refuse(Invalid, "the link is malformed")
	}
	if a := t.accounts.Get(l.Account); a == nil || a.State == AccountSuspended {
		return refuse(NotFound, "there is no such account, or it is suspended")
	}
	if t.links.Get(l.ID) != nil {
		return refuse(Conflict, "the link exists")
	}

	// Only the newest link is valid.
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
	if !t.linkAllows(c.Link, a.ID) {
		return refuse(NotFound, "the link was used or has ended")
	}

	if r := t.linkRefusal(&c.Identity); r != nil {
		return Result{Err: r}
	}
	if c.ByEmail && !c.mayLinkByEmail(t, a) {
		return refuse(Conflict, "the account cannot be found by this address")
	}

	if c.Link != "" {
		t.endLinks(a.ID)
	}

	// The provider has proven the address of the account, too.
	if a.Unproven && c.Proven && c.Identity.Email == a.Email {
		proven := *a
		proven.Unproven, proven.Changed = false, t.index
		t.setAccount(&proven)
	}

	t.setIdentity(c.Identity)
	return Result{ID: t.index}
}

// mayLinkByEmail reports whether a proven address is enough to link the account.
func (c *LinkIdentity) mayLinkByEmail(t *txn, a *User) bool {
	if !c.Proven || a.Unproven || c.Identity.Email != a.Email {
		return false
	}
	return !slices.ContainsFunc(t.IdentitiesOf(a.ID), func(x *Identity) bool {
		return x.Provider == c.Identity.Provider && x.Subject != c.Identity.Subject
	})
}

// linkRefusal returns why an identity cannot be linked to its account, or nil.
func (t *txn) linkRefusal(x *Identity) *Refusal {
	switch {
	case x.Provider == "" || x.Subject == "" || strings.ContainsRune(x.Provider+x.Subject, 0):
		return &Refusal{Invalid, "the identity is malformed"}
	case len(x.Provider) > maxNameText || len(x.Subject) > maxSubject || len(x.Login) > maxNameText || len(x.Email) > maxEmail:
		return &Refusal{Invalid, "the identity is malformed"}
	}

	// A person at a provider has only one account here.
	old := t.identities.Get(x.Key())
	if old != nil && old.Account != x.Account {
		return &Refusal{Conflict, "that is somebody with another account"}
	}

	if old == nil && len(t.IdentitiesOf(x.Account)) >= maxIdentitiesOf {
		return &Refusal{Conflict, "the account has too many identities"}
	}
	return nil
}

// setIdentity links an identity to an account. It keeps the time at which the identity was first linked.
func (t *txn) setIdentity(x Identity) {
	if old := t.identities.Get(x.Key()); old != nil {
		x.Created = old.Created
	} else {
		x.Created = t.now
	}
	t.identities.Set(x.Key(), &x)
	t.persons.Set(x.accountKey(), x.Key())
}

func (t *txn) forgetIdentity(x *Identity) {
	t.forgetHostToken(x.Key())
	t.identities.Delete(x.Key())
	t.persons.Delete(x.accountKey())
}

func (c *UnlinkIdentity) apply(t *txn) Result {
	x := t.identities.Get(identityKey(c.Provider, c.Subject))
	if x == nil || x.Account != c.Account {
		return refuse(NotFound, "there is no such identity")
	}

	// Count only ways to sign in that are open now.
	otherWay := t.passwords.Get(c.Account) != nil && !c.NoPassword
	for _, y := range t.IdentitiesOf(c.Account) {
		otherWay = otherWay || y.Key() != x.Key() && slices.Contains(c.SignIn, y.Provider)
	}

	if !otherWay {
		return refuse(Conflict, "this is the only way to sign in: add another one first")
	}

	t.forgetIdentity(x)
	return Result{ID: t.index}
}

func (c *Join) apply(t *txn) Result {
	// Create both or neither: an account without a way to sign in would block the address.
	if t.accounts.Get(c.Account.ID) != nil || c.Identity.Account != c.Account.ID || t.identities.Get(c.Identity.Key()) != nil {
		return refuse(Conflict, "there is such an account already")
	}

	if r := t.linkRefusal(&c.Identity); r != nil {
		return Result{Err: r}
	}
	pending := func(a *User) bool { return a.State == AccountPending }
	if pending(&c.Account) && len(t.accounts.Where(pending)) >= maxPending {
		return refuse(Conflict, "too many people wait for approval: an owner has to decide about them first")
	}

	// PutAccount is the last step that may refuse, so that a refusal changes nothing.
	if r := (&PutAccount{Account: c.Account}).apply(t); r.Err != nil {
		return r
	}

	t.setIdentity(c.Identity)
	return Result{ID: t.index}
}

// IdentitiesOf returns the identities of an account, by provider.
func (t *tables) IdentitiesOf(account string) (all []*Identity) {
	for _, key := range tree.Under(t.persons.From, account+"\x00") {
		all = append(all, t.identities.Get(key))
	}
	return all
}

// forgetWaysIn removes all ways to sign in to an account.
func (t *txn) forgetWaysIn(account string) {
	t.passwords.Delete(account)
	t.endLinks(account)
	for _, x := range t.IdentitiesOf(account) {
		t.forgetIdentity(x)
	}
}

// PasswordOf returns the password of an account, or nil.
func (v *View) PasswordOf(account string) *Password { return v.passwords.Get(account) }

// LinkByHash returns the link with the HMAC of a token, or nil.
func (v *View) LinkByHash(hash []byte) *Link {
	for l := range v.links.Records() {
		if bytes.Equal(l.Hash, hash) {
			return l
		}
	}
	return nil
}

// Identity returns the identity of a provider's subject, or nil.
func (v *View) Identity(provider, subject string) *Identity {
	return v.identities.Get(identityKey(provider, subject))
}
