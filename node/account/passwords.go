package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// The cost of a password: argon2id with 19 MiB and two passes, a fifth of a second. Few are
// computed at once, so that nobody can overload a node with them.
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonLanes  = 1
	argonSalt   = 16
	argonKey    = 32

	hashesAtOnce  = 2
	hashesWaiting = 16

	shortestPassword = 10   // characters
	maxPassword      = 1024 // bytes
)

// Lifetimes of links.
const (
	joinLink  = 7 * 24 * time.Hour // for an invited person
	resetLink = 24 * time.Hour     // for a forgotten password, and for owners
)

// Passwords signs people in by e-mail address and password, and by links that work once. It is safe
// for concurrent use.
type Passwords struct {
	catalog  Catalog
	sessions *Sessions
	lookup   Lookup
	now      func() time.Time
	macs     *macs // of links
	hashing  *call.Lane
	attempts *attempts
	send     func(context.Context, *NewLink) error // nil where there is no mail server
}

// NewPasswords returns the passwords of a keyring's catalog. A successful sign-in begins a session
// in sessions.
func NewPasswords(k *Keyring, sessions *Sessions, lookup Lookup) *Passwords {
	return &Passwords{
		catalog:  k.catalog,
		sessions: sessions,
		lookup:   lookup,
		now:      k.now,
		macs:     newMACs(k.catalog, "links"),
		hashing:  call.NewLane("sign-ins", hashesAtOnce, hashesWaiting),
		attempts: newAttempts(k.now),
	}
}

// SendBy has every new link sent to whom it is for. It must be called before the first.
func (p *Passwords) SendBy(send func(context.Context, *NewLink) error) { p.send = send }

// ByPassword reports whether password sign-in is allowed: AUTH_CREDENTIALS_LOGIN_ENABLED is not
// false.
func (p *Passwords) ByPassword() bool {
	text, ok := p.lookup("AUTH_CREDENTIALS_LOGIN_ENABLED")
	return !ok || !strings.EqualFold(strings.TrimSpace(text), "false")
}

// BeginWithPassword signs in by e-mail address and password. Any mistake gives the same
// ErrUnauthenticated, after the same time. After some failures it returns ErrOverloaded for a
// while, without checking the password. Failures write nothing to the catalog.
func (p *Passwords) BeginWithPassword(ctx context.Context, email, password string, in SignIn) (*BegunSession, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	if !p.ByPassword() {
		return nil, call.Fail(call.ErrForbidden, "Nobody signs in by password here.")
	}
	if wait := p.attempts.waitTime(email, in.Address); wait > 0 {
		return nil, tooOften(wait)
	}

	// An unknown address takes as long as a known one.
	view := p.catalog.View()
	hash := nobodysHash
	a := view.AccountByEmail(email)
	if a != nil && view.PasswordOf(a.ID) != nil {
		hash = view.PasswordOf(a.ID).Hash
	}
	fits, err := p.matchesHash(ctx, hash, password)
	if err != nil {
		return nil, err
	}

	if !fits || a == nil || hash == nobodysHash {
		p.attempts.recordFailure(email, in.Address)
		return nil, call.Fail(call.ErrUnauthenticated, "That address and password do not fit.")
	}
	if err := mayEnter(a); err != nil {
		return nil, err
	}

	p.attempts.succeeded(email, in.Address)
	in.Method = "password"
	return p.sessions.Begin(ctx, a.ID, in)
}

// mayEnter returns an error if an account may not sign in.
func mayEnter(a *catalog.User) error {
	switch a.State {
	case catalog.AccountActive:
		return nil
	case catalog.AccountPending:
		return call.Fail(call.ErrForbidden, "Your account waits for an owner to approve it.")
	}
	return call.Fail(call.ErrForbidden, "Your account is suspended. Ask an owner of this service.")
}

func tooOften(wait time.Duration) error {
	return &call.Error{Kind: call.ErrOverloaded, Message: "Too many attempts to sign in failed: wait a moment, then try again.", RetryAfter: wait}
}

// matchesHash reports whether a hash is that of a password. A password that is too long never fits.
func (p *Passwords) matchesHash(ctx context.Context, hash, password string) (bool, error) {
	// Hash something anyway, so that every failure takes the same time.
	long := len(password) > maxPassword
	if long {
		password = ""
	}

	// An unreadable hash fits no password.
	h, ok := parseHash(hash)
	if !ok {
		return false, nil
	}

	// Limit concurrent hashes: each uses much memory and time.
	leave, _, err := p.hashing.Enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()

	got := argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.lanes, uint32(len(h.key)))
	same := subtle.ConstantTimeCompare(got, h.key) == 1
	return same && !long, nil
}

