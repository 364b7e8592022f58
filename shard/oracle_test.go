package shard

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/query"
)

// world is a few repositories in memory. A scan of it gives the answers that the index must give.
type world struct {
	repos []Repository
	trees []map[string][]string // by repository and path: the content in each revision; "" means an empty file
}

// absent marks a path that a revision does not have.
const absent = "\x00absent"

// memorySource is a Source with blobs in memory.
type memorySource struct {
	repos    []Repository
	blobs    []Blob
	contents [][]byte
	read     int
}

func (m *memorySource) Repositories() []Repository { return m.repos }
func (m *memorySource) Blobs() []Blob              { return m.blobs }

func (m *memorySource) Read(ctx context.Context, want []int, use func(int, []byte) error) error {
	for _, i := range want {
		m.read++
		if err := use(i, m.contents[i]); err != nil {
			return err
		}
	}
	return nil
}

func blobID(content string) string {
	sum := sha1.Sum([]byte(content))
	return hex.EncodeToString(sum[:])
}

// source returns the world, or only one repository of it, as a Source.
func (w *world) source(only int) *memorySource {
	src := &memorySource{}
	index := map[string]int{}
	for r, repo := range w.repos {
		if only >= 0 && r != only {
			continue
		}
		src.repos = append(src.repos, repo)
		paths := make([]string, 0, len(w.trees[r]))
		for p := range w.trees[r] {
			paths = append(paths, p)
		}
		sort.Strings(paths)
		for _, p := range paths {
			masks := map[string]uint64{}
			for v, content := range w.trees[r][p] {
				if content != absent {
					masks[content] |= 1 << v
				}
			}
			contents := make([]string, 0, len(masks))
			for c := range masks {
				contents = append(contents, c)
			}
			sort.Strings(contents)
			for _, c := range contents {
				i, ok := index[c]
				if !ok {
					i = len(src.blobs)
					index[c] = i
					src.blobs = append(src.blobs, Blob{OID: blobID(c), Size: int64(len(c))})
					src.contents = append(src.contents, []byte(c))
				}
				src.blobs[i].Occurrences = append(src.blobs[i].Occurrences,
					Occurrence{Repo: len(src.repos) - 1, Path: p, Mask: masks[c]})
			}
		}
	}
	return src
}

var words = []string{"alpha", "beta", "Gamma", "delta_one", "lock", "unlock", "spin_lock", "return", "struct", "if", "x",
	"fooBar", "FOO", "42", "1234", "naïve", "straße", "K", "ſ", "kelvin", "->next", "()", "{", "}", "MAX_SIZE", "io", "ab", "a"}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	size := [...]int{0, 10, 300, 4096, 5000, 9000, 20000}[r.IntN(7)]
	size += r.IntN(60) - 30
	for b.Len() < size {
		switch n := r.IntN(40); {
		case n < 24:
			b.WriteString(words[r.IntN(len(words))])
		case n < 32:
			b.WriteByte(' ')
		case n < 36:
			b.WriteByte('\n')
		case n == 36:
			b.WriteString("\n\n")
		case n == 37:
			b.WriteString(strings.Repeat("z", r.IntN(200)))
		case n == 38:
			b.WriteByte(byte(0x80 + r.IntN(128)))
		default:
			b.WriteByte(byte(32 + r.IntN(90)))
		}
		if r.IntN(600) == 0 {
			b.WriteString(strings.Repeat("long line ", 900))
		}
	}
	return b.String()
}

