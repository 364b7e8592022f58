package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Proof is what an identity provider says of somebody who signed in there.
type Proof struct {
	Method    string // the provider's name in the configuration
	Title     string // the provider's name for people
	Authority string // who gives the subject: the issuer, or the address of a code host
	Subject   string // the lasting id there
	Login     string // what the provider calls the person
	Name      string
	Email     string // "" where the provider tells none
	Proven    bool   // the provider has seen that the address is theirs

	Token *HostToken // that lets the provider be asked in their name; nil where it was not asked for
}

// IdentityInfo describes who an account is at a provider.
type IdentityInfo struct {
	Authority, Subject string
	Login, Email       string
	Created            time.Time
}

// Identities lets people in whom identity providers know. Who somebody is there
// goes by the provider's lasting id:
//
//	known ──────────────────────▶ the account
//	unknown, a proven address ──▶ the account of that address, where it was proven too
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

// NewIdentities keeps the identities of the catalog of passwords, whose links
// let people in for the first time.
func NewIdentities(p *Passwords) *Identities {
	return &Identities{p.catalog, p.sessions, p, NewHostTokens(p.catalog, p.now), p.lookup, p.now}
}

// recently is how long ago somebody signed in who may add a way to sign in.
const recently = 15 * time.Minute

// Enter signs somebody in. It fails with ErrForbidden where they have no account
// that may, and makes them one where they are new and may have one.
func (i *Identities) Enter(ctx context.Context, who Proof, in SignIn) (*BegunSession, error) {
	who = who.clean()
	x := i.catalog.View().Identity(who.Authority, who.Subject)
	if x == nil {
		// It may have been linked at another node just now.
		if _, err := i.catalog.Sync(ctx); err != nil {
			return nil, call.WriteError(err)
		}
		x = i.catalog.View().Identity(who.Authority, who.Subject)
	}

	if x == nil {
		account, err := i.receive(ctx, who)
		if err != nil {
			return nil, err
		}
		return i.begin(ctx, account, who, in)
	}

	if x.Login != who.Login || x.Email != who.Email {
		// What people read of it only: a lost change is made at the next sign-in.
		i.catalog.Propose(ctx, &catalog.LinkIdentity{Identity: who.identity(x.Account), Proven: who.Proven})
	}
	return i.begin(ctx, x.Account, who, in)
}

func (i *Identities) begin(ctx context.Context, account string, who Proof, in SignIn) (*BegunSession, error) {
	// As it is now: it may have been suspended while the person was at the provider.
	a := i.catalog.View().Account(account)
	if a == nil {
		return nil, call.Fail(call.ErrUnauthenticated, "This account may not sign in")
	}
	if err := mayEnter(a); err != nil {
		return nil, err
	}

	// Before the session, so that who is signed in has a token that works.
	if err := i.tokens.keep(ctx, account, who); err != nil {
		return nil, err
	}

	// By the name in the configuration: when that goes, the sessions end too.
	in.Method = who.Method
	return i.sessions.Begin(ctx, account, in)
}

// receive finds or makes the account of somebody whom a provider names for the
// first time.
func (i *Identities) receive(ctx context.Context, who Proof) (account string, err error) {
	// An account is known to owners by its address, so that there is none without.
	if who.Email == "" {
		return "", call.Fail(call.ErrForbidden, "%s tells no e-mail address of yours. Ask an owner of this service for an invitation, then link %s.", who.Title, who.Title)
	}

	if a := i.catalog.View().AccountByEmail(who.Email); a != nil {
		return a.ID, i.adopt(ctx, a, who)
	}
	return i.join(ctx, who)
}

// adopt links an account that the address leads to, where that is proof enough.
func (i *Identities) adopt(ctx context.Context, a *catalog.User, who Proof) error {
	// In the same words whatever it lacks: a stranger with an unproven
	// address learns no more of the account.
	elsewise := call.Fail(call.ErrForbidden, "Your address at %s is in use here. Sign in as you did before, then link %s in your account.", who.Title, who.Title)
	// Both have to be proven: else whoever makes an account with an address, here or there, gets
	// what belongs to it.
	if !who.Proven || a.Unproven || !flag(i.lookup, "AUTH_EE_ALLOW_EMAIL_ACCOUNT_LINKING", true) {
		return elsewise
	}

	// Not linked, since the identity would be there when the account is let in again.
	if a.State == catalog.AccountSuspended {
		return mayEnter(a)
	}

	linked := &catalog.LinkIdentity{Identity: who.identity(a.ID), ByEmail: true, Proven: true}
	_, err := i.catalog.Propose(ctx, linked)
	// It was changed between the look and the proposal, or is linked to
	// another: the other way is open still.
	if _, refused := catalog.Refused(err); refused {
		return elsewise
	}
	return call.WriteError(err)
}

