package account

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/call"
)

// Lifetimes of sessions.
const (
	sessionIdle     = 30 * 24 * time.Hour // without use; AUTH_SESSION_MAX_AGE_SECONDS overrides it
	sessionTouch    = 24 * time.Hour      // interval of recording the last use; AUTH_SESSION_UPDATE_AGE_SECONDS overrides it
	sessionAbsolute = 90 * 24 * time.Hour // even with use
	sessionDigits   = 64                  // hex digits of a token
)

// SessionInfo describes a session without its token.
type SessionInfo struct {
	ID      string    `json:"id"`
	User    string    `json:"-"`      // id of the account; "" for a key without an account
	Method  string    `json:"method"` // how they signed in: key, password, or a provider's name
	Created time.Time `json:"createdAt"`
	Used    time.Time `json:"usedAt"` // last use, to about a day
	Ends    time.Time `json:"endsAt"` // if it is not used until then
	Address string    `json:"address"`
	Agent   string    `json:"agent"`
}

// SignIn describes a browser that signs in.
type SignIn struct {
	Method  string // key, password, or a provider's name
	Address string
	Agent   string
	Instead string // token of the browser's previous session; "": none
}

// Lookup returns a variable, if the operator has set it.
type Lookup func(name string) (value string, ok bool)

// Sessions are the browsers in which people signed in. The catalog has an HMAC of the token in the
// browser's cookie. So a session is valid on every node, and one entry ends it everywhere. It is
// safe for concurrent use.
//
//	sign in ── PutSession ──▶ catalog        token ──▶ cookie
//	request ── HMAC of the token ──▶ record ──▶ its account as it is now ──▶ viewer
//	     └── used: noted in memory, once a day or so in the log, in one entry for all
type Sessions struct {
	catalog Catalog
	byKey   func(ctx context.Context, key string) (catalog.Viewer, error) // Keyring.Authenticate
	lookup  Lookup
	now     func() time.Time
	unknown *unknownKeys
	macs    *macs
	used    *usedIDs // ids of used sessions
}

// NewSessions returns the sessions of a keyring's catalog. The caller must call Run.
func NewSessions(k *Keyring, lookup Lookup) *Sessions {
	return &Sessions{
		catalog: k.catalog,
		byKey:   k.Authenticate,
		lookup:  lookup,
		now:     k.now,
		unknown: k.unknown,
		macs:    newMACs(k.catalog, "sessions"),
		used:    newUsedIDs(),
	}
}

// Run records from time to time which sessions were used, and removes ended ones, until ctx ends.
func (s *Sessions) Run(ctx context.Context) error {
	for {
		// Record the use so often that no session ends while it is in use.
		idle, touch := s.ages()
		pace := min(touch, idle/4)
		if !clock.Wait(ctx, min(max(pace/4, time.Minute), time.Hour)) {
			return nil
		}
		s.recordUse(ctx, pace)
	}
}

// recordUse records the use of sessions whose recorded use is older than pace. It proposes nothing if
// there is nothing to record or remove.
func (s *Sessions) recordUse(ctx context.Context, pace time.Duration) {
	view, now := s.catalog.View(), s.now()
	var due []string
	for _, id := range s.used.takeAll() {
		if x := view.Session(id); x != nil && now.Sub(x.Used) >= pace {
			due = append(due, id)
		}
	}

	over := false
	// Check here, so that an entry is only written if necessary.
	for x := range view.Sessions() {
		// Ended sessions are refused anyway, so their removal can wait.
		tooOld := now.Sub(x.Expires) > time.Hour
		unused := now.Sub(x.Used.Add(x.Idle)) > time.Hour
		over = over || tooOld || unused
	}
	if len(due) > 0 || over {
		// On failure the next round repeats it.
		s.catalog.Propose(ctx, &catalog.TouchSessions{Used: now, IDs: due})
	}
}

// ages returns how long an unused session lasts, and how often its use is recorded.
func (s *Sessions) ages() (idle, touch time.Duration) {
	idle = s.secondsVariable("AUTH_SESSION_MAX_AGE_SECONDS", sessionIdle)
	touch = s.secondsVariable("AUTH_SESSION_UPDATE_AGE_SECONDS", sessionTouch)
	return idle, touch
}

// secondsVariable reads a duration in seconds from a variable.
func (s *Sessions) secondsVariable(name string, defaultValue time.Duration) time.Duration {
	text, ok := s.lookup(name)
	if !ok {
		return defaultValue
	}

	d, err := time.ParseDuration(strings.TrimSpace(text) + "s")
	if err != nil || d < time.Minute || d > 365*24*time.Hour {
		return defaultValue
	}
	return d
}

