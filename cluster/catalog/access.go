package catalog

import (
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Viewer is who asks.
type Viewer struct {
	KeyID   string // of the API key; empty for an anonymous viewer
	Account string // empty when none
	Role    Role   // 0 for an anonymous viewer
}

// sets are sets of repositories, made when first asked for. All views
// between two changes of names, facts, connections or configuration share
// them: indexing, which is what mostly happens, does not throw them away.
type sets struct {
	mu       sync.Mutex
	listed   *roaring.Bitmap
	contexts map[string]*roaring.Bitmap
}

// Visible is the set of repositories that a viewer may know of: listed by a
// connection and permitted. The set is shared: clone it before changing it.
func (v *View) Visible(_ Viewer) *roaring.Bitmap {
	v.sets.mu.Lock()
	defer v.sets.mu.Unlock()
	return v.listedLocked()
}

func (v *View) listedLocked() *roaring.Bitmap {
	if v.sets.listed == nil {
		v.sets.listed = v.where(func(r *Repo) bool { return !r.Orphaned() })
	}
	return v.sets.listed
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
	v.sets.mu.Lock()
	defer v.sets.mu.Unlock()
	if set := v.sets.contexts[name]; set != nil {
		return set, true
	}
	scope := newScope(def)
	set := v.where(func(r *Repo) bool { return !r.Orphaned() && scope.has(r) })
	if v.sets.contexts == nil {
		v.sets.contexts = map[string]*roaring.Bitmap{}
	}
	v.sets.contexts[name] = set
	return set, true
}

// scope is a search context with its globs compiled.
type scope struct {
	def                                         *config.Context
	include, exclude, withTopics, withoutTopics config.Globs
}

// newScope compiles the globs of a context. Those of a parsed file compile;
// one that does not matches nothing.
func newScope(def *config.Context) *scope {
	compile := func(patterns []string) config.Globs {
		g, _ := config.CompileGlobs(patterns)
		return g
	}
	return &scope{def, compile(def.Include), compile(def.Exclude), compile(lower(def.IncludeTopics)), compile(lower(def.ExcludeTopics))}
}

func lower(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = strings.ToLower(s)
	}
	return out
}

// has: what include* take in, exclude* take out again.
func (s *scope) has(r *Repo) bool {
	in := s.include.Match(r.Name) || listedByAny(s.def.IncludeConnections, r) || hasTopic(s.withTopics, r)
	return in && !s.exclude.Match(r.Name) && !listedByAny(s.def.ExcludeConnections, r) && !hasTopic(s.withoutTopics, r)
}

func listedByAny(connections []string, r *Repo) bool {
	return slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return slices.Contains(connections, c.Name) })
}

func hasTopic(globs config.Globs, r *Repo) bool {
	return slices.ContainsFunc(r.Topics, func(topic string) bool { return globs.Match(strings.ToLower(topic)) })
}
