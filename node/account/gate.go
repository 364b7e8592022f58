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

// Agreed is what the gate takes of the agreement of nodes; *cluster.Cluster
// has it. Its methods are safe for concurrent use.
type Agreed interface {
	// View is the catalog as this node has applied it.
	View() *catalog.View
	// Await waits until this node has applied an index.
	Await(ctx context.Context, index uint64) error
	// Outlived is why the catalog of this node counts no more, nil while it does.
	Outlived() error
}

// Gate is the one door to repositories on behalf of a viewer. It is safe for
// concurrent use.
type Gate struct{ agreed Agreed }

// NewGate makes a gate to the catalog that nodes agree on.
func NewGate(a Agreed) *Gate { return &Gate{a} }

// Repos is the repositories that a viewer may see, at one view of the catalog.
// It changes no more and is safe for concurrent use.
type Repos struct {
	View *catalog.View   // on which all of it stands
	Set  *roaring.Bitmap // of their ids; shared: clone it before changing it

	viewer catalog.Viewer
}

// Repos lets a viewer in. It fails with ErrUnauthenticated where the viewer is
// nobody, and with ErrUnavailable where another cluster has taken the place of
// this one.
func (g *Gate) Repos(v catalog.Viewer) (*Repos, error) {
	if v.Role == catalog.RoleNone {
		return nil, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}

	// Rights may have been taken away in the new cluster, which this node never hears of.
	if why := g.agreed.Outlived(); why != nil {
		return nil, call.Fail(call.ErrUnavailable, "this node is not ready: %v", why)
	}

	// From here on all is of one view, so that no answer mixes two states of the catalog.
	view := g.agreed.View()
	set := view.Visible(v)

	// An operation may be bound to some of them, never to others.
	if v.Only != nil {
		set = roaring.And(set, v.Only)
	}
	return &Repos{View: view, Set: set, viewer: v}, nil
}

// Still fails with ErrUnauthenticated where a viewer who was let in a while ago would
// not be now: the account is suspended or gone, or the key, or what a program was let
// in by, is revoked. It is for what goes on for long after that; what is read of
// repositories is bound by each look of its own.
func (g *Gate) Still(v catalog.Viewer) error {
	view := g.agreed.View()
	if v.Account != "" {
		if a := view.Account(v.Account); a == nil || a.State != catalog.AccountActive {
			return call.Fail(call.ErrUnauthenticated, "The account of the asker has been suspended or deleted.")
		}
	}

	// A program has the id of what it was let in by in place of a key's.
	if v.KeyID == "" || view.Key(v.KeyID) != nil {
		return nil
	}
	if c := view.Consent(v.KeyID); c == nil || !c.Ended.IsZero() {
		return call.Fail(call.ErrUnauthenticated, "The key of the asker has been revoked.")
	}
	return nil
}

// Blind tells whether what is counted by index file must not be told: files
// hold several repositories, and the viewer may not see all of them. It does not
// depend on which there are.
func (r *Repos) Blind() bool { return r.View.Enforces() && (!r.viewer.All || r.viewer.Only != nil) }

// Pass is a viewer on the way from the node that let it in to one that has the
// data. It travels between nodes only, which trust each other by the key of the
// cluster.
type Pass struct {
	Viewer catalog.Viewer
	Index  uint64 // of the catalog at which the viewer was let in
}

// Pass is what another node has to be shown to read for the viewer.
func (r *Repos) Pass() Pass { return Pass{Viewer: r.viewer, Index: r.View.Index()} }

// behindTime is how long a node whose catalog is older than that of the node
// that asks waits for its own before it refuses.
const behindTime = time.Second

// Again lets a viewer in once more where the data is. Where enough finds that
// less may be seen here than was asked for, and the catalog of this node is older
// than the pass, it waits for its own for a second; ErrUnavailable says that the
// catalog is still older. Of an equal or newer one the answer stands, whatever
// the other node thought.
func (g *Gate) Again(ctx context.Context, p Pass, enough func(*Repos) bool) (*Repos, error) {
	// The zero value is what an older node sends: nobody is let in by leaving something out.
	if p.Viewer.Role == catalog.RoleNone {
		return nil, call.Fail(call.ErrUnavailable, "this node reads for viewers only, and the call of the other one names none: it may be of an older version")
	}
	seen, err := g.Repos(p.Viewer)
	// Also a newer catalog may let see less: then a right was taken away meanwhile, and that counts.
	if err != nil || enough(seen) || seen.View.Index() >= p.Index {
		return seen, err
	}

	// Most often the change is on its way: a second is longer than it takes.
	waiting, cancel := context.WithTimeout(ctx, behindTime)
	defer cancel()
	if err := g.agreed.Await(waiting, p.Index); err != nil {
		return nil, call.Fail(call.ErrUnavailable, "the catalog of this node is older than that of the node that asks: it is at entry %d, not yet at %d", seen.View.Index(), p.Index)
	}
	return g.Repos(p.Viewer)
}

// ByEnding is ByName, also for an ending that is of one repository only.
func (r *Repos) ByEnding(name string) (*catalog.Repo, error) {
	// A whole name goes before an ending, whatever else ends so.
	exact, err := r.ByName(name)
	if err == nil {
		return exact, nil
	}

	var found *catalog.Repo
	// All of them are gone through, since a second one makes the ending say nothing.
	for repo := range r.All() {
		if name != "" && strings.HasSuffix(repo.Name, "/"+name) {
			// Only those that the viewer may see: whether an ending is unique
			// tells nothing of hidden ones.
			if found != nil {
				return nil, call.Fail(call.ErrRepoNotFound, "Repository %q is more than one: %s and %s", name, found.Name, repo.Name)
			}
			found = repo
		}
	}

	// In the words of the whole name, so that a hidden one cannot be told from none.
	if found == nil {
		return nil, err
	}
	return found, nil
}

