package search

import (
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard/query"
)

// toolQuery is a search of a tool: in a revision, in one repository or all.
type toolQuery struct {
	subs      []query.Q
	rev       string
	repo      string // "" for all
	files     int
	matches   int  // after which it may stop, of filesOnly; 0 for all files
	around    int  // lines
	listing   bool // files without chunks
	filesOnly bool // a listing that does not count the places in them
}

func (req *GrepRequest) search(in paths.Exprs, rev string) toolQuery {
	text := &query.Text{Pattern: req.Pattern, Regexp: true, Field: query.Content}
	return toolQuery{
		subs:    append([]query.Q{text}, in.Atoms()...),
		rev:     rev,
		repo:    req.Repo,
		files:   req.Limit,
		around:  req.Context,
		listing: req.Counts,
	}
}

// toolSearch runs a search of a tool. One file more than wanted is asked for,
// to know whether there are more.
func (s *Searcher) toolSearch(ctx context.Context, v catalog.Viewer, t toolQuery) (*root, error) {
	return s.onOneIndex(ctx, func() (*root, error) { return s.toolRoot(ctx, v, t) })
}

// toolRoot begins a search of a tool.
func (s *Searcher) toolRoot(ctx context.Context, v catalog.Viewer, t toolQuery) (*root, error) {
	seen, err := s.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	subs := slices.Clone(t.subs)
	subs = append(subs, revAtom(seen, t.rev))
	if t.repo != "" {
		subs = append(subs, &query.RepoSet{Names: []string{t.repo}})
	}

	// A tool bounds the files of its answer, never the matches.
	r, err := s.newRootOf(ctx, v, Request{Matches: MaxMatches, ContextLines: t.around}, s.inToolTime(subs))
	if err != nil {
		return nil, err
	}
	if t.matches > 0 {
		r.leaf.Matches = t.matches
	}
	r.leaf.Files, r.leaf.NoChunks, r.leaf.FilesOnly = t.files+1, t.listing || t.filesOnly, t.filesOnly
	return r, nil
}

// inToolTime is a query of a tool, which ends with what was found so far: nobody
// waits for an agent's expression that matches everything.
func (s *Searcher) inToolTime(subs []query.Q) *query.Query {
	return &query.Query{Q: &query.And{Subs: subs}, Count: query.NoCount, Timeout: s.d.Time}
}

// revAtom is the atom of a revision. HEAD and the branch it points to are one:
// where that branch is indexed as HEAD only, HEAD is meant.
func revAtom(seen *account.Repos, rev string) query.Q {
	atom := &query.Rev{Pattern: rev}
	if rev == "HEAD" {
		return atom
	}

	// The branch has no name of its own there: as HEAD it was indexed.
	heads := seen.Where(func(repo *catalog.Repo) bool {
		return repo.Indexed() && nameOfRevision(repo, rev) == "HEAD"
	})
	if heads.IsEmpty() {
		return atom
	}

	ofHeads := &query.And{Subs: []query.Q{
		&query.Rev{Pattern: "HEAD"},
		&query.Repos{Set: heads},
	}}
	return &query.Or{Subs: []query.Q{atom, ofHeads}}
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

// nameOfRevision is the name under which a repository has a ref indexed; ""
// when it has not.
func nameOfRevision(repo *catalog.Repo, ref string) string {
	for _, r := range repo.Revisions {
		named := r.Name == ref || r.Name == "refs/heads/"+ref || r.Name == "refs/tags/"+ref
		if named || r.Commit == ref {
			return r.Name
		}
	}

	// Without a default branch this looks for HEAD at most once.
	branch := strings.TrimPrefix(ref, "refs/heads/")
	if branch == repo.DefaultBranch && branch != "" {
		return nameOfRevision(&catalog.Repo{Revisions: repo.Revisions}, "HEAD")
	}
	return ""
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
