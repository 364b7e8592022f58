package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Proof is what an identity provider says about a person who signed in there.
type Proof struct {
	Method    string // the provider's name in the configuration
	Title     string // the provider's display name
	Authority string // issuer of the subject, or the URL of a code host
	Subject   string // permanent id at the provider
	Login     string // user name at the provider
	Name      string
	Email     string // "": the provider gives none
	Proven    bool   // the provider has verified the address

	Token *HostToken // for asking the provider in their name; nil: not requested
}

// IdentityInfo describes an identity of an account.
type IdentityInfo struct {
	Authority, Subject string
	Login, Email       string
	Created            time.Time
}

// Identities signs in people by identity providers. The provider's permanent id identifies a
// person:
//
//	known ──────────────────────▶ the account
//	unknown, a proven address ──▶ the account of that address, if it is proven there, too
//	unknown otherwise ──────────▶ a new account, which waits for an owner
//
// It is safe for concurrent use.
type Identities struct {
	catalog  Catalog
	sessions *Sessions
	links    *Passwords
	tokens   *HostTokens
	lookup   Lookup
	now      func() time.Time
}

// NewIdentities returns the identities of the same catalog. Links of p can sign people in for the
// first time.
func NewIdentities(p *Passwords) *Identities {
	return &Identities{p.catalog, p.sessions, p, NewHostTokens(p.catalog, p.now), p.lookup, p.now}
}

// recentSignIn is how old a session may be for adding a way to sign in.
const recentSignIn = 15 * time.Minute

// Enter signs a person in. A new person gets an account, if allowed. It returns ErrForbidden for a
// person without an active account.
func (i *Identities) Enter(ctx context.Context, who Proof, in SignIn) (*BegunSession, error) {
	who = who.normalized()
	x := i.catalog.View().Identity(who.Authority, who.Subject)
	if x == nil {
		// Another node may have just linked it.
		if _, err := i.catalog.Sync(ctx); err != nil {
			return nil, call.WriteError(err)
		}
		x = i.catalog.View().Identity(who.Authority, who.Subject)
	}

	if x == nil {
		account, err := i.findOrCreateAccount(ctx, who)
		if err != nil {
			return nil, err
		}
		return i.beginSession(ctx, account, who, in)
	}

	if x.Login != who.Login || x.Email != who.Email {
		// Only display texts change. If this fails, the next sign-in repeats it.
		i.catalog.Propose(ctx, &catalog.LinkIdentity{Identity: who.identity(x.Account), Proven: who.Proven})
	}
	return i.beginSession(ctx, x.Account, who, in)
}

// beginSession begins a session for an account whose person signed in at a provider.
func (i *Identities) beginSession(ctx context.Context, account string, who Proof, in SignIn) (*BegunSession, error) {
	// Read the account again: it may have been suspended meanwhile.
	a := i.catalog.View().Account(account)
	if a == nil {
		return nil, call.Fail(call.ErrUnauthenticated, "This account may not sign in")
	}
	if err := mayEnter(a); err != nil {
		return nil, err
	}

	// Store the token before the session begins, so that a signed-in person has a working token.
	if err := i.tokens.keepToken(ctx, account, who); err != nil {
		return nil, err
	}

	// Method is the provider's name in the configuration: if it is removed, its sessions end.
	in.Method = who.Method
	return i.sessions.Begin(ctx, account, in)
}

// findOrCreateAccount finds or creates the account of a new person.
func (i *Identities) findOrCreateAccount(ctx context.Context, who Proof) (account string, err error) {
	// Owners know accounts by address, so each needs one.
	if who.Email == "" {
		return "", call.Fail(call.ErrForbidden, "%s tells no e-mail address of yours. Ask an owner of this service for an invitation, then link %s.", who.Title, who.Title)
	}

	if a := i.catalog.View().AccountByEmail(who.Email); a != nil {
		return a.ID, i.linkByEmail(ctx, a, who)
	}
	return i.createAccount(ctx, who)
}

// linkByEmail links an account by its address, if the address is proven on both sides.
func (i *Identities) linkByEmail(ctx context.Context, a *catalog.User, who Proof) error {
	// The same error whatever is missing, so that a stranger learns nothing about the account.
	unproven := call.Fail(call.ErrForbidden, "Your address at %s is in use here. Sign in as you did before, then link %s in your account.", who.Title, who.Title)
	// Both sides must be proven. Otherwise whoever creates an account with an address, here or at
	// the provider, would get the other's.
	if !who.Proven || a.Unproven || !boolVariable(i.lookup, "AUTH_EE_ALLOW_EMAIL_ACCOUNT_LINKING", true) {
		return unproven
	}

	// Do not link it now: the identity would be there after a reactivation.
	if a.State == catalog.AccountSuspended {
		return mayEnter(a)
	}

	linked := &catalog.LinkIdentity{Identity: who.identity(a.ID), ByEmail: true, Proven: true}
	_, err := i.catalog.Propose(ctx, linked)
	// It has changed meanwhile, or is linked to another account. The person can still link it after
	// signing in the old way.
	if _, refused := catalog.Refused(err); refused {
		return unproven
	}
	return call.WriteError(err)
}