// ByName finds a repository, by a name that its host gave up not long ago too;
// ErrRepoNotFound says the same of one that is
// hidden and of one that is not there.
func (r *Repos) ByName(name string) (*catalog.Repo, error) {
	// A hidden repository that has taken the name of another is not there: the
	// former name still leads to the other one.
	for _, repo := range []*catalog.Repo{r.View.RepoByName(name), r.View.RepoByFormerName(name)} {
		if repo != nil && r.Set.Contains(repo.ID) {
			return repo, nil
		}
	}

	// A short name leads to a repository where the viewer may see no other one of it.
	switch short := r.byShortName(name); len(short) {
	case 0:
		return nil, NoRepo(name)
	case 1:
		return short[0], nil
	default:
		return nil, call.Fail(call.ErrRepoNotFound, "Repository %q is more than one: %s and %s", name, short[0].Name, short[1].Name)
	}
}

// byShortName lists the repositories with a short name.
func (r *Repos) byShortName(name string) []*catalog.Repo {
	return slices.DeleteFunc(r.View.ReposByShortName(name), func(repo *catalog.Repo) bool { return !r.Set.Contains(repo.ID) })
}

// NoRepo says that there is no repository of a name, or none for the viewer:
// the two are told in the same words.
func NoRepo(name string) error {
	return call.Fail(call.ErrRepoNotFound, "Repository %q not found", name)
}

// ByID is ByName for an id.
func (r *Repos) ByID(id catalog.RepoID) (*catalog.Repo, error) {
	repo := r.View.Repo(id)
	if repo == nil || !r.Set.Contains(id) {
		return nil, call.Fail(call.ErrRepoNotFound, "Repository %d not found", id)
	}
	return repo, nil
}

// Named is the ids of those of some names that are there.
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

// All lists the repositories by name.
func (r *Repos) All() iter.Seq[*catalog.Repo] {
	return func(yield func(*catalog.Repo) bool) {
		for repo := range r.View.ReposByName() {
			if r.Set.Contains(repo.ID) && !yield(repo) {
				return
			}
		}
	}
}

// Where is the set of the repositories for which a condition holds.
func (r *Repos) Where(is func(*catalog.Repo) bool) *roaring.Bitmap {
	// To go through all costs a tenth of looking each of many up.
	set := roaring.New()
	if int(r.Set.GetCardinality()) > r.View.RepoCount()/8 {
		for repo := range r.View.Repos() {
			if r.Set.Contains(repo.ID) && is(repo) {
				set.Add(repo.ID)
			}
		}
		return set
	}
	for it := r.Set.Iterator(); it.HasNext(); {
		if repo := r.View.Repo(it.Next()); repo != nil && is(repo) {
			set.Add(repo.ID)
		}
	}
	return set
}

// Owner is the proof that somebody may administer. The zero Owner is none: an
// operation gets one from whoever let the request in.
type Owner struct{ viewer catalog.Viewer }

// Name is of the key or account, for records and logs.
func (o Owner) Name() string { return o.viewer.Name }

// Viewer is the owner as one who reads.
func (o Owner) Viewer() catalog.Viewer { return o.viewer }

// Operator reports whether it is the operator of a node, who came by the socket in its
// data directory.
func (o Owner) Operator() bool {
	return o.viewer.KeyID == "" && o.viewer.Account == "" && o.viewer.Session == ""
}

// AsOwner lets an owner in. It fails with ErrUnauthenticated or ErrForbidden
// for everybody else.
func AsOwner(v catalog.Viewer) (Owner, error) {
	switch v.Role {
	case catalog.RoleOwner:
		return Owner{v}, nil
	case catalog.RoleNone:
		return Owner{}, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}
	return Owner{}, call.Fail(call.ErrForbidden, "This needs a key of an owner.")
}

// Holder is the proof that somebody may have keys: an owner, or a person with
// an account.
type Holder interface {
	// Viewer is who it is.
	Viewer() catalog.Viewer
	holds()
}

func (Owner) holds() {}

// Person is the proof that somebody has an account.
type Person struct{ viewer catalog.Viewer }

// Viewer is the person as one who reads.
func (p Person) Viewer() catalog.Viewer { return p.viewer }

func (Person) holds() {}

// AsPerson lets in who has an account. It fails with ErrUnauthenticated or
// ErrForbidden for everybody else.
func AsPerson(v catalog.Viewer) (Person, error) {
	switch {
	case v.Account != "" && (v.Role == catalog.RoleMember || v.Role == catalog.RoleOwner):
		return Person{v}, nil
	case v.Role == catalog.RoleNone:
		return Person{}, call.Fail(call.ErrUnauthenticated, "Not authenticated")
	}
	return Person{}, call.Fail(call.ErrForbidden, "This needs an account: a key of nobody has none.")
}

// AsHolder lets in who may have keys. It fails with ErrUnauthenticated or
// ErrForbidden for everybody else.
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

// Operator is the owner that whoever runs the node is.
func Operator() Owner { return Owner{catalog.Operator()} }
