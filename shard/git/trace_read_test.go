package git

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A trace of files in any encoding finds the same commits as in a second repository with the same
// texts in UTF-8.
func TestTraceText_findsTheSameCommitsInAnyEncoding(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(4, 2))
	coded, plain := newRepo(t), newRepo(t)
	ours, twins := &stream{}, &stream{}
	texts := map[string][]string{}
	for commit := range 12 {
		var files, twin []string
		for i, e := range encodings {
			name := fmt.Sprintf("d%d/%s.sql", i, e.name)
			lines, line := texts[name], []string{"SELECT wide 😀", "wide, wide ਅ", "nothing", "漢字 Ċ", ""}[rnd.IntN(5)]+[]string{"", "\r"}[rnd.IntN(2)]
			at := rnd.IntN(len(lines) + 1)
			switch {
			case at < len(lines) && rnd.IntN(3) == 0:
				lines = slices.Delete(slices.Clone(lines), at, at+1)
			default:
				lines = slices.Insert(slices.Clone(lines), at, line)
			}
			texts[name] = lines
			switch text := strings.Join(lines, "\n") + "\n"; {
			case commit == 8 && i%2 == 0:
				files, twin = append(files, name, "D"), append(twin, name, "D")
				texts[name] = nil
			case commit == 10 && i == 1: // change the encoding
				files, twin = append(files, name, text), append(twin, name, text)
			default:
				files, twin = append(files, name, e.file(text)), append(twin, name, text)
			}
		}
		subject := fmt.Sprint("change ", commit)
		ours.commit("refs/heads/main", commit, "Ann", subject, files...)
		twins.commit("refs/heads/main", commit, "Ann", subject, twin...)
	}
	coded.load(ours)
	plain.load(twins)
	m, twin := fetched(t, coded.url()), fetched(t, plain.url())

	found := 0
	for _, q := range []TraceQuery{
		{Text: "wide"}, {Text: "ਅ"}, {Text: "漢字 Ċ"}, {Text: "absent"}, {Text: "wide", Path: "d2"}, {Text: "wide", Limit: 2, Skip: 1}, {Text: "nothing\nSELECT"},
		{Expr: `^SELECT\b`}, {Expr: `(?i)WIDE`}, {Expr: `.$`}, {Expr: `Ċ$`}, {Expr: `[^ -~]`}, {Expr: "absent"},
	} {
		trace := func(m *Mirror, r *repo) (told []string) {
			q.Commit = r.git("rev-parse", "main")
			p, err := m.Trace(within(t), q)
			if err != nil || p.AtLeast || len(p.Unread) > 0 {
				t.Fatalf("%+v: at least %t, unread %q, %v", q, p.AtLeast, p.Unread, err)
			}
			for _, c := range p.Commits {
				changed := p.Changed[c.Hash]
				told = append(told, fmt.Sprint(c.Subject, p.Paths[c.Hash], changed.Added, changed.Removed))
			}
			return told
		}
		got, want := trace(m, coded), trace(twin, plain)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v:\n%q\nwant\n%q", q, got, want)
		}
		found += len(want)
	}
	if found == 0 {
		t.Error("no query has found a commit")
	}
}

// The answer names a file that is too large to decode.
func TestTraceText_namesFilesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	r, h := newRepo(t), &stream{}
	h.commit("refs/heads/main", 0, "Ann", "one", "a.sql", encodings[3].file(strings.Repeat("a line of some length\n", 200_000)), "b.sql", encodings[1].file("a line"))
	r.load(h)
	m := fetched(t, r.url())
	p, err := m.Trace(within(t), TraceQuery{Commit: r.git("rev-parse", "main"), Text: "line"})
	if err != nil || !slices.Equal(p.Unread, []string{"a.sql"}) || len(p.Commits) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A trace finds a merge that adds what none of its parents has, or that lacks what all of them
