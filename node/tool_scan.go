package node

import (
	"bytes"
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/match"
)

// The bounds of a search in a commit that is not indexed.
const (
	scanTime    = 20 * time.Second // then what was found so far is the answer
	scanLines   = 2000             // shown of one file
	scanBytes   = 32 << 20         // of lines, in all
	scanChanges = 20_000           // paths that may differ from an indexed revision for the index to be of use
)

// scanRequest asks the holder of a mirror for what it alone can tell of a
// commit that is not indexed.
type scanRequest struct {
	Grep   *GrepRequest // one of the two
	Glob   *GlobRequest
	Beside []catalog.Revision // indexed; only what differs from the nearest is looked at. None: everything
}

// scanResponse is what the mirror has; the index has the rest.
type scanResponse struct {
	Files   []scanFile // with something to show, the best first
	Found   int        // files, shown or not
	Matches int        // in all of them
	Late    bool       // time ran out
	Beside  catalog.Revision
	Without []string // paths of Beside that are not there, or not so
}

// scanFile is one file of an answer, with what it is ranked by.
type scanFile struct {
	Path  string
	Score float64
	Lines []GrepLine
}

// scanOperation looks at a commit that is not indexed as a search of the
// index would: the same files, in the same order.
func scanOperation() operation[scanRequest, scanResponse] {
	return operation[scanRequest, scanResponse]{name: "scan", run: func(ctx context.Context, s *site, req scanRequest) (*scanResponse, error) {
		c, err := s.scanOf(ctx, req)
		if err != nil {
			return nil, err
		}
		files, err := c.list(ctx)
		if err != nil {
			return nil, err
		}
		f := &finder{until: time.Now().Add(scanTime)}
		if req.Glob != nil {
			f.limit = req.Glob.Limit
			f.names(files)
		} else {
			f.limit, f.counting = req.Grep.Limit, req.Grep.GroupByRepo
			if f.m, err = match.Compile(req.Grep.Pattern, match.Options{}); err != nil {
				return nil, fail(ErrInvalid, "pattern: %v", err)
			}
			defer context.AfterFunc(ctx, f.m.Stop)()
			if err := s.mirror.Scan(ctx, files, s.maxFileSize(), f.visit); err != nil {
				return nil, err
			}
		}
		f.trim()
		return &scanResponse{Files: f.files, Found: f.found, Matches: f.matches, Late: f.late, Beside: c.beside, Without: c.without}, nil
	}}
}

// scan is what is looked at: all of a commit, or how it differs from an
// indexed revision.
type scan struct {
	mirror  *git.Mirror
	commit  string
	keep    func(path string) bool
	beside  catalog.Revision
	changes *git.Changes
	without []string
}

func (s *site) scanOf(ctx context.Context, req scanRequest) (*scan, error) {
	ref, dir, glob := "", "", ""
	if req.Glob != nil {
		ref, dir, glob = req.Glob.Ref, req.Glob.Path, req.Glob.Pattern
	} else {
		ref, dir, glob = req.Grep.Ref, req.Grep.Path, req.Grep.Include
	}
	names, err := pathPattern(dir, glob)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(names)
	if err != nil {
		return nil, fail(ErrInvalid, "glob: %v", err)
	}
	c := &scan{mirror: s.mirror, keep: re.MatchString}
	if c.commit, err = s.resolve(ctx, ref); err != nil {
		return nil, err
	}
	commits := make([]string, len(req.Beside))
	for i, r := range req.Beside {
		commits[i] = r.Commit
	}
	i, err := s.mirror.Nearest(ctx, c.commit, commits)
	if err != nil || i < 0 {
		return c, err
	}
	if c.changes, err = s.mirror.Changes(ctx, commits[i], c.commit, scanChanges); err != nil || c.changes.Cut {
		return c, err
	}
	c.beside = req.Beside[i]
	for _, path := range c.changes.Gone {
		if c.keep(path) {
			c.without = append(c.without, path)
		}
	}
	return c, nil
}