func randomWorld(r *rand.Rand) *world {
	w := &world{}
	exts := []string{".go", ".c", ".h", ".py", ".md", "", ".txt"}
	dirs := []string{"", "src/", "src/lib/", "vendor/x/", "test/", "docs/"}
	shared := []string{"", randomText(r), "same everywhere\nlock\n"}
	for i := range 1 + r.IntN(3) {
		revs := 1 + r.IntN(4)
		repo := Repository{ID: uint32(10 + 7*i), Name: fmt.Sprintf("host/repo%d", i)}
		for v := range revs {
			name := [...]string{"HEAD", "refs/heads/feature/a", "refs/tags/v1.0", "refs/heads/old"}[v]
			repo.Revisions = append(repo.Revisions, Revision{Name: name, Commit: blobID(fmt.Sprint(i, v)), Bit: uint8(v)})
			if v == 0 {
				repo.Revisions = append(repo.Revisions, Revision{Name: "refs/heads/main", Commit: blobID(fmt.Sprint(i, v)), Bit: 0})
			}
		}
		tree := map[string][]string{}
		for range r.IntN(12) {
			path := dirs[r.IntN(len(dirs))] + words[r.IntN(9)] + exts[r.IntN(len(exts))]
			versions := make([]string, revs)
			text := randomText(r)
			for v := range versions {
				switch r.IntN(6) {
				case 0:
					text = randomText(r)
				case 1:
					text = shared[r.IntN(len(shared))]
				case 2:
					versions[v] = absent
					continue
				}
				versions[v] = text
			}
			tree[path] = versions
		}
		w.repos = append(w.repos, repo)
		w.trees = append(w.trees, tree)
	}
	return w
}

// encode stores some of the files in another encoding, with its byte order mark.
func (w *world) encode(r *rand.Rand) {
	for _, tree := range w.trees {
		for _, path := range slices.Sorted(maps.Keys(tree)) {
			form := r.IntN(12)
			for i, text := range tree[path] {
				if text != absent {
					tree[path][i] = encodedAs(text, form, r.IntN(8) == 0)
				}
			}
		}
	}
}

// encodedAs returns a text in UTF-8 with a mark, in UTF-16 or UTF-32, or unchanged. With damaged it
// has an extra byte.
func encodedAs(text string, form int, damaged bool) string {
	var b []byte
	switch runes := []rune(text); form {
	case 0:
		return "\xef\xbb\xbf" + text
	case 1, 2:
		order := []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian}[form-1]
		for _, u := range append([]uint16{0xfeff}, utf16.Encode(runes)...) {
			b = order.AppendUint16(b, u)
		}
	case 3, 4:
		order := []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian}[form-3]
		for _, r := range append([]rune{0xfeff}, runes...) {
			b = order.AppendUint32(b, uint32(r))
		}
	default:
		return text
	}
	if damaged {
		b = append(b, 'x')
	}
	return string(b)
}

// decoded decodes a file unit by unit. It returns the text, and the length of the mark before it if
// offsets count that.
func decoded(file string) (text string, mark int) {
	units := func(size int, one func([]byte) rune) (out []rune) {
		for b := []byte(file); len(b) > 0; b = b[min(size, len(b)):] {
			if len(b) < size {
				return append(out, utf8.RuneError)
			}
			out = append(out, one(b))
		}
		return out
	}
	pairs := func(order binary.ByteOrder) string {
		var all []uint16
		odd := ""
		for _, u := range units(2, func(b []byte) rune { return rune(order.Uint16(b)) }) {
			all = append(all, uint16(u))
		}
		if len(file)%2 == 1 {
			all, odd = all[:len(all)-1], "\ufffd"
		}
		return string(utf16.Decode(all[1:])) + odd
	}
	quads := func(order binary.ByteOrder) string {
		return string(units(4, func(b []byte) rune { return rune(order.Uint32(b)) })[1:])
	}

	switch {
	case strings.HasPrefix(file, "\xff\xfe\x00\x00"):
		return quads(binary.LittleEndian), 0
	case strings.HasPrefix(file, "\x00\x00\xfe\xff"):
		return quads(binary.BigEndian), 0
	case strings.HasPrefix(file, "\xff\xfe"):
		return pairs(binary.LittleEndian), 0
	case strings.HasPrefix(file, "\xfe\xff"):
		return pairs(binary.BigEndian), 0
	case strings.HasPrefix(file, "\xef\xbb\xbf"):
		return file[3:], 3
	}
	return file, 0
}