// BegunSession is the content of a browser's session cookie.
type BegunSession struct {
	Token   string // 64 hex digits, never shown again
	Expires time.Time
}

// BeginWithKey signs in with an API key, or returns ErrUnauthenticated. The session never has more
// rights than the key, and ends with it.
func (s *Sessions) BeginWithKey(ctx context.Context, key string, in SignIn) (*BegunSession, error) {
	v, err := s.byKey(ctx, key)
	if err != nil {
		return nil, err
	}
	in.Method = "key"
	return s.begin(ctx, catalog.Session{Account: v.Account, Key: v.KeyID}, in)
}

// Begin signs in an account after its authentication. It returns ErrUnauthenticated if the account
// may not sign in.
func (s *Sessions) Begin(ctx context.Context, account string, in SignIn) (*BegunSession, error) {
	return s.begin(ctx, catalog.Session{Account: account}, in)
}

// begin creates a session from x, and ends the one that the browser had.
func (s *Sessions) begin(ctx context.Context, x catalog.Session, in SignIn) (begun *BegunSession, err error) {
	var random [sessionDigits/2 + 8]byte
	rand.Read(random[:])
	token := hex.EncodeToString(random[8:])
	// The id is separate from the token, so that lists may show it.
	x.ID = "s" + hex.EncodeToString(random[:8])
	x.Hash, err = s.macs.macOf(ctx, "session", token)
	if err != nil {
		return nil, call.WriteError(err)
	}

	// Limit the browser's own description: anybody may send it.
	x.Method, x.Address, x.Agent = in.Method, in.Address, cutText(in.Agent, 200)

	idle, _ := s.ages()
	x.Idle = idle
	// A longer idle time also lengthens the total lifetime.
	x.Expires = s.now().Add(max(sessionAbsolute, idle))

	// A new sign-in ends the browser's previous session.
	cmds := []catalog.Command{&catalog.PutSession{Session: x}}
	// If the previous session cannot be found, the new one begins anyway.
	if old, err := s.findSession(ctx, in.Instead); err == nil && old != nil {
		cmds = append(cmds, &catalog.EndSessions{IDs: []string{old.ID}})
	}
	_, err = s.catalog.Propose(ctx, cmds...)
	if err != nil {
		if _, refused := catalog.Refused(err); refused {
			return nil, call.Fail(call.ErrUnauthenticated, "This account may not sign in")
		}
		return nil, call.WriteError(err)
	}
	return &BegunSession{token, x.Expires}, nil
}

// cutText returns the beginning of a text, at most maxBytes, without unprintable characters.
func cutText(text string, maxBytes int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.ToValidUTF8(text[:min(len(text), maxBytes)], "")
}

// findSession returns the valid session of a token, or nil. For a session that this node does not know it
// asks the leader. If that is impossible it returns ErrNoLeader or ErrOverloaded.
func (s *Sessions) findSession(ctx context.Context, token string) (*catalog.Session, error) {
	if len(token) != sessionDigits || strings.Trim(token, "0123456789abcdef") != "" {
		return nil, nil
	}
	sum, err := s.macs.sumOfClientText(ctx, s.unknown, "session", token)
	if sum == nil {
		return nil, err // no session was ever begun, or the leader cannot be asked
	}

	// Another node may have just begun the session.
	x := s.catalog.View().SessionByHash(sum)
	if x == nil {
		if err := s.unknown.askLeader(ctx, [sha256.Size]byte(sum)); err != nil {
			return nil, err
		}
		x = s.catalog.View().SessionByHash(sum)
	}
	if x == nil || !hmac.Equal(x.Hash, sum) || x.Ended(s.now()) {
		return nil, nil
	}
	return x, nil
}

// SessionViewer returns the viewer of a session's token: the account, or the key used to sign in,
// as it is now. It returns ErrUnauthenticated if the session does not exist or has ended, or the
// account may not sign in. If it cannot ask the leader about an unknown session, it returns
// ErrNoLeader or ErrOverloaded.
func (s *Sessions) SessionViewer(ctx context.Context, token string) (catalog.Viewer, error) {
	x, err := s.findSession(ctx, token)
	if err != nil {
		return catalog.Viewer{}, err
	}
	if x != nil {
		if v, ok := s.viewerOfSession(s.catalog.View(), x); ok {
			s.used.add(x.ID)
			return v, nil
		}
	}
	return catalog.Viewer{}, call.Fail(call.ErrUnauthenticated, "You are signed out: sign in again")
}

