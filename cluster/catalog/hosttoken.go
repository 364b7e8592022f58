package catalog

import (
	"iter"
	"strings"
	"time"
)

// HostToken is what somebody has given the cluster to ask a code host in their
// name, by an identity of their account. It goes with the identity, and with
// the account's right to sign in.
type HostToken struct {
	Provider, Subject string // of the identity
	Site              string // of the host: SiteOf its repositories
	Sealed            []byte // under a secret of the cluster
	Set               uint64 // index of the entry that set it
	At                time.Time
}

// Key is where the token stands in its table: that of the identity.
func (x *HostToken) Key() string { return identityKey(x.Provider, x.Subject) }

// PutHostToken keeps a token of somebody: the newest that they gave, or, under
// the fence of the job that asks in their name, the one that the host gave
// instead of it.
type PutHostToken struct {
	Token   HostToken
	Account string // whose identity it is
	Fence   uint64 // of the job; 0 where the person has just signed in
	Instead uint64 // Set of the token that the new one takes the place of, under a fence
	Ask     bool   // the host is asked at once
}

// maxHostToken bounds the sealed form of a token, in bytes.
const maxHostToken = 16 << 10

func (c *PutHostToken) apply(t *txn) Result {
	x := c.Token
	if x.Site == "" || strings.ContainsRune(x.Site, 0) || badSubject(x.Subject) || len(x.Sealed) == 0 || len(x.Sealed) > maxHostToken {
		return refuse(Invalid, "the token is malformed")
	}
	of := t.identities.Get(x.Key())
	if of == nil || of.Account != c.Account || t.accounts.Get(of.Account) == nil || t.accounts.Get(of.Account).State != AccountActive {
		return refuse(NotFound, "there is no such identity of somebody who may sign in")
	}

	// A job replaces the token that it has used, and no newer one.
	old := t.hostTokens.Get(x.Key())
	if c.Fence != 0 {
		if job, no := t.held(JobAccountSync, ReaderKey(x.Site, x.Subject), c.Fence); job == nil {
			return no
		}
		if old == nil || old.Set != c.Instead {
			return refuse(Stale, "the person has given another token meanwhile")
		}
	}

	x.Set, x.At = t.index, t.now
	t.hostTokens.Set(x.Key(), &x)
	if c.Ask {
		t.enqueue(JobAccountSync, ReaderKey(x.Site, x.Subject), true, time.Time{})
	}
	return Result{ID: t.index}
}

// forgetHostToken drops the token of an identity, and that the host is asked.
func (t *txn) forgetHostToken(identity string) {
	if x := t.hostTokens.Get(identity); x != nil {
		t.hostTokens.Delete(identity)
		t.dropJob(JobAccountSync, ReaderKey(x.Site, x.Subject))
	}
}

// HostToken is the token of an identity; nil where the person has given none.
func (v *View) HostToken(x *Identity) *HostToken { return v.hostTokens.Get(x.Key()) }

// HostTokens goes through the tokens of people.
func (v *View) HostTokens() iter.Seq[*HostToken] { return v.hostTokens.Records() }

// IdentityAt is who the account is that a code host knows by an id of its own,
// where the person has let it be asked in their name; nil for nobody.
func (v *View) IdentityAt(site, subject string) *Identity {
	for _, h := range v.hosts() {
		if h.site != site {
			continue
		}
		if x := v.Identity(h.address, subject); x != nil && v.HostToken(x) != nil {
			return x
		}
	}
	return nil
}
