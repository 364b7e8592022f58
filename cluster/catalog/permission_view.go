package catalog

import (
	"cmp"
	"iter"
	"net/url"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/config"
)

// PermissionSync is what a node was told by PERMISSION_SYNC_ENABLED.
type PermissionSync uint8

// What nodes are told. The numbers stand in records and never change.
const (
	PermissionSyncUnset PermissionSync = 0 // nothing: enforced is what the configuration says, by what owners grant
	PermissionSyncOff   PermissionSync = 1 // false: nothing is enforced
	PermissionSyncOn    PermissionSync = 2 // true: all is enforced that the configuration does not except, and hosts are asked
)

// String names the setting: unset, off, on.
func (p PermissionSync) String() string { return nameOf(p, permissionSyncs) }

var permissionSyncs = []string{PermissionSyncUnset: "unset", PermissionSyncOff: "off", PermissionSyncOn: "on"}

// MarshalText implements encoding.TextMarshaler.
func (p PermissionSync) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *PermissionSync) UnmarshalText(name []byte) error {
	*p = named[PermissionSync](name, permissionSyncs)
	return nil
}

// Enforces reports whether permissions of a connection are enforced.
func (p PermissionSync) Enforces(c *config.Common) bool {
	switch {
	case p == PermissionSyncOff:
		return false
	case c.EnforcePermissions == nil:
		return p == PermissionSyncOn
	}
	return *c.EnforcePermissions
}

// SayPermissionSync says what the environment of a node has of permissions.
type SayPermissionSync struct {
	Node        string
	Permissions PermissionSync
}

func (c *SayPermissionSync) apply(t *txn) Result {
	old := t.members.Get(c.Node)
	switch {
	case old == nil || old.State == MemberRemoved:
		return refuse(NotFound, "there is no such member")
	case c.Permissions > PermissionSyncOn:
		return refuse(Invalid, "no such setting")
	case old.Permissions == c.Permissions:
		return Result{}
	}

	m := *old
	m.Permissions = c.Permissions
	t.members.Set(m.ID, &m)

	// Who sees what may change for everybody: sets that were worked out before are of no use.
	t.allChanged()
	return Result{}
}

// PermissionSync is what holds for the cluster: what one node was told to
// protect is protected by all; nothing is enforced where all of them were told
// so.
func (v *View) PermissionSync() PermissionSync {
	all, members := PermissionSyncOff, 0
	for m := range v.members.Records() {
		switch {
		case m.State == MemberRemoved:
			continue
		// One node that was told to protect is enough: better hidden than shown by mistake.
		case m.Permissions == PermissionSyncOn:
			return PermissionSyncOn
		case m.Permissions == PermissionSyncUnset:
			all = PermissionSyncUnset
		}

		members++
	}

	if members == 0 {
		return PermissionSyncUnset
	}
	return all
}

// hostProviders are the identity providers that are code hosts.
var hostProviders = map[string]struct {
	kind  config.Kind
	usual string // address where the configuration has none
}{
	"github":           {config.KindGitHub, "https://github.com"},
	"gitlab":           {config.KindGitLab, "https://gitlab.com"},
	"gitea":            {config.KindGitea, "https://gitea.com"},
	"forgejo":          {config.KindGitea, "https://codeberg.org"},
	"bitbucket-cloud":  {config.KindBitbucket, "https://bitbucket.org"},
	"bitbucket-server": {config.KindBitbucket, ""},
	"azure-devops":     {config.KindAzureDevOps, "https://dev.azure.com"},
	"gerrit":           {config.KindGerrit, ""},
}

// SiteOfProvider is the code host whose people an identity provider knows, as
// SiteOf their repositories, and its address; empty for one that is no code host.
func SiteOfProvider(p *config.IdentityProvider) (site, address string) {
	row, ok := hostProviders[p.Provider]
	u, err := url.Parse(strings.TrimRight(cmp.Or(p.BaseURL, row.usual), "/"))
	if !ok || err != nil || u.Host == "" {
		return "", ""
	}
	u.Host = strings.ToLower(u.Host)
	return string(row.kind) + ":" + u.Host + u.Path, u.String()
}

// SiteOfIdentity is the code host that somebody is known to by an identity;
// empty where who gives its subject is none, or is a provider of the
// configuration no more.
func (v *View) SiteOfIdentity(x *Identity) string {
	for _, h := range v.hosts() {
		if strings.EqualFold(strings.TrimRight(x.Provider, "/"), h.address) {
			return h.site
		}
	}
	return ""
}

