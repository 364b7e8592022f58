package search

import (
	"cmp"
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/query"
)

// Lookup is a search of a tool: in a revision, in one repository or all. It ends with
// what was found so far when the time of a tool is over.
type Lookup struct {
	Atoms    []query.Q // that hold for every file
	Revision string    // as it is indexed
	Repo     string    // "" for all
	Ranges   int       // most of all files; 0 for no bound
	Lines    int       // around each range
	Scopes   bool      // tell what definitions the ranges stand in

	files     int  // most; 0 for no bound
	matches   int  // after which it may stop, of filesOnly; 0 for all files
	listing   bool // files without chunks
	filesOnly bool // a listing that does not count the places in them
}

// Finding is what a Lookup found.
type Finding struct {
	*Response
	Sight *account.Repos // what the viewer may see, at the view that was searched
	Found int            // files, also those that the response has no room for
}

// Find runs a lookup. Its repository has to be one that the viewer may see.
func (s *Searcher) Find(ctx context.Context, v catalog.Viewer, l Lookup) (*Finding, error) {
	r, err := s.toolSearch(ctx, v, l)
	if err != nil {
		return nil, err
	}
	defer r.close()

	answer, err := r.respond()
	if err != nil {
		return nil, err
	}
	return &Finding{answer, r.q.sight, len(r.a.files)}, nil
}

// Digest stands for some texts and for the index that a lookup is asked of: while it is
// the same, the lookup finds the same.
func (s *Searcher) Digest(ctx context.Context, v catalog.Viewer, l Lookup, texts ...string) (string, error) {
	r, err := s.toolRoot(ctx, v, l)
	if err != nil {
		return "", err
	}
	defer r.close()
	return string(digest(append(texts, string(r.state()))...)), nil
}

// toolSearch runs a search of a tool. One file more than wanted is asked for,
// to know whether there are more.
func (s *Searcher) toolSearch(ctx context.Context, v catalog.Viewer, l Lookup) (*root, error) {
	return s.onOneIndex(ctx, func() (*root, error) { return s.toolRoot(ctx, v, l) })
}

// toolRoot begins a search of a tool.
func (s *Searcher) toolRoot(ctx context.Context, v catalog.Viewer, l Lookup) (*root, error) {
	seen, err := s.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	atoms := append(slices.Clone(l.Atoms), revAtom(seen, l.Revision))

	// A name that the viewer may not see fails here, as one that does not exist.
	if l.Repo != "" {
		if _, err := seen.ByName(l.Repo); err != nil {
			return nil, err
		}
		atoms = append(atoms, &query.RepoSet{Names: []string{l.Repo}})
	}

	r, err := s.newRootOf(ctx, v, Request{Matches: cmp.Or(l.Ranges, MaxMatches), ContextLines: l.Lines}, s.inToolTime(atoms))
	if err != nil {
		return nil, err
	}
	if l.matches > 0 {
		r.q.leaf.Matches = l.matches
	}
	if l.files > 0 {
		r.q.leaf.Files = l.files + 1
	}
	r.q.leaf.NoChunks, r.q.leaf.FilesOnly, r.q.leaf.Around = l.listing || l.filesOnly, l.filesOnly, l.Scopes
	return r, nil
}

// inToolTime is a query of a tool, which ends with what was found so far: nobody
// waits for an agent's expression that matches everything.
func (s *Searcher) inToolTime(subs []query.Q) *query.Query {
	return &query.Query{Q: &query.And{Subs: subs}, Count: query.NoCount, Timeout: s.d.Time}
}

// indexedRev is the name under which a ref is indexed; "" when it is not, so
// that the mirror has to be read. Over all repositories it is the ref itself.
func (s *Searcher) indexedRev(v catalog.Viewer, name, ref string) (string, error) {
	if ref == "" {
		ref = "HEAD"
	}
	if name == "" {
		return ref, nil
	}

	// The gate first: whether a hidden repository is indexed must not be told.
	seen, err := s.d.Gate.Repos(v)
	if err != nil {
		return "", err
	}
	repo, err := seen.ByName(name)
	if err != nil {
		return "", err
	}
	// Its commits can be read from the mirror before there is an index.
	if !repo.Indexed() {
		return "", nil
	}
	return nameOfRevision(repo, ref), nil
}

func checkFiles(limit *int, counts bool) error {
	if *limit == 0 {
		*limit = defaultFiles
		if counts {
			*limit = MaxFiles
		}
	}

	if *limit < 1 || *limit > MaxFiles {
		return call.Fail(call.ErrInvalid, "limit must be from 1 to %d", MaxFiles)
	}
	return nil
}
