package search

import (
	"cmp"
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// Lookup is a search for a tool, in one revision, in one repository or all. When the time of a tool
// is over, it ends with what was found so far.
type Lookup struct {
	Atoms    []query.Q // conditions on every file
	Revision string    // the name under which it is indexed
	Repo     string    // "" means all
	Ranges   int       // limit of ranges over all files; 0 means none
	Lines    int       // lines of context around each range
	Scopes   bool      // find the definitions that enclose the ranges
	PerFile  int       // limit of ranges in one file, from its best lines; 0 means none
	Lexed    bool      // find what is open at the start of each chunk, such as a comment

	files   int          // limit of files; 0 means none
	listing bool         // return files without chunks
	exists  bool         // one file is enough, without chunks
	words   []shard.Word // rank files by them
	shown   int          // with words: files with chunks
	counts  bool         // with words: only count the files of each word
}

// Finding is the result of a Lookup.
type Finding struct {
	*Response
	Sight *account.Repos // what the viewer may see, in the view that was searched
	Found int            // number of files, also those that the response has no room for
}

// Find runs a lookup. It fails if the viewer may not see the repository of the lookup.
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
	return &Finding{answer, r.q.visible, len(r.a.files)}, nil
}

// Digest returns a hash of some texts and of the index that a lookup reads. While it stays the
// same, the lookup finds the same.
func (s *Searcher) Digest(ctx context.Context, v catalog.Viewer, l Lookup, texts ...string) (string, error) {
	r, err := s.toolRoot(ctx, v, l)
	if err != nil {
		return "", err
	}
	defer r.close()
	return string(digest(append(texts, string(r.state()))...)), nil
}

// toolSearch runs a lookup. It asks for one file more than wanted, to learn whether there are more.
func (s *Searcher) toolSearch(ctx context.Context, v catalog.Viewer, l Lookup) (*root, error) {
	return s.onOneIndex(ctx, func() (*root, error) { return s.toolRoot(ctx, v, l) })
}

// toolRoot prepares the search of a lookup.
func (s *Searcher) toolRoot(ctx context.Context, v catalog.Viewer, l Lookup) (*root, error) {
	visible, err := s.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	atoms := append(slices.Clone(l.Atoms), revAtom(visible, l.Revision))

	// A hidden repository fails here exactly as one that does not exist.
	if l.Repo != "" {
		if _, err := visible.ByName(l.Repo); err != nil {
			return nil, err
		}
		atoms = append(atoms, &query.RepoSet{Names: []string{l.Repo}})
	}

	r, err := s.newRootOf(ctx, v, Request{Matches: cmp.Or(l.Ranges, MaxMatches), ContextLines: l.Lines}, s.toolQuery(atoms))
	if err != nil {
		return nil, err
	}
	if l.files > 0 {
		r.q.leaf.Files = l.files + 1
	}
	if l.exists {
		r.q.leaf.Matches = 1
	}
	r.q.leaf.NoChunks, r.q.leaf.FilesOnly = l.listing || l.exists, l.exists
	r.q.leaf.Words, r.q.leaf.Shown, r.q.leaf.CountWords = l.words, l.shown, l.counts
	r.a.wordFiles = make([]int, len(l.words))
	r.q.leaf.PerFile = l.PerFile
	r.q.leaf.Around, r.q.leaf.Lexed = l.Scopes, l.Lexed
	return r, nil
}

// toolQuery returns the query of a tool, which ends in time with what was found so far: nobody
// waits for an agent's expression that matches everything.
func (s *Searcher) toolQuery(subs []query.Q) *query.Query {
	return &query.Query{Q: &query.And{Subs: subs}, Count: query.NoCount, Timeout: s.d.Time}
}

// indexedRev returns the name under which a ref is indexed. It returns "" if the ref is not
// indexed, so that the mirror must be read. For all repositories it returns the ref itself.
func (s *Searcher) indexedRev(v catalog.Viewer, name, ref string) (string, error) {
	if ref == "" {
		ref = "HEAD"
	}
	if name == "" {
		return ref, nil
	}

	// Ask the gate first: nobody may learn whether a hidden repository is indexed.
	visible, err := s.d.Gate.Repos(v)
	if err != nil {
		return "", err
	}
	repo, err := visible.ByName(name)
	if err != nil {
		return "", err
	}
	// The mirror can be read before there is an index.
	if !repo.Indexed() {
		return "", nil
	}
	return nameOfRevision(repo, ref), nil
}

// checkFiles sets the default of a limit of files, and returns an error if the limit is out of
// range.
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
