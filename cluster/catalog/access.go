package catalog

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/glob"
)

// Viewer is the identity that an operation runs for. The zero Viewer sees nothing.
type Viewer struct {
	Role  Role
	Name  string // of the key, for logs
	KeyID string // "" without a key

	Account string // account id; "" for the operator, guests, and keys without an account
	Session string // session id; "" without one
	All     bool   // sees every listed repository, whatever permissions are enforced

	// Only, if not nil, narrows the operation to these repositories, as when a language model acts
	// for the viewer. It never adds one that the viewer may not see.
	Only *roaring.Bitmap
}

// Guest returns the anonymous viewer.
func Guest() Viewer { return Viewer{Role: RoleGuest, Name: "anonymous"} }

// Operator returns the viewer for the administrator of the host.
func Operator() Viewer { return Viewer{Role: RoleOwner, Name: "operator", All: true} }

// accountSet is the cached set of repositories that one account may see, with the inputs it was
// computed from. It is valid while all inputs are the same pointers, because records and sets are
// replaced, never changed.
type accountSet struct {
	user         *User
	grants       []*Grants
	reads        []hostAccess
	listed, open *roaring.Bitmap
	set          *roaring.Bitmap
}

// maxAccountSets bounds the cache of sets per account: the sets of 2,000 people who see 50,000
// repositories each take 33 MB.
const maxAccountSets = 2000

// Visible returns the set of repositories that a viewer may know of:
//
//	nobody, keys for metrics      none
//	the operator, keys for all    every shown repository, see Shown
//	guests, keys of nobody        shown and open to everybody
//	an account, also an owner's   these, and shown ones that a grant names or that
//	                              the code host lets one of its identities read
//
// The set is shared: the caller must clone it before changing it.
func (v *View) Visible(who Viewer) *roaring.Bitmap {
	switch {
	case who.Role == RoleNone || who.Role == RoleMetrics:
		return roaring.New()
	case who.All:
		return v.listedSet()
	case who.Account == "":
		return v.openSet()
	}

	// Look the account up again: it may be gone since the request began.
	a := v.Account(who.Account)
	if a == nil || a.State != AccountActive {
		return roaring.New()
	}
	grants, reads := v.GrantsOf(a.ID), v.hostAccessOf(a.ID)
	if len(grants)+len(reads) == 0 {
		return v.openSet()
	}
	return v.accountSetOf(a, grants, reads, v.listedSet(), v.openSet())
}

// accountSetOf returns the set of an account that sees more than what is open. The set is computed
// once and reused until the account, its grants, its access at code hosts, or the repositories
// change.
func (v *View) accountSetOf(a *User, grants []*Grants, reads []hostAccess, listed, open *roaring.Bitmap) *roaring.Bitmap {
	v.sets.mu.Lock()
	last := v.sets.viewers[a.ID]
	v.sets.mu.Unlock()
	same := last != nil && last.user == a && last.listed == listed && last.open == open
	if same && slices.Equal(last.grants, grants) && slices.Equal(last.reads, reads) {
		return last.set
	}

	// Unite the grants, what the hosts let the person read, and what is public at hosts that know
	// the person. Keep only listed repositories, and add the open ones.
	set := roaring.New()
	for _, g := range grants {
		set.Or(g.Set())
	}
	for _, r := range reads {
		set.Or(r.readableRepos())
		if !r.refused() {
			set.Or(v.openToLinkedAt(r.site))
		}
	}
	set.And(listed)
	set.Or(open)

	// Drop the whole cache when it is full. That is simpler than to find the least used set, and
	// the sets of active accounts are soon there again.
	v.sets.mu.Lock()
	defer v.sets.mu.Unlock()
	if v.sets.viewers == nil || len(v.sets.viewers) >= maxAccountSets {
		v.sets.viewers = map[string]*accountSet{}
	}
	v.sets.viewers[a.ID] = &accountSet{a, grants, reads, listed, open, set}
	return set
}

// Enforces reports whether some connection enforces permissions, so that viewers may see different
// repositories. It depends on the configuration alone, so its result reveals nothing about hidden
// repositories.
func (v *View) Enforces() bool {
	for _, e := range v.enforcements() {
		if e.private {
			return true
		}
	}
	return v.FileError() != nil
}

// Refused reports whether the repositories of some connection are hidden from everybody, because its
// host has refused its token for long. It does not depend on which repositories it has.
func (v *View) Refused() bool { return len(v.hiddenConnections()) > 0 }

// listedSet returns the set of all shown repositories.
func (v *View) listedSet() *roaring.Bitmap { return v.CachedSet("listed", v.Shown) }

// openSet returns the set of shown repositories that are open to everybody.
func (v *View) openSet() *roaring.Bitmap {
	return v.CachedSet("open", func() func(*Repo) bool {
		shown, enforced := v.Shown(), v.enforcements()
		return func(r *Repo) bool { return shown(r) && isOpen(r, enforced) }
	})
}

