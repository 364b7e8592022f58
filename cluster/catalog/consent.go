package catalog

import (
	"cmp"
	"crypto/sha256"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
)

// Consent is what a person lets a program do on their behalf: an agent that
// was let in by OAuth. Whoever shows a token of it is the person, as the
// account is then, and never more than a member.
//
// Tokens are not kept. The generation says which refresh token is the newest
// one: each use of it makes the next, by RotateConsent.
type Consent struct {
	ID         string // random; that of the authorization code which it was made for
	Account    string
	Client     []byte // SHA-256 of the client's id
	Name       string // what the client calls itself; nobody has checked it
	Kind       string // how the client made itself known: registered, document, owner
	Host       string // where the code was sent: a host, or a scheme of a program's own
	Scope      string
	Key        string    // id of the API key by which the person was signed in; "" for other ways
	Generation uint64    // of refresh tokens, from 1
	Index      uint64    // of the entry that made this generation
	Created    time.Time // when it was given
	Rotated    time.Time // when this generation began
	Expires    time.Time // ends then, unless it is rotated before
	Ended      time.Time // zero: not yet
}

// Lives reports whether the tokens of a consent are good at a time.
func (c *Consent) Lives(now time.Time) bool { return c.Ended.IsZero() && now.Before(c.Expires) }

// PutConsent adds a consent. One of the same id is refused with Conflict, also
// after it has ended, for as long as its code could be shown again.
type PutConsent struct {
	Consent Consent
	// Since is Changed of the account when the person consented: what happened to
	// the account since then counts.
	Since uint64
}

// RotateConsent begins a new generation of refresh tokens, if From is still
// the present one; else it is refused as Stale.
type RotateConsent struct {
	ID      string
	From    uint64
	Expires time.Time
}

// EndConsents ends consents: some by their ids, and all of an account. What is
// not there is no failure.
type EndConsents struct {
	IDs     []string
	Account string // "" for none but the ids
}

// DropSecrets removes secrets that nothing is checked with any more.
type DropSecrets struct{ Names []string }

// Bounds of consents.
const (
	maxConsents     = 100000
	maxConsentsOf   = 50 // one account
	longestConsent  = 400 * 24 * time.Hour
	rememberConsent = 10 * time.Minute // after its end, longer than any code lasts
)

// mistake is why a consent cannot be kept as it is; "" where it can.
func (c *Consent) mistake(now time.Time) string {
	switch {
	case c.ID == "" || len(c.ID) > 64 || len(c.Client) != sha256.Size:
		return "the consent is malformed"
	case len(c.Name) > maxNameText || len(c.Kind) > maxNameText || len(c.Host) > maxNameText || len(c.Scope) > maxNameText || len(c.Key) > 64:
		return "the consent is malformed"
	case !c.Expires.After(now) || c.Expires.After(now.Add(longestConsent)):
		return "the consent has a lifetime that is out of range"
	}
	return ""
}

func (c *PutConsent) apply(t *txn) Result {
	x := c.Consent
	if why := x.mistake(t.now); why != "" {
		return refuse(Invalid, why)
	}

	// Whoever was suspended, or changed otherwise, since they consented is asked
	// again, and so is who signed in with a key that is revoked by now.
	if a := t.accounts.Get(x.Account); a == nil || a.State != AccountActive || a.Changed != c.Since {
		return refuse(NotFound, "the account has changed since")
	}
	if k := t.keys.Get(x.Key); x.Key != "" && (k == nil || k.Account != x.Account) {
		return refuse(NotFound, "the key is revoked")
	}
	if t.consents.Get(x.ID) != nil {
		return refuse(Conflict, "the code was used before")
	}

	// Counted before they go: a refused command changes nothing.
	surplus := t.surplusConsents(x.Account)
	if t.consents.Len()-len(surplus) >= maxConsents {
		return refuse(Conflict, "there are too many consents")
	}
	for _, old := range surplus {
		t.consents.Delete(old.ID)
	}
	x.Generation, x.Index, x.Created, x.Rotated, x.Ended = 1, t.index, t.now, t.now, time.Time{}
	x.Expires = codec.FromMillis(codec.ToMillis(x.Expires))
	t.consents.Set(x.ID, &x)
	return Result{ID: t.index}
}

// surplusConsents are those that make room for one more of an account: what
// ended long enough ago, and where the account has very many, the ones that
// were not used for longest.
func (t *txn) surplusConsents(account string) []*Consent {
	surplus := t.consents.Where(func(old *Consent) bool { return old.over(t.now) })

	// The newest stay, of those in use at the same moment the ones with the least id.
	same := t.consents.Where(func(old *Consent) bool { return old.Account == account && !old.over(t.now) })
	slices.SortFunc(same, func(a, b *Consent) int {
		return cmp.Or(b.Rotated.Compare(a.Rotated), cmp.Compare(a.ID, b.ID))
	})
	return append(surplus, same[min(len(same), maxConsentsOf-1):]...)
}

// over reports whether no code and no token of a consent could be good any more.
func (c *Consent) over(now time.Time) bool {
	end := c.Expires
	if !c.Ended.IsZero() {
		end = c.Ended
	}
	return now.After(end.Add(rememberConsent))
}

func (c *RotateConsent) apply(t *txn) Result {
	old := t.consents.Get(c.ID)
	if old == nil || !old.Lives(t.now) {
		return refuse(NotFound, "the consent has ended")
	}

	if a := t.accounts.Get(old.Account); a == nil || a.State != AccountActive {
		return refuse(NotFound, "the account may not sign in")
	}

	// A token that comes a second time was copied by somebody.
	if old.Generation != c.From {
		return refuse(Stale, "the token was used before")
	}

	if !c.Expires.After(t.now) || c.Expires.After(t.now.Add(longestConsent)) {
		return refuse(Invalid, "the consent has a lifetime that is out of range")
	}

	x := *old
	x.Generation++
	x.Index, x.Rotated, x.Expires = t.index, t.now, codec.FromMillis(codec.ToMillis(c.Expires))
	t.consents.Set(x.ID, &x)
	return Result{ID: x.Generation}
}

func (c *EndConsents) apply(t *txn) Result {
	for _, id := range c.IDs {
		t.endConsents(func(x *Consent) bool { return x.ID == id })
	}
	if c.Account != "" {
		t.endConsents(func(x *Consent) bool { return x.Account == c.Account })
	}
	return Result{ID: t.index}
}

// endConsents ends the consents for which a condition holds. They are
// remembered for a while, so that their codes are not taken for new ones.
func (t *txn) endConsents(gone func(*Consent) bool) {
	for _, old := range t.consents.Where(func(x *Consent) bool { return x.Ended.IsZero() && gone(x) }) {
		x := *old
		x.Ended = t.now
		t.consents.Set(x.ID, &x)
	}
}

func (c *DropSecrets) apply(t *txn) Result {
	for _, name := range c.Names {
		// Those that lasting things were made with have no date in their name.
		if strings.Contains(name, "/") {
			t.secrets.Delete(name)
		}
	}
	return Result{}
}

// Consent returns nil when there is none of that id. It may have ended.
func (v *View) Consent(id string) *Consent { return v.consents.Get(id) }

// Consents goes through them by id; some may have ended.
func (v *View) Consents() iter.Seq[*Consent] { return v.consents.Records() }
