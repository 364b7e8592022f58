package catalog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

const (
	// maxFormer bounds the former names of a repository that are kept.
	maxFormer = 8

	// formerNames is how long a former name leads to its repository.
	formerNames = 30 * 24 * time.Hour
)

// A repository is what its host says it is: the external id is its identity,
// and its name a label that the host may change. A repository whose host
// gives no id has its name for one.

// sameAs reports whether a listed repository is this one.
func (l *ListedRepo) sameAs(r *Repo) bool {
	return identified(l.Name, &l.RepoFacts) && l.ExternalID == r.ExternalID
}

// identified reports whether the host of some facts gives ids of its own.
func identified(name string, f *RepoFacts) bool { return f.ExternalID != "" && f.ExternalID != name }

// mayDescribe reports whether the facts of a listing may take the place of
// those of a repository: a connection that knows an address alone does not
// speak for the host that gave the repository its id.
func (l *ListedRepo) mayDescribe(r *Repo) bool {
	return identified(l.Name, &l.RepoFacts) || !identified(r.Name, &r.RepoFacts)
}

// whose finds the repository that is listed: by the host's id, or by its name
// where that is a record from before its host told an id. A name alone is no
// identity: another repository that has it gives it up.
func (t *txn) whose(l *ListedRepo) (RepoID, bool) {
	if !identified(l.Name, &l.RepoFacts) {
		return t.whoseName(l)
	}
	if id, ok := t.externals.Get(l.ExternalID); ok {
		return id, true
	}

	// One that is known by its name alone may be this one, from before its host told ids.
	id, taken := t.names.Get(l.Name)
	if !taken {
		return 0, false
	}
	r := *t.repos.Get(id)
	if !identified(r.Name, &r.RepoFacts) && !local(r.CloneURL) {
		return id, true
	}

	// It was another one: it keeps its data under another name.
	t.displace(&r)
	return 0, false
}