// enforcement tells for one connection whether permissions are enforced for its private and for its
// public repositories.
type enforcement struct{ private, public bool }

// enforcements returns the enforcement of each configured connection, by its name.
func (v *View) enforcements() map[string]enforcement {
	mode := v.PermissionSync()
	all := map[string]enforcement{}
	for _, c := range v.File().Connections {
		common := c.Shared()
		on := mode.Enforces(common)
		all[common.Name] = enforcement{private: on, public: on && common.EnforcePermissionsForPublicRepos}
	}
	return all
}

// isOpen reports whether a repository is open to everybody. One connection that enforces permissions
// closes it, whatever the others say. A connection that the configuration does not name closes it
// too. So nothing is open while the configuration cannot be read.
func isOpen(r *Repo, enforced map[string]enforcement) bool {
	// Older records have no visibility, only whether the repository is public.
	public := r.Visibility == Public || r.Visibility == VisibilityUnknown && r.Public
	for _, c := range r.Connections {
		e, known := enforced[c.Name]
		if !known || e.public || e.private && !public {
			return false
		}
	}
	return true
}

// Shown returns a filter for repositories that anybody may see. At least one connection must list
// the repository. A connection does not count while it is hidden because its host has refused its
// token for long. The filter is valid for this view; calls are cheap.
func (v *View) Shown() func(*Repo) bool {
	hidden := v.hiddenConnections()
	return func(r *Repo) bool {
		return slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return !slices.Contains(hidden, c.Name) })
	}
}

// reposWhere returns the set of the repositories for which cond holds.
func (v *View) reposWhere(cond func(*Repo) bool) *roaring.Bitmap {
	set := roaring.New()
	for r := range v.Repos() {
		if cond(r) {
			set.Add(r.ID)
		}
	}
	set.RunOptimize()
	return set
}

// Context returns the set of repositories of a search context, for all viewers alike. It returns
// false when there is no such context. The caller must not change the set.
func (v *View) Context(name string) (*roaring.Bitmap, bool) {
	def := v.File().Context(name)
	if def == nil {
		return nil, false
	}

	// Compute the set once per state of the repositories: many searches use the same context.
	return v.CachedSet("context "+def.Name, func() func(*Repo) bool {
		scope, shown := newScope(def), v.Shown()
		return func(r *Repo) bool { return shown(r) && scope.contains(r) }
	}), true
}

// scope is a search context with its globs compiled.
type scope struct {
	def                                         *config.Context
	include, exclude, withTopics, withoutTopics glob.Globs
}

// newScope compiles the globs of a context. Globs of a parsed file always compile; any other broken
// glob matches nothing.
func newScope(def *config.Context) *scope {
	compile := func(patterns []string) glob.Globs {
		g, _ := glob.Compile(glob.Fold, patterns...)
		return g
	}
	return &scope{def, compile(def.Include), compile(def.Exclude), compile(def.IncludeTopics), compile(def.ExcludeTopics)}
}

// contains reports whether a repository is in the scope: an include matches it, and no exclude does.
// Letter case is ignored, as code hosts do.
func (s *scope) contains(r *Repo) bool {
	included := r.NameMatches(s.include.Match) || listedByAny(s.def.IncludeConnections, r) || s.withTopics.MatchAny(r.Topics)
	return included && !r.NameMatches(s.exclude.Match) && !listedByAny(s.def.ExcludeConnections, r) && !s.withoutTopics.MatchAny(r.Topics)
}

// UnusedGlobs returns a sentence for each glob of a search context that matches no repository. It
// returns none until every connection was listed once: a matching repository may still come.
func (v *View) UnusedGlobs() (out []string) {
	for c := range v.Connections() {
		if c.Sync == 0 {
			return nil
		}
	}
	for _, x := range v.File().Contexts {
		addUnused := func(property string, patterns []string, matches func(glob.Globs, *Repo) bool) {
			for _, p := range patterns {
				// Compute the set once per state of the repositories.
				set := v.CachedSet(property+" "+p, func() func(*Repo) bool {
					g, _ := glob.Compile(glob.Fold, p)
					shown := v.Shown()
					return func(r *Repo) bool { return shown(r) && matches(g, r) }
				})
				if set.IsEmpty() {
					out = append(out, fmt.Sprintf("context %s: %s %q matches no repository; correct the glob, or take it out", x.Name, property, p))
				}
			}
		}
		named := func(g glob.Globs, r *Repo) bool { return r.NameMatches(g.Match) }
		topic := func(g glob.Globs, r *Repo) bool { return g.MatchAny(r.Topics) }
		addUnused("include", x.Include, named)
		addUnused("exclude", x.Exclude, named)
		addUnused("includeTopics", x.IncludeTopics, topic)
		addUnused("excludeTopics", x.ExcludeTopics, topic)
	}
	return out
}

func listedByAny(connections []string, r *Repo) bool {
	return slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return slices.Contains(connections, c.Name) })
}