// createAccount creates an account for a new person.
func (i *Identities) createAccount(ctx context.Context, who Proof) (account string, err error) {
	// Check before writing: unwanted people must not fill the catalog.
	if err := i.checkWelcome(who); err != nil {
		return "", err
	}

	// By default a new account waits for an owner.
	state := catalog.AccountActive
	if boolVariable(i.lookup, "REQUIRE_APPROVAL_NEW_MEMBERS", true) {
		state = catalog.AccountPending
	}

	a := catalog.User{
		ID:       newID(),
		Email:    who.Email,
		Name:     who.Name,
		Role:     catalog.RoleMember,
		State:    state,
		By:       cutText(who.Title, 100),
		Unproven: !who.Proven,
	}

	// Create both in one command: one without the other would be useless, and occupy the address.
	if _, err := i.catalog.Propose(ctx, &catalog.Join{Account: a, Identity: who.identity(a.ID)}); err != nil {
		if r, refused := catalog.Refused(err); refused {
			return "", call.Fail(call.ErrForbidden, "No account can be made for you now: %s.", r.Reason)
		}
		return "", call.WriteError(err)
	}
	return a.ID, nil
}

// checkWelcome returns an error if a new person may not have an account, according to
// SHOAL_ALLOWED_EMAIL_DOMAINS.
func (i *Identities) checkWelcome(who Proof) error {
	// Without a list, everybody whom a provider admits is welcome.
	text, _ := i.lookup("SHOAL_ALLOWED_EMAIL_DOMAINS")
	domains := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ',' || r == ' ' })
	if len(domains) == 0 {
		return nil
	}

	// Only a proven address proves a domain.
	if !who.Proven {
		return call.Fail(call.ErrForbidden, "%s does not prove that your address is yours, which this service asks for. Ask an owner of it for an invitation.", who.Title)
	}

	// clean ensures that there is only one @.
	_, domain, _ := strings.Cut(who.Email, "@")
	if !slices.Contains(domains, domain) {
		return call.Fail(call.ErrForbidden, "People with an address of %s have no account here. Ask an owner of this service for an invitation.", domain)
	}
	return nil
}

// boolVariable returns the value of a boolean variable, or usual if it is neither true nor false.
func boolVariable(lookup Lookup, name string, defaultValue bool) bool {
	text, _ := lookup(name)
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true
	case "false":
		return false
	}
	return defaultValue
}

// EnterWithLink signs in a person who has a link, and links their identity. The link is used up.
func (i *Identities) EnterWithLink(ctx context.Context, token string, who Proof, in SignIn) (*BegunSession, error) {
	l, err := i.links.validLink(ctx, token)
	if err != nil {
		return nil, err
	}

	who = who.normalized()
	change := catalog.LinkIdentity{Identity: who.identity(l.Account), Link: l.ID, Proven: who.Proven}
	if err := i.proposeLink(ctx, change, who); err != nil {
		return nil, err
	}
	return i.beginSession(ctx, l.Account, who, in)
}

// MayLink returns an error unless the person signed in recently: an unattended browser must not
// give someone else a permanent way in.
func (i *Identities) MayLink(by Person) error {
	x := i.catalog.View().Session(by.Viewer().Session)
	if x == nil || i.now().Sub(x.Created) > recentSignIn {
		return call.Fail(call.ErrForbidden, "You signed in a while ago. Sign out, sign in again, then link.")
	}
	return nil
}

// Link links an identity to a person's account.
func (i *Identities) Link(ctx context.Context, by Person, who Proof) error {
	who = who.normalized()
	change := catalog.LinkIdentity{Identity: who.identity(by.Viewer().Account), Proven: who.Proven}
	if err := i.proposeLink(ctx, change, who); err != nil {
		return err
	}
	return i.tokens.keepToken(ctx, by.Viewer().Account, who)
}

// Tokens returns the host tokens of people.
func (i *Identities) Tokens() *HostTokens { return i.tokens }

func (i *Identities) proposeLink(ctx context.Context, change catalog.LinkIdentity, who Proof) error {
	_, err := i.catalog.Propose(ctx, &change)
	if r, refused := catalog.Refused(err); refused {
		return call.Fail(call.ErrInvalid, "%s cannot be linked: %s.", who.Title, r.Reason)
	}
	return call.WriteError(err)
}

// IdentitiesOf returns the identities of a person.
func (i *Identities) IdentitiesOf(by Person) (all []IdentityInfo) {
	for _, x := range i.catalog.View().IdentitiesOf(by.Viewer().Account) {
		all = append(all, IdentityInfo{x.Provider, x.Subject, x.Login, x.Email, x.Created})
	}
	return all
}

// Unlink removes an identity. signIn lists the authorities that are open for sign-in: one of them,
// or a password, must remain. When it returns, every reachable node has applied the change.
func (i *Identities) Unlink(ctx context.Context, by Person, authority, subject string, signIn []string) error {
	// The command checks the remaining ways itself, so that two concurrent calls cannot remove the
	// last two.
	index, err := i.catalog.Propose(ctx, &catalog.UnlinkIdentity{
		Account:    by.Viewer().Account,
		Provider:   authority,
		Subject:    subject,
		SignIn:     signIn,
		NoPassword: !i.links.ByPassword(),
	})
	if r, refused := catalog.Refused(err); refused {
		return call.Fail(call.ErrInvalid, "It stays linked: %s.", r.Reason)
	}
	if err != nil {
		return call.WriteError(err)
	}

	AwaitOthers(ctx, i.catalog, index)
	return nil
}

// normalized normalizes the proof. A malformed e-mail address becomes "".
func (p Proof) normalized() Proof {
	// Use the form of accounts, for comparison.
	p.Email = plainEmail(p.Email)

	p.Proven = p.Proven && p.Email != ""

	// Limit texts of the provider: the catalog stores them.
	p.Login = cutText(p.Login, 200)
	p.Name = cutText(p.Name, 200)
	p.Title = cutText(p.Title, 100)
	return p
}

func (p Proof) identity(account string) catalog.Identity {
	return catalog.Identity{Provider: p.Authority, Subject: p.Subject, Account: account, Login: p.Login, Email: p.Email}
}