// reads is what a code host says of somebody who has an account here.
type reads struct {
	site   string
	reader *Reader // nil where the host has said nothing yet
	of     *Site   // nil where nothing was observed there yet
}

// readsOf is what code hosts say of an account; nothing where they are not asked.
func (v *View) readsOf(account string) (all []reads) {
	identities := v.IdentitiesOf(account)
	if len(identities) == 0 || v.PermissionSync() != PermissionSyncOn {
		return nil
	}
	for _, x := range identities {
		if site := v.SiteOfIdentity(x); site != "" {
			all = append(all, v.readBy(x, site))
		}
	}
	return all
}

// readBy is what a code host says of somebody by one of their identities, which is of it.
func (v *View) readBy(x *Identity, site string) reads {
	return reads{site, v.readers.Get(ReaderKey(site, x.Subject)), v.sites.Get(site)}
}

// set is what somebody may read by observations that are not too old.
func (r *reads) set() *roaring.Bitmap {
	if r.reader == nil {
		return roaring.New()
	}
	set, extra := bitmap(r.reader.Repos).Clone(), bitmap(r.reader.Extra).Clone()

	if r.of == nil {
		return roaring.Or(set, extra)
	}

	// Repositories whose last answer is too old count only by the person's own, fresh one.
	stale := bitmap(r.of.Stale)
	if r.reader.Began == 0 || r.reader.Stale {
		set.AndNot(stale)
	}
	extra.AndNot(stale)
	set.Or(extra)
	return set
}

// refused reports whether the host does not know the person any more.
func (r *reads) refused() bool { return r.reader != nil && r.reader.Issue != "" }

// linkedAt is what everybody sees who is known to a code host: what is public
// or internal there.
func (v *View) linkedAt(site string) *roaring.Bitmap {
	// By site, not by person: everybody who is known there sees the same.
	return v.Kept("linked "+site, func() func(*Repo) bool {
		return func(r *Repo) bool { return ofWhoeverIsKnown(r) && SiteOf(r.ExternalID) == site }
	})
}

// Asked are the repositories whose host is asked who may read them: those that
// are listed, closed by a connection, and not open to everybody who is known
// there. The set is shared.
func (v *View) Asked() *roaring.Bitmap {
	if v.PermissionSync() != PermissionSyncOn {
		return roaring.New()
	}
	open := v.openSet()
	return v.Kept("asked", func() func(*Repo) bool {
		shown := v.Shown()
		return func(r *Repo) bool {
			return shown(r) && !open.Contains(r.ID) && !ofWhoeverIsKnown(r) && SiteOf(r.ExternalID) != ""
		}
	})
}

// ofWhoeverIsKnown reports whether a repository is open to everybody who is
// known to its host.
func ofWhoeverIsKnown(r *Repo) bool {
	return r.Public || r.Visibility == Public || r.Visibility == Internal
}

// Access is how it was asked last who may read a repository; nil before the first time.
func (v *View) Access(repo RepoID) *Access { return v.access.Get(repo) }

// Accesses goes through them by repository.
func (v *View) Accesses() iter.Seq[*Access] { return v.access.Records() }

// AccessIsStale reports whether it was asked too long ago who may read a repository.
func (v *View) AccessIsStale(r *Repo) bool {
	return v.EndedAccess(SiteOf(r.ExternalID)).Contains(r.ID)
}

// EndedAccess are the repositories of a site of which it was asked too long ago who
// may read them. The set shares bytes with the record.
func (v *View) EndedAccess(site string) *roaring.Bitmap {
	s := v.sites.Get(site)
	if s == nil {
		return roaring.New()
	}
	return bitmap(s.Stale)
}

// Reader is what a code host says of somebody; nil for nothing.
func (v *View) Reader(site, subject string) *Reader { return v.readers.Get(ReaderKey(site, subject)) }

// Readers goes through what is known of people of code hosts.
func (v *View) Readers() iter.Seq[*Reader] { return v.readers.Records() }

// May reports whether complete observations, and whether others, say that
// somebody may read a repository.
func (r *Reader) May(repo RepoID) (complete, extra bool) {
	return bitmap(r.Repos).Contains(repo), bitmap(r.Extra).Contains(repo)
}

// Complete is what complete observations let somebody read. The set shares
// bytes with the record: clone it before changing it.
func (r *Reader) Complete() *roaring.Bitmap {
	if r == nil {
		return roaring.New()
	}
	return bitmap(r.Repos)
}