// randomLiteral returns a literal, which is often a piece of a text in the world.
func (w *world) randomLiteral(r *rand.Rand) string {
	t := r.IntN(len(w.trees))
	paths := slices.Sorted(maps.Keys(w.trees[t]))
	for range min(len(paths), 3) {
		versions := w.trees[t][paths[r.IntN(len(paths))]]
		text, _ := decoded(versions[r.IntN(len(versions))])
		if len(text) > 20 && text != absent && r.IntN(3) > 0 {
			at := r.IntN(len(text) - 12)
			if r.IntN(3) == 0 && len(text) > 4200 {
				at = 4090 + r.IntN(8)
			}
			return text[at:min(len(text), at+1+r.IntN(12))]
		}
	}
	return words[r.IntN(len(words))]
}

var templates = []string{`%s`, `%s.*%s`, `\b%s\b`, `^%s`, `%s$`, `(%s|%s)`, `%s[a-z]+`, `[a-z]+_%s`, `[0-9]{4}`, `%s\s+%s`, `[A-Z]{3,}`,
	`^$`, `^`, `%s\n`, `[^a]%s`, `(?i)%s`, `\w+%s`, `(a|b)*%s`, `x*`, `%s?%s`, `^\s*%s`, `%s(.|\n)%s`, `[xyz]{80,}`, `\(\)`, `z{5,9}a`}

func (w *world) randomAtom(r *rand.Rand) query.Q {
	switch n := r.IntN(20); {
	case n < 9:
		lit := w.randomLiteral(r)
		fold := r.IntN(2) == 0
		if fold && !utf8.ValidString(lit) {
			lit = "lock"
		}
		if fold && r.IntN(2) == 0 {
			lit = strings.ToUpper(lit)
		}
		words := utf8.ValidString(lit) && r.IntN(3) == 0
		return &query.Text{Pattern: lit, Fold: fold, WordBegins: words, WordEnds: words}
	case n < 13:
		expr := templates[r.IntN(len(templates))]
		for strings.Contains(expr, "%s") {
			expr = strings.Replace(expr, "%s", regexp.QuoteMeta(words[r.IntN(len(words))]), 1)
		}
		words := r.IntN(4) == 0 && expr != "^" && expr != "^$"
		return &query.Text{Pattern: expr, Regexp: true, Fold: r.IntN(3) == 0, WordBegins: words, WordEnds: words}
	case n < 15:
		exprs := []string{`\.go$`, `^src/`, `lock`, `test`, `ALPHA`, `\.(c|h)$`, `_`, `^[a-z]+$`}
		return &query.Text{Pattern: exprs[r.IntN(len(exprs))], Regexp: true, Fold: r.IntN(2) == 0, Field: query.Name}
	case n < 17:
		langs := []string{"Go", "C", "Python", "Markdown", "", "Rust", "skipped"}
		return &query.Lang{Name: langs[r.IntN(len(langs))]}
	case n < 19:
		revs := []string{"HEAD", "*", "feature/a", "main", "refs/tags/v1.0", "feat*", "v?.0", "old", "nothing", blobID("00")[:7]}
		return &query.Rev{Pattern: revs[r.IntN(len(revs))]}
	default:
		set := roaring.New()
		for _, repo := range w.repos {
			if r.IntN(2) == 0 {
				set.Add(repo.ID)
			}
		}
		return &query.Repos{Set: set}
	}
}

func (w *world) randomQuery(r *rand.Rand, depth int) query.Q {
	if depth == 0 || r.IntN(3) == 0 {
		return w.randomAtom(r)
	}
	var subs []query.Q
	for range 2 + r.IntN(2) {
		subs = append(subs, w.randomQuery(r, depth-1))
	}
	switch r.IntN(5) {
	case 0:
		return &query.Or{Subs: subs}
	case 1:
		return &query.And{Subs: []query.Q{subs[0], &query.Not{Sub: subs[1]}}}
	default:
		return &query.And{Subs: subs}
	}
}

