package git

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func hashes(commits []Commit) (list []string) {
	for _, c := range commits {
		list = append(list, c.Subject)
	}
	return list
}

func TestTrace_findsChangesOfATextOrOfLines(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	ctx := within(t)
	head := r.git("rev-parse", "main")
	for _, tt := range []struct {
		name  string
		q     TraceQuery
		want  []string
		paths []string // of the first commit
	}{
		{"text", TraceQuery{Text: "TWO"}, []string{"Rename", "Fix the arr[0] crash"}, []string{"src/a.go", "src/b.go"}},
		{"text in a path", TraceQuery{Text: "TWO", Path: "src/b.go"}, []string{"Rename"}, []string{"src/b.go"}},
		{"no such text", TraceQuery{Text: "nothing"}, nil, nil},
		{"expression", TraceQuery{Expr: `^(?:two|TW\w)$`, Path: "src/a.go"}, []string{"Rename", "Fix the arr[0] crash", "Begin"}, []string{"src/a.go"}},
		{"any case", TraceQuery{Expr: `(?i)^READ`}, []string{"Begin"}, []string{"README"}},
		{"one page", TraceQuery{Text: "TWO", Limit: 1, Skip: 1}, []string{"Fix the arr[0] crash"}, []string{"src/a.go"}},
		{"lines through a rename", TraceQuery{Lines: [2]int{2, 2}, Path: "src/b.go"}, []string{"Fix the arr[0] crash", "Begin"}, []string{"src/a.go"}},
	} {
		tt.q.Commit = head
		p, err := m.Trace(ctx, tt.q)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := hashes(p.Commits); !slices.Equal(got, tt.want) || p.AtLeast {
			t.Errorf("%s: %q, more %t, want %q", tt.name, got, p.AtLeast, tt.want)
		} else if len(got) > 0 && !slices.Equal(p.Paths[p.Commits[0].Hash], tt.paths) {
			t.Errorf("%s: paths %q, want %q", tt.name, p.Paths[p.Commits[0].Hash], tt.paths)
		}
	}
	for _, bad := range []TraceQuery{{Expr: "a(b"}, {Expr: `a\nb`}, {Text: "a\x00"}, {Text: "a", Path: "../x"}} {
		bad.Commit = head
		if _, err := m.Trace(ctx, bad); err == nil {
			t.Errorf("%+v was not refused", bad)
		}
	}
}

