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

// The life of a session.
const (
	sessionIdle     = 30 * 24 * time.Hour // without use, unless AUTH_SESSION_MAX_AGE_SECONDS says otherwise
	sessionTouch    = 24 * time.Hour      // the last use is noted, unless AUTH_SESSION_UPDATE_AGE_SECONDS says otherwise
	sessionAbsolute = 90 * 24 * time.Hour // with any use
	sessionDigits   = 64                  // of a token
)

// SessionInfo describes a session without its token.
type SessionInfo struct {
	ID      string    `json:"id"`
	User    string    `json:"-"`      // id of the account; "" for a key of nobody
	Method  string    `json:"method"` // how they signed in: key, password, or a provider's name
	Created time.Time `json:"createdAt"`
	Used    time.Time `json:"usedAt"` // last use, to a day or so
	Ends    time.Time `json:"endsAt"` // if it is not used until then
	Address string    `json:"address"`
	Agent   string    `json:"agent"`
}

// SignIn is what is known of a browser that signs in.
type SignIn struct {
	Method  string // key, password, or a provider's name
	Address string
	Agent   string
	Instead string // token of the session that the browser had; "" for none
}

// Lookup gives a variable that the operator may have set.
type Lookup func(name string) (value string, ok bool)

// Sessions are the browsers that people signed in with. The catalog has an
// HMAC of the token that is in a browser's cookie, so a session is good on
// every node, and ended everywhere by one entry. It is safe for concurrent use.
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
	used    *marks // ids of sessions
}

// NewSessions keeps the sessions of the catalog of a keyring. The caller must
// call Run.
func NewSessions(k *Keyring, lookup Lookup) *Sessions {
	return &Sessions{
		catalog: k.catalog,
		byKey:   k.Authenticate,
		lookup:  lookup,
		now:     k.now,
		unknown: k.unknown,
		macs:    newMACs(k.catalog, "sessions"),
		used:    newMarks(),
	}
}

// Run notes from time to time which sessions were used, and has those removed
// that have ended, until ctx ends.
func (s *Sessions) Run(ctx context.Context) error {
	for {
		// Often enough that no session ends that is in use.
		idle, touch := s.ages()
		pace := min(touch, idle/4)
		if !clock.Wait(ctx, min(max(pace/4, time.Minute), time.Hour)) {
			return nil
		}
		s.note(ctx, pace)
	}
}

// note writes down the use of those sessions whose last noted one is that
// long ago. Where nothing is to be told it writes nothing.
func (s *Sessions) note(ctx context.Context, pace time.Duration) {
	view, now := s.catalog.View(), s.now()
	var due []string
	for _, id := range s.used.take() {
		if x := view.Session(id); x != nil && now.Sub(x.Used) >= pace {
			due = append(due, id)
		}
	}

	over := false
	// Gone through here, so that an entry is written only where there is something to remove.
	for x := range view.Sessions() {
		// What has ended is refused already, so that removing it can wait.
		tooOld := now.Sub(x.Expires) > time.Hour
		unused := now.Sub(x.Used.Add(x.Idle)) > time.Hour
		over = over || tooOld || unused
	}
	if len(due) > 0 || over {
		// A lost one is no loss: it is done again.
		s.catalog.Propose(ctx, &catalog.TouchSessions{Used: now, IDs: due})
	}
}

// ages are how long a session lasts without use, and how often its use is noted.
func (s *Sessions) ages() (idle, touch time.Duration) {
	idle = s.seconds("AUTH_SESSION_MAX_AGE_SECONDS", sessionIdle)
	touch = s.seconds("AUTH_SESSION_UPDATE_AGE_SECONDS", sessionTouch)
	return idle, touch
}

func (s *Sessions) seconds(name string, otherwise time.Duration) time.Duration {
	text, ok := s.lookup(name)
	if !ok {
		return otherwise
	}

	d, err := time.ParseDuration(strings.TrimSpace(text) + "s")
	if err != nil || d < time.Minute || d > 365*24*time.Hour {
		return otherwise
	}
	return d
}

// BegunSession is what the cookie of a browser gets.
type BegunSession struct {
	Token   string // 64 hex digits, shown this once only
	Expires time.Time
}

// BeginWithKey signs in with an API key. It fails with ErrUnauthenticated
// where the key is none. The session can never do more than the key, and ends
// with it.
func (s *Sessions) BeginWithKey(ctx context.Context, key string, in SignIn) (*BegunSession, error) {
	v, err := s.byKey(ctx, key)
	if err != nil {
		return nil, err
	}
	in.Method = "key"
	return s.begin(ctx, catalog.Session{Account: v.Account, Key: v.KeyID}, in)
}

// Begin signs in somebody who has proven to have an account. It fails with
// ErrUnauthenticated where the account may not sign in.
func (s *Sessions) Begin(ctx context.Context, account string, in SignIn) (*BegunSession, error) {
	return s.begin(ctx, catalog.Session{Account: account}, in)
}

