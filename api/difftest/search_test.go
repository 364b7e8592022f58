package difftest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// part is a node of a query: "and", "or" and "not" have subs, the others a value.
type part struct {
	op    string
	subs  []part
	value string
}

// searchCall is a call of POST /api/search.
type searchCall struct {
	q          part
	regexp     bool
	exact      bool // the toggle
	directives []string
	context    int
	limit      int // matches; 0 for all
}

const allMatches = 1_000_000

func (c searchCall) body() map[string]any {
	text := strings.Join(append([]string{c.write(c.q, true)}, c.directives...), " ")
	body := map[string]any{"query": text, "matches": allMatches}
	if c.limit > 0 {
		body["matches"] = c.limit
	}
	if c.regexp {
		body["isRegexEnabled"] = true
	}
	if c.exact {
		body["isCaseSensitivityEnabled"] = true
	}
	if c.context > 0 {
		body["contextLines"] = c.context
	}
	return body
}

func (c searchCall) String() string {
	text, _ := json.Marshal(c.body())
	return "POST /api/search " + string(text)
}

var startsWithLetter = regexp.MustCompile(`^[\pL_"]`)

var plainWord = regexp.MustCompile(`^[\pL\pN_]+$`)

// write returns a part as the text of a query.
func (c searchCall) write(p part, top bool) string {
	var subs []string
	for _, s := range p.subs {
		subs = append(subs, c.write(s, false))
	}
	switch p.op {
	case "and":
		if text := strings.Join(subs, " "); top {
			return text
		}
		return "(" + strings.Join(subs, " ") + " )" // with a space it is a group, whatever the toggle
	case "or":
		return "(" + strings.Join(subs, " or ") + ")"
	case "not":
		if sub := p.subs[0]; sub.op == "text" && !startsWithLetter.MatchString(subs[0]) {
			return "-" + c.quote(sub.value, c.regexp) // -1 is a text
		}
		return "-" + subs[0]
	case "text":
		if plainWord.MatchString(p.value) && !strings.EqualFold(p.value, "or") {
			return p.value
		}
		return c.quote(p.value, c.regexp)
	case "file", "repo":
		return p.op + ":" + c.quote(p.value, true)
	}
	return p.op + ":" + c.quote(p.value, false)
}