// whoseName finds a repository whose host gives no ids. A local directory
// only claims its name: where another repository has that by right, the
// directory is named by its path.
func (t *txn) whoseName(l *ListedRepo) (RepoID, bool) {
	id, taken := t.names.Get(l.Name)
	if !taken || !local(l.CloneURL) {
		return id, taken
	}

	if r := t.repos.Get(id); local(r.CloneURL) {
		return id, true
	}

	// The name by its directory, with a number where that is taken too: app, app-2, app-3.
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

// freeNames takes the names from the repositories of a page that come with
// another one, so that repositories may exchange names.
func (t *txn) freeNames(page []ListedRepo) {
	for i := range page {
		l := &page[i]
		id, ok := t.externals.Get(l.ExternalID)
		if !ok || !identified(l.Name, &l.RepoFacts) {
			continue
		}

		// Only its own: another repository may have the name by now.
		r := t.repos.Get(id)
		if at, taken := t.names.Get(r.Name); r.Name != l.Name && taken && at == id {
			t.names.Delete(r.Name)
		}
	}
}

// rename gives a repository the name that its host gives it now. Its number,
// and with it mirror, index and permissions, stay.
func (t *txn) rename(r *Repo, name string) {
	if r.Name == name {
		t.names.Set(name, r.ID)
		return
	}

	// Who has the name now loses it: the host has given it to this one.
	if id, taken := t.names.Get(name); taken && id != r.ID {
		other := *t.repos.Get(id)
		t.displace(&other)
	}

	t.noteFormer(r)
	if id, ok := t.names.Get(r.Name); ok && id == r.ID {
		t.names.Delete(r.Name)
	}
	// Without an id of its host a repository is identified by its name.
	if !identified(r.Name, &r.RepoFacts) {
		r.ExternalID = name
	}
	r.Name = name
	t.names.Set(name, r.ID)
}

// noteFormer keeps the name of a repository that gets another one.
func (t *txn) noteFormer(r *Repo) {
	r.Former = slices.DeleteFunc(slices.Clone(r.Former), func(f FormerName) bool {
		return f.Name == r.Name || t.now.Sub(f.At) > formerNames
	})
	r.Former = append(r.Former, FormerName{Name: r.Name, At: t.now})
	if n := len(r.Former) - maxFormer; n > 0 {
		r.Former = slices.Delete(r.Former, 0, n)
	}
	t.former.Set(r.Name, r.ID)
}

// displace takes the name from a repository whose host gave it to another
// one. It has a name of its own until its host tells its new one; a local
// directory, which only claims a name, keeps that name for good.
func (t *txn) displace(r *Repo) {
	base := r.Name + "+" + strconv.FormatUint(uint64(r.ID), 10)
	if local(r.CloneURL) {
		base = localName(r.CloneURL)
	}

	name := base
	for i := 2; ; i++ {
		if _, taken := t.names.Get(name); !taken {
			break
		}
		name = base + "-" + strconv.Itoa(i)
	}

	// Only its own entry: the name may be another's by now.
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

// localName names a local repository by its directory.
func localName(address string) string {
	path := strings.TrimSuffix(strings.Trim(strings.TrimPrefix(address, "file://"), "/"), ".git")
	path = strings.Trim(path, "/")
	return "local/" + path[strings.LastIndex(path, "/")+1:]
}

// indexIdentity notes by what a repository is found besides its name.
func (s *State) indexIdentity(r *Repo) {
	if identified(r.Name, &r.RepoFacts) {
		s.externals.Set(r.ExternalID, r.ID)
	}
	for _, f := range r.Former {
		if id, ok := s.former.Get(f.Name); !ok || s.repos.Get(id) == nil || !s.repos.Get(id).hadAfter(f) {
			s.former.Set(f.Name, r.ID)
		}
	}
}

// hadAfter reports whether the repository gave up the same name later.
func (r *Repo) hadAfter(f FormerName) bool {
	return slices.ContainsFunc(r.Former, func(g FormerName) bool { return g.Name == f.Name && g.At.After(f.At) })
}

// forget takes a repository out of the indexes.
func (t *txn) forget(r *Repo) {
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

// RepoByExternalID returns the repository that a host knows by an id, or nil.
func (v *View) RepoByExternalID(external string) *Repo {
	return lookup(&v.externals, external, &v.repos)
}

// ShortName returns the name of a repository of Azure DevOps as host/project/repository:
// files and clients of the reference leave out the organisation, and the path of a server.
// It is "" for repositories of other hosts.
func (r *Repo) ShortName() string {
	// Each search with repo: asks this of every repository that its pattern does not fit.
	if r.HostKind != string(config.KindAzureDevOps) {
		return ""
	}
	parts := strings.Split(r.Name, "/")
	if n := len(parts); n > 3 {
		return parts[0] + "/" + parts[n-2] + "/" + parts[n-1]
	}
	return ""
}

// NameMatches reports whether a condition holds for the name or the short name.
func (r *Repo) NameMatches(is func(name string) bool) bool {
	if is(r.Name) {
		return true
	}
	short := r.ShortName()
	return short != "" && is(short)
}

// ReposByShortName returns the repositories with a short name, by number.
func (v *View) ReposByShortName(name string) (found []*Repo) {
	azure := v.Kept("short names", func() func(*Repo) bool {
		return func(r *Repo) bool { return r.ShortName() != "" }
	})
	for it := azure.Iterator(); it.HasNext(); {
		if r := v.Repo(it.Next()); r.ShortName() == name {
			found = append(found, r)
		}
	}
	return found
}

// FormerNames are the names that still lead to a repository though its host
// has given it another.
func (v *View) FormerNames(r *Repo) []string {
	var names []string
	for _, f := range r.Former {
		if v.RepoByName(f.Name) == nil && v.RepoByFormerName(f.Name) == r {
			names = append(names, f.Name)
		}
	}
	return names
}

// RepoByFormerName returns the repository that had a name until its host
// renamed it, for thirty days after that, or nil.
func (v *View) RepoByFormerName(name string) *Repo {
	r := lookup(&v.former, name, &v.repos)
	if r == nil {
		return nil
	}

	// The index keeps a name longer than it counts: the clock decides when it is asked.
	for _, f := range r.Former {
		if f.Name == name && v.meta.Clock.Sub(f.At) <= formerNames {
			return r
		}
	}
	return nil
}