// join makes an account of somebody new.
func (i *Identities) join(ctx context.Context, who Proof) (account string, err error) {
	// Before anything is written: whom nobody wants must not fill the catalog.
	if err := i.welcome(who); err != nil {
		return "", err
	}

	// Unless the operator has said otherwise, whoever is new waits for an owner.
	state := catalog.AccountActive
	if flag(i.lookup, "REQUIRE_APPROVAL_NEW_MEMBERS", true) {
		state = catalog.AccountPending
	}

	a := catalog.User{
		ID:       newID(),
		Email:    who.Email,
		Name:     who.Name,
		Role:     catalog.RoleMember,
		State:    state,
		By:       cut(who.Title, 100),
		Unproven: !who.Proven,
	}

	// Account and identity in one command: one without the other would be of
	// no use, and take the address.
	if _, err := i.catalog.Propose(ctx, &catalog.Join{Account: a, Identity: who.identity(a.ID)}); err != nil {
		if r, refused := catalog.Refused(err); refused {
			return "", call.Fail(call.ErrForbidden, "No account can be made for you now: %s.", r.Reason)
		}
		return "", call.WriteError(err)
	}
	return a.ID, nil
}

// welcome tells whether somebody new may have an account: by the domain of a
// proven address, where SHOAL_ALLOWED_EMAIL_DOMAINS names some.
func (i *Identities) welcome(who Proof) error {
	// No list lets in everybody whom a provider does.
	text, _ := i.lookup("SHOAL_ALLOWED_EMAIL_DOMAINS")
	domains := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ',' || r == ' ' })
	if len(domains) == 0 {
		return nil
	}

	// Only a proven address says something of a domain.
	if !who.Proven {
		return call.Fail(call.ErrForbidden, "%s does not prove that your address is yours, which this service asks for. Ask an owner of it for an invitation.", who.Title)
	}

	// There is one @ in it: clean takes no address that needs quotes.
	_, domain, _ := strings.Cut(who.Email, "@")
	if !slices.Contains(domains, domain) {
		return call.Fail(call.ErrForbidden, "People with an address of %s have no account here. Ask an owner of this service for an invitation.", domain)
	}
	return nil
}

// flag is a variable that is true or false; whatever else it is counts as unset.
func flag(lookup Lookup, name string, usual bool) bool {
	// A mistyped variable does not change what is usual.
	text, _ := lookup(name)
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true
	case "false":
		return false
	}
	return usual
}

// EnterWithLink signs in somebody who has a link, which is good no more then,
// and links them.
func (i *Identities) EnterWithLink(ctx context.Context, token string, who Proof, in SignIn) (*BegunSession, error) {
	l, err := i.links.link(ctx, token)
	if err != nil {
		return nil, err
	}

	who = who.clean()
	change := catalog.LinkIdentity{Identity: who.identity(l.Account), Link: l.ID, Proven: who.Proven}
	if err := i.put(ctx, change, who); err != nil {
		return nil, err
	}
	return i.begin(ctx, l.Account, who, in)
}

// MayLink fails unless somebody signed in not long ago: a browser that was left
// alone must not get somebody else a lasting way in.
func (i *Identities) MayLink(by Person) error {
	x := i.catalog.View().Session(by.Viewer().Session)
	if x == nil || i.now().Sub(x.Created) > recently {
		return call.Fail(call.ErrForbidden, "You signed in a while ago. Sign out, sign in again, then link.")
	}
	return nil
}

// Link says that a person is somebody at a provider.
func (i *Identities) Link(ctx context.Context, by Person, who Proof) error {
	who = who.clean()
	change := catalog.LinkIdentity{Identity: who.identity(by.Viewer().Account), Proven: who.Proven}
	if err := i.put(ctx, change, who); err != nil {
		return err
	}
	return i.tokens.keep(ctx, by.Viewer().Account, who)
}

// Tokens keeps what people gave to let hosts be asked in their name.
func (i *Identities) Tokens() *HostTokens { return i.tokens }

func (i *Identities) put(ctx context.Context, change catalog.LinkIdentity, who Proof) error {
	_, err := i.catalog.Propose(ctx, &change)
	if r, refused := catalog.Refused(err); refused {
		return call.Fail(call.ErrInvalid, "%s cannot be linked: %s.", who.Title, r.Reason)
	}
	return call.WriteError(err)
}

// IdentitiesOf lists who a person is at providers.
func (i *Identities) IdentitiesOf(by Person) (all []IdentityInfo) {
	for _, x := range i.catalog.View().IdentitiesOf(by.Viewer().Account) {
		all = append(all, IdentityInfo{x.Provider, x.Subject, x.Login, x.Email, x.Created})
	}
	return all
}

// Unlink takes an identity away. signIn are the authorities by which people
// sign in now: one of them, or a password, stays. Every node that can be reached
// has forgotten the identity when it returns.
func (i *Identities) Unlink(ctx context.Context, by Person, authority, subject string, signIn []string) error {
	// Whether a way to sign in is left is decided where the change is applied, so that two at once
	// cannot take the last two.
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

// clean is the proof in the form in which it is kept. What is no e-mail address
// is none.
func (p Proof) clean() Proof {
	// As accounts have it, since it is compared with their addresses.
	p.Email = plainEmail(p.Email)

	// Without an address nothing has been proven.
	p.Proven = p.Proven && p.Email != ""

	// Of a provider's texts only so much: they are kept in the catalog.
	p.Login = cut(p.Login, 200)
	p.Name = cut(p.Name, 200)
	p.Title = cut(p.Title, 100)
	return p
}

func (p Proof) identity(account string) catalog.Identity {
	return catalog.Identity{Provider: p.Authority, Subject: p.Subject, Account: account, Login: p.Login, Email: p.Email}
}