// hashPassword returns the stored form of a password.
func (p *Passwords) hashPassword(ctx context.Context, password string) (string, error) {
	leave, _, err := p.hashing.Enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()

	// A random salt: equal passwords must have different hashes.
	salt := make([]byte, argonSalt)
	rand.Read(salt)
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonLanes, argonKey)

	// Store the cost in the usual format, so that it can be raised later.
	b64 := base64.RawStdEncoding
	cost := fmt.Sprintf("m=%d,t=%d,p=%d", argonMemory, argonTime, argonLanes)
	return fmt.Sprintf("$argon2id$v=%d$%s$%s$%s", argon2.Version, cost, b64.EncodeToString(salt), b64.EncodeToString(key)), nil
}

// nobodysHash is a hash of the usual cost that no password fits.
const nobodysHash = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// argonHash is a parsed hash.
type argonHash struct {
	memory, time uint32
	lanes        uint8
	salt, key    []byte
}

func parseHash(text string) (h argonHash, ok bool) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != "v=19" {
		return h, false
	}

	n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.lanes)
	if err != nil || n != 3 {
		return h, false
	}

	// A higher cost would overload the node.
	tooDear := h.memory > 1<<18 || h.time > 16
	if tooDear || h.time == 0 || h.lanes == 0 {
		return h, false
	}

	var err1, err2 error
	h.salt, err1 = base64.RawStdEncoding.DecodeString(parts[4])
	h.key, err2 = base64.RawStdEncoding.DecodeString(parts[5])
	return h, err1 == nil && err2 == nil && len(h.key) >= 16
}

// checkPassword returns an error for a password that is too simple or too long.
func checkPassword(password string, a *catalog.User) error {
	short := utf8.RuneCountInString(password) < shortestPassword
	if short || len(password) > maxPassword {
		return call.Fail(call.ErrInvalid, "a password has at least %d characters, and at most %d bytes", shortestPassword, maxPassword)
	}

	sameLetter := strings.Count(password, password[:1]) == len(password)
	if sameLetter || strings.EqualFold(password, a.Email) {
		return call.Fail(call.ErrInvalid, "that password is guessed at once: choose another")
	}
	return nil
}

// SetPasswordRequest sets the password of an account.
type SetPasswordRequest struct {
	User     string // id or e-mail address
	Password string
}

// SetPassword sets the password of any account, and ends all its sessions.
func (p *Passwords) SetPassword(ctx context.Context, _ Owner, req SetPasswordRequest) (*UserInfo, error) {
	people := NewPeople(p.catalog)
	a, err := people.findAccount(ctx, req.User)
	if err != nil {
		return nil, err
	}
	if err := p.set(ctx, a, req.Password, catalog.SetPassword{}); err != nil {
		return nil, err
	}
	return people.userInfoOf(p.catalog.View().Account(a.ID)), nil
}

// ChangePassword sets the caller's own password. The old one is required, if there is one. All
// other sessions end.
func (p *Passwords) ChangePassword(ctx context.Context, by Person, old, password, address string) error {
	v := by.Viewer()
	view := p.catalog.View()
	a := view.Account(v.Account)
	if a == nil || v.Session == "" {
		return call.Fail(call.ErrForbidden, "Sign in to change your password.")
	}
	if err := p.checkOldPassword(ctx, view, a, old, address); err != nil {
		return err
	}
	return p.set(ctx, a, password, catalog.SetPassword{But: v.Session})
}

// checkOldPassword returns an error unless password is the account's. An account without a password needs
// none.
func (p *Passwords) checkOldPassword(ctx context.Context, view *catalog.View, a *catalog.User, password, address string) error {
	stored := view.PasswordOf(a.ID)
	if stored == nil {
		return nil
	}

	// Limit attempts as for sign-ins: a stolen session must not be used for guessing.
	if wait := p.attempts.waitTime(a.Email, address); wait > 0 {
		return tooOften(wait)
	}

	fits, err := p.matchesHash(ctx, stored.Hash, password)
	if err != nil {
		return err
	}
	if !fits {
		p.attempts.recordFailure(a.Email, address)
		return call.Fail(call.ErrInvalid, "that is not your present password")
	}
	return nil
}

func (p *Passwords) set(ctx context.Context, a *catalog.User, password string, change catalog.SetPassword) error {
	if err := checkPassword(password, a); err != nil {
		return err
	}
	hash, err := p.hashPassword(ctx, password)
	if err != nil {
		return err
	}

	change.Account, change.Hash = a.ID, hash
	index, err := p.catalog.Propose(ctx, &change)
	if err != nil {
		return call.WriteError(err)
	}

	// Wait until other nodes refuse the ended sessions, too.
	AwaitOthers(ctx, p.catalog, index)
	return nil
}

