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

// Consent records that a person lets a program act for them, by OAuth. A token of it acts with the
// present rights of the account, but never as more than a member.
//
// Tokens are not stored. Generation identifies the newest refresh token. Each use of that token
// makes the next generation, by RotateConsent.
type Consent struct {
	ID         string // random; the same as that of its authorization code
	Account    string
	Client     []byte // SHA-256 of the client's id
	Name       string // what the client calls itself; unverified
	Kind       string // how the client registered: registered, document, owner
	Host       string // where the code was sent: a host, or a program's own URL scheme
	Scope      string
	Key        string // id of the API key that the person had signed in with; "" otherwise
	Generation uint64 // of refresh tokens, from 1
	Index      uint64 // of the entry that made this generation
	Created    time.Time
	Rotated    time.Time // when this generation began
	Expires    time.Time // ends then, unless it is rotated before
	Ended      time.Time // zero: not yet
}

// Lives reports whether the tokens of a consent are valid at a time.
func (c *Consent) Lives(now time.Time) bool { return c.Ended.IsZero() && now.Before(c.Expires) }

// PutConsent adds a consent. It is refused with Conflict if the id exists. Ended consents count for
// as long as their code might be shown again.
type PutConsent struct {
	Consent Consent
	// Since is the account's Changed when the person consented. The consent is refused if the
	// account has changed after that.
	Since uint64
}

// RotateConsent begins a new generation of refresh tokens. It is refused as Stale unless From is
// the present generation.
type RotateConsent struct {
	ID      string
	From    uint64
	Expires time.Time
}

// EndConsents ends the consents with these ids, and all of an account. Unknown ids are ignored.
type EndConsents struct {
	IDs     []string
	Account string // "": only the ids
}

// DropSecrets removes secrets that no longer verify anything.
type DropSecrets struct{ Names []string }

// Limits of consents.
const (
	maxConsents     = 100000
	maxConsentsOf   = 50 // per account
	maxConsentAge   = 400 * 24 * time.Hour
	rememberConsent = 10 * time.Minute // after its end, longer than any code lasts
)

// malformedReason returns why a consent is malformed, or "".
func (c *Consent) malformedReason(now time.Time) string {
	switch {
	case c.ID == "" || len(c.ID) > 64 || len(c.Client) != sha256.Size:
		return "the consent is malformed"
	case len(c.Name) > maxNameText || len(c.Kind) > maxNameText || len(c.Host) > maxNameText || len(c.Scope) > maxNameText || len(c.Key) > 64:
		return "the consent is malformed"
	case !c.Expires.After(now) || c.Expires.After(now.Add(maxConsentAge)):
		return "the consent has a lifetime that is out of range"
	}
	return ""
}

func (c *PutConsent) apply(t *txn) Result {
	x := c.Consent
	if why := x.malformedReason(t.now); why != "" {
		return refuse(Invalid, why)
	}

	// Refuse if the account was suspended or changed since the person consented, or if the key that
	// they signed in with was revoked.
	if a := t.accounts.Get(x.Account); a == nil || a.State != AccountActive || a.Changed != c.Since {
		return refuse(NotFound, "the account has changed since")
	}
	if k := t.keys.Get(x.Key); x.Key != "" && (k == nil || k.Account != x.Account) {
		return refuse(NotFound, "the key is revoked")
	}
	if t.consents.Get(x.ID) != nil {
		return refuse(Conflict, "the code was used before")
	}

	// Count before deleting: a refused command changes nothing.
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

// surplusConsents returns the consents to delete before one more of an account is added: those that
// ended long enough ago, and beyond the limit the least recently used ones.
func (t *txn) surplusConsents(account string) []*Consent {
	surplus := t.consents.Where(func(old *Consent) bool { return old.isOver(t.now) })

	// Keep the most recently rotated ones. The id breaks ties, so that all nodes agree.
	same := t.consents.Where(func(old *Consent) bool { return old.Account == account && !old.isOver(t.now) })
	slices.SortFunc(same, func(a, b *Consent) int {
		return cmp.Or(b.Rotated.Compare(a.Rotated), cmp.Compare(a.ID, b.ID))
	})
	return append(surplus, same[min(len(same), maxConsentsOf-1):]...)
}

// isOver reports whether no code and no token of a consent can be valid any more.
func (c *Consent) isOver(now time.Time) bool {
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

	// A refresh token that comes a second time was copied.
	if old.Generation != c.From {
		return refuse(Stale, "the token was used before")
	}

	if !c.Expires.After(t.now) || c.Expires.After(t.now.Add(maxConsentAge)) {
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

// endConsents ends the open consents that cond accepts. Ended consents stay for a while, so that their codes
// cannot be used again.
func (t *txn) endConsents(cond func(*Consent) bool) {
	for _, old := range t.consents.Where(func(x *Consent) bool { return x.Ended.IsZero() && cond(x) }) {
		x := *old
		x.Ended = t.now
		t.consents.Set(x.ID, &x)
	}
}

func (c *DropSecrets) apply(t *txn) Result {
	for _, name := range c.Names {
		// Only names with a date contain a slash. Permanent secrets must stay.
		if strings.Contains(name, "/") {
			t.secrets.Delete(name)
		}
	}
	return Result{}
}

// Consent returns the consent with an id, also an ended one, or nil.
func (v *View) Consent(id string) *Consent { return v.consents.Get(id) }

// Consents iterates over all consents by id, including ended ones.
func (v *View) Consents() iter.Seq[*Consent] { return v.consents.Records() }