func (s *Sessions) begin(ctx context.Context, x catalog.Session, in SignIn) (begun *BegunSession, err error) {
	var random [sessionDigits/2 + 8]byte
	rand.Read(random[:])
	token := hex.EncodeToString(random[8:])
	// Id and token are apart, so that the id may be shown in lists.
	x.ID = "s" + hex.EncodeToString(random[:8])
	x.Hash, err = s.macs.sum(ctx, "session", token)
	if err != nil {
		return nil, call.WriteError(err)
	}

	// What a browser says of itself is kept short: anybody may send it.
	x.Method, x.Address, x.Agent = in.Method, in.Address, cut(in.Agent, 200)

	idle, _ := s.ages()
	x.Idle = idle
	// Where the operator allows a longer time without use, that is the bound of its life too.
	x.Expires = s.now().Add(max(sessionAbsolute, idle))

	// Who signs in anew leaves nothing of the former session behind.
	cmds := []catalog.Command{&catalog.PutSession{Session: x}}
	// In the same proposal; where the old one cannot be found out the new one is begun all the same.
	if old, err := s.find(ctx, in.Instead); err == nil && old != nil {
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

// cut is a text of at most that many bytes, without what is not printed.
func cut(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// find is the session of a token that is in force; nil for none. One that this
// node does not have yet is looked for once more after the leader was asked;
// where that cannot be done it fails with ErrNoLeader or ErrOverloaded.
func (s *Sessions) find(ctx context.Context, token string) (*catalog.Session, error) {
	if len(token) != sessionDigits || strings.Trim(token, "0123456789abcdef") != "" {
		return nil, nil
	}
	sum, err := s.macs.sumOfShown(ctx, s.unknown, "session", token)
	if sum == nil {
		return nil, err // no session was ever begun, or that cannot be told now
	}

	// A session that was begun at another node a moment ago is not here yet.
	x := s.catalog.View().SessionByHash(sum)
	if x == nil {
		if err := s.unknown.ask(ctx, [sha256.Size]byte(sum)); err != nil {
			return nil, err
		}
		x = s.catalog.View().SessionByHash(sum)
	}
	if x == nil || !hmac.Equal(x.Hash, sum) || x.Ended(s.now()) {
		return nil, nil
	}
	return x, nil
}

// SessionViewer is who a session is: the account, or the key that was signed
// in with, as it is now. token is what stands in the cookie. It fails with
// ErrUnauthenticated when there is no such session, it has ended, or the
// account may not sign in; and with ErrNoLeader or ErrOverloaded when this node
// does not know the session and cannot ask the leader.
func (s *Sessions) SessionViewer(ctx context.Context, token string) (catalog.Viewer, error) {
	x, err := s.find(ctx, token)
	if err != nil {
		return catalog.Viewer{}, err
	}
	if x != nil {
		if v, ok := s.viewer(s.catalog.View(), x); ok {
			s.used.add(x.ID)
			return v, nil
		}
	}
	return catalog.Viewer{}, call.Fail(call.ErrUnauthenticated, "You are signed out: sign in again")
}

// viewer is who a session is at a view; nobody where they may not sign in.
func (s *Sessions) viewer(view *catalog.View, x *catalog.Session) (catalog.Viewer, bool) {
	var v catalog.Viewer
	if x.Key == "" {
		a := view.Account(x.Account)
		if a == nil || a.State != catalog.AccountActive || !s.vouched(view, x) {
			return v, false
		}
		v = catalog.Viewer{Role: a.Role, Name: a.Email, Account: a.ID}
	} else {
		// A session can never do more than the key that it began with.
		key := view.Key(x.Key)
		if key == nil || key.Expired(s.now()) {
			return v, false
		}
		of, ok := viewerOf(view, key)
		if !ok || !keysWork(view, of, s.lookup) {
			return of, false
		}
		v = of
	}
	v.Session = x.ID
	return v, true
}

// vouched reports whether the provider by which a session was begun is one still.
// Where the configuration cannot be read that is not known, and nobody is put out.
func (s *Sessions) vouched(view *catalog.View, x *catalog.Session) bool {
	switch {
	case x.Method == "" || x.Method == "password" || x.Method == "key":
		return true
	case x.Method == "gcp-iap" && flag(s.lookup, "AUTH_EE_GCP_IAP_ENABLED", false):
		return true
	}

	named := func(p config.IdentityProvider) bool { return p.ID == x.Method }
	return slices.ContainsFunc(view.File().IdentityProviders, named) || view.FileError() != nil
}

// SessionsOf lists the sessions of an account that are in force, those that
// were used last first. user is an id or an e-mail address, or "me". An owner
// asks for anybody's, everybody else for their own.
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
	// A list from which somebody ends sessions must have them all.
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

	// By id at last, so that the order is the same at each look.
	slices.SortFunc(own, func(a, b *catalog.Session) int {
		return cmp.Or(
			b.Used.Compare(a.Used),
			b.Created.Compare(a.Created),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return own, nil
}

// accountFor is the id of the account whose sessions somebody may manage. For
// everybody but owners other people's accounts are not there.
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

// EndSessions signs an account out: of one session by its id, of all but the
// one that asks, or, with "", of all. Every node that can be reached refuses
// them when it returns.
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

	// That there are no others is no failure; that there is no such one is.
	named := which != "" && which != "others"
	if len(ids) == 0 && named {
		return 0, call.Fail(call.ErrNotFound, "there is no session %q", which)
	}
	return len(ids), s.end(ctx, ids)
}

// EndSession signs out the browser that shows a token. One that is no session
// is no failure.
func (s *Sessions) EndSession(ctx context.Context, token string) error {
	x, err := s.find(ctx, token)
	if err != nil || x == nil {
		return err
	}
	return s.end(ctx, []string{x.ID})
}

func (s *Sessions) end(ctx context.Context, ids []string) error {
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