// quote returns a value in quotes. A backslash of an expression is unchanged.
func (c searchCall) quote(value string, expression bool) string {
	if !expression {
		value = strings.ReplaceAll(value, `\`, `\\`)
	}
	return `"` + strings.ReplaceAll(value, `"`, `\"`) + `"`
}

// fold reports whether letters of a pattern match in either case.
func (c searchCall) fold(pattern string) bool {
	switch {
	case slices.Contains(c.directives, "case:yes"):
		return false
	case slices.Contains(c.directives, "case:no"):
		return true
	case slices.Contains(c.directives, "case:auto"):
		return !strings.ContainsFunc(pattern, unicode.IsUpper)
	}
	return !c.exact
}

// expr returns a pattern as the scan searches for it.
func (c searchCall) expr(pattern string, isExpr bool) *regexp.Regexp {
	if !isExpr {
		pattern = regexp.QuoteMeta(pattern)
	}
	return compiled(pattern, c.fold(pattern))
}

// compiled returns an expression whose ^ and $ match at line ends.
func compiled(pattern string, fold bool) *regexp.Regexp {
	flags := "(?m)"
	if fold {
		flags = "(?mi)"
	}
	return regexp.MustCompile(flags + "(?:" + pattern + ")")
}

// holds reports whether a part holds for a file in a revision; head means the default one. Files
// indexed by name have no text, unless kept is set.
func (c searchCall) holds(p part, f *file, r ref, head, kept bool) bool {
	is := func(s part) bool { return c.holds(s, f, r, head, kept) }
	switch p.op {
	case "and":
		return !slices.ContainsFunc(p.subs, func(s part) bool { return !is(s) })
	case "or":
		return slices.ContainsFunc(p.subs, is)
	case "not":
		return !is(p.subs[0])
	case "text":
		return (f.searchable() || kept) && len(f.find(c.expr(p.value, c.regexp))) > 0
	case "file":
		return c.nameExpr(p.value).MatchString(f.path)
	case "repo":
		return c.expr(p.value, true).MatchString(f.repo.name)
	case "lang":
		return extensions[p.value] == path.Ext(f.path) && f.searchable()
	case "rev":
		// Revisions of one commit are the same.
		return slices.ContainsFunc(f.repo.refs, func(x ref) bool { return x.commit == r.commit && revisionIs(p.value, x, head) })
	}
	panic(p.op)
}

// nameExpr returns an expression for names, which are one line each.
func (c searchCall) nameExpr(pattern string) *regexp.Regexp {
	return regexp.MustCompile(strings.Replace(c.expr(pattern, true).String(), "(?m", "(?s", 1))
}

// extensions are the extensions of languages that are always detected.
var extensions = map[string]string{"Go": ".go", "Python": ".py", "Ruby": ".rb", "Rust": ".rs", "Zig": ".zig"}

// revisionIs reports whether the value of rev: names a revision.
func revisionIs(value string, r ref, head bool) bool {
	short := strings.TrimPrefix(strings.TrimPrefix(r.name, "refs/heads/"), "refs/tags/")
	switch {
	case value == "HEAD":
		return head
	case value == "*", value == r.name, value == short:
		return true
	case strings.HasSuffix(value, "/*"):
		return strings.HasPrefix(short, value[:len(value)-1]) && !strings.Contains(short[len(value)-1:], "/")
	}
	return len(value) >= 7 && strings.HasPrefix(r.commit, value)
}

// spans returns the matches of a file: of each text part that holds, the earliest and longest,
// none within another.
func (c searchCall) spans(p part, f *file, r ref, head bool) (out []span) {
	switch p.op {
	case "and", "or":
		for _, s := range p.subs {
			if c.holds(s, f, r, head, false) {
				out = append(out, c.spans(s, f, r, head)...)
			}
		}
	case "text":
		out = f.find(c.expr(p.value, c.regexp))
	}
	return out
}

func disjoint(all []span) (out []span) {
	slices.SortFunc(all, func(a, b span) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	for _, s := range all {
		if n := len(out); n == 0 || s.from >= out[n-1].to {
			out = append(out, s)
		}
	}
	return out
}

// withHead adds the default revision to each branch of an or that names no revision.
func withHead(p part) part {
	if p.op == "or" {
		out := part{op: "or"}
		for _, s := range p.subs {
			out.subs = append(out.subs, withHead(s))
		}
		return out
	}
	if p.op == "and" && slices.ContainsFunc(p.subs, func(s part) bool { return s.op == "or" && namesRevision(s) }) || namesRevision(p) {
		return p
	}
	return part{op: "and", subs: []part{p, {op: "rev", value: "HEAD"}}}
}

// namesRevision reports whether a part names a revision.
func namesRevision(p part) bool { return p.op == "rev" || slices.ContainsFunc(p.subs, namesRevision) }

// found is a file of an answer.
type found struct {
	file  *file
	refs  []string
	spans []span
}

// scan returns the twin's answer by repository, shown path and revisions. kept has the large
// files that the query would match if it read them.
func (c searchCall) scan(w *twin) (all map[string]*found, kept []*file) {
	q := withHead(c.q)
	byFile := map[*file]*found{}
	for _, a := range w.repos {
		for _, r := range a.refs {
			head := a.refs[0].commit == r.commit
			for _, f := range r.files {
				if !c.holds(q, f, r, head, false) {
					if f.large && !f.binary && !slices.Contains(kept, f) && c.holds(q, f, r, head, true) {
						kept = append(kept, f)
					}
					continue
				}
				if byFile[f] == nil {
					byFile[f] = &found{file: f}
				}
				byFile[f].refs = append(byFile[f].refs, r.name)
				byFile[f].spans = append(byFile[f].spans, c.spans(q, f, r, head)...)
			}
		}
	}

	all = map[string]*found{}
	for f, x := range byFile {
		x.spans = disjoint(x.spans)
		slices.Sort(x.refs)
		all[f.repo.name+"\x00"+shown(f.path)+"\x00"+strings.Join(x.refs, " ")] = x
	}
	return all, kept
}

// position, place and searchAnswer decode the node's answer.
type position struct{ ByteOffset, LineNumber, Column int }

type place struct{ Start, End position }

type gap struct {
	Kind  string
	Count int
}

type searchAnswer struct {
	Stats struct {
		ActualMatchCount, TotalMatchCount, FileCount, FilesNotSearched int
		UnknownRevision                                                string
	}
	Files []struct {
		FileName   struct{ Text string }
		Repository string
		Language   string
		WebURL     string
		Branches   []string
		Chunks     []struct {
			Content      string
			ContentStart position
			MatchRanges  []place
		}
	}
	RepositoryInfo     []struct{ Name string }
	IsSearchExhaustive bool
	NotSearched        []gap
	Next               string
}

func (c searchCall) judge(w *twin, s *server) verdict {
	status, body, err := s.ask("/api/search", c.body())
	if err != nil || status != 200 {
		return wrong("status %d, %v: %.200s", status, err, body)
	}
	var got searchAnswer
	if err := json.Unmarshal(body, &got); err != nil {
		return wrong("%v: %.200s", err, body)
	}
	want, kept := c.scan(w)
	v := verdict{claimed: got.IsSearchExhaustive}

	// An incomplete answer names what is missing.
	if !got.IsSearchExhaustive && len(got.NotSearched) == 0 {
		return v.wrong("it is not exhaustive, and names nothing")
	}
	if len(kept) > 0 && len(want) == 0 && got.Stats.FilesNotSearched == 0 {
		return v.about(kept[0]).wrong("%v is kept by name only and has a match; nothing says so", kept[0])
	}
	if slices.Contains(c.directives, "type:repo") {
		return c.judgeRepos(v, got, want)
	}

	seen := map[string]bool{}
	for _, f := range got.Files {
		f.Branches = slices.DeleteFunc(f.Branches, func(name string) bool { return name == "HEAD" }) // it is listed next to the branch
		slices.Sort(f.Branches)
		key := f.Repository + "\x00" + f.FileName.Text + "\x00" + strings.Join(f.Branches, " ")
		x := want[key]
		if x == nil {
			return v.named(w, f.Repository, f.FileName.Text).wrong("%q is no answer of the scan", key)
		}
		seen[key] = true
		var ranges []place
		for _, chunk := range f.Chunks {
			ranges = append(ranges, chunk.MatchRanges...)
			if text := shown(x.file.text[min(len(x.file.text), max(0, chunk.ContentStart.ByteOffset-x.file.mark)):]); !strings.HasPrefix(text, chunk.Content) {
				return v.about(x.file).wrong("%q: the chunk at %d is no text of the file: %.100q, there is %.100q", key, chunk.ContentStart.ByteOffset, chunk.Content, text)
			}
		}
		if slices.Contains(c.directives, "type:file") {
			continue
		}
		if text := sameRanges(x, ranges, got.IsSearchExhaustive); text != "" {
			return v.about(x.file).wrong("%q: %s", key, text)
		}
	}
	for key, x := range want {
		if !seen[key] && got.IsSearchExhaustive {
			return v.about(x.file).wrong("it lacks %q", key)
		}
	}
	if got.IsSearchExhaustive && got.Stats.FileCount != len(want) {
		return v.wrong("fileCount %d, the scan has %d", got.Stats.FileCount, len(want))
	}
	return v
}

// judgeRepos checks an answer with repositories.
func (c searchCall) judgeRepos(v verdict, got searchAnswer, want map[string]*found) verdict {
	repos, seen := map[string]bool{}, map[string]bool{}
	for _, x := range want {
		repos[x.file.repo.name] = true
	}
	for _, r := range got.RepositoryInfo {
		seen[r.Name] = true
		if !repos[r.Name] {
			return v.wrong("%s is no answer of the scan", r.Name)
		}
	}
	for _, x := range want {
		if !seen[x.file.repo.name] {
			v = v.about(x.file)
		}
	}
	if got.IsSearchExhaustive && len(seen) != len(repos) {
		return v.wrong("%d repositories, the scan has %d", len(seen), len(repos))
	}
	return v
}

// sameRanges returns how the places of an answer differ from those of the scan; with all, it must
// have all of them.
func sameRanges(x *found, ranges []place, all bool) string {
	f := x.file
	want := map[place]bool{}
	for _, s := range x.spans {
		at := func(i int) position {
			return position{i + f.mark, f.line(i), f.column(i)}
		}
		want[place{at(s.from), at(s.to)}] = true
	}
	for _, r := range ranges {
		if !want[r] {
			return fmt.Sprintf("a match at %v, the scan has %v", r, x.spans)
		}
		delete(want, r)
	}
	if all && len(want) > 0 {
		return fmt.Sprintf("it lacks matches at %v", want)
	}
	return ""
}

// smaller returns the calls with one part less.
func (c searchCall) smaller() (out []call) {
	for _, q := range c.q.smaller() {
		d := c
		d.q = q
		out = append(out, d)
	}
	for i := range c.directives {
		d := c
		d.directives = slices.Delete(slices.Clone(c.directives), i, i+1)
		out = append(out, d)
	}
	d := c
	if d.context = 0; c.context > 0 {
		out = append(out, d)
	}
	return out
}

func (p part) smaller() (out []part) {
	for i, s := range p.subs {
		if p.op != "not" && len(p.subs) > 1 {
			out = append(out, part{op: p.op, subs: slices.Delete(slices.Clone(p.subs), i, i+1)})
		}
		for _, less := range s.smaller() {
			subs := slices.Clone(p.subs)
			subs[i] = less
			out = append(out, part{op: p.op, subs: subs})
		}
	}
	return out
}

// drawSearch returns a random search.
func drawSearch(r *rand.Rand, w *twin) call {
	c := searchCall{regexp: r.IntN(2) == 0, exact: r.IntN(3) == 0, context: r.IntN(6) / 3 * r.IntN(3)}
	q := part{op: "and", subs: []part{c.drawText(r, w)}}
	for range r.IntN(3) {
		q.subs = append(q.subs, c.drawPart(r, w, 1))
	}
	for _, d := range []string{"count:all", "type:file", "type:repo", "case:yes", "case:no"} {
		if r.IntN(8) == 0 {
			c.directives = append(c.directives, d)
		}
	}
	if slices.Contains(c.directives, "case:yes") {
		c.directives = slices.DeleteFunc(c.directives, func(d string) bool { return d == "case:no" })
	}
	if slices.Contains(c.directives, "type:file") {
		c.directives = slices.DeleteFunc(c.directives, func(d string) bool { return d == "type:repo" })
	}
	if r.IntN(3) == 0 {
		q.subs = append(q.subs, part{op: "rev", value: drawRev(r, w)})
	}
	c.q = q
	return c
}

func (c searchCall) drawPart(r *rand.Rand, w *twin, depth int) part {
	switch n := r.IntN(12); {
	case n < 2:
		return c.drawText(r, w)
	case n < 4:
		return part{op: "file", value: drawNamePattern(r, w)}
	case n < 6:
		name := w.repos[r.IntN(len(w.repos))].name
		return part{op: "repo", value: []string{"^" + regexp.QuoteMeta(name) + "$", regexp.QuoteMeta(name), "local/", "e", "(?:o|x)"}[r.IntN(5)]}
	case n < 7:
		return part{op: "lang", value: sorted(extensions)[r.IntN(len(extensions))]}
	case n < 9 && depth > 0:
		return part{op: "or", subs: []part{c.drawPart(r, w, 0), c.drawPart(r, w, 0)}}
	case n < 11 && depth > 0:
		return part{op: "not", subs: []part{c.drawPart(r, w, 0)}}
	}
	return part{op: "file", value: drawNamePattern(r, w)}
}

var wordList = []string{"needle", "alpha", "beta", "gamma", "Café", "größe", "naïve", "検索", "する", "C++", "#include", "nothing", "NEEDLE", "Alpha", "only", "wide", "func", "file", "x", "e", "Store", "ſ", "K", "straße", "zzz", "line", "(", ")", "{", "->next", "a.go"}

// drawText returns a text that some file often has.
func (c searchCall) drawText(r *rand.Rand, w *twin) part {
	return part{op: "text", value: drawPattern(r, w, c.regexp)}
}

func drawPattern(r *rand.Rand, w *twin, expression bool) string {
	if !expression {
		return drawLiteral(r, w)
	}
	word := func() string { return regexp.QuoteMeta(drawWord(r, w)) }
	shape := []string{"%s", "^%s", "%s$", `\b%s\b`, "%s.*%s", "(%s|%s)", "[a-z]+ %s", `^\s*%s`, `%s\n%s`, `%s\s+%s`, "[^;]*%s", `%s[^}]*}`, `(?i)%s`, `^%s$`, `[0-9]+`, `%s\n`, `\n%s`, `^.*%s.*$`, `\w+\(`, `(?s)%s.*%s`}[r.IntN(20)]
	for strings.Contains(shape, "%s") {
		shape = strings.Replace(shape, "%s", word(), 1)
	}
	return shape
}

// drawWord returns a text without a space.
func drawWord(r *rand.Rand, w *twin) string {
	if words := strings.Fields(drawLiteral(r, w)); len(words) > 0 && r.IntN(2) == 0 {
		return words[r.IntN(len(words))]
	}
	return wordList[r.IntN(len(wordList))]
}

// drawLiteral returns a word, or a piece of a file.
func drawLiteral(r *rand.Rand, w *twin) string {
	f := drawFile(r, w)
	text := f.plain
	if r.IntN(3) == 0 || len(text) < 2 {
		return wordList[r.IntN(len(wordList))]
	}
	from := r.IntN(len(text) - 1)
	if r.IntN(3) == 0 {
		from = strings.LastIndexByte(text[:from], '\n') + 1
	}
	piece := text[from:min(len(text), from+1+r.IntN(24))]
	for piece != "" && !utf8.ValidString(piece) {
		piece = piece[1:]
	}
	if piece = strings.TrimLeft(piece, "\ufffd"); piece == "" || strings.ContainsAny(piece, "\r\ufffd") || strings.TrimSpace(piece) == "" {
		return wordList[r.IntN(len(wordList))]
	}
	return piece
}

func drawFile(r *rand.Rand, w *twin) *file {
	for {
		a := w.repos[r.IntN(len(w.repos))]
		if files := a.refs[r.IntN(len(a.refs))].files; len(files) > 0 && (a.name != "local/bulk" || r.IntN(5) == 0) {
			return files[r.IntN(len(files))]
		}
	}
}

func drawRev(r *rand.Rand, w *twin) string {
	a := w.repos[r.IntN(len(w.repos))]
	if r.IntN(2) == 0 {
		a = w.named("local/refs")
	}
	x := a.refs[r.IntN(len(a.refs))]
	short := strings.TrimPrefix(strings.TrimPrefix(x.name, "refs/heads/"), "refs/tags/")
	return []string{"*", "HEAD", "main", x.name, short, short, x.commit[:9], "feature/*", "nothing-like-it"}[r.IntN(9)]
}

// drawNamePattern returns an expression for file names.
func drawNamePattern(r *rand.Rand, w *twin) string {
	f := drawFile(r, w)
	name := strings.ToValidUTF8(f.path, "")
	from := r.IntN(len(name))
	for !utf8.RuneStart(name[from]) {
		from--
	}
	to := from + 1 + r.IntN(8)
	for to < len(name) && !utf8.RuneStart(name[to]) {
		to++
	}
	piece := regexp.QuoteMeta(name[from:min(to, len(name))])
	ext := regexp.QuoteMeta(path.Ext(name))
	return []string{piece, piece, "^" + regexp.QuoteMeta(name) + "$", ext + "$", "^" + piece, piece + "$", ".", "^[^/]*$", piece + ".*" + ext, "needle"}[r.IntN(10)]
}

func sorted(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
