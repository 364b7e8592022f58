package browse

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/match"
)

// The bounds of a search in a commit that is not indexed.
const (
	scanLines   = 2000     // shown of one file
	scanSpans   = 1 << 20  // matches of one file of which the places are known
	scanBytes   = 32 << 20 // of lines, in all
	scanChanges = 20_000   // paths that may differ from an indexed revision for the index to be of use
)

// ScanTime is how long a search of a tool may take; then what was found so far
// is the answer.
const ScanTime = 5 * time.Second

// ScanRequest asks the holder of a mirror for what it alone can tell of a
// commit that is not indexed.
type ScanRequest struct {
	Ref     string
	Paths   paths.Exprs        // that are looked at
	Pattern string             // expression for lines; "" where the paths are what is asked for
	Limit   int                // files
	Context int                // lines around each match
	Counts  bool               // files without their lines
	Only    []string           // with Pattern: these files and no others, however large
	Beside  []catalog.Revision // indexed; only what differs from the nearest is looked at. None: everything

	WordBegins, WordEnds bool // a match begins or ends a word: as in match.Options
}

// ScanResponse is what the mirror has; the index has the rest.
type ScanResponse struct {
	Files   []ScanFile // with something to show, the best first
	Found   int        // files, shown or not
	Matches int        // in all of them
	Late    bool       // time ran out
	Beside  catalog.Revision
	Without []string // paths of Beside that are not there, or not so
	Looked  []string // with Only: the files that were read
}

// ScanFile is one file of an answer, with what it is ranked by.
type ScanFile struct {
	Path  string
	Score float64
	Lines []Line

	Matches int
}

// Line is one line, without its end.
type Line struct {
	Number int // from 1
	Text   []byte
	Around bool // has no match; stands there for its neighbours
}

// Scan looks at a commit that is not indexed as a search of the index would:
// the same files, in the same order.
func (b *Browser) Scan(ctx context.Context, v catalog.Viewer, repo string, req ScanRequest) (*ScanResponse, error) {
	return route(ctx, b, v, repo, scanOperation, req)
}

var scanOperation = operation[ScanRequest, ScanResponse]{name: "scan", run: answerScan, heavy: true}

// answerScan looks through the files of a commit for lines or paths.
func answerScan(ctx context.Context, s *site, req ScanRequest) (*ScanResponse, error) {
	c, err := s.scanOf(ctx, req)
	if err != nil {
		return nil, err
	}
	files, err := c.list(ctx)
	if err != nil {
		return nil, err
	}

	// When this time is over, what was found so far is the answer.
	inTime, cancel := context.WithTimeout(ctx, ScanTime)
	defer cancel()
	f := &finder{expired: func() bool { return inTime.Err() != nil }, limit: req.Limit, counting: req.Counts, around: req.Context}
	if req.Pattern == "" {
		f.names(files)
	} else if err := s.scanLines(ctx, f, files, req); err != nil {
		return nil, err
	}

	f.trim()
	return &ScanResponse{
		Files:   f.files,
		Found:   f.found,
		Matches: f.matches,
		Late:    f.late,
		Beside:  c.beside,
		Without: c.without,
		Looked:  append(f.lookedOf(req), c.absent...),
	}, nil
}

// scanLines looks for lines that match an expression.
func (s *site) scanLines(ctx context.Context, f *finder, files []git.Entry, req ScanRequest) (err error) {
	if f.m, err = match.Compile(req.Pattern, match.Options{WordBegins: req.WordBegins, WordEnds: req.WordEnds}); err != nil {
		return call.Fail(call.ErrInvalid, "pattern: %v", err)
	}
	defer context.AfterFunc(ctx, f.m.Stop)()

	if req.Only != nil {
		return s.scanNamed(ctx, f, files, req.Pattern)
	}
	return s.mirror.Scan(ctx, files, s.maxFile, f.visit)
}

// scan is what is looked at: all of a commit, or how it differs from an
// indexed revision.
type scan struct {
	site    *site
	commit  string
	keep    func(path string) bool
	only    []string
	absent  []string // of only: the commit has nothing to search there
	beside  catalog.Revision
	changes *git.Changes
	without []string
}