func TestTrace_listsAddedAndRemovedLines(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "Begin", "a", "one\n--- two\nthree\n")
	h.commit("refs/heads/main", 2, "Ann", "Move", "a", "three\none\ntwo\ntwo\ntwo\ntwo\ntwo\n")
	h.commit("refs/heads/main", 3, "Ann", "End", "a", "three\none\n++ two")
	r.load(h)
	m := fetched(t, r.url())
	head := r.git("rev-parse", "main")

	end := ChangedLines{Added: 1, Removed: 5, Lines: []string{"-two", "-two", "-two", "-two"}}
	move := ChangedLines{Added: 5, Removed: 1, Lines: []string{"---- two", "+two", "+two", "+two"}}
	begin := ChangedLines{Added: 1, Lines: []string{"+--- two"}}
	for _, tt := range []struct {
		name string
		q    TraceQuery
		want []ChangedLines
	}{
		{"a text", TraceQuery{Text: "two"}, []ChangedLines{end, move, begin}},
		{"a text in a file", TraceQuery{Text: "two", Path: "a", Limit: 1}, []ChangedLines{end}},
		{"an expression", TraceQuery{Expr: `\btwo$`}, []ChangedLines{end, move, begin}},
		{"in any case", TraceQuery{Expr: `(?i)^--- TWO`}, []ChangedLines{{Removed: 1, Lines: []string{"---- two"}}, begin}},
		{"a text of two lines", TraceQuery{Text: "two\nthree"}, []ChangedLines{{}, {}}},
	} {
		tt.q.Commit = head
		p, err := m.Trace(within(t), tt.q)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		var got []ChangedLines
		for _, c := range p.Commits {
			got = append(got, p.Changed[c.Hash])
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestTrace_reportsTheCommitAtWhichTimeEnded(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	head := r.git("rev-parse", "main")
	p, err := m.Trace(within(t), TraceQuery{Commit: head, Text: "TWO", Time: time.Nanosecond})
	if err != nil || !p.AtLeast || len(p.Commits) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	one, err := m.Trace(within(t), TraceQuery{Commit: head, Path: "src/b.go", Lines: [2]int{2, 2}, Limit: 1})
	if err != nil || !one.AtLeast || one.From != "src/a.go" || one.FromLines != [2]int{2, 2} {
		t.Errorf("%+v, %v", one, err)
	}
}

func TestLog_findsWordsInAnyOrder(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "Add automatic PRAGMA optimize\n\nrun once a day", "a", "1\n")
	h.commit("refs/heads/main", 2, "Ann", "Optimize a thing", "a", "2\n")
	r.load(h)
	r.git("branch", "side", "main~1")
	m := fetched(t, r.url())
	head := r.git("rev-parse", "main")
	for _, tt := range []struct {
		words []string
		want  []string
	}{
		{[]string{"optimize", "automatic"}, []string{"Add automatic PRAGMA optimize"}},
		{[]string{"OPTIMIZE"}, []string{"Optimize a thing", "Add automatic PRAGMA optimize"}},
		{[]string{"day", "pragma optimize"}, []string{"Add automatic PRAGMA optimize"}},
		{[]string{"day", "thing"}, nil},
	} {
		q := LogQuery{Commit: head, Words: tt.words}
		p, err := m.Log(within(t), q)
		if err != nil || !slices.Equal(hashes(p.Commits), tt.want) {
			t.Errorf("%q: %q, %v", tt.words, hashes(p.Commits), err)
		}
		filter, err := q.arguments()
		if err != nil {
			t.Fatal(err)
		}
		asked, err := m.askLog(within(t), LogQuery{Limit: 50}, filter)
		if err != nil || !slices.Equal(hashes(asked.Commits), tt.want) {
			t.Errorf("git itself: %q: %q, %v", tt.words, hashes(asked.Commits), err)
		}
	}
}

func TestLog_omitsMergesOnRequest(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "Begin", "a", "1\n")
	h.commit("refs/heads/main", 2, "Ann", "Go on", "a", "2\n")
	r.load(h)
	tree := r.git("rev-parse", "main^{tree}")
	merge := r.git("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit-tree", "-p", "main", "-p", "main~1", "-m", "Merge", tree)
	r.git("update-ref", "refs/heads/main", merge)
	m := fetched(t, r.url())
	for no, want := range map[bool][]string{false: {"Merge", "Go on", "Begin"}, true: {"Go on", "Begin"}} {
		q := LogQuery{Commit: merge, NoMerges: no}
		p, err := m.Log(within(t), q)
		if err != nil || !slices.Equal(hashes(p.Commits), want) || p.Total != len(want) {
			t.Errorf("no merges %t: %q of %d, %v", no, hashes(p.Commits), p.Total, err)
		}
	}
}

func TestBlame_returnsOnlyTheRequestedLines(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	head := r.git("rev-parse", "main")
	some := func(first, last int, within time.Duration) BlameQuery {
		return BlameQuery{Commit: head, Path: "src/b.go", First: first, Last: last, Within: within}
	}
	whole, err := m.Blame(within(t), BlameQuery{Commit: head, Path: "src/b.go"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Blame(within(t), some(1, 6, time.Minute))
	if err != nil || b.Late || !slices.Equal(b.Ranges, whole.Ranges) || len(b.Commits) != len(whole.Commits) {
		t.Errorf("%+v %v, want %+v", b, err, whole)
	}
	b, err = m.Blame(within(t), some(2, 2, time.Minute))
	if err != nil || len(b.Ranges) != 1 || b.Ranges[0].First != 2 || b.Commits[b.Ranges[0].Commit].Summary != "Fix the arr[0] crash" {
		t.Errorf("%+v %v", b, err)
	}
	if b, err = m.Blame(within(t), some(1, 6, time.Nanosecond)); err != nil || !b.Late {
		t.Errorf("late %t, %v", b.Late, err)
	}
}

func TestDiff_countsLinesWithoutHunksOnRequest(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	base, head := r.git("rev-parse", "main~3"), r.git("rev-parse", "main")
	whole, err := m.Diff(within(t), base, head, DiffOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stat, err := m.Diff(within(t), base, head, DiffOptions{Stat: true})
	if err != nil || len(stat.Files) != len(whole.Files) {
		t.Fatalf("%+v, %v", stat, err)
	}
	for i, f := range stat.Files {
		w := whole.Files[i]
		if f.OldPath != w.OldPath || f.NewPath != w.NewPath || f.Status != w.Status || f.Added != w.Added || f.Removed != w.Removed || f.Binary != w.Binary || f.Hunks != nil {
			t.Errorf("%+v, want %+v", f, w)
		}
	}
}