// have. Git finds the same when it compares the merge with all its parents.
func TestTraceText_findsMergesThatChangeTheText(t *testing.T) {
	t.Parallel()
	r, h := newRepo(t), &stream{}
	h.commit("refs/heads/main", 1, "Ann", "Begin", "a", "one\ntwo\n", "b", "old\n", "c", "same\n")
	r.load(h)
	h = &stream{}
	h.WriteString("reset refs/heads/side\nfrom refs/heads/main^0\n\n")
	h.commit("refs/heads/side", 2, "Ann", "Side", "a", "one\nside\n")
	h.WriteString("reset refs/heads/main\nfrom refs/heads/main^0\n\n")
	h.commit("refs/heads/main", 3, "Ann", "Main", "a", "one\nmain\n")
	r.load(h)
	parents := []string{"-p", "main", "-p", "side"}
	for i, files := range [][]string{
		{"a", "one\nmain\nside\n", "b", "old\n", "c", "same\n"},
		{"a", "one\nmain\nevil\n", "b", "old\n", "c", "same\n", "d", "evil too\n"},
		{"a", "main\n", "c", "same\nmain\n"},
	} {
		tree := &stream{}
		tree.commit("refs/heads/tree", 4, "Ann", "tree", files...)
		r.git("update-ref", "-d", "refs/heads/tree")
		r.load(tree)
		merge := r.git(append(append([]string{"commit-tree"}, parents...), "-m", fmt.Sprint("Merge ", i), "tree^{tree}")...)
		r.git("update-ref", "refs/heads/main", merge)
	}
	r.git("update-ref", "-d", "refs/heads/tree")
	m := fetched(t, r.url())
	head := r.git("rev-parse", "main")
	merges := 0
	for _, text := range []string{"evil", "main", "side", "one", "old", "same", "absent"} {
		for _, path := range []string{"", "a", "d"} {
			for _, look := range []string{"-S", "-G"} {
				q := TraceQuery{Commit: head, Path: path, Text: text}
				if look == "-G" {
					q.Text, q.Expr = "", text
				}
				p, err := m.Trace(within(t), q)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				for _, id := range strings.Fields(r.git("rev-list", "main", "--", cmp.Or(path, ":/"))) {
					if r.git("diff-tree", "-r", "-c", "--root", "--no-commit-id", "--name-only", "--text", look+text, id, "--", cmp.Or(path, ":/")) != "" {
						want = append(want, id)
					}
				}
				var got []string
				for _, c := range p.Commits {
					got = append(got, c.Hash)
					if len(c.Parents) > 1 {
						merges++
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s%s in %q: %q, want %q", look, text, path, hashes(p.Commits), want)
				}
			}
		}
	}
	if merges == 0 {
		t.Error("no merge was found")
	}
}

// An expression finds the commits that changed a matching line, for any line and line end. Package
// regexp gives the expected answer.
func TestTraceText_matchesAsRE2Does(t *testing.T) {
	t.Parallel()
	lines := []string{
		"get", "GETS", "get_x", "a.b", "a]b", `a\b`, "a^b", "a-b", "a$b", "[x]", "{2}", "aa", "aaa", "b", "", " ", "\t", "é", "É", "ß", "K", "Straße", "検索", "😀", "x1", "(y)",
		"end\r", "end", "\r", "w,z", "foo(bar)", "S", "d", "r", "A", "z", "<", "'", "`", "a|b", "٣", "\x00bin", "tail\x00", "f\x0cf", "_", "x\u00a0y", "1,3", "a{,2}", strings.Repeat("ü", 70), "a\xffb", "\ufffd",
	}
	lines = append(lines, slices.Repeat([]string{"ab"}, tracedCommits)...) // more commits than a page lists lines for
	r, h := newRepo(t), &stream{}
	for i, line := range lines {
		h.commit("refs/heads/main", i, "Ann", fmt.Sprint(i), fmt.Sprintf("f%d", i), "\n"[1:]+line+"\n")
	}
	r.load(h)
	m := fetched(t, r.url())
	head := r.git("rev-parse", "main")
	for _, bad := range []string{`a\nb`, `\x00`, `a(`, `(a{100}){100}`, `[^x]{900}`} {
		if _, err := m.Trace(within(t), TraceQuery{Commit: head, Expr: bad}); !errors.Is(err, ErrBadFilter) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, expr := range []string{
		`get`, `(?i)get`, `(?i)GETS$`, `^get$`, `\bget\b`, `\Bt`, `^a.b$`, `a[\]^]b`, `a[\\-]b`, `a[^.]b`, `^[^a-z]`, `[\d]`, `[\w.]b`, `[^\s]`, `^\s*$`, `\S\s\S`, `^[[:upper:]]+$`,
		`a{2}`, `^a{2}$`, `a{2,}`, `a*?b`, `a+?$`, `(?:aa|b)$`, `^.$`, `^..$`, `^$`, `.*b`, `a.+b`, `é`, `(?i)É`, `^[é-ÿ]`, `(?i)straße`, `(?i)k`, `(?i)ss|s$`, `^[検😀]`, `[^\x00-\x7f]`,
		`end$`, `end\z`, `\Aend`, `\r`, `\x{e9}`, `\t`, `\<`, "\\'", "\\`", `\(y\)`, `[(]y`, `[[]x`, `[[]x[]]`, `^[\^]?b`, `\$b`, `\Q(bar)\E`, `a\|b`, `^[_-]$`, `\pN`, `\p{Greek}`,
		`(?s)a.b`, `(?m)^b$`, `(?U)a+b`, `(?i:G)et`, `[^\n]b`, `[\^-]b`, `[\^]b`, `[\x00-\x08]`, `()`, `(|x)1`, `a{,2}`, `1{1}`, `^[^\x00-\x{10ffff}]`, `x|[^\x00-\x{10ffff}]`, `^.?$`, `^.{2,3}$`, `^(a|[^x]){2}$`, `(a$)$`, `\pL`, `^\PL+$`, `.{1,40}b`, `\PL{3}`, `[^x]{70}`, `^.{70}$`, `\p{Nd}{2}`, `\W$`, `f\ff`, `[a-c][|\\]`, `\x{fffd}`,
	} {
		want := []string{}
		is := regexp.MustCompile(expr)
		for i, line := range slices.Backward(lines) {
			if is.MatchString(line) || is.MatchString(strings.TrimSuffix(line, "\r")) {
				want = append(want, fmt.Sprint(i))
			}
		}
		p, err := m.Trace(within(t), TraceQuery{Commit: head, Expr: expr, Limit: 100})
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got := hashes(p.Commits); !slices.Equal(got, want) && len(got)+len(want) > 0 || p.Total != len(want) {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}

// A trace follows lines that contain a NUL, whatever they look like.
func TestTraceLines_followsLinesWithNUL(t *testing.T) {
	t.Parallel()
	r, h := newRepo(t), &stream{}
	forged := "\x00" + strings.Repeat("0", 40) + "\x00\x00Eve\x00e@example.org\x001\x001\x00forged\x00\x00"
	h.commit("refs/heads/main", 1, "Ann", "Begin", "a", "one\x00\ntwo\n")
	h.commit("refs/heads/main", 2, "Ann", "Other line", "a", "one\x00\n2\n")
	h.commit("refs/heads/main", 3, "Ann", "Forge", "a", "x"+forged+"\n2\n")
	h.commit("refs/heads/main", 4, "Ann", "End", "a", forged+forged+"\n2\n")
	r.load(h)
	p, err := fetched(t, r.url()).Trace(within(t), TraceQuery{Commit: r.git("rev-parse", "main"), Path: "a", Lines: [2]int{1, 1}})
	if err != nil || !slices.Equal(hashes(p.Commits), []string{"End", "Forge", "Begin"}) || p.AtLeast {
		t.Errorf("%q, %+v, %v", hashes(p.Commits), p, err)
	}
}

// A trace follows two lines with different line ends.
func TestTraceLines_followsBothLineEnds(t *testing.T) {
	t.Parallel()
	r, h := newRepo(t), &stream{}
	h.commit("refs/heads/main", 1, "Ann", "LF", "a", "x (1)\ny.\n")
	h.commit("refs/heads/main", 2, "Ann", "CRLF", "b", "x (1)\r\ny.\r\n")
	h.commit("refs/heads/main", 3, "Ann", "other", "c", "x 1\nyy\n")
	r.load(h)
	p, err := fetched(t, r.url()).Trace(within(t), TraceQuery{Commit: r.git("rev-parse", "main"), Text: "x (1)\ny."})
	if err != nil || !slices.Equal(hashes(p.Commits), []string{"CRLF", "LF"}) {
		t.Errorf("%q, %v", hashes(p.Commits), err)
	}
}