// scanOf decides what a request looks at.
func (s *site) scanOf(ctx context.Context, req ScanRequest) (*scan, error) {
	keep, err := req.Paths.Keeps()
	if err != nil {
		return nil, err
	}
	c := &scan{site: s, keep: keep, only: req.Only}
	if c.commit, err = s.resolve(ctx, req.Ref); err != nil || req.Only != nil {
		return c, err
	}

	// What the nearest indexed revision has in common with the commit need not
	// be read.
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
func (c *scan) list(ctx context.Context) (files []git.Entry, err error) {
	// Those that are named are read whatever they are; else what an index has not.
	if c.only != nil {
		files, c.absent, err = c.site.namedFiles(ctx, c.commit, c.only)
		return files, err
	}
	if c.beside.Name == "" {
		return c.site.mirror.Files(ctx, c.commit, c.keep)
	}

	// Only what differs: the index answers for the rest.
	for _, e := range c.changes.Now {
		if c.keep(e.Path) {
			files = append(files, e)
		}
	}
	return files, nil
}

// finder gathers the files with a match, the best of them with their lines.
type finder struct {
	m        *match.Matcher
	limit    int
	counting bool
	around   int         // lines
	expired  func() bool // time has run out

	files   []ScanFile
	matches int // in all files
	found   int // files, kept or not
	bytes   int // of lines in files
	late    bool
	looked  []string // paths
	spans   []match.Span
}

// names takes files whose name is all that matters.
func (f *finder) names(files []git.Entry) {
	f.found = len(files)
	for _, e := range files {
		f.files = append(f.files, ScanFile{Path: e.Path, Score: shard.ScoreText(e.Path, nil, nil, 0)})
	}
}

// begin counts a file as looked at; false ends the search.
func (f *finder) begin(path string) bool {
	if f.late = f.expired(); f.late {
		return false
	}
	f.looked = append(f.looked, path)
	return true
}

// visit looks for matches in one file; false ends the search.
func (f *finder) visit(e git.Entry, content []byte) bool {
	if !f.begin(e.Path) {
		return false
	}

	// Binary files count as looked at, and have no matches.
	content, of := charset.Decode(nil, content)
	if charset.Binary(content, of) {
		return true
	}

	// A place takes sixteen bytes: a file may have more matches than there is memory.
	f.spans = f.m.Append(f.spans[:0], content, scanSpans)
	n := len(f.spans)
	if n == 0 {
		return true
	}
	if n == scanSpans {
		n = f.m.Count(content)
	}

	f.found++
	f.matches += n
	file := ScanFile{Path: e.Path, Score: shard.ScoreText(e.Path, content, f.spans, n), Matches: n}
	if !f.counting {
		file.Lines = withAround(content, matchingLines(content, f.spans), f.around)
	}

	lines := file.Lines
	f.files = append(f.files, file)
	for _, l := range lines {
		f.bytes += len(l.Text)
	}

	// The worst are dropped now and then, so that memory stays bounded.
	if len(f.files) >= 2*f.limit+100 || f.bytes > scanBytes {
		f.trim()
	}
	return true
}

// BestFirst is the order of files in an answer.
func BestFirst(a, b ScanFile) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path))
}

// trim keeps the best files, and of those the lines that fit half of scanBytes,
// but at least one line each.
func (f *finder) trim() {
	slices.SortFunc(f.files, BestFirst)
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

// matchingLines lists the lines of a text that a match touches, the first
// scanLines of them, each once. An empty match touches the line it is in. It looks for
// the ends of a line once, however many matches the line has.
func matchingLines(content []byte, spans []match.Span) (lines []Line) {
	number, begin, end := 1, 0, endOfLine(content, 0)
	for i := 0; i < len(spans) && len(lines) < scanLines; {
		// To the line of the next match, where this one does not reach as far.
		if at := spans[i].Start; at > end {
			number += bytes.Count(content[end:at], newline)
			begin = end + bytes.LastIndexByte(content[end:at], '\n') + 1
			end = endOfLine(content, begin)
		}

		from, last := max(spans[i].Start, begin), i
		for ; i < len(spans) && spans[i].Start <= end; i++ {
			last = i
		}
		text := bytes.TrimSuffix(content[begin:end], []byte("\r"))
		shown := shard.CutLine(text, min(from-begin, len(text)), min(spans[last].End-begin, len(text)))
		lines = append(lines, Line{Number: number, Text: shown})

		// The last match may reach into the next line.
		if spans[last].End > end+1 {
			i, number, begin = last, number+1, end+1
			end = endOfLine(content, begin)
		}
	}
	return lines
}

var newline = []byte("\n")

// endOfLine is where the line ends that begins at a place, before its newline.
func endOfLine(content []byte, begin int) int {
	if i := bytes.IndexByte(content[begin:], '\n'); i >= 0 {
		return begin + i
	}
	return len(content)
}

// withAround puts the lines around those that match between them.
func withAround(content []byte, lines []Line, around int) []Line {
	if around == 0 || len(lines) == 0 {
		return lines
	}

	var out []Line
	number, next := 0, 0 // lines[next] is the first match that is not before number
	for line := range bytes.Lines(content) {
		number++
		for next < len(lines) && lines[next].Number < number {
			next++
		}

		switch {
		case next < len(lines) && lines[next].Number == number:
			out = append(out, lines[next])
		case next < len(lines) && lines[next].Number-number <= around, next > 0 && number-lines[next-1].Number <= around:
			out = append(out, Line{Number: number, Text: shard.CutLine(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), 0, 0), Around: true})
		}

		if next == len(lines) && number-lines[next-1].Number > around {
			break
		}
	}
	return out
}

// lookedOf are the files that were read, where the request names files.
func (f *finder) lookedOf(req ScanRequest) []string {
	if req.Only == nil {
		return nil
	}
	return f.looked
}
