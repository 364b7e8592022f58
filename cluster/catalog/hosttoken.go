package catalog

import (
	"iter"
	"strings"
	"time"
)

// HostToken is a token by which the cluster asks a code host in a person's name. It belongs to one
// linked identity. It is deleted with the identity, and when the account may no longer sign in.
type HostToken struct {
	Provider, Subject string // of the identity
	Site              string // code host, see SiteOf
	Sealed            []byte // under a secret of the cluster
	Set               uint64 // index of the entry that set it
	At                time.Time
}

// Key returns the key of the token in its table, which is that of the identity.
func (x *HostToken) Key() string { return identityKey(x.Provider, x.Subject) }

// PutHostToken stores a host token: a new one that the person gave, or a refreshed one that the
// host returned to a job.
type PutHostToken struct {
	Token   HostToken
	Account string // the account of the identity
	Fence   uint64 // of the job that refreshed the token; 0: the person just signed in
	Instead uint64 // with a fence: Set of the token to replace
	Ask     bool   // ask the host at once
}

// maxHostToken bounds the sealed form of a token, in bytes.
const maxHostToken = 16 << 10

func (c *PutHostToken) apply(t *txn) Result {
	x := c.Token
	if x.Site == "" || strings.ContainsRune(x.Site, 0) || badSubject(x.Subject) || len(x.Sealed) == 0 || len(x.Sealed) > maxHostToken {
		return refuse(Invalid, "the token is malformed")
	}
	identity := t.identities.Get(x.Key())
	if identity == nil || identity.Account != c.Account || t.accounts.Get(identity.Account) == nil || t.accounts.Get(identity.Account).State != AccountActive {
		return refuse(NotFound, "there is no such identity of somebody who may sign in")
	}

	// A job may only replace the token that it used, not a newer one.
	old := t.hostTokens.Get(x.Key())
	if c.Fence != 0 {
		if job, refusal := t.runningJob(JobAccountSync, ReaderKey(x.Site, x.Subject), c.Fence); job == nil {
			return refusal
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

// forgetHostToken deletes the token of an identity, and the job that uses it.
func (t *txn) forgetHostToken(identity string) {
	if x := t.hostTokens.Get(identity); x != nil {
		t.hostTokens.Delete(identity)
		t.dropJob(JobAccountSync, ReaderKey(x.Site, x.Subject))
	}
}

// HostToken returns the token of an identity, or nil.
func (v *View) HostToken(x *Identity) *HostToken { return v.hostTokens.Get(x.Key()) }

// HostTokens iterates over all host tokens.
func (v *View) HostTokens() iter.Seq[*HostToken] { return v.hostTokens.Records() }

// IdentityAt returns the identity with the host's own id subject, or nil. It returns only one whose
// person gave a token for the host.
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