// NewLinkRequest requests a link that signs in once.
type NewLinkRequest struct {
	User string // id or e-mail address
	Join bool   // an invitation: the link of a member is valid for a week
}

// NewLink is a new link. Its token is never shown again.
type NewLink struct {
	Token   string // 64 hex digits
	Expires time.Time
	User    UserInfo
	Mail    string // what came of sending it; "" where there is no mail server
}

// NewLink creates a link by which a person signs in once, to choose a password or to link a
// provider. Earlier links of the account end. A link that cannot be sent is as good: its owner
// hands it on.
func (p *Passwords) NewLink(ctx context.Context, by Owner, req NewLinkRequest) (*NewLink, error) {
	people := NewPeople(p.catalog)
	a, err := people.findAccount(ctx, req.User)
	if err != nil {
		return nil, err
	}

	// An owner's link opens more, so it is valid for only a day, even as an invitation.
	life := resetLink
	if req.Join && a.Role != catalog.RoleOwner {
		life = joinLink
	}

	// The id is separate from the token, so that logs and lists may show it.
	var random [sessionDigits/2 + 8]byte
	rand.Read(random[:])
	token := hex.EncodeToString(random[8:])
	sum, err := p.macs.macOf(ctx, "link", token)
	if err != nil {
		return nil, call.WriteError(err)
	}

	// The catalog keeps one link per account, so an earlier one ends.
	l := catalog.Link{
		ID:      "l" + hex.EncodeToString(random[:8]),
		Hash:    sum,
		Account: a.ID,
		By:      by.Name(),
		Expires: p.now().Add(life),
	}
	if _, err := p.catalog.Propose(ctx, &catalog.PutLink{Link: l}); err != nil {
		return nil, call.WriteError(err)
	}
	newLink := &NewLink{Token: token, Expires: l.Expires, User: *people.userInfoOf(a)}
	if p.send != nil {
		newLink.Mail = "sent to " + newLink.User.Email
		if err := p.send(ctx, newLink); err != nil {
			newLink.Mail = fmt.Sprintf("not sent to %s, hand it on yourself: %v", newLink.User.Email, err)
		}
	}
	return newLink, nil
}

// LinkOwner returns the account of a valid link, or ErrNotFound.
func (p *Passwords) LinkOwner(ctx context.Context, token string) (*UserInfo, error) {
	l, err := p.validLink(ctx, token)
	if err != nil {
		return nil, err
	}
	return NewPeople(p.catalog).userInfoOf(p.catalog.View().Account(l.Account)), nil
}

// validLink returns the link with this token, or an error if it was used or has expired.
func (p *Passwords) validLink(ctx context.Context, token string) (*catalog.Link, error) {
	notFound := call.Fail(call.ErrNotFound, "This link was used or has ended. If you chose a password by it, sign in with it; else ask an owner for a new link.")
	if len(token) != sessionDigits || strings.Trim(token, "0123456789abcdef") != "" {
		return nil, notFound
	}

	sum, err := p.macs.sumOfClientText(ctx, p.sessions.unknown, "link", token)
	if err != nil {
		return nil, err
	}
	if sum == nil {
		return nil, notFound // no link was ever created
	}

	// Another node may have just created the link.
	l := p.catalog.View().LinkByHash(sum)
	if l == nil {
		if err := p.sessions.unknown.askLeader(ctx, [32]byte(sum)); err != nil {
			return nil, err
		}
		l = p.catalog.View().LinkByHash(sum)
	}

	over := l == nil || !p.now().Before(l.Expires)
	if over || p.catalog.View().Account(l.Account) == nil {
		return nil, notFound
	}
	return l, nil
}

// BeginWithLink sets a password with a link, which is used up, and signs in.
func (p *Passwords) BeginWithLink(ctx context.Context, token, password string, in SignIn) (*BegunSession, error) {
	l, err := p.validLink(ctx, token)
	if err != nil {
		return nil, err
	}
	if !p.ByPassword() {
		return nil, call.Fail(call.ErrForbidden, "Nobody signs in by password here.")
	}

	// Set the password even if the account may not sign in yet: the link is used up.
	a := p.catalog.View().Account(l.Account)
	if err := p.set(ctx, a, password, catalog.SetPassword{Link: l.ID}); err != nil {
		// The first of two clicks has used the link: say so.
		if _, gone := p.validLink(ctx, token); errors.Is(gone, call.ErrNotFound) {
			return nil, gone
		}
		return nil, err
	}

	if err := mayEnter(a); err != nil {
		return nil, err
	}
	in.Method = "password"
	return p.sessions.Begin(ctx, a.ID, in)
}
