package account

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Agreed is the part of *cluster.Cluster that the gate uses. Its methods are safe for concurrent
// use.
type Agreed interface {
	// View returns the catalog as applied by this node.
	View() *catalog.View
	// Await waits until this node has applied an index.
	Await(ctx context.Context, index uint64) error
	// Outlived returns why this node's catalog is no longer valid, or nil.
	Outlived() error
}

// Gate is the only way to get repositories on behalf of a viewer. It is safe for concurrent use.
type Gate struct{ agreed Agreed }

// NewGate returns a gate for a catalog.
func NewGate(a Agreed) *Gate { return &Gate{a} }

// Repos is the set of repositories that a viewer may see, at one view of the catalog. It is
// immutable and safe for concurrent use.
type Repos struct {
	View *catalog.View   // all methods read from it
	Set  *roaring.Bitmap // ids; shared: the caller must clone it before changing it

	viewer catalog.Viewer
}

// Repos returns the repositories that a viewer may see. It returns ErrUnauthenticated for the zero
// role, and ErrUnavailable if another cluster has replaced this one.
func (g *Gate) Repos(v catalog.Viewer) (*Repos, error) {
	if v.Role == catalog.RoleNone {
		return nil, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}

	// The new cluster may have revoked rights, and this node never hears of it.
	if why := g.agreed.Outlived(); why != nil {
		return nil, call.Fail(call.ErrUnavailable, "this node is not ready: %v", why)
	}

	// Use one view from here on, so that no answer mixes two states.
	view := g.agreed.View()
	set := view.Visible(v)

	// Only narrows the set of visible repositories; it never adds one.
	if v.Only != nil {
		set = roaring.And(set, v.Only)
	}
	return &Repos{View: view, Set: set, viewer: v}, nil
}

// Still returns ErrUnauthenticated if a viewer who was admitted earlier would be refused now: the
// account was suspended or deleted, or the key or consent was revoked. It is for operations that
// take long. Each read of repositories checks the viewer by itself.
func (g *Gate) Still(v catalog.Viewer) error {
	view := g.agreed.View()
	if v.Account != "" {
		if a := view.Account(v.Account); a == nil || a.State != catalog.AccountActive {
			return call.Fail(call.ErrUnauthenticated, "The account of the asker has been suspended or deleted.")
		}
	}

	// For a program, KeyID is the id of its consent.
	if v.KeyID == "" || view.Key(v.KeyID) != nil {
		return nil
	}
	if c := view.Consent(v.KeyID); c == nil || !c.Ended.IsZero() {
		return call.Fail(call.ErrUnauthenticated, "The key of the asker has been revoked.")
	}
	return nil
}

// WorksFor returns the viewer for what works by itself for an account, such as its watches. ok is false
// if the account may not sign in.
func (g *Gate) WorksFor(account string) (v catalog.Viewer, ok bool) {
	a := g.agreed.View().Account(account)
	if a == nil || a.State != catalog.AccountActive {
		return catalog.Viewer{}, false
	}
	return catalog.Viewer{Role: catalog.RoleMember, Name: a.Email, Account: a.ID}, true
}

// Blind reports whether numbers per index file must be hidden: a file may contain repositories that
// the viewer must not see. It does not depend on which repositories exist.
func (r *Repos) Blind() bool {
	return (!r.viewer.All || r.viewer.Only != nil) && (r.View.Enforces() || r.View.Refused())
}

// Pass carries a viewer from the node that admitted it to a node with the data. It only travels
// between nodes, which trust each other by the cluster key.
type Pass struct {
	Viewer catalog.Viewer
	Index  uint64 // of the catalog when the viewer was admitted
}

// Pass returns the pass for reading on another node.
func (r *Repos) Pass() Pass { return Pass{Viewer: r.viewer, Index: r.View.Index()} }

// behindTime is how long a node with an older catalog waits for its own to catch up.
const behindTime = time.Second