// viewerOfSession returns the viewer of a session at a view. ok is false if they may not sign in.
func (s *Sessions) viewerOfSession(view *catalog.View, x *catalog.Session) (catalog.Viewer, bool) {
	var v catalog.Viewer
	if x.Key == "" {
		a := view.Account(x.Account)
		if a == nil || a.State != catalog.AccountActive || !s.providerExists(view, x) {
			return v, false
		}
		v = catalog.Viewer{Role: a.Role, Name: a.Email, Account: a.ID}
	} else {
		// A session never has more rights than the key that it began with.
		key := view.Key(x.Key)
		if key == nil || key.Expired(s.now()) {
			return v, false
		}
		keyViewer, ok := viewerOf(view, key)
		if !ok || !keysWork(view, keyViewer, s.lookup) {
			return keyViewer, false
		}
		v = keyViewer
	}
	v.Session = x.ID
	return v, true
}

// providerExists reports whether the provider that began a session is still configured. If the
// configuration cannot be read, nobody is signed out.
func (s *Sessions) providerExists(view *catalog.View, x *catalog.Session) bool {
	switch {
	case x.Method == "" || x.Method == "password" || x.Method == "key":
		return true
	case x.Method == "gcp-iap" && boolVariable(s.lookup, "AUTH_EE_GCP_IAP_ENABLED", false):
		return true
	}

	named := func(p config.IdentityProvider) bool { return p.ID == x.Method }
	return slices.ContainsFunc(view.File().IdentityProviders, named) || view.FileError() != nil
}

// SessionsOf returns the valid sessions of an account, most recently used first. user is an id, an
// e-mail address, or "me". Only owners may ask for other accounts.
func (s *Sessions) SessionsOf(ctx context.Context, by Holder, user string) ([]SessionInfo, error) {
	own, err := s.sessionsOf(ctx, by, user)
	if err != nil {
		return nil, err
	}
	var out []SessionInfo
	for _, x := range own {
		out = append(out, sessionInfo(x))
	}
	return out, nil
}

func sessionInfo(x *catalog.Session) SessionInfo {
	ends := x.Used.Add(x.Idle)
	if x.Expires.Before(ends) {
		ends = x.Expires
	}
	return SessionInfo{x.ID, x.Account, x.Method, x.Created, x.Used, ends, x.Address, x.Agent}
}

func (s *Sessions) sessionsOf(ctx context.Context, by Holder, user string) (own []*catalog.Session, err error) {
	// The list must be complete, so that all sessions can be ended.
	if _, err := s.catalog.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}
	a, err := s.accountFor(by, user)
	if err != nil {
		return nil, err
	}

	for x := range s.catalog.View().Sessions() {
		if x.Account == a && !x.Ended(s.now()) {
			own = append(own, x)
		}
	}

	// The id breaks ties, so that the order is stable.
	slices.SortFunc(own, func(a, b *catalog.Session) int {
		return cmp.Or(
			b.Used.Compare(a.Used),
			b.Created.Compare(a.Created),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return own, nil
}

// accountFor returns the id of the account whose sessions a holder may manage. Only owners find
// other accounts.
func (s *Sessions) accountFor(by Holder, user string) (string, error) {
	v := by.Viewer()
	if user == "me" && v.Account != "" {
		return v.Account, nil
	}

	a := accountNamed(s.catalog.View(), user)
	if a == nil || v.Role != catalog.RoleOwner && a.ID != v.Account {
		return "", call.Fail(call.ErrNotFound, "there is no account %q", user)
	}
	return a.ID, nil
}

// EndSessions signs an account out: which is a session's id, "others" for all but the caller's, or
// "" for all. When it returns, every reachable node refuses these sessions. It returns their
// number.
func (s *Sessions) EndSessions(ctx context.Context, by Holder, user, which string) (ended int, err error) {
	own, err := s.sessionsOf(ctx, by, user)
	if err != nil {
		return 0, err
	}
	var ids []string
	for _, x := range own {
		another := which == "others" && x.ID != by.Viewer().Session
		if which == "" || which == x.ID || another {
			ids = append(ids, x.ID)
		}
	}

	// Having no other sessions is not an error, but an unknown id is.
	named := which != "" && which != "others"
	if len(ids) == 0 && named {
		return 0, call.Fail(call.ErrNotFound, "there is no session %q", which)
	}
	return len(ids), s.endByID(ctx, ids)
}

// EndSession signs out the browser with a token. An invalid token is ignored.
func (s *Sessions) EndSession(ctx context.Context, token string) error {
	x, err := s.findSession(ctx, token)
	if err != nil || x == nil {
		return err
	}
	return s.endByID(ctx, []string{x.ID})
}

func (s *Sessions) endByID(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	index, err := s.catalog.Propose(ctx, &catalog.EndSessions{IDs: ids})
	if err != nil {
		return call.WriteError(err)
	}
	AwaitOthers(ctx, s.catalog, index)
	return nil
}
