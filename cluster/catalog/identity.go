package catalog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/config"
)

const (
	// maxFormer bounds the former names of a repository.
	maxFormer = 8

	// formerNameTime is how long a former name still leads to its repository.
	formerNameTime = 30 * 24 * time.Hour
)

// The external id, given by the code host, is the identity of a repository. Its name is a label
// that the host may change. If the host gives no id, the name is the identity.

// sameAs reports whether a listed repository is r.
func (l *ListedRepo) sameAs(r *Repo) bool {
	return identified(l.Name, &l.RepoFacts) && l.ExternalID == r.ExternalID
}

// identified reports whether the host gives the repository an id besides its name.
func identified(name string, f *RepoFacts) bool { return f.ExternalID != "" && f.ExternalID != name }

// mayDescribe reports whether the facts of a listing may replace those of r. A connection that
// knows only an address must not replace what the host with the id said.
func (l *ListedRepo) mayDescribe(r *Repo) bool {
	return identified(l.Name, &l.RepoFacts) || !identified(r.Name, &r.RepoFacts)
}

// findListed returns the repository that a listing names: by the host's id, or by its name if the
// catalog does not know its id yet. If another repository has the name, it gets another name.
func (t *txn) findListed(l *ListedRepo) (RepoID, bool) {
	if !identified(l.Name, &l.RepoFacts) {
		return t.findListedByName(l)
	}
	if id, ok := t.externals.Get(l.ExternalID); ok {
		return id, true
	}

	// A repository known only by name may be this one, from before its host gave ids.
	id, taken := t.names.Get(l.Name)
	if !taken {
		return 0, false
	}
	r := *t.repos.Get(id)
	if !identified(r.Name, &r.RepoFacts) && !isLocal(r.CloneURL) {
		return id, true
	}

	// The name belongs to another repository until now.
	t.displace(&r)
	return 0, false
}

// findListedByName finds a repository whose host gives no ids; false if the catalog lacks it. A local
// directory only claims its name. If a repository of a host has the name, the directory gets another
// name, from its path, which is also written into l.
func (t *txn) findListedByName(l *ListedRepo) (RepoID, bool) {
	id, taken := t.names.Get(l.Name)
	if !taken || !isLocal(l.CloneURL) {
		return id, taken
	}

	if r := t.repos.Get(id); isLocal(r.CloneURL) {
		return id, true
	}

	// Name it after its directory, with a number if that name is taken: app, app-2, app-3.
	claimed, base := l.Name, localName(l.CloneURL)
	for i := 1; ; i++ {
		if l.Name = base; i > 1 {
			l.Name += "-" + strconv.Itoa(i)
		}
		if l.ExternalID == claimed {
			l.ExternalID = l.Name
		}
		claimed = l.Name

		id, taken := t.names.Get(l.Name)
		if !taken || t.repos.Get(id).CloneURL == l.CloneURL {
			return id, taken
		}
	}
}

// freeNames frees the old names of repositories that the page lists under new names, so that
// repositories may swap names.
func (t *txn) freeNames(page []ListedRepo) {
	for i := range page {
		l := &page[i]
		id, ok := t.externals.Get(l.ExternalID)
		if !ok || !identified(l.Name, &l.RepoFacts) {
			continue
		}

		// Free the name only if it still leads to r: another repository may have it by now.
		r := t.repos.Get(id)
		if at, taken := t.names.Get(r.Name); r.Name != l.Name && taken && at == id {
			t.names.Delete(r.Name)
		}
	}
}

// rename gives a repository the new name from its host. It keeps its number, and with it mirror,
// index and permissions.
func (t *txn) rename(r *Repo, name string) {
	if r.Name == name {
		t.names.Set(name, r.ID)
		return
	}

	// The repository that has the name now loses it: the host gave the name to r.
	if id, taken := t.names.Get(name); taken && id != r.ID {
		other := *t.repos.Get(id)
		t.displace(&other)
	}

	t.addFormerName(r)
	if id, ok := t.names.Get(r.Name); ok && id == r.ID {
		t.names.Delete(r.Name)
	}
	// Without an id from the host, the name is the identity.
	if !identified(r.Name, &r.RepoFacts) {
		r.ExternalID = name
	}
	r.Name = name
	t.names.Set(name, r.ID)
}

// addFormerName records the present name of a repository that gets another one.
func (t *txn) addFormerName(r *Repo) {
	r.Former = slices.DeleteFunc(slices.Clone(r.Former), func(f FormerName) bool {
		return f.Name == r.Name || t.now.Sub(f.At) > formerNameTime
	})
	r.Former = append(r.Former, FormerName{Name: r.Name, At: t.now})
	if n := len(r.Former) - maxFormer; n > 0 {
		r.Former = slices.Delete(r.Former, 0, n)
	}
	t.former.Set(r.Name, r.ID)
}