// Again admits a viewer again, on the node with the data. If hasEnough reports that too little is
// visible here, and this catalog is older than the pass, it waits a second for the catalog. If that
// is still older, it returns ErrUnavailable. An equal or newer catalog decides, whatever the first
// node saw.
func (g *Gate) Again(ctx context.Context, p Pass, hasEnough func(*Repos) bool) (*Repos, error) {
	// An older node may send the zero value: a missing field must admit nobody.
	if p.Viewer.Role == catalog.RoleNone {
		return nil, call.Fail(call.ErrUnavailable, "this node reads for viewers only, and the call of the other one names none: it may be of an older version")
	}
	seen, err := g.Repos(p.Viewer)
	// A newer catalog may show less, because a right was revoked meanwhile. That counts.
	if err != nil || hasEnough(seen) || seen.View.Index() >= p.Index {
		return seen, err
	}

	// Usually the change arrives within a second.
	waiting, cancel := context.WithTimeout(ctx, behindTime)
	defer cancel()
	if err := g.agreed.Await(waiting, p.Index); err != nil {
		return nil, call.Fail(call.ErrUnavailable, "the catalog of this node is older than that of the node that asks: it is at entry %d, not yet at %d", seen.View.Index(), p.Index)
	}
	return g.Repos(p.Viewer)
}

// ByEnding returns the repository with a name, a recent former name, or a unique ending of a name.
// It returns ErrRepoNotFound for hidden and missing repositories alike.
func (r *Repos) ByEnding(name string) (*catalog.Repo, error) {
	// A whole name wins over an ending.
	exact, err := r.ByName(name)
	if err == nil {
		return exact, nil
	}

	var found *catalog.Repo
	// Check all: the ending must be unique.
	for repo := range r.All() {
		if name != "" && strings.HasSuffix(repo.Name, "/"+name) {
			// Only among visible repositories: uniqueness must not reveal hidden ones.
			if found != nil {
				return nil, call.Fail(call.ErrRepoNotFound, "Repository %q is more than one: %s and %s", name, found.Name, repo.Name)
			}
			found = repo
		}
	}

	// The same error as for a whole name, so that a hidden repository looks like none.
	if found == nil {
		return nil, err
	}
	return found, nil
}

// ByName returns the repository with a name, or with a recent former name. It returns
// ErrRepoNotFound for hidden and missing repositories alike.
func (r *Repos) ByName(name string) (*catalog.Repo, error) {
	// If a hidden repository has taken a former name, that still leads to the visible one.
	for _, repo := range []*catalog.Repo{r.View.RepoByName(name), r.View.RepoByFormerName(name)} {
		if repo != nil && r.Set.Contains(repo.ID) {
			return repo, nil
		}
	}

	// A short name is valid if it is unique among visible repositories.
	switch short := r.byShortName(name); len(short) {
	case 0:
		return nil, NoRepo(name)
	case 1:
		return short[0], nil
	default:
		return nil, call.Fail(call.ErrRepoNotFound, "Repository %q is more than one: %s and %s", name, short[0].Name, short[1].Name)
	}
}

// byShortName returns the visible repositories with a short name.
func (r *Repos) byShortName(name string) []*catalog.Repo {
	return slices.DeleteFunc(r.View.ReposByShortName(name), func(repo *catalog.Repo) bool { return !r.Set.Contains(repo.ID) })
}

// NoRepo returns the error for a repository that does not exist or is hidden: it is the same.
func NoRepo(name string) error {
	return call.Fail(call.ErrRepoNotFound, "Repository %q not found", name)
}

// ByID returns the repository with an id, or the same kind of error as ByName.
func (r *Repos) ByID(id catalog.RepoID) (*catalog.Repo, error) {
	repo := r.View.Repo(id)
	if repo == nil || !r.Set.Contains(id) {
		return nil, call.Fail(call.ErrRepoNotFound, "Repository %d not found", id)
	}
	return repo, nil
}

// Named returns the ids of the visible repositories among names.
func (r *Repos) Named(names []string) *roaring.Bitmap {
	set := roaring.New()
	for _, name := range names {
		if repo, err := r.ByName(name); err == nil {
			set.Add(repo.ID)
			continue
		}
		for _, repo := range r.byShortName(name) {
			set.Add(repo.ID)
		}
	}
	return set
}

