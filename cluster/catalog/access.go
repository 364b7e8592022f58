package catalog

import (
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/glob"
)

// Viewer is on whose behalf an operation runs. The zero Viewer sees nothing.
type Viewer struct {
	Role  Role
	Name  string // of the key, for logs
	KeyID string // "" without a key

	Account string // id of the account; "" for the operator, guests and keys of nobody
	Session string // id of the session; "" without one
	All     bool   // sees every repository that is listed, whatever is enforced

	// Only binds an operation to some of the repositories that the viewer may
	// see, as one on whose behalf a language model asks; nil binds to none.
	Only *roaring.Bitmap
}

// Guest is the anonymous viewer.
func Guest() Viewer { return Viewer{Role: RoleGuest, Name: "anonymous"} }

// Operator is the viewer of the host's own operator.
func Operator() Viewer { return Viewer{Role: RoleOwner, Name: "operator", All: true} }

// sight is what an account sees, as long as its record, its grants, what hosts say
// of its identities and the sets for everybody are the ones that it was worked out
// from. Records and sets are replaced, never changed.
type sight struct {
	user         *User
	grants       []*Grants
	reads        []reads
	listed, open *roaring.Bitmap
	set          *roaring.Bitmap
}

// maxSights bounds what is kept for viewers: the sets of 2,000 people who see
// 50,000 repositories each take 33 MB.
const maxSights = 2000

// Visible is the set of repositories that a viewer may know of:
//
//	nobody                        none
//	the operator, keys for all    what is listed, see Shown
//	guests, keys of nobody        what is listed and open
//	an account, an owner's too    that, and what is listed and granted to it, or
//	                              lets be read by the host one of its identities is of
//
// The set is shared: clone it before changing it.
func (v *View) Visible(who Viewer) *roaring.Bitmap {
	switch {
	case who.Role == RoleNone:
		return roaring.New()
	case who.All:
		return v.listedSet()
	case who.Account == "":
		return v.openSet()
	}

	// The account is looked up again: it may have left since the viewer came in.
	a := v.Account(who.Account)
	if a == nil || a.State != AccountActive {
		return roaring.New()
	}
	grants, reads := v.GrantsOf(a.ID), v.readsOf(a.ID)
	if len(grants)+len(reads) == 0 {
		return v.openSet()
	}
	return v.sightOf(a, grants, reads, v.listedSet(), v.openSet())
}

// sightOf is the set of an account that sees more than what is open. It is worked
// out once for all requests until the account, its grants, what hosts say of its
// identities, or the repositories change.
func (v *View) sightOf(a *User, grants []*Grants, reads []reads, listed, open *roaring.Bitmap) *roaring.Bitmap {
	v.sets.mu.Lock()
	last := v.sets.viewers[a.ID]
	v.sets.mu.Unlock()
	same := last != nil && last.user == a && last.listed == listed && last.open == open
	if same && slices.Equal(last.grants, grants) && slices.Equal(last.reads, reads) {
		return last.set
	}

	// What is granted, what hosts say, and what is public at a host that knows the person;
	// of these what is listed, and with it what is open to everybody.
	set := roaring.New()
	for _, g := range grants {
		set.Or(g.Set())
	}
	for _, r := range reads {
		set.Or(r.set())
		if !r.refused() {
			set.Or(v.linkedAt(r.site))
		}
	}
	set.And(listed)
	set.Or(open)

	// All of them go when there are too many: who is active is worked out again at once,
	// and nothing has to be remembered of who came last.
	v.sets.mu.Lock()
	defer v.sets.mu.Unlock()
	if v.sets.viewers == nil || len(v.sets.viewers) >= maxSights {
		v.sets.viewers = map[string]*sight{}
	}
	v.sets.viewers[a.ID] = &sight{a, grants, reads, listed, open, set}
	return set
}

// Enforces reports whether permissions of some connection are enforced, so that
// viewers may differ in what they see. It depends on the configuration alone:
// an answer that tells less because of it says nothing of what there is.
func (v *View) Enforces() bool {
	for _, e := range v.enforcements() {
		if e.private {
			return true
		}
	}
	return v.FileError() != nil
}

// listedSet are the repositories that are listed.
func (v *View) listedSet() *roaring.Bitmap { return v.Kept("listed", v.Shown) }