// list is the files to look at, in the order of their paths.
func (c *scan) list(ctx context.Context) ([]git.Entry, error) {
	if c.beside.Name == "" {
		return c.mirror.Files(ctx, c.commit, c.keep)
	}
	var kept []git.Entry
	for _, e := range c.changes.Now {
		if c.keep(e.Path) {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// maxFileSize is the size of the largest files that are searched.
func (s *site) maxFileSize() int64 {
	if s.n == nil {
		return 0 // the default
	}
	return s.n.cluster.View().File().Settings.MaxFileSize
}

// finder gathers the files with a match, the best of them with their lines.
type finder struct {
	m        *match.Matcher
	limit    int
	counting bool
	until    time.Time

	files   []scanFile
	matches int // in all files
	found   int // files, kept or not
	bytes   int // of lines in files
	late    bool
	spans   []match.Span
}

// names takes files whose name is all that matters.
func (f *finder) names(files []git.Entry) {
	f.found = len(files)
	for _, e := range files {
		f.files = append(f.files, scanFile{Path: e.Path, Score: shard.ScoreText(e.Path, nil, nil)})
	}
}

// visit looks at one file.
func (f *finder) visit(e git.Entry, content []byte) bool {
	if f.late = time.Now().After(f.until); f.late {
		return false
	}
	if bytes.IndexByte(content, 0) >= 0 {
		return true
	}
	f.spans = f.m.Append(f.spans[:0], content, -1)
	if len(f.spans) == 0 {
		return true
	}
	f.found++
	f.matches += len(f.spans)
	if f.counting {
		return true
	}
	lines := matchingLines(content, f.spans)
	f.files = append(f.files, scanFile{e.Path, shard.ScoreText(e.Path, content, f.spans), lines})
	for _, l := range lines {
		f.bytes += len(l.Text)
	}
	if len(f.files) >= 2*f.limit+100 || f.bytes > scanBytes {
		f.trim()
	}
	return true
}

func bestFirst(a, b scanFile) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path))
}

// trim keeps the best files, and of them no more lines than there is room
// for.
func (f *finder) trim() {
	slices.SortFunc(f.files, bestFirst)
	f.files = f.files[:min(len(f.files), f.limit)]
	f.bytes = 0
	for i := range f.files {
		for j, l := range f.files[i].Lines {
			if f.bytes += len(l.Text); f.bytes > scanBytes/2 && j > 0 {
				f.files[i].Lines = f.files[i].Lines[:j]
				break
			}
		}
	}
}

// matchingLines lists the first lines of a text that a match touches. An
// empty match touches the line it is in.
func matchingLines(content []byte, spans []match.Span) (lines []GrepLine) {
	line, counted, last := 1, 0, 0
	for _, sp := range spans {
		line += bytes.Count(content[counted:sp.Start], []byte("\n"))
		counted = sp.Start
		begin := bytes.LastIndexByte(content[:sp.Start], '\n') + 1
		for number := line; begin < max(sp.End, sp.Start+1); number++ {
			end := len(content)
			if i := bytes.IndexByte(content[begin:], '\n'); i >= 0 {
				end = begin + i
			}
			if number > last {
				if last = number; len(lines) == scanLines {
					return lines
				}
				lines = append(lines, GrepLine{Number: number, Text: bytes.Clone(bytes.TrimRight(content[begin:end], "\r"))})
			}
			begin = end + 1
		}
	}
	return lines
}

// grepUnindexed searches a commit that is not indexed.
func (n *Node) grepUnindexed(ctx context.Context, v Viewer, req GrepRequest, names string) (*GrepResponse, error) {
	found, shared, err := n.besideIndex(ctx, v, req.Repo, scanRequest{Grep: &req}, func(rev string, without int) (*root, error) {
		return n.toolSearch(ctx, v, grepAtoms(req), names, rev, req.Repo, req.Limit+without, req.GroupByRepo)
	})
	if err != nil {
		return nil, err
	}
	out := &GrepResponse{}
	if req.GroupByRepo {
		one := GrepRepo{Repo: req.Repo, Files: found.Found, Matches: found.Matches}
		for _, f := range shared.files {
			one.Files++
			one.Matches += f.Matches
		}
		if one.Files > 0 {
			out.Repos, out.Matches = []GrepRepo{one}, one.Matches
		}
		out.Cut, out.CutWhy, out.Over = shared.cutWhy(found, false, req.Limit)
		return out, nil
	}
	files := found.Files
	for _, f := range shared.files {
		files = append(files, scanFile{Path: f.Path, Score: f.Score, Lines: linesOf(f.Chunks)})
	}
	slices.SortFunc(files, bestFirst)
	for _, f := range files[:min(len(files), req.Limit)] {
		out.add(GrepFile{Repo: req.Repo, Path: f.Path, WebURL: webURL(n.opt.BaseURL, req.Repo, req.Ref, "blob", f.Path), Lines: f.Lines})
	}
	out.Cut, out.CutWhy, out.Over = shared.cutWhy(found, found.Found+len(shared.files) > req.Limit, req.Limit)
	return out, nil
}

