package git

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// tangle writes a history with merges of two and three parents, wrong clocks, branches without
// changes, and messages of every form.
func tangle(h *stream, rng *rand.Rand, from, to int) {
	words := []string{"fix", "Fix: the (thing)", "add [x]", "a.b", "Grüße", "  spaced", "50% done?", "tidy\n\nbody of fix\n\n  more", "\n\nlate\nsubject\n \nbody", "trailing  \nline \n\n\nend\n\n\n"}
	names := []string{"Ann", "Bob", "Cleo", "D (E)", "Ärger"}
	paths := []string{"a", "d/x", "d/e/y", "d/e/z", "ü/v"}
	for i := from; i < to; i++ {
		who := names[rng.IntN(len(names))]
		when := at(i + rng.IntN(40) - 20)
		if rng.IntN(20) == 0 {
			when = at(rng.IntN(to))
		}
		message := words[rng.IntN(len(words))]
		fmt.Fprintf(h, "commit refs/heads/b%d\nmark :%d\nauthor %s <%s@example.org> %d +0100\ncommitter Ci <ci@example.org> %d +0000\ndata %d\n%s\n",
			i, i+1, who, strings.ToLower(strings.Fields(who)[0]), when-5, when, len(message), message)
		if i > 0 {
			parents := map[int]bool{max(1, i-rng.IntN(4)): true}
			for rng.IntN(3) == 0 && len(parents) < 4 {
				parents[1+rng.IntN(i)] = true
			}
			verb := "from"
			for p := i; p > 0; p-- {
				if parents[p] {
					fmt.Fprintf(h, "%s :%d\n", verb, p)
					verb = "merge"
				}
			}
		}
		for range rng.IntN(3) {
			path, content := paths[rng.IntN(len(paths))], fmt.Sprint(rng.IntN(3))
			if rng.IntN(8) == 0 {
				content = "D"
			}
			h.file(path, content)
		}
		h.WriteByte('\n')
	}
	fmt.Fprintf(h, "reset refs/heads/main\nfrom :%d\n\n", to)
}

// asGit compares a page with git's.
func asGit(t *testing.T, ctx context.Context, m *Mirror, q LogQuery) {
	t.Helper()
	filter, err := q.arguments()
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.askLog(ctx, q, filter)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.read(ctx, q)
	if err != nil {
		t.Errorf("%+v: %v", q, err)
		return
	}
	for i := range max(len(got.Commits), len(want.Commits)) {
		var g, w string
		if i < len(got.Commits) {
			g = fmt.Sprintf("%+v", got.Commits[i])
		}
		if i < len(want.Commits) {
			w = fmt.Sprintf("%+v", want.Commits[i])
		}
		if g != w {
			t.Errorf("%+v: commit %d is\n%s\ngit has\n%s", q, i, g, w)
			return
		}
	}
	n, err := m.countByGraph(ctx, q)
	if all, _ := m.countByGit(ctx, q, filter); err != nil || n != all {
		t.Errorf("%+v: %d commits, %v, git counts %d", q, n, err, all)
	}
}

func TestLog_agreesWithGit(t *testing.T) {
	t.Parallel()
	const commits = 150
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var extra []string
		if seed == 2 {
			extra = []string{"--object-format=sha256"}
		}
		r := newRepo(t, extra...)
		h := &stream{}
		tangle(h, rng, 0, commits)
		r.load(h)
		m := fetched(t, r.url())
		ctx := within(t)
		head := r.git("rev-parse", "main")
		check := func() {
			t.Helper()
			for _, q := range []LogQuery{
				{}, {Skip: 7, Limit: 5}, {Skip: 1000}, {Path: "a"}, {Path: "d"}, {Path: "d/e/y"}, {Path: "d/x/nothing"}, {Path: "ü/v"}, {Path: "none"}, {Path: "d/e", Skip: 3, Limit: 4},
				{NoMerges: true}, {NoMerges: true, Path: "d", Skip: 2, Limit: 4},
				{Since: time.Unix(at(40), 0)}, {Until: time.Unix(at(60), 0)}, {Since: time.Unix(at(20), 0), Until: time.Unix(at(100), 0), Path: "d"},
			} {
				q.Commit = head
				if q.Limit == 0 {
					q.Limit = 1000
				}
				asGit(t, ctx, m, q)
			}
		}
		check() // without a commit graph
		if err := m.Groom(ctx); err != nil {
			t.Fatal(err)
		}
		check()
		more := &stream{}
		fmt.Fprintf(more, "reset refs/heads/tmp\nfrom %s\n\n", head)
		more.commit("refs/heads/tmp", 900, "Ann", "newer than the graph", "a", "new")
		more.commit("refs/heads/tmp", 901, "Bob", "fix once more", "d/e/y", "new")
		r.load(more)
		if _, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err != nil {
			t.Fatal(err)
		}
		head = r.git("rev-parse", "tmp")
		check() // the graph lacks the newest commits
		if err := m.Groom(ctx); err != nil {
			t.Fatal(err)
		}
		check() // the graph has two files
	}
}

// TestLog_agreesWithGitInALargeRepository compares with git over a real history. SHOAL_HISTORY is a
// bare repository with a commit graph.
func TestLog_agreesWithGitInALargeRepository(t *testing.T) {
	dir := os.Getenv("SHOAL_HISTORY")
	if dir == "" {
		t.Skip("SHOAL_HISTORY is not set")
	}
	m := Open(dir)
	defer m.Close()
	ctx := t.Context()
	head, err := m.Resolve(ctx, "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []LogQuery{
		{Limit: 100_000}, {Path: "builtin/add.c", Limit: 1000}, {Path: "t", Limit: 3000}, {Path: "Documentation/git.txt", Limit: 1000}, {NoMerges: true}, {Path: "refs", Limit: 500},
	} {
		q.Commit, q.Limit = head, max(q.Limit, 50)
		began := time.Now()
		if _, err := m.read(ctx, q); err != nil {
			t.Error(err)
		}
		took := time.Since(began)
		asGit(t, ctx, m, q)
		t.Logf("%+v: %v", q, took)
	}
}
