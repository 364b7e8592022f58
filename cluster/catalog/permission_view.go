package catalog

import (
	"cmp"
	"iter"
	"net/url"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/config"
)

// PermissionSync is the setting PERMISSION_SYNC_ENABLED of a node.
type PermissionSync uint8

// The settings. Stored records contain the numbers, which must never change.
const (
	PermissionSyncUnset PermissionSync = 0 // unset: enforce what the configuration says; only owners grant access
	PermissionSyncOff   PermissionSync = 1 // false: enforce nothing
	PermissionSyncOn    PermissionSync = 2 // true: enforce unless the configuration says otherwise, and ask code hosts
)

// String names the setting: unset, off, on.
func (p PermissionSync) String() string { return nameOf(p, permissionSyncs) }

var permissionSyncs = []string{PermissionSyncUnset: "unset", PermissionSyncOff: "off", PermissionSyncOn: "on"}

// MarshalText implements encoding.TextMarshaler.
func (p PermissionSync) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *PermissionSync) UnmarshalText(name []byte) error {
	*p = valueOf[PermissionSync](name, permissionSyncs)
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

// SayPermissionSync reports the PERMISSION_SYNC_ENABLED of a node.
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

	// Access may change for every viewer, so cached sets are invalid.
	t.allChanged()
	return Result{}
}

// PermissionSync returns the setting of the cluster. It is on if any member has it on, and off only
// if all members have it off.
func (v *View) PermissionSync() PermissionSync {
	all, members := PermissionSyncOff, 0
	for m := range v.members.Records() {
		switch {
		case m.State == MemberRemoved:
			continue
		// One protecting node is enough: hiding is safer than showing by mistake.
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
	usual string // default address
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

// SiteOfProvider returns the code host behind an identity provider, as SiteOf its repositories, and
// its address. Both are "" if the provider is no code host.
func SiteOfProvider(p *config.IdentityProvider) (site, address string) {
	row, ok := hostProviders[p.Provider]
	u, err := url.Parse(strings.TrimRight(cmp.Or(p.BaseURL, row.usual), "/"))
	if !ok || err != nil || u.Host == "" {
		return "", ""
	}
	u.Host = strings.ToLower(u.Host)
	return string(row.kind) + ":" + u.Host + u.Path, u.String()
}

// SiteOfIdentity returns the code host behind an identity, or "" if there is none or the provider
// is no longer configured.
func (v *View) SiteOfIdentity(x *Identity) string {
	for _, h := range v.hosts() {
		if strings.EqualFold(strings.TrimRight(x.Provider, "/"), h.address) {
			return h.site
		}
	}
	return ""
}

// hostAccess is what one code host has answered about the person who owns an account.
type hostAccess struct {
	site      string
	reader    *Reader // nil: the host has said nothing yet
	siteState *Site   // nil: nothing was observed at the host yet
}

// hostAccessOf returns, for each code host to which an account is linked, what that host lets it
// read. It returns nil if code hosts are not asked.
func (v *View) hostAccessOf(account string) (all []hostAccess) {
	identities := v.IdentitiesOf(account)
	if len(identities) == 0 || v.PermissionSync() != PermissionSyncOn {
		return nil
	}
	for _, x := range identities {
		if site := v.SiteOfIdentity(x); site != "" {
			all = append(all, v.hostAccessAt(x, site))
		}
	}
	return all
}

// hostAccessAt returns what a code host says of one identity there.
func (v *View) hostAccessAt(x *Identity, site string) hostAccess {
	return hostAccess{site, v.readers.Get(ReaderKey(site, x.Subject)), v.sites.Get(site)}
}

// readableRepos returns the repositories that a person may read, by observations that still count.
func (r *hostAccess) readableRepos() *roaring.Bitmap {
	if r.reader == nil {
		return roaring.New()
	}
	set, extra := sharedBitmap(r.reader.Repos).Clone(), sharedBitmap(r.reader.Extra).Clone()

	if r.siteState == nil {
		return roaring.Or(set, extra)
	}

	// The last answers about the readers of stale repositories are too old. Complete ones count only
	// if a listing of the person is newer.
	stale := sharedBitmap(r.siteState.Stale)
	if r.reader.Began == 0 || r.reader.Stale {
		set.AndNot(stale)
	}
	extra.AndNot(stale)
	set.Or(extra)
	return set
}

// refused reports whether the host no longer lets the person in.
func (r *hostAccess) refused() bool { return r.reader != nil && r.reader.Issue != "" }

// openToLinkedAt returns what every person with an account at a host may see: its public and internal
// repositories.
func (v *View) openToLinkedAt(site string) *roaring.Bitmap {
	// Cache by site: all its people see the same.
	return v.CachedSet("linked "+site, func() func(*Repo) bool {
		return func(r *Repo) bool { return openAtHost(r) && SiteOf(r.ExternalID) == site }
	})
}

// Asked returns the repositories whose hosts are asked who may read them: those that are shown,
// closed by a connection, and not open to everybody at the host. The caller must not change the
// set.
func (v *View) Asked() *roaring.Bitmap {
	if v.PermissionSync() != PermissionSyncOn {
		return roaring.New()
	}
	open := v.openSet()
	return v.CachedSet("asked", func() func(*Repo) bool {
		shown := v.Shown()
		return func(r *Repo) bool {
			return shown(r) && !open.Contains(r.ID) && !openAtHost(r) && SiteOf(r.ExternalID) != ""
		}
	})
}

// openAtHost reports whether everybody with an account at the host may see a repository.
func openAtHost(r *Repo) bool {
	return r.Public || r.Visibility == Public || r.Visibility == Internal
}

// Access returns the last observation of who may read a repository, or nil.
func (v *View) Access(repo RepoID) *Access { return v.access.Get(repo) }

// Accesses iterates over all observations by repository.
func (v *View) Accesses() iter.Seq[*Access] { return v.access.Records() }

// AccessIsStale reports whether the observation of a repository is too old to count.
func (v *View) AccessIsStale(r *Repo) bool {
	return v.EndedAccess(SiteOf(r.ExternalID)).Contains(r.ID)
}

// EndedAccess returns the repositories of a site whose observations are too old to count. The set
// shares bytes with the record.
func (v *View) EndedAccess(site string) *roaring.Bitmap {
	s := v.sites.Get(site)
	if s == nil {
		return roaring.New()
	}
	return sharedBitmap(s.Stale)
}

// Reader returns what a code host says of a person, or nil.
func (v *View) Reader(site, subject string) *Reader { return v.readers.Get(ReaderKey(site, subject)) }

// Readers iterates over all people of code hosts.
func (v *View) Readers() iter.Seq[*Reader] { return v.readers.Records() }

// May reports whether complete observations let a person read a repository, and whether others do.
func (r *Reader) May(repo RepoID) (complete, extra bool) {
	return sharedBitmap(r.Repos).Contains(repo), sharedBitmap(r.Extra).Contains(repo)
}

// Complete returns what complete observations let a person read. The set shares bytes with the
// record: the caller must clone it before changing it.
func (r *Reader) Complete() *roaring.Bitmap {
	if r == nil {
		return roaring.New()
	}
	return sharedBitmap(r.Repos)
}
