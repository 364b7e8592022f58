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
	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/match"
)

// Limits of a search in a commit that is not indexed.
const (
	scanLines   = 2000     // shown of one file
	scanSpans   = 1 << 20  // matches of one file whose positions are kept
	scanBytes   = 32 << 20 // of lines in one answer
	scanChanges = 20_000   // paths that may differ from an indexed revision; with more, the index is of no use
)

// ScanTime bounds a search by a tool. At the bound, the answer is what was found so far.
const ScanTime = 5 * time.Second

// ScanRequest asks a node with the mirror to search a commit that is not indexed.
type ScanRequest struct {
	Ref     string
	Paths   paths.Exprs        // paths to search
	Pattern string             // regular expression for lines; "" lists the paths only
	Limit   int                // files
	Context int                // lines around each match
	Counts  bool               // without lines
	Lexed   bool               // find what is open at the start of each line, such as a comment
	Only    []string           // with Pattern: search only these files, however large
	Beside  []catalog.Revision // indexed revisions; only the differences from the nearest are searched. Empty: search all

	WordBegins, WordEnds bool // matches must begin or end a word, as in match.Options
}

// ScanResponse is what the mirror contributes; the index contributes the rest.
type ScanResponse struct {
	Files   []ScanFile // with matches, best first
	Found   int        // number of files, shown or not
	Matches int        // in all files
	Late    bool       // time ran out
	Beside  catalog.Revision
	Without []string // paths of Beside that differ in the commit or are missing there
	Looked  []string // with Only: files that were searched
}

// ScanFile is one file of an answer with its score.
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
	Around bool // a context line without a match

	Open lex.State // what the lines before leave open, such as a comment; a search tells it on demand
}

// Scan searches a commit that is not indexed. It finds the same files in the same order as a
// search of an index.
func (b *Browser) Scan(ctx context.Context, v catalog.Viewer, repo string, req ScanRequest) (*ScanResponse, error) {
	return route(ctx, b, v, repo, scanOperation, req)
}

var scanOperation = operation[ScanRequest, ScanResponse]{name: "scan", run: answerScan, heavy: true}

// answerScan searches the files of a commit for lines or paths.
func answerScan(ctx context.Context, s *site, req ScanRequest) (*ScanResponse, error) {
	c, err := s.newScan(ctx, req)
	if err != nil {
		return nil, err
	}
	files, err := c.filesToSearch(ctx)
	if err != nil {
		return nil, err
	}

	// When ScanTime is over, the answer is what was found so far.
	inTime, cancel := context.WithTimeout(ctx, ScanTime)
	defer cancel()
	f := &finder{expired: func() bool { return inTime.Err() != nil }, limit: req.Limit, counting: req.Counts, lexed: req.Lexed, around: req.Context}
	if req.Pattern == "" {
		f.addNames(files)
	} else if err := s.scanLines(ctx, f, files, req); err != nil {
		return nil, err
	}

	f.keepBestFiles()
	return &ScanResponse{
		Files:   f.files,
		Found:   f.found,
		Matches: f.matches,
		Late:    f.late,
		Beside:  c.beside,
		Without: c.without,
		Looked:  append(f.searchedFiles(req), c.absent...),
	}, nil
}

// scanLines searches files for lines that match the pattern.
func (s *site) scanLines(ctx context.Context, f *finder, files []git.Entry, req ScanRequest) (err error) {
	if f.m, err = match.Compile(req.Pattern, match.Options{WordBegins: req.WordBegins, WordEnds: req.WordEnds}); err != nil {
		return call.Fail(call.ErrInvalid, "pattern: %v", err)
	}
	defer context.AfterFunc(ctx, f.m.Stop)()

	if req.Only != nil {
		return s.scanNamed(ctx, f, files, req.Pattern)
	}
	return s.mirror.Scan(ctx, files, s.maxFile, f.searchFile)
}

// scan is what to search: the whole commit, or its differences from an indexed revision.
type scan struct {
	site    *site
	commit  string
	keep    func(path string) bool
	only    []string
	absent  []string // paths of only without a file in the commit
	beside  catalog.Revision
	changes *git.Changes
	without []string
}

