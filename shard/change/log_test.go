package change

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// small is a mirror of a few commits, and a log of it.
func small(t *testing.T) (*world, *git.Mirror, string) {
	t.Helper()
	w := newWorld(t, 3)
	w.grow(12)
	m := git.Open(w.dir)
	t.Cleanup(func() { m.Close() })
	return w, m, t.TempDir()
}

// A log of a newer version is left as it is, one of an older version and a damaged one are
// made anew.
func TestChangeIndex_newerVersionIsKeptAndOlderRebuilt(t *testing.T) {
	t.Parallel()
	w, m, dir := small(t)
	update := func() (Extent, error) {
		l := Open(dir)
		defer l.Close()
		if err := l.Update(t.Context(), m, w.revisions(), Bound{All: true}, time.Now(), noPause); err != nil {
			return Extent{}, err
		}
		return l.Extent(t.Context())
	}
	first, err := update()
	if err != nil || first.Commits == 0 {
		t.Fatal(first, err)
	}
	name := filepath.Join(dir, manifestName)
	rewrite := func(old, with string) {
		t.Helper()
		text, err := os.ReadFile(name)
		if err == nil {
			err = errors.Join(os.Remove(name), os.WriteFile(name, []byte(strings.Replace(string(text), old, with, 1)), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	written := func(format int) string { return fmt.Sprintf(`"format":%d`, format) }
	for _, with := range []string{written(manifestFormat - 1), `"format":"`} {
		rewrite(written(manifestFormat), with)
		if again, err := update(); err != nil || again.Commits != first.Commits {
			t.Errorf("%s: %+v, %v", with, again, err)
		}
	}
	rewrite(written(manifestFormat), written(manifestFormat+1))
	if _, err := update(); !errors.Is(err, file.ErrNewer) {
		t.Errorf("of a newer version: %v", err)
	}
	if text, _ := os.ReadFile(name); !strings.Contains(string(text), written(manifestFormat+1)) {
		t.Errorf("the manifest of a newer version was changed: %s", text)
	}
}

// A bound leaves older commits out, and the log says so.
func TestChangeIndex_aBoundLeavesOutOlderCommits(t *testing.T) {
	t.Parallel()
	w, m, dir := small(t)
	for _, c := range []struct {
		bound   string
		commits int
		cut     bool
	}{{"2 commits", 2, true}, {"all", len(w.read()), false}, {"1 days", 0, true}} {
		bound, err := ParseBound(c.bound)
		if err != nil || bound.String() != c.bound {
			t.Fatal(bound, err)
		}
		l := Open(dir)
		err = l.Update(t.Context(), m, w.revisions(), bound, time.Now(), noPause)
		got, _ := l.Extent(t.Context())
		if err != nil || got.Commits > c.commits || got.Cut != c.cut || c.bound == "all" && got.Commits != c.commits {
			t.Errorf("%s: %+v, %v", c.bound, got, err)
		}
		l.Close()
	}
	for _, text := range []string{"", "0 commits", "-1 days", "5", "5 weeks", "1e9 commits"} {
		if b, err := ParseBound(text); err == nil {
			t.Errorf("%q is read as %+v", text, b)
		}
	}
}

// What matches is marked in the lines of its side, and in the message.
func TestChangeIndex_marksWhatMatches(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"type:diff alpha": "-one [alpha] [Alpha]\n+two [alpha]\n", "type:diff removed:alpha": "-one [alpha] [Alpha]\n+two alpha\n",
		"type:diff added:two -added:one": "-one alpha Alpha\n+[two] alpha\n", "type:commit alpha added:two": "say [alpha]\n\nand [ALPHA] again",
	} {
		q, err := query.Parse(text, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tree, patterns, err := prepare(LogSearch{Q: q.Q, Diff: q.Type == query.DiffType})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if q.Type == query.DiffType {
			h := hunkOf(git.PatchHunk{}, []byte("one alpha Alpha\n"), []byte("two alpha\n"), positive(tree, patterns, nil, query.Added, query.Removed, query.Content))
			got = bracketed(h.Body, h.Marks)
		} else {
			message := "say alpha\n\nand ALPHA again"
			got = bracketed(message, marksIn(nil, positive(tree, patterns, nil, query.Message), []byte(message), 0))
		}
		if got != want {
			t.Errorf("%s: %q, not %q", text, got, want)
		}
	}
}

// bracketed is a text with its marks in brackets.
func bracketed(text string, marks []Span) string {
	for _, m := range slices.Backward(marks) {
		text = text[:m.Start] + "[" + text[m.Start:m.End] + "]" + text[m.End:]
	}
	return text
}

// What a commit is told of is bounded: somebody who can push must not fill the memory of a node.
func TestLogSearch_tellsABoundedPartOfACommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 9)
	message := strings.Repeat("a long message ", 40_000)
	stream := fmt.Sprintf("commit refs/heads/main\ncommitter A <a@example.com> 1700000000 +0000\ndata %d\n%s\n", len(message), message)
	for i := range 30 {
		text := strings.Repeat(fmt.Sprintf("a long line of file %d\n", i), 1000)
		stream += fmt.Sprintf("M 100644 inline f%02d\ndata %d\n%s\n", i, len(text), text)
	}
	w.run(stream, "fast-import", "--quiet")
	m := git.Open(w.dir)
	t.Cleanup(func() { m.Close() })
	head := strings.TrimSpace(w.run("", "rev-parse", "main"))
	l := Open(t.TempDir())
	t.Cleanup(l.Close)
	if err := l.Update(t.Context(), m, []Tip{{"HEAD", head}}, Bound{All: true}, time.Now(), noPause); err != nil {
		t.Fatal(err)
	}

	for text, total := range map[string]int{"type:commit message:long": 1, "type:commit added:long": 1, "type:diff added:long": 30} {
		q, err := query.Parse(text, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		req := LogSearch{Q: q.Q, Diff: q.Type == query.DiffType, Limit: 50}
		out, err := l.Search(t.Context(), req)
		if err != nil || out.Total != total || len(out.Commits) != 1 {
			t.Fatalf("%s: %+v, %v", text, out, err)
		}
		c := out.Commits[0]
		bodies, more := 0, 0
		for _, f := range c.Files {
			more += f.MoreHunks
			for _, h := range f.Hunks {
				bodies += len(h.Body)
			}
		}
		lines := text != "type:commit message:long"
		if len(c.Message) > mostMessage || !c.MessageCut || bodies > 2*mostBodies || lines != (bodies > 0) || lines != (more > 0) || len(c.Files)+c.MoreFiles != 30 {
			t.Errorf("%s: a message of %d bytes, cut %t, %d bytes of hunks, %d more, %d files and %d more", text, len(c.Message), c.MessageCut, bodies, more, len(c.Files), c.MoreFiles)
		}
	}
}

// The end of a text is the end of a line, though another text follows in its page.
func TestChangeIndex_anchorsHoldAtTheEndOfAText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 9)
	stream := "commit refs/heads/main\ncommitter A <a@example.com> 1700000000 +0000\ndata 8\nthe end\n"
	for _, name := range []string{"a", "b", "c"} {
		stream += fmt.Sprintf("M 100644 inline %s\ndata 12\nfirst\nlast%s\n\n", name, name)
	}
	w.run(stream, "fast-import", "--quiet")
	m, l := git.Open(w.dir), Open(t.TempDir())
	defer m.Close()
	defer l.Close()
	tips := []Tip{{"HEAD", strings.TrimSpace(w.run("", "rev-parse", "main"))}}
	if err := l.Update(t.Context(), m, tips, Bound{All: true}, time.Now(), noPause); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		`type:diff added:"last.\n$"`: 3, `type:diff added:"lasta\n$"`: 1, `type:diff added:"^first\nlastb\n$"`: 1,
		`type:diff added:"\Afirst"`: 3, `type:diff added:"last.\n\z"`: 3, `type:commit message:"the end\n$"`: 1,
	} {
		q, err := query.Parse(text, query.Options{Regexp: true})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := l.Search(t.Context(), LogSearch{Q: q.Q, Diff: q.Type == query.DiffType, Limit: 10}); err != nil || out.Total != want {
			t.Errorf("%s: %+v, %v, want %d", text, out, err, want)
		}
	}
}

// One run of git reads as many commits as have a quarter of the text of a file, between 500 and 5,000.
func TestNextRun_growsWhereCommitsAreSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		read int
		text int64
		want int
	}{
		{0, 0, 500}, {500, 0, 5000}, {500, 500 << 10, 5000}, {500, 4 << 20, 2000}, {500, 32 << 20, 500}, {3000, 48 << 20, 1000},
	} {
		if got := nextRun(c.read, c.text); got != c.want {
			t.Errorf("after %d commits with %d bytes: %d, want %d", c.read, c.text, got, c.want)
		}
	}
}
