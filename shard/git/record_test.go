package git

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// wordy returns a repository in which each commit has a subject, a body and a name of length bytes,
// which compress to almost nothing.
func wordy(t *testing.T, commits, length int) (r *repo, head string) {
	t.Helper()
	r = newRepo(t)
	var s bytes.Buffer
	long := func(letter string) string { return strings.Repeat(letter, length) }
	for i := range commits {
		message := fmt.Sprintf("needle %d ü%s\n\n%s", i, long("s"), long("b"))
		who := fmt.Sprintf("%s <%s@example.org> %d +0000", long("n"), long("e"), at(i))
		fmt.Fprintf(&s, "commit refs/heads/main\nauthor %s\ncommitter %s\ndata %d\n%s\nM 100644 inline a.txt\ndata 2\n%d\n\n", who, who, len(message), message, i%10)
	}
	runGit(t, r.dir, s.Bytes(), "fast-import", "--quiet")
	return r, r.git("rev-parse", "main")
}

// Each way to read commits returns some kilobytes, however long the texts are, and says which texts
// are shortened. Commits up to 1 MB are read from the packs here; git reads longer ones.
func TestCommits_longTextsAreShortened(t *testing.T) {
	t.Parallel()
	for _, length := range []int{100 << 10, 400 << 10} {
		r, head := wordy(t, 4, length)
		m, ctx := fetched(t, r.url()), within(t)
		q := LogQuery{Commit: head, Limit: 10}
		with := func(change func(q *LogQuery)) func() (any, error) {
			return func() (any, error) {
				q := q
				change(&q)
				return m.Log(ctx, q)
			}
		}
		for name, read := range map[string]func() (any, error){
			"all":     with(func(*LogQuery) {}),
			"a path":  with(func(q *LogQuery) { q.Path = "a.txt" }),
			"a word":  with(func(q *LogQuery) { q.Query = "needle" }),
			"authors": func() (any, error) { return m.Authors(ctx, head, "", nil) },
			"show":    func() (any, error) { return m.Show(ctx, head) },
			"follow":  func() (any, error) { return m.Follow(ctx, LogQuery{Commit: head, Path: "a.txt", Limit: 10}) },
			"text":    func() (any, error) { return m.Trace(ctx, TraceQuery{Commit: head, Text: "1"}) },
			"lines": func() (any, error) {
				return m.Trace(ctx, TraceQuery{Commit: head, Path: "a.txt", Lines: [2]int{1, 1}})
			},
			"last":  func() (any, error) { return m.Last(ctx, LastQuery{Commit: head}) },
			"blame": func() (any, error) { return m.Blame(ctx, BlameQuery{Commit: head, Path: "a.txt"}) },
		} {
			answer, err := read()
			if err != nil {
				t.Errorf("%s of %d bytes: %v", name, length, err)
				continue
			}
			text, _ := json.Marshal(answer)
			if len(text) > 500<<10 || !bytes.Contains(text, []byte("… (shortened: ")) || !utf8.Valid(text) {
				t.Errorf("%s of %d bytes: %d bytes, %.200s", name, length, len(text), text)
			}
		}
	}
}

// A page of many commits stays within the limit of an answer, and contains every commit.
func TestLog_shortensAPageOfLongCommits(t *testing.T) {
	t.Parallel()
	r, head := wordy(t, 120, 40<<10)
	m := fetched(t, r.url())
	for _, q := range []LogQuery{{}, {Query: "needle"}, {Not: r.git("rev-parse", "main~119")}} {
		q.Commit, q.Limit = head, 200
		page, err := m.Log(within(t), q)
		text, _ := json.Marshal(page)
		if err != nil || len(page.Commits) < 119 && !page.AtLeast || len(text) > answerTexts+200*1000 {
			t.Errorf("%+v: %d commits in %d bytes, %v", q, len(page.Commits), len(text), err)
		}
		if last := page.Commits[len(page.Commits)-1]; !strings.Contains(last.Body, "(shortened: 40960 bytes in all)") {
			t.Errorf("%+v: the last body is %.100q", q, last.Body)
		}
	}
}

// Reading records gives the same as splitting the text, whatever the sizes of the reads.
func TestRecordReader_agreesWithSplitting(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\x00", "a\x00", "a\x00b", "a\x00\x00b\x00", strings.Repeat("long ", 30_000) + "\x00b\x00", "ü\x00" + strings.Repeat("ü", 70_000) + "\x00"} {
		for _, most := range []int{0, 1, 2, 3, 1000, 1 << 20} {
			in := newRecords(iotest.HalfReader(strings.NewReader(text)))
			fields := strings.Split(text, "\x00")
			for _, want := range fields[:len(fields)-1] {
				if got, length, err := in.readBytes(most); err != nil || length != len(want) || string(got) != want[:min(most, len(want))] {
					t.Errorf("%.20q, %d bytes at most: %.20q of %d, %v; want %.20q", text, most, got, length, err, want)
				}
			}
			want := io.EOF
			if fields[len(fields)-1] != "" {
				want = io.ErrUnexpectedEOF
			}
			if _, _, err := in.readBytes(most); err != want {
				t.Errorf("%.20q, %d bytes at most: ends with %v, want %v", text, most, err, want)
			}
		}
	}
}

func TestShortenText_keepsWholeCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "ab": "ab", "aü": "aü", "a\xc3": "a", "a\xe2\x82": "a", "a\xf0\x9f\x98": "a", "€": "€"} {
		if got := shortened(text, 99); got != want+"… (shortened: 99 bytes in all)" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// The listing refuses a repository with too many references before it copies anything, and says
// what to do.
func TestFetch_refusesTooManyReferencesAtOnce(t *testing.T) {
	t.Parallel()
	r, head := wordy(t, 1, 10)
	var refs strings.Builder
	for i := range pack.MaxRefs + 1 {
		fmt.Fprintf(&refs, "%s refs/heads/b%06d\n", head, i)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "packed-refs"), []byte(refs.String()), 0o644); err != nil {
		t.Fatal(err)
	}

	l := &listing{refs: map[string]string{}}
	lines := strings.NewReplacer(" ", "\t").Replace(refs.String())
	for what, err := range map[string]error{
		"a directory": func() error {
			_, err := newMirror(t).Fetch(within(t), Remote{URL: r.url()}, FetchOptions{})
			return err
		}(),
		"a server": l.read(strings.NewReader(lines)),
	} {
		if !errors.Is(err, ErrBeyond) || !strings.Contains(err.Error(), "more than 200000 branches and tags: exclude the repository") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