// scanned is one file of an answer, found by the index or by a scan.
type scanned struct {
	Repo      string
	Path      string
	Revisions string
	Language  string
	OID       string
	Ranges    []Range
}

// scan answers a query by reading every file.
func (w *world) scan(q query.Q) []scanned {
	var out []scanned
	for r, repo := range w.repos {
		for path, versions := range w.trees[r] {
			masks := map[string]uint64{}
			for v, c := range versions {
				if c != absent {
					masks[c] |= 1 << v
				}
			}
			for content, mask := range masks {
				text, mark := decoded(content)
				lang := languageOf(path, []byte(text))
				if strings.IndexByte(text[:min(len(text), 8000-mark)], 0) >= 0 {
					lang = SkippedLanguage
				}
				d := scanDoc{repo, path, text, lang}
				if mask = d.holds(q, mask); mask == 0 {
					continue
				}
				f := scanned{Repo: repo.Name, Path: path, Language: lang, OID: blobID(content)}
				for _, v := range repo.Revisions {
					if mask>>v.Bit&1 != 0 {
						f.Revisions += v.Name + " "
					}
				}
				f.Ranges = positions(text, d.spans(q, mask))
				for i := range f.Ranges {
					f.Ranges[i].Start.Offset += uint32(mark)
					f.Ranges[i].End.Offset += uint32(mark)
				}
				out = append(out, f)
			}
		}
	}
	sortScanned(out)
	return out
}

func sortScanned(s []scanned) {
	sort.Slice(s, func(i, j int) bool {
		a, b := s[i], s[j]
		if a.Repo != b.Repo {
			return a.Repo < b.Repo
		}
		if a.Path != b.Path {
			return a.Path < b.Path
		}
		return a.OID < b.OID
	})
}

type scanDoc struct {
	repo          Repository
	path, content string
	lang          string
}

func (d *scanDoc) holds(q query.Q, mask uint64) uint64 {
	yes := false
	switch q := q.(type) {
	case query.Const:
		yes = bool(q)
	case *query.And:
		for _, s := range q.Subs {
			mask = d.holds(s, mask)
		}
		return mask
	case *query.Or:
		var any uint64
		for _, s := range q.Subs {
			any |= d.holds(s, mask)
		}
		return any
	case *query.Not:
		return mask &^ d.holds(q.Sub, mask)
	case *query.Lang:
		yes = d.lang == q.Name
	case *query.Rev:
		return mask & revisionBits(d.repo.Revisions, q.Pattern)
	case *query.Repos:
		yes = q.Set.Contains(d.repo.ID)
	case *query.Text:
		text := d.content
		if q.Field == query.Name {
			text = d.path
		} else if d.lang == SkippedLanguage {
			return 0
		}
		yes = len(findAll(q, text)) > 0
	}
	if yes {
		return mask
	}
	return 0
}

