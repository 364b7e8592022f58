package search

import (
	"bytes"
	"context"
	"regexp"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// GrepRequest asks for lines that match an expression.
type GrepRequest struct {
	Pattern string // RE2 syntax, case-sensitive
	Repo    string // full name; "" for all
	Ref     string // any branch, tag or commit of the mirror; "" means HEAD
	Paths   paths.Filter
	Limit   int  // files, 1..10,000; 0 means 100, with Counts 10,000
	Context int  // lines around each match, 0..20
	Counts  bool // files without their lines

	WordBegins, WordEnds bool // a match begins or ends a word: as in match.Options
}

// GrepResponse is what was found, in the total order of a search.
type GrepResponse struct {
	Files    []GrepFile
	Matches  int // in all Files
	Coverage coverage.Coverage
}

// GrepFile is one file with matches.
type GrepFile struct {
	Repo    string
	Path    string
	Matches int           // ranges that match; lines with a match where Lines are given
	Lines   []browse.Line // none with Counts
	Ranges  int           // ranges that match, of which one may lie on several lines

	In map[int]shard.Symbol // by line with a match: the definition that it begins in, where the index knows it
}

// Grep finds matching lines. With a repository and a ref that is not indexed
// the mirror is read instead of the index.
func (s *Searcher) Grep(ctx context.Context, v catalog.Viewer, req GrepRequest) (*GrepResponse, error) {
	if err := req.check(); err != nil {
		return nil, err
	}

	in, err := req.Paths.Exprs()
	if err != nil {
		return nil, err
	}

	rev, err := s.indexedRev(v, req.Repo, req.Ref)
	if err != nil {
		return nil, err
	}

	// An empty name: no index has the ref, and the mirror is read instead.
	var out *GrepResponse
	if rev == "" {
		out, rev, err = s.grepUnindexed(ctx, v, req, in)
	} else {
		out, err = s.grepIndexed(ctx, v, req, in, rev)
	}
	if err != nil {
		return nil, err
	}
	return out, s.searchKept(ctx, v, req, in, rev, out)
}

// check holds a request to its bounds and fills in what it leaves out.
func (req *GrepRequest) check() error {
	if req.Pattern == "" || len(req.Pattern) > maxPattern {
		return call.Fail(call.ErrInvalid, "pattern must have 1 to %d bytes", maxPattern)
	}

	// It is compiled here only to refuse it in these words; the leaves compile it again.
	if _, err := regexp.Compile(req.Pattern); err != nil {
		return call.Fail(call.ErrQuery, "pattern is not a regular expression in RE2 syntax: %v", err)
	}

	if err := checkFiles(&req.Limit, req.Counts); err != nil {
		return err
	}

	if req.Context < 0 || req.Context > maxAround {
		return call.Fail(call.ErrInvalid, "context must be from 0 to %d", maxAround)
	}
	return nil
}

func (s *Searcher) grepIndexed(ctx context.Context, v catalog.Viewer, req GrepRequest, in paths.Exprs, rev string) (*GrepResponse, error) {
	r, err := s.toolSearch(ctx, v, req.search(in, rev))
	if err != nil {
		return nil, err
	}
	defer r.close()

	answer, err := r.respond()
	if err != nil {
		return nil, err
	}

	out := &GrepResponse{Coverage: AtRevision(UpTo(answer.Coverage, req.Limit, len(r.a.files)), r.q.sight, req.Repo, req.Paths.Repos, req.Ref)}

	// Counts need no lines: files come with how many matches they have.
	if req.Counts {
		for _, f := range r.a.files[:min(len(r.a.files), req.Limit)] {
			out.add(GrepFile{Repo: f.RepoName, Path: f.Path, Matches: f.Matches, Ranges: f.Matches})
		}
		return out, nil
	}

	for _, f := range answer.Files[:min(len(answer.Files), req.Limit)] {
		file := grepFile(f.Repository, f.Path, linesOf(f.Chunks), rangesOf(f.Chunks))
		file.In = scopesOf(f.Chunks)
		out.add(file)
	}
	return out, nil
}

// grepFile is a file with its lines.
func grepFile(repo, path string, lines []browse.Line, ranges int) GrepFile {
	f := GrepFile{Repo: repo, Path: path, Lines: lines, Ranges: ranges}
	for _, l := range lines {
		if !l.Around {
			f.Matches++
		}
	}
	return f
}

func (r *GrepResponse) add(f GrepFile) {
	r.Files = append(r.Files, f)
	r.Matches += f.Matches
}

// rangesOf counts the matches in chunks.
func rangesOf(chunks []shard.Chunk) (n int) {
	for i := range chunks {
		n += len(chunks[i].Ranges)
	}
	return n
}

// linesOf lists the lines of chunks, once each: those with a match, and those
// around them.
func linesOf(chunks []shard.Chunk) []browse.Line {
	var out []browse.Line
	for i := range chunks {
		c := marked(&chunks[i])
		matched := matchedLines(c.Ranges)

		// The chunks of a file may share a line: only what comes after the last line
		// that is listed is new.
		number := int(c.Start.Line)
		for line := range bytes.Lines(c.Content) {
			seen := len(out) > 0 && out[len(out)-1].Number >= number
			if !seen {
				out = append(out, browse.Line{
					Number: number,
					Text:   bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")),
					Around: !matched[number],
				})
			}
			number++
		}

		// An empty line at the end of a file has no bytes at all.
		if len(c.Content) == 0 && matched[number] {
			out = append(out, browse.Line{Number: number})
		}
	}
	return out
}

// marked is a chunk whose content tells that its lines are cut.
func marked(c *shard.Chunk) shard.Chunk {
	if c.Before == 0 && c.After == 0 {
		return *c
	}

	out := *c
	out.Content = nil
	if c.Before > 0 {
		out.Content = append(out.Content, shard.CutMark...)
	}
	if out.Content = append(out.Content, c.Content...); c.After > 0 {
		out.Content = append(out.Content, shard.CutMark...)
	}
	return out
}

// matchedLines is the numbers of the lines that ranges lie on.
func matchedLines(ranges []shard.Range) map[int]bool {
	matched := map[int]bool{}

	// A match that ends with a line break does not lie on the line after it.
	for _, r := range ranges {
		last := r.End.Line
		if r.End.Line > r.Start.Line && r.End.Column == 1 {
			last-- // the match ends with a line break
		}
		for at := r.Start.Line; at <= last; at++ {
			matched[int(at)] = true
		}
	}
	return matched
}

// search is what a request asks of the index.
func (req *GrepRequest) search(in paths.Exprs, rev string) Lookup {
	text := &query.Text{Pattern: req.Pattern, Regexp: true, Field: query.Content, WordBegins: req.WordBegins, WordEnds: req.WordEnds}
	return Lookup{
		Atoms:    append([]query.Q{text}, in.Atoms()...),
		Revision: rev,
		Repo:     req.Repo,
		Lines:    req.Context,
		Scopes:   !req.Counts,
		files:    req.Limit,
		listing:  req.Counts,
	}
}
