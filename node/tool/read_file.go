package tool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard/git"
)

func readFile(b browse.Reader) Tool {
	return Tool{
		Name: "read_file", Title: "Read a file",
		About: "Reads up to 500 lines of a file; the first and every fifth as `line: text`. Reads from `offset` on, `ranges`, or the definition of a `symbol`. Use it after grep, search or outline.",
		Params: []Param{
			repoParam,
			{Name: "path", Kind: String, About: "file, from the root"},
			{Name: "paths", Kind: Strings, About: "more files, at most 10 with path; lines as a.go:12-40"},
			refParam,
			{Name: "offset", Kind: Integer, Min: 1, About: "first line"},
			{Name: "limit", Kind: Integer, Min: 1, Max: 500, Default: 500},
			{Name: "ranges", Kind: String, About: "lines of path, as 291-308,506-587"},
			{Name: "symbol", Kind: String, About: "name whose definition is read"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			r := &reading{Args: a, ctx: ctx, viewer: v, browse: b}
			return r.text()
		},
	}
}

// reading is one call of read_file.
type reading struct {
	*Args
	ctx    context.Context
	viewer catalog.Viewer
	browse browse.Reader

	symbols []browse.OutlineSymbol // of the file, once its definitions were looked up
}

// lineRange is a range of lines of a file.
type lineRange struct{ first, last int }

const (
	maxRanges = 20
	maxPaths  = 10
	maxRead   = 500 // lines together
)

// text returns the answer with the requested files.
func (r *reading) text() (string, error) {
	// Accept either parameter, or both, because models mix them.
	paths := r.List("paths")
	if r.Text("path") != "" {
		paths = append([]string{r.Text("path")}, paths...)
	}

	switch {
	case len(paths) == 0:
		return "", r.pathless()
	case len(paths) > maxPaths:
		return "", call.Fail(call.ErrInvalid, "path and paths have more than %d files together", maxPaths)

	// A single file in paths is answered like several.
	case len(paths) > 1 || r.Text("path") == "":
		return r.several(paths)
	}
	return r.one()
}

// one reads the file in path: some ranges of it, or from a line on.
func (r *reading) one() (string, error) {
	if r.Text("ranges") != "" || r.Text("symbol") != "" {
		return r.parts()
	}

	f, err := r.lines(r.Text("path"), r.Number("offset"), r.Number("limit"))
	// The path may include lines, as in answers and links. This is tried after the literal file
	// name.
	if path, lines, ok := linesOf(r.Text("path")); ok && errors.Is(err, call.ErrFileNotFound) && !r.Has("offset") {
		r.set("path", path)
		r.set("ranges", lines)
		return r.parts()
	}
	if err != nil {
		return "", err
	}
	return fileText(r.Args, f), nil
}

// pathless returns the error that a file must be named, with a way to find it.
func (r *reading) pathless() error {
	if r.Text("symbol") != "" {
		found := callOf("find_symbol_definitions", "symbol", r.Text("symbol"), "repo", r.Text("repo"), "ref", r.Text("ref"), "body", true)
		return call.Fail(call.ErrInvalid, "path is required; without it: %s", found)
	}
	return call.Fail(call.ErrInvalid, "path is required (file, from the root). Find it with glob, grep or search")
}

// lines reads lines of a file.
func (r *reading) lines(path string, offset, limit int) (*browse.ReadFileResponse, error) {
	return r.browse.ReadFile(r.ctx, r.viewer, browse.ReadFileRequest{
		Repo:   r.Text("repo"),
		Path:   path,
		Ref:    r.Text("ref"),
		Offset: offset,
		Limit:  limit,
	})
}

// several reads files, which share the room. The arguments ranges and symbol apply to path. Without
// path they apply to each file that names no lines itself.
func (r *reading) several(paths []string) (string, error) {
	var texts []string
	share := max(r.Number("maxTokens")/len(paths), 200)
	for i, p := range paths {
		one := *r
		one.Args = r.alone(p, share)
		if path, lines, ok := linesOf(p); ok {
			one.set("path", path)
			one.set("ranges", lines)
			one.set("symbol", nil)
		} else if i > 0 && r.Text("path") != "" {
			one.set("ranges", nil)
			one.set("symbol", nil)
		}

		text, err := one.one()
		var known *call.Error
		switch {
		case err == nil:
			texts = append(texts, text)
		case errors.As(err, &known) && len(texts) > 0:
			// The first file was read, so a missing other one is part of the answer.
			texts = append(texts, known.Message+".")
		default:
			return "", err
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// anchor matches a link to lines of a file.
var anchor = regexp.MustCompile(`^(.+)#L(\d+)(?:-L?(\d+))?$`)

// linesOf splits "store.go:12-40" and "store.go#L12-L40" into path and lines. Answers of other
// tools and links have these forms.
func linesOf(named string) (path, lines string, ok bool) {
	if m := anchor.FindStringSubmatch(named); m != nil {
		named = m[1] + ":" + m[2]
		if m[3] != "" {
			named += "-" + m[3]
		}
	}
	i := strings.LastIndexByte(named, ':')
	if i <= 0 {
		return "", "", false
	}
	if _, err := parseRanges(named[i+1:]); err != nil || named[i+1:] == "" {
		return "", "", false
	}
	return named[:i], named[i+1:], true
}

// alone returns the same call for one of its files.
func (r *reading) alone(path string, maxTokens int) *Args {
	one := newArgs(r.tool)
	maps.Copy(one.values, r.values)
	one.given = slices.Clone(r.given)
	one.asked, one.made, one.renamed = r.asked, r.made, r.renamed
	one.set("paths", nil)
	one.set("path", path)
	one.values["maxTokens"] = maxTokens
	return one
}

// parts reads the requested ranges of lines, and the definitions of the requested symbol.
func (r *reading) parts() (string, error) {
	ranges, err := parseRanges(r.Text("ranges"))
	if err != nil {
		return "", err
	}
	if r.Text("symbol") != "" {
		defined, err := r.defined()
		if err != nil {
			return "", err
		}
		ranges = append(ranges, defined...)
	}

	var out strings.Builder
	var e end
	left := maxRead
	for i, lr := range ranges {
		// Each range gets the lines that earlier ranges left.
		size := min(lr.last-lr.first+1, left)
		if size == 0 || out.Len() > r.room() {
			rest := r.with("symbol", nil, "ranges", rangesText(ranges[i:]))
			e.left = append(e.left, "ranges beyond what one answer holds; continue with "+rest)
			break
		}
		f, err := r.lines(r.Text("path"), lr.first, size)
		if err != nil {
			return "", err
		}

		e.coverage = f.Coverage()
		if i == 0 {
			fmt.Fprintf(&out, "%s%s at %.8s, %s, %s\n", of(r.Args, f.Repo), fileLabel(f.Path), f.Commit, f.Language, count(f.Total, "line"))
			out.WriteString(instead(r.Args, f))
		} else {
			out.WriteString("--\n")
		}

		written := writeLines(&out, f, r.room())
		left -= written
		if next := f.First + written; next <= lr.last && next <= f.Total {
			rest := append([]lineRange{{next, lr.last}}, ranges[i+1:]...)
			more := r.with("symbol", nil, "ranges", rangesText(rest))
			e.left = append(e.left, fmt.Sprintf("lines %d-%d; continue with %s", next, lr.last, more))
			break
		}
	}
	if r.Text("symbol") != "" && e.left == nil {
		out.WriteString(r.constants(out.String(), ranges))
	}
	return out.String() + e.String(), nil
}

// writeLines writes lines until room bytes are used, and returns how many.
func writeLines(out *strings.Builder, f *browse.ReadFileResponse, room int) (written int) {
	for i, line := range f.Lines {
		entry := numbered(f.First+i, i == 0, shownLine(line))
		if out.Len()+len(entry) > room && i > 0 {
			break
		}
		out.WriteString(entry)
		written++
	}
	return written
}

// numberEvery is the distance of the lines that have their number before them. Numbers of all lines
// would be an eighth of the text.
const numberEvery = 5

// numbered returns a line of a file. The first of some lines has its number before it, and each fifth.
// So has each line that looks as if it had one.
func numbered(line int, first bool, text string) string {
	if first || line%numberEvery == 0 || numberLike.MatchString(text) {
		return fmt.Sprintf("%d: %s\n", line, text)
	}
	return text + "\n"
}

var numberLike = regexp.MustCompile(`^\d+(?: in .*)?[:-] |^--$`)

// shownLine returns a line of a file; a very long one is shortened.
func shownLine(line []byte) string {
	text := visible(line)
	if len(text) > longestLine {
		return cutEnd(text, longestLine)
	}
	return text
}

// defined returns the lines of the definitions of the requested symbol in the file.
func (r *reading) defined() ([]lineRange, error) {
	// The outline has the ends of definitions; the symbol index does not.
	req := browse.OutlineRequest{Repo: r.Text("repo"), Ref: r.Text("ref"), Paths: []string{r.Text("path")}}
	o, err := r.browse.Outline(r.ctx, r.viewer, req)
	if err != nil {
		return nil, err
	}

	// Drop the type: the file is known already.
	want := r.Text("symbol")
	if i := strings.LastIndexAny(want, ".:#"); i > 0 && i+1 < len(want) {
		want = want[i+1:]
	}

	var found []lineRange
	var names []string
	for _, f := range o.Files {
		r.symbols = f.Symbols
		for _, s := range f.Symbols {
			names = append(names, s.Name)
			if s.Name == want {
				// Return all of them: overloads, and definitions under several conditions.
				found = append(found, lineRange{s.First, s.Last})
			}
		}
	}

	switch {
	case found != nil:
		return found, nil
	// The symbols of the file are unknown, so nothing can be said about them.
	case o.Coverage().Has(coverage.Symbols):
		return nil, call.Fail(call.ErrUnavailable, "the symbols of %q could not be found, by ctags or in time; find %s in its text: %s",
			r.Text("path"), r.Text("symbol"), callOf("grep", "repo", r.Text("repo"), "path", r.Text("path"), "pattern", regexp.QuoteMeta(want), "ref", r.Text("ref")))
	}
	return nil, r.undefined(want, names)
}

// undefined returns the error that a file does not define a symbol, with similar names that it
// defines.
func (r *reading) undefined(want string, names []string) error {
	message := fmt.Sprintf("%q defines no %s", r.Text("path"), r.Text("symbol"))
	repo, ref, path := r.Text("repo"), r.Text("ref"), r.Text("path")
	once := " If it was here once: " + callOf("list_commits", "repo", repo, "path", path, "changes", want, "ref", ref)
	if near := NearestName(want, names); near != "" {
		return call.Fail(call.ErrNotFound, "%s, did you mean %s?%s", message, near, once)
	}

	// The symbol may be elsewhere, may have been removed, or may have another name.
	return call.Fail(call.ErrNotFound, "%s. Elsewhere: %s.%s. What the file defines: %s", message,
		callOf("find_symbol_definitions", "symbol", want, "repo", repo, "ref", ref), once, callOf("outline", "repo", repo, "path", path, "ref", ref))
}

// parseRanges reads "291-308,506-587".
func parseRanges(text string) (ranges []lineRange, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		_, first, last, ok := git.ParseLines("x:" + strings.TrimSpace(part))
		if !ok || len(ranges) == maxRanges {
			return nil, call.Fail(call.ErrInvalid, "ranges has to be at most %d runs of lines, as 291-308,506-587", maxRanges)
		}
		ranges = append(ranges, lineRange{first, last})
	}
	return ranges, nil
}

// rangesText is the inverse of parseRanges.
func rangesText(ranges []lineRange) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = fmt.Sprintf("%d-%d", r.first, r.last)
	}
	return strings.Join(parts, ",")
}

// instead returns a sentence about a file that stands for another one, which is a symbolic link or
// an LFS pointer; "" for other files.
func instead(a *Args, f *browse.ReadFileResponse) string {
	switch {
	case f.LFS:
		return "This is a pointer of Git LFS: the file itself is not in the repository.\n"
	case !f.Link || len(f.Lines) == 0:
		return ""
	}

	target := string(f.Lines[0])
	at, inside := paths.LinkTarget(f.Path, target)
	if !inside {
		return fmt.Sprintf("This is a symbolic link to %s, outside of the repository.\n", fileLabel(target))
	}
	call := callOf("read_file", "repo", f.Repo, "path", at, "ref", a.Text("ref"))
	return fmt.Sprintf("This is a symbolic link to %s; if that is a file: %s\n", fileLabel(target), call)
}

// longestLine is the largest number of bytes shown of a line.
const longestLine = 2000

// fileText writes lines of a file with their numbers.
func fileText(a *Args, r *browse.ReadFileResponse) string {
	var out strings.Builder
	e := end{coverage: r.Coverage()}
	out.WriteString(of(a, r.Repo))
	fmt.Fprintf(&out, "%s at %.8s", fileLabel(r.Path), r.Commit)
	if r.Language != "" {
		fmt.Fprintf(&out, ", %s", r.Language)
	}
	if r.Encoding != "" {
		fmt.Fprintf(&out, ", %s shown as UTF-8", r.Encoding)
	}

	switch {
	// There are three reasons for having no lines. Only the last is a mistake of the caller.
	case r.Binary:
		fmt.Fprintf(&out, "\nThis is a binary file of %s: it has no lines to show.\n", count(r.Size, "byte"))
		return out.String() + e.String()
	case r.Total == 0:
		return out.String() + "\nThe file is empty.\n" + e.String()
	case len(r.Lines) == 0:
		fmt.Fprintf(&out, "\nThe file has only %s. From its start: %s.", count(r.Total, "line"), a.with("offset", nil))
		return out.String()
	}

	// The first line says which lines follow, so it is written last.
	header := out.Len()
	var body strings.Builder

	next, shortened := r.First, 0
	for _, line := range r.Lines {
		text := visible(line)
		if len(text) > longestLine {
			text = cutEnd(text, longestLine)
			shortened++
		}

		entry := numbered(next, next == r.First, text)

		// Write at least one line, so that the next call starts later.
		if body.Len() > 0 && header+body.Len()+len(entry) > a.room() {
			break
		}
		body.WriteString(entry)
		next++
	}

	// Models read from the first line how much there is.
	fmt.Fprintf(&out, ", lines %d-%d of %d", r.First, next-1, r.Total)
	out.WriteByte('\n')
	out.WriteString(instead(a, r))
	out.WriteString(body.String())
	if shortened > 0 {
		fmt.Fprintf(&out, "%s cut after %d bytes (…); grep with include shows the part around a match.\n", count(shortened, "line"), longestLine)
	}

	// State the end, or a model asks for more to be sure.
	if next <= r.Total {
		return out.String() + "More: " + a.with("offset", next)
	}
	e.file = true
	return out.String() + e.String()
}