func (d *scanDoc) spans(q query.Q, mask uint64) [][2]int {
	var spans [][2]int
	var walk func(q query.Q, mask uint64)
	walk = func(q query.Q, mask uint64) {
		switch q := q.(type) {
		case *query.And:
			for _, s := range q.Subs {
				walk(s, mask)
			}
		case *query.Or:
			for _, s := range q.Subs {
				if m := d.holds(s, mask); m != 0 {
					walk(s, m)
				}
			}
		case *query.Text:
			if q.Field == query.Content {
				spans = append(spans, findAll(q, d.content)...)
			}
		}
	}
	walk(q, mask)
	sort.Slice(spans, func(i, j int) bool {
		return spans[i][0] < spans[j][0] || spans[i][0] == spans[j][0] && spans[i][1] > spans[j][1]
	})
	kept := spans[:0]
	for _, s := range spans {
		if n := len(kept); n > 0 && (s[0] < kept[n-1][1] || s == kept[n-1]) {
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// findWords is findAll for whole words: it tries each place at which a word may end.
func findWords(expr, text string) (spans [][2]int) {
	whole := "(" + expr + `)(?:[^\pL\pM\pN_]|\z)`
	first, later := compiled(`\A`+whole), compiled(`\A(?s:.)`+whole)
	for at := 0; at <= len(text); {
		re, before := later, 1
		if at == 0 {
			re, before = first, 0
		} else {
			var last rune
			if last, before = utf8.DecodeLastRuneInString(text[:at]); last == '_' || unicode.In(last, unicode.L, unicode.M, unicode.N) {
				re = nil
			}
		}
		_, width := utf8.DecodeRuneInString(text[at:])
		next := at + max(width, 1)
		if re != nil {
			if m := re.FindStringSubmatchIndex(text[at-before:]); m != nil && m[3] > before {
				next = at - before + m[3]
				spans = append(spans, [2]int{at, next})
			}
		}
		at = next
	}
	return spans
}

// unlike returns a text of the same length without bytes that are not UTF-8. An expression reads
// such a byte as U+FFFD, but a literal matches the byte itself.
func unlike(text string) string {
	b := []byte(text)
	for i := 0; i < len(b); {
		r, width := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && width == 1 {
			b[i] = 1
		}
		i += width
	}
	return string(b)
}

// expressions holds what compiled returned before: a check asks the same of each document.
var expressions sync.Map

// compiled is regexp.MustCompile, once for each expression.
func compiled(expr string) *regexp.Regexp {
	re, ok := expressions.Load(expr)
	if !ok {
		re, _ = expressions.LoadOrStore(expr, regexp.MustCompile(expr))
	}
	return re.(*regexp.Regexp)
}

// findAll is a naive matcher.
func findAll(q *query.Text, text string) (spans [][2]int) {
	expr := q.Pattern
	if !q.Regexp {
		if !q.Fold && !q.WordBegins {
			for from := 0; ; {
				i := strings.Index(text[from:], expr)
				if i < 0 || expr == "" {
					return spans
				}
				spans = append(spans, [2]int{from + i, from + i + len(expr)})
				from += i + len(expr)
			}
		}
		expr, text = regexp.QuoteMeta(expr), unlike(text)
	}
	flags := "(?m)"
	if q.Fold {
		flags = "(?mi)"
	}
	re := compiled(flags + "(?:" + expr + ")")
	if q.WordBegins {
		if !re.MatchString(text) {
			return nil
		}
		return findWords(re.String(), text)
	}
	if q.Regexp && (expr == "^" || expr == "^$" || expr == "$") {
		for from := 0; from < len(text); {
			end := len(text)
			if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
				end = from + i
			}
			if expr == "^" || end == from {
				spans = append(spans, [2]int{from, from})
			}
			from = end + 1
		}
		return spans
	}
	for _, m := range re.FindAllStringIndex(text, -1) {
		if m[0] < m[1] {
			spans = append(spans, [2]int{m[0], m[1]})
		}
	}
	return spans
}

// positions counts columns from the start of the line for each span, or from the span before in the
// same line if a rune begins there.
func positions(text string, spans [][2]int) []Range {
	line, start, last, column := 0, 0, 0, 0
	at := func(i int) Position {
		if n := strings.Count(text[last:i], "\n"); n > 0 {
			line += n
			start = strings.LastIndexByte(text[:i], '\n') + 1
			last, column = start, 0
		}
		here := column + utf8.RuneCountInString(text[last:i])
		if i < len(text) && utf8.RuneStart(text[i]) {
			last, column = i, here
		}
		return Position{Offset: uint32(i), Line: uint32(line + 1), Column: uint32(here + 1)}
	}
	var out []Range
	for _, s := range spans {
		a := at(s[0])
		out = append(out, Range{a, at(s[1])})
	}
	return out
}

// check runs a query on a view and compares the answer with a scan.
func (w *world) check(t *testing.T, v *View, q query.Q, contextLines int) {
	t.Helper()
	res, err := v.Search(context.Background(), Request{Q: q, MaxMatches: 1 << 30, CountAll: true, ContextLines: contextLines})
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	if res.Cut || len(res.Failed) > 0 {
		t.Fatalf("%s: cut %v, failed %v", q, res.Cut, res.Failed)
	}
	var got []scanned
	matches := 0
	for _, f := range res.Files {
		s := scanned{Repo: f.RepoName, Path: f.Path, Language: f.Language, OID: f.OID}
		for _, r := range f.Revisions {
			s.Revisions += r + " "
		}
		for _, c := range f.Chunks {
			s.Ranges = append(s.Ranges, c.Ranges...)
		}
		got = append(got, s)
		matches += len(f.NameMatch) + len(s.Ranges)
		if f.Matches != len(s.Ranges) {
			t.Fatalf("%s: %s has %d matches in its content, shows %d", q, f.Path, f.Matches, len(s.Ranges))
		}
		w.checkChunks(t, f, contextLines)
	}
	sortScanned(got)
	want := w.scan(q)
	if len(got) != len(want) {
		t.Fatalf("%s: %d files, want %d\n got %v\nwant %v", q, len(got), len(want), names(got), names(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s:\n got %+v\nwant %+v", q, got[i], want[i])
		}
	}
	if res.Stats.TotalMatches != matches || res.Stats.Files != len(want) || res.Stats.ActualMatches != matches {
		t.Fatalf("%s: stats %+v, %d matches in %d files", q, res.Stats, matches, len(want))
	}
	w.checkList(t, v, q, want)
}

// checkList checks that lists of files without places have the same files, also with a limit.
func (w *world) checkList(t *testing.T, v *View, q query.Q, want []scanned) {
	t.Helper()
	all, repos := map[string]bool{}, map[string]bool{}
	for _, s := range want {
		all[s.Repo+"\x00"+s.Path+"\x00"+s.OID], repos[s.Repo] = true, true
	}

	for _, r := range []Request{
		{MaxMatches: 1 << 30, CountAll: true, NoChunks: true},
		{MaxMatches: 1 << 30, CountAll: true, NoChunks: true, FilesOnly: true},
		{MaxMatches: 2, NoChunks: true, FilesOnly: true},
	} {
		r.Q = q
		res := answerOf(t, v, r)
		for _, f := range res.Files {
			if !all[f.RepoName+"\x00"+f.Path+"\x00"+f.OID] || len(f.Chunks) > 0 {
				t.Fatalf("%s: %s is no file of the list, or has places", q, f.Path)
			}
		}

		if n := min(r.MaxMatches, len(all)); len(res.Files) != n || r.CountAll && res.Stats.Files != n {
			t.Fatalf("%s: a list of %d files, counted %d, want %d", q, len(res.Files), res.Stats.Files, n)
		}
	}

	found := map[string]bool{}
	for _, f := range answerOf(t, v, Request{Q: q, MaxMatches: 1 << 30, CountAll: true, NoChunks: true, FilesOnly: true, OnePerRepo: true}).Files {
		found[f.RepoName] = true
	}
	if !maps.Equal(found, repos) {
		t.Fatalf("%s: repositories %v, want %v", q, found, repos)
	}
}

func names(s []scanned) (out []string) {
	for _, f := range s {
		out = append(out, f.Repo+":"+f.Path)
	}
	return out
}

// checkChunks checks that chunks are the whole lines of the file around matches.
func (w *world) checkChunks(t *testing.T, f File, contextLines int) {
	t.Helper()
	var text []byte
	mark := 0
	for r, repo := range w.repos {
		for _, c := range w.trees[r][f.Path] {
			if repo.ID == f.Repo && c != absent && blobID(c) == f.OID {
				var found string
				found, mark = decoded(c)
				text = []byte(found)
			}
		}
	}
	last := -1
	for _, c := range f.Chunks {
		c.Start.Offset -= uint32(mark)
		from := int(c.Start.Offset)
		to := from + len(c.Content)
		if from <= last && last >= 0 || to > len(text) || !bytes.Equal(text[from:to], c.Content) {
			t.Fatalf("%s: chunk [%d,%d) of %d bytes, the one before ends at %d", f.Path, from, to, len(text), last)
		}
		last = to
		lineFrom, lineTo := from-int(c.Before), to+int(c.After)
		if lineFrom > 0 && text[lineFrom-1] != '\n' || lineTo < len(text) && text[lineTo-1] != '\n' || bytes.IndexByte(text[lineFrom:from], '\n') >= 0 || c.After > 0 && bytes.IndexByte(text[to:lineTo-1], '\n') >= 0 {
			t.Fatalf("%s: chunk [%d,%d) is not whole lines but for %d and %d bytes", f.Path, from, to, c.Before, c.After)
		}
		if (c.Before > 0 || c.After > 0) && !hasLongLine(text[lineFrom:lineTo]) {
			t.Fatalf("%s: chunk [%d,%d) is cut, and no line is overlong", f.Path, from, to)
		}
		if c.Start != positions(string(text), [][2]int{{from, from}})[0].Start {
			t.Fatalf("%s: chunk starts at %v", f.Path, c.Start)
		}
		first, end := c.Ranges[0].Start.Line, c.Ranges[len(c.Ranges)-1].End.Line
		if want := max(1, int(first)-contextLines); int(c.Start.Line) != want && c.Before == 0 {
			t.Fatalf("%s: chunk starts in line %d, want %d", f.Path, c.Start.Line, want)
		}
		if lines := bytes.Count(c.Content, newline); to < len(text) && c.After == 0 && int(c.Start.Line)+lines-1 < int(end)-1+contextLines {
			t.Fatalf("%s: chunk of %d lines from %d does not reach %d lines behind %d", f.Path, lines, c.Start.Line, contextLines, end)
		}
	}
}

// hasLongLine reports whether a line of a text may be cut.
func hasLongLine(text []byte) bool {
	return slices.ContainsFunc(bytes.Split(text, newline), func(line []byte) bool { return len(line) >= longLine })
}

// built builds an index of the world and opens it.
func (w *world) built(t *testing.T, dir string, packed bool, opt BuildOptions) (*Set, []Part) {
	t.Helper()
	set, err := OpenSet(dir, SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	var parts []Part
	for r := range w.repos {
		only := r
		if packed {
			only = -1
		}
		built, err := Build(context.Background(), dir, w.source(only), opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range built {
			parts = append(parts, b.Part)
			if err := set.Add(b.Files()...); err != nil {
				t.Fatal(err)
			}
		}
		if packed {
			break
		}
	}
	return set, parts
}

// TestSearch_agreesWithAScan runs random queries on random repositories. SHOAL_ORACLE_CASES sets
// their number.
func TestSearch_agreesWithAScan(t *testing.T) {
	t.Parallel()
	cases := 300
	if s := os.Getenv("SHOAL_ORACLE_CASES"); s != "" {
		var err error
		if cases, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	const perWorld = 20
	dir := t.TempDir()
	for seed := range (cases + perWorld - 1) / perWorld {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		w := randomWorld(r)
		w.encode(r)
		opt := BuildOptions{}
		if seed%4 == 1 {
			opt.SliceBytes = 20000
		}
		home := filepath.Join(dir, strconv.Itoa(seed))
		set, parts := w.built(t, home, seed%2 == 0, opt)
		v, missing := set.Acquire(parts)
		if len(missing) > 0 {
			t.Fatalf("missing %v", missing)
		}
		t.Cleanup(v.Release)
		for i := range perWorld {
			if t.Run(fmt.Sprintf("%d-%d", seed, i), func(t *testing.T) {
				w.check(t, v, w.randomQuery(r, 2), r.IntN(3))
			}); t.Failed() {
				return
			}
		}
		v.Release()
		_ = os.RemoveAll(home) // mapped files may be deleted
	}
}