// openSet are those of them that are open to everybody.
func (v *View) openSet() *roaring.Bitmap {
	return v.Kept("open", func() func(*Repo) bool {
		shown, enforced := v.Shown(), v.enforcements()
		return func(r *Repo) bool { return shown(r) && isOpen(r, enforced) }
	})
}

// enforcement is what a connection says of the permissions of its repositories.
type enforcement struct{ private, public bool }

// enforcements are those of the connections of the configuration, by name.
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

// isOpen reports whether a repository is open to everybody. One connection that
// enforces closes it for all of them, and so does one that the configuration
// does not tell of: where that cannot be read nothing is open.
func isOpen(r *Repo, enforced map[string]enforcement) bool {
	// Facts from before visibilities were told have only whether it is public.
	public := r.Visibility == Public || r.Visibility == VisibilityUnknown && r.Public
	for _, c := range r.Connections {
		e, known := enforced[c.Name]
		if !known || e.public || e.private && !public {
			return false
		}
	}
	return true
}

// Shown returns what tells whether a repository is shown to anybody: some
// connection lists it, and not only such as are hidden since their hosts have
// refused their tokens for long. It is of this view; calls cost little.
func (v *View) Shown() func(*Repo) bool {
	hidden := v.hidden()
	return func(r *Repo) bool {
		return slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return !slices.Contains(hidden, c.Name) })
	}
}

// where is the set of the repositories for which a condition holds.
func (v *View) where(cond func(*Repo) bool) *roaring.Bitmap {
	set := roaring.New()
	for r := range v.Repos() {
		if cond(r) {
			set.Add(r.ID)
		}
	}
	set.RunOptimize()
	return set
}

// Context is the set of repositories of a search context, whoever asks, and
// false when there is no such context. The set is shared.
func (v *View) Context(name string) (*roaring.Bitmap, bool) {
	def := v.File().Context(name)
	if def == nil {
		return nil, false
	}

	// Made once for each state of the repositories: many searches ask for the same context.
	return v.Kept("context "+def.Name, func() func(*Repo) bool {
		scope, shown := newScope(def), v.Shown()
		return func(r *Repo) bool { return shown(r) && scope.has(r) }
	}), true
}

// scope is a search context with its globs compiled.
type scope struct {
	def                                         *config.Context
	include, exclude, withTopics, withoutTopics glob.Globs
}

// newScope compiles the globs of a context. Those of a parsed file compile;
// one that does not matches nothing.
func newScope(def *config.Context) *scope {
	compile := func(patterns []string) glob.Globs {
		g, _ := glob.Compile(glob.Fold, patterns...)
		return g
	}
	return &scope{def, compile(def.Include), compile(def.Exclude), compile(def.IncludeTopics), compile(def.ExcludeTopics)}
}

// has reports whether a repository is in the scope: one of the includes chooses
// it, and none of the excludes. Letters match in either case, as at code hosts.
func (s *scope) has(r *Repo) bool {
	// Excludes win over includes, whatever their order.
	in := r.NameMatches(s.include.Match) || listedByAny(s.def.IncludeConnections, r) || s.withTopics.MatchAny(r.Topics)
	return in && !r.NameMatches(s.exclude.Match) && !listedByAny(s.def.ExcludeConnections, r) && !s.withoutTopics.MatchAny(r.Topics)
}

// UnusedGlobs lists the globs of search contexts that match no repository, as sentences.
// It is empty until every connection was listed: a repository may come yet.
func (v *View) UnusedGlobs() (out []string) {
	for c := range v.Connections() {
		if c.Sync == 0 {
			return nil
		}
	}
	for _, x := range v.File().Contexts {
		unused := func(property string, patterns []string, matches func(glob.Globs, *Repo) bool) {
			for _, p := range patterns {
				// Made once for each state of the repositories.
				set := v.Kept(property+" "+p, func() func(*Repo) bool {
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
		unused("include", x.Include, named)
		unused("exclude", x.Exclude, named)
		unused("includeTopics", x.IncludeTopics, topic)
		unused("excludeTopics", x.ExcludeTopics, topic)
	}
	return out
}

func listedByAny(connections []string, r *Repo) bool {
	return slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return slices.Contains(connections, c.Name) })
}