// globUnindexed lists paths of a commit that is not indexed.
func (n *Node) globUnindexed(ctx context.Context, v Viewer, req GlobRequest, names string) (*GlobResponse, error) {
	found, shared, err := n.besideIndex(ctx, v, req.Repo, scanRequest{Glob: &req}, func(rev string, without int) (*root, error) {
		return n.toolSearch(ctx, v, nil, names, rev, req.Repo, req.Limit+without, true)
	})
	if err != nil {
		return nil, err
	}
	files := found.Files
	for _, f := range shared.files {
		files = append(files, scanFile{Path: f.Path, Score: f.Score})
	}
	slices.SortFunc(files, bestFirst)
	out := &GlobResponse{}
	for _, f := range files[:min(len(files), req.Limit)] {
		out.add(req.Repo, f.Path)
	}
	out.sort()
	out.Cut, out.CutWhy, out.Over = shared.cutWhy(found, found.Found+len(shared.files) > req.Limit, req.Limit)
	return out, nil
}

// sharedFiles is what the index has of a commit that it does not know.
type sharedFiles struct {
	files  []shard.File
	answer *SearchResponse // nil when the index was of no use
}

func (s *sharedFiles) cutWhy(found *scanResponse, over bool, limit int) (cut bool, why string, more bool) {
	switch {
	case found.Late:
		return true, "This revision is not indexed and reading it took too long; a path or include makes it quicker.", false
	case s.answer != nil:
		return cutWhy(s.answer, over, limit)
	}
	return cutWhy(&SearchResponse{Exhaustive: true}, over, limit)
}

// besideIndex asks the mirror how a commit differs from the nearest indexed
// revision, and the index for what both share: most commits that somebody
// asks about have nearly all files in common with one that is indexed.
// search gives that many files more as there are paths to leave out.
func (n *Node) besideIndex(ctx context.Context, v Viewer, name string, req scanRequest, search func(rev string, without int) (*root, error)) (*scanResponse, *sharedFiles, error) {
	for try := 0; ; try++ {
		repo, err := n.repoByName(n.cluster.View(), v, name)
		if err != nil {
			return nil, nil, err
		}
		req.Beside = nil
		if repo.Indexed() && try < maxTries {
			req.Beside = repo.Revisions
		}
		found, err := route(ctx, n, v, name, scanOperation(), req)
		if err != nil || found.Beside.Name == "" {
			return found, &sharedFiles{}, err
		}
		r, err := search(found.Beside.Name, len(found.Without))
		if err != nil {
			return nil, nil, err
		}
		shared, err := r.without(name, found)
		r.close()
		if err != nil || shared != nil {
			return found, shared, err
		}
	}
}

// without is the files of a search in an indexed revision that a mirror does
// not know better; nil when the revision has moved since the mirror was asked.
func (r *root) without(name string, found *scanResponse) (*sharedFiles, error) {
	repo := r.view.RepoByName(name)
	if repo == nil || !slices.Contains(repo.Revisions, found.Beside) {
		return nil, nil
	}
	answer, err := r.respond()
	if err != nil {
		return nil, err
	}
	changed := make(map[string]bool, len(found.Without))
	for _, path := range found.Without {
		changed[path] = true
	}
	return &sharedFiles{
		files:  slices.DeleteFunc(r.files, func(f shard.File) bool { return changed[f.Path] }),
		answer: answer,
	}, nil
}