// All iterates over the repositories by name.
func (r *Repos) All() iter.Seq[*catalog.Repo] {
	return func(yield func(*catalog.Repo) bool) {
		for repo := range r.View.ReposByName() {
			if r.Set.Contains(repo.ID) && !yield(repo) {
				return
			}
		}
	}
}

// Where returns the set of the visible repositories that match accepts.
func (r *Repos) Where(match func(*catalog.Repo) bool) *roaring.Bitmap {
	// For many repositories, iterating over all is ten times faster than looking each one up.
	set := roaring.New()
	if int(r.Set.GetCardinality()) > r.View.RepoCount()/8 {
		for repo := range r.View.Repos() {
			if r.Set.Contains(repo.ID) && match(repo) {
				set.Add(repo.ID)
			}
		}
		return set
	}
	for it := r.Set.Iterator(); it.HasNext(); {
		if repo := r.View.Repo(it.Next()); repo != nil && match(repo) {
			set.Add(repo.ID)
		}
	}
	return set
}

// Owner is the proof that a request may administer. The zero Owner is not valid; operations get one
// from whoever authenticated the request.
type Owner struct{ viewer catalog.Viewer }

// Name returns the name of the key or account, for records and logs.
func (o Owner) Name() string { return o.viewer.Name }

// Viewer returns the owner as a viewer.
func (o Owner) Viewer() catalog.Viewer { return o.viewer }

// Operator reports whether the owner is the operator of a node, who uses the socket in its data
// directory.
func (o Owner) Operator() bool {
	return o.viewer.KeyID == "" && o.viewer.Account == "" && o.viewer.Session == ""
}

// AsOwner returns an Owner for a viewer who is an owner. For others it returns ErrUnauthenticated
// or ErrForbidden.
func AsOwner(v catalog.Viewer) (Owner, error) {
	switch v.Role {
	case catalog.RoleOwner:
		return Owner{v}, nil
	case catalog.RoleNone:
		return Owner{}, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}
	return Owner{}, call.Fail(call.ErrForbidden, "This needs a key of an owner.")
}

// MayReadMetrics returns nil for an owner and for a key with the role metrics, and else
// ErrUnauthenticated or ErrForbidden.
func MayReadMetrics(v catalog.Viewer) error {
	switch v.Role {
	case catalog.RoleOwner, catalog.RoleMetrics:
		return nil
	case catalog.RoleNone:
		return call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}
	return call.Fail(call.ErrForbidden, "This needs a key with the role metrics, or of an owner.")
}

// Holder is the proof that a request may manage keys: an owner, or a person with an account.
type Holder interface {
	// Viewer returns the holder as a viewer.
	Viewer() catalog.Viewer
	holds()
}

func (Owner) holds() {}

// Person is the proof that a request comes from an account.
type Person struct{ viewer catalog.Viewer }

// Viewer returns the person as a viewer.
func (p Person) Viewer() catalog.Viewer { return p.viewer }

func (Person) holds() {}

// AsPerson returns a Person for a viewer with an account. For others it returns ErrUnauthenticated
// or ErrForbidden.
func AsPerson(v catalog.Viewer) (Person, error) {
	switch {
	case v.Account != "" && (v.Role == catalog.RoleMember || v.Role == catalog.RoleOwner):
		return Person{v}, nil
	case v.Role == catalog.RoleNone:
		return Person{}, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}
	return Person{}, call.Fail(call.ErrForbidden, "This needs an account: a key of nobody has none.")
}

// AsHolder returns a Holder for a viewer who may have keys. For others it returns
// ErrUnauthenticated or ErrForbidden.
func AsHolder(v catalog.Viewer) (Holder, error) {
	switch {
	case v.Role == catalog.RoleOwner:
		return Owner{v}, nil
	case v.Role == catalog.RoleMember && v.Account != "":
		return Person{v}, nil
	case v.Role == catalog.RoleNone:
		return nil, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}
	return nil, call.Fail(call.ErrForbidden, "This needs an account: a key of nobody has none.")
}

// Operator returns the owner that represents the operator of the node.
func Operator() Owner { return Owner{catalog.Operator()} }
