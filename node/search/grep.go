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
	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/query"
)

// GrepRequest asks for lines that match an expression.
type GrepRequest struct {
	Pattern string // RE2 syntax, case-sensitive
	Repo    string // full name; "" means all
	Ref     string // any branch, tag or commit of the mirror; "" means HEAD
	Paths   paths.Filter
	Limit   int  // limit of files, 1..10,000; 0 means 100, with Counts 10,000
	Context int  // lines of context around each match, 0..20
	Counts  bool // return files without their lines
	Lexed   bool // find what is open at the start of each line, such as a comment

	WordBegins, WordEnds bool // a match must begin or end a word, as in match.Options
}

// GrepResponse has the matching files in the order of a search.
type GrepResponse struct {
	Files    []GrepFile
	Matches  int // in all Files
	Coverage coverage.Coverage
}

// GrepFile is one file with matches.
type GrepFile struct {
	Repo    string
	Path    string
	Matches int           // number of lines with a match; with Counts the number of ranges
	Lines   []browse.Line // nil with Counts
	Ranges  int           // number of ranges that match; a range may span several lines

	In map[int]shard.Symbol // by line with a match: the definition in which the match begins, if the index knows it
}

// Grep finds matching lines. It reads the mirror instead of the index if the request names a
// repository and a ref that is not indexed.
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

	// No index has the ref: read the mirror.
	var out *GrepResponse
	if rev == "" {
		out, rev, err = s.grepUnindexed(ctx, v, req, in)
	} else {
		out, err = s.grepIndexed(ctx, v, req, in, rev)
	}
	if err != nil {
		return nil, err
	}
	return out, s.addKeptFiles(ctx, v, req, in, rev, out)
}

// check checks the bounds of a request and sets the defaults.
func (req *GrepRequest) check() error {
	if req.Pattern == "" || len(req.Pattern) > maxPattern {
		return call.Fail(call.ErrInvalid, "pattern must have 1 to %d bytes", maxPattern)
	}

	// Compile the expression only for this error message. The leaves compile it again.
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

// grepIndexed searches the index, as opposed to git.
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

	out := &GrepResponse{Coverage: AtRevision(UpTo(answer.Coverage, req.Limit, len(r.a.files)), r.q.visible, req.Repo, req.Paths.Repos, req.Ref)}

	// Counts need no lines: each file has its number of matches.
	if req.Counts {
		for _, f := range r.a.files[:min(len(r.a.files), req.Limit)] {
			out.add(GrepFile{Repo: f.RepoName, Path: f.Path, Matches: f.Matches, Ranges: f.Matches})
		}
		return out, nil
	}

	for _, f := range answer.Files[:min(len(answer.Files), req.Limit)] {
		file := grepFile(f.Repository, f.Path, req.linesOf(f.Chunks, f.Language), rangesOf(f.Chunks))
		file.In = scopesOf(f.Chunks)
		out.add(file)
	}
	return out, nil
}

// grepFile returns a file with its lines, and counts the lines with a match.
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

// rangesOf returns the number of matches in chunks.
func rangesOf(chunks []shard.Chunk) (n int) {
	for i := range chunks {
		n += len(chunks[i].Ranges)
	}
	return n
}

// linesOf returns the lines of chunks, each once: lines with a match, and lines of context.
func linesOf(chunks []shard.Chunk) []browse.Line {
	var out []browse.Line
	for i := range chunks {
		c := withCutMarks(&chunks[i])
		matched := matchedLines(c.Ranges)

		// Chunks of a file may share a line: add only lines after the last one that was added.
		number := int(c.Start.Line)
		for line := range bytes.Lines(c.Content) {
			listed := len(out) > 0 && out[len(out)-1].Number >= number
			if !listed {
				out = append(out, browse.Line{
					Number: number,
					Text:   bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")),
					Around: !matched[number],
				})
			}
			number++
		}

		// An empty line at the end of a file has no bytes.
		if len(c.Content) == 0 && matched[number] {
			out = append(out, browse.Line{Number: number})
		}
	}
	return out
}

// linesOf returns the lines of chunks and, with Lexed, what is open at the start of each.
func (req *GrepRequest) linesOf(chunks []shard.Chunk, language string) []browse.Line {
	lines := linesOf(chunks)
	if !req.Lexed {
		return lines
	}

	lang, open := lex.For(language), map[int]lex.State{} // by line number
	for i := range chunks {
		at := lang.Reader(chunks[i].Content, chunks[i].Open)
		number, start := int(chunks[i].Start.Line), 0
		for line := range bytes.Lines(chunks[i].Content) {
			open[number] = at.OpenAt(start)
			number, start = number+1, start+len(line)
		}
	}
	for i := range lines {
		lines[i].Open = open[lines[i].Number]
	}
	return lines
}

// withCutMarks returns a chunk with a mark in its content wherever a line is cut.
func withCutMarks(c *shard.Chunk) shard.Chunk {
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

// matchedLines returns the numbers of the lines on which ranges lie.
func matchedLines(ranges []shard.Range) map[int]bool {
	matched := map[int]bool{}

	for _, r := range ranges {
		last := r.End.Line
		if r.End.Line > r.Start.Line && r.End.Column == 1 {
			last-- // a match that ends with a line break does not lie on the next line
		}
		for at := r.Start.Line; at <= last; at++ {
			matched[int(at)] = true
		}
	}
	return matched
}

// search returns the lookup for a request.
func (req *GrepRequest) search(in paths.Exprs, rev string) Lookup {
	text := &query.Text{Pattern: req.Pattern, Regexp: true, Field: query.Content, WordBegins: req.WordBegins, WordEnds: req.WordEnds}
	return Lookup{
		Atoms:    append([]query.Q{text}, in.Atoms()...),
		Revision: rev,
		Repo:     req.Repo,
		Lines:    req.Context,
		Scopes:   !req.Counts,
		Lexed:    req.Lexed,
		files:    req.Limit,
		listing:  req.Counts,
	}
}