// newScan resolves the commit of a request, and finds the files that must be read from git because
// no indexed revision has them as they are there.
func (s *site) newScan(ctx context.Context, req ScanRequest) (*scan, error) {
	keep, err := req.Paths.Keeps()
	if err != nil {
		return nil, err
	}
	c := &scan{site: s, keep: keep, only: req.Only}
	if c.commit, err = s.resolve(ctx, req.Ref); err != nil || req.Only != nil {
		return c, err
	}

	// The index has the files that the nearest indexed revision shares with the commit.
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

// filesToSearch returns the files to search, by path.
func (c *scan) filesToSearch(ctx context.Context) (files []git.Entry, err error) {
	// Search named files in any case; otherwise only files that the index lacks.
	if c.only != nil {
		files, c.absent, err = c.site.namedFiles(ctx, c.commit, c.only)
		return files, err
	}
	if c.beside.Name == "" {
		return c.site.mirror.Files(ctx, c.commit, c.keep)
	}

	// Only the differences: the index answers for the rest.
	for _, e := range c.changes.Now {
		if c.keep(e.Path) {
			files = append(files, e)
		}
	}
	return files, nil
}

// finder collects files with matches, and the lines of the best ones.
type finder struct {
	m        *match.Matcher
	limit    int
	counting bool
	lexed    bool        // tell what is open at the start of each line
	around   int         // context lines
	expired  func() bool // reports whether time has run out

	files   []ScanFile
	matches int // in all files
	found   int // files, kept or dropped
	bytes   int // of the lines in files
	late    bool
	looked  []string // paths
	spans   []match.Span
}

// addNames adds files that match by their name.
func (f *finder) addNames(files []git.Entry) {
	f.found = len(files)
	for _, e := range files {
		f.files = append(f.files, ScanFile{Path: e.Path, Score: shard.ScoreText(e.Path, nil, nil, 0)})
	}
}

// beginFile records that a file is searched. false ends the search.
func (f *finder) beginFile(path string) bool {
	if f.late = f.expired(); f.late {
		return false
	}
	f.looked = append(f.looked, path)
	return true
}

// searchFile searches one file. false ends the search.
func (f *finder) searchFile(e git.Entry, content []byte) bool {
	if !f.beginFile(e.Path) {
		return false
	}

	// A binary file counts as searched and has no matches.
	content, encoding := charset.Decode(nil, content)
	if charset.Binary(content, encoding) {
		return true
	}

	// Limit the positions, 16 bytes each: a file may have more matches than fit in memory.
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
		file.Lines = withContext(content, matchingLines(content, f.spans), f.around)
		if f.lexed {
			setOpen(file.Lines, content, lex.For(shard.Language(e.Path, content)))
		}
	}

	lines := file.Lines
	f.files = append(f.files, file)
	for _, l := range lines {
		f.bytes += len(l.Text)
	}

	// Drop the worst files now and then, to bound memory.
	if len(f.files) >= 2*f.limit+100 || f.bytes > scanBytes {
		f.keepBestFiles()
	}
	return true
}

// BestFirst compares files in the order of an answer.
func BestFirst(a, b ScanFile) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path))
}

// keepBestFiles keeps the best files, and as many of their lines as fit in half of scanBytes, at least one
// line each.
func (f *finder) keepBestFiles() {
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

// matchingLines returns the lines that a match touches, at most scanLines, each once. An empty
// match touches its line. Each line's end is searched once, however many matches the line has.
func matchingLines(content []byte, spans []match.Span) (lines []Line) {
	number, begin, end := 1, 0, endOfLine(content, 0)
	for i := 0; i < len(spans) && len(lines) < scanLines; {
		// Advance to the line of the next match, unless the current line reaches it.
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
		cutLine := shard.CutLine(text, min(from-begin, len(text)), min(spans[last].End-begin, len(text)))
		lines = append(lines, Line{Number: number, Text: cutLine})

		// The last match may reach into the next line.
		if spans[last].End > end+1 {
			i, number, begin = last, number+1, end+1
			end = endOfLine(content, begin)
		}
	}
	return lines
}

var newline = []byte("\n")

// endOfLine returns the end of the line that begins at begin, before its newline.
func endOfLine(content []byte, begin int) int {
	if i := bytes.IndexByte(content[begin:], '\n'); i >= 0 {
		return begin + i
	}
	return len(content)
}

// withContext adds context lines around the lines that match.
func withContext(content []byte, lines []Line, around int) []Line {
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

// setOpen sets what is open at the start of each line of a file.
func setOpen(lines []Line, content []byte, lang *lex.Lang) {
	r, number, at := lang.Reader(content, 0), 1, 0
	for i := range lines {
		for ; number < lines[i].Number; number++ {
			at = min(endOfLine(content, at)+1, len(content))
		}
		lines[i].Open = r.OpenAt(at)
	}
}

// searchedFiles returns the files searched, if the request names files.
func (f *finder) searchedFiles(req ScanRequest) []string {
	if req.Only == nil {
		return nil
	}
	return f.looked
}