// displace gives a repository a temporary name, because a host gave its name to another one. Its own
// host will tell its new name. A local directory, which has only claimed its name, keeps the
// temporary one.
func (t *txn) displace(r *Repo) {
	base := r.Name + "+" + strconv.FormatUint(uint64(r.ID), 10)
	if isLocal(r.CloneURL) {
		base = localName(r.CloneURL)
	}

	name := base
	for i := 2; ; i++ {
		if _, taken := t.names.Get(name); !taken {
			break
		}
		name = base + "-" + strconv.Itoa(i)
	}

	// Delete only its own entry: the name may belong to another repository by now.
	if id, ok := t.names.Get(r.Name); ok && id == r.ID {
		t.names.Delete(r.Name)
	}
	if !identified(r.Name, &r.RepoFacts) {
		t.externals.Delete(r.ExternalID)
		r.ExternalID = name
	}
	r.Name = name
	t.names.Set(name, r.ID)
	t.setRepo(r)
	t.indexIdentity(r)
}

// localName returns the name for a local repository, from its directory.
func localName(address string) string {
	path := strings.TrimSuffix(strings.Trim(strings.TrimPrefix(address, "file://"), "/"), ".git")
	path = strings.Trim(path, "/")
	return "local/" + path[strings.LastIndex(path, "/")+1:]
}

// indexIdentity updates the indexes by external id and by former name.
func (s *State) indexIdentity(r *Repo) {
	if identified(r.Name, &r.RepoFacts) {
		s.externals.Set(r.ExternalID, r.ID)
	}
	for _, f := range r.Former {
		if id, ok := s.former.Get(f.Name); !ok || s.repos.Get(id) == nil || !s.repos.Get(id).gaveUpLater(f) {
			s.former.Set(f.Name, r.ID)
		}
	}
}

// gaveUpLater reports whether the repository gave up the same name later than f.
func (r *Repo) gaveUpLater(f FormerName) bool {
	return slices.ContainsFunc(r.Former, func(g FormerName) bool { return g.Name == f.Name && g.At.After(f.At) })
}

// unindexRepo removes a repository from the indexes.
func (t *txn) unindexRepo(r *Repo) {
	if id, ok := t.names.Get(r.Name); ok && id == r.ID {
		t.names.Delete(r.Name)
	}
	if id, ok := t.externals.Get(r.ExternalID); ok && id == r.ID {
		t.externals.Delete(r.ExternalID)
	}
	for _, f := range r.Former {
		if id, ok := t.former.Get(f.Name); ok && id == r.ID {
			t.former.Delete(f.Name)
		}
	}
}

// RepoByExternalID returns the repository with an external id, or nil.
func (v *View) RepoByExternalID(external string) *Repo {
	return lookup(&v.externals, external, &v.repos)
}

// ShortName returns the name of an Azure DevOps repository as host/project/repository. Files and
// clients of Sourcebot leave out the organisation, and the path of a server. It returns "" for
// repositories of other hosts.
func (r *Repo) ShortName() string {
	// Check the kind first: searches call this for many repositories.
	if r.HostKind != string(config.KindAzureDevOps) {
		return ""
	}
	parts := strings.Split(r.Name, "/")
	if n := len(parts); n > 3 {
		return parts[0] + "/" + parts[n-2] + "/" + parts[n-1]
	}
	return ""
}

// NameMatches reports whether match accepts the name or the short name.
func (r *Repo) NameMatches(match func(name string) bool) bool {
	if match(r.Name) {
		return true
	}
	short := r.ShortName()
	return short != "" && match(short)
}

// ReposByShortName returns the repositories with a short name, by id.
func (v *View) ReposByShortName(name string) (found []*Repo) {
	for it := v.withShortName().Iterator(); it.HasNext(); {
		if r := v.Repo(it.Next()); r.ShortName() == name {
			found = append(found, r)
		}
	}
	return found
}

func (v *View) withShortName() *roaring.Bitmap {
	return v.CachedSet("short names", func() func(*Repo) bool {
		return func(r *Repo) bool { return r.ShortName() != "" }
	})
}

// ReposNamed returns the repositories with a name that match accepts: the name, the short name, or a
// former name that still leads to the repository.
func (v *View) ReposNamed(match func(name string) bool) *roaring.Bitmap {
	found := roaring.New()
	for name, id := range v.names.All() {
		if match(name) {
			found.Add(id)
		}
	}
	for it := v.withShortName().Iterator(); it.HasNext(); {
		if r := v.Repo(it.Next()); match(r.ShortName()) {
			found.Add(r.ID)
		}
	}
	for name := range v.former.All() {
		if r := v.RepoByFormerName(name); r != nil && v.RepoByName(name) == nil && match(name) {
			found.Add(r.ID)
		}
	}
	return found
}

// FormerNames returns the former names that still lead to a repository.
func (v *View) FormerNames(r *Repo) []string {
	var names []string
	for _, f := range r.Former {
		if v.RepoByName(f.Name) == nil && v.RepoByFormerName(f.Name) == r {
			names = append(names, f.Name)
		}
	}
	return names
}

// RepoByFormerName returns the repository that had a name until its host renamed it, or nil. A
// former name is valid for thirty days.
func (v *View) RepoByFormerName(name string) *Repo {
	r := lookup(&v.former, name, &v.repos)
	if r == nil {
		return nil
	}

	// The index may still have names that are too old.
	for _, f := range r.Former {
		if f.Name == name && v.meta.Clock.Sub(f.At) <= formerNameTime {
			return r
		}
	}
	return nil
}
