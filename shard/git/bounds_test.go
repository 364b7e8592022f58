package git

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// allocated returns how many bytes a call allocates, including freed ones.
//
// With the race detector it returns 0: there a sync.Pool forgets values at random.
func allocated(call func()) uint64 {
	if withRaceDetector() {
		call()
		return 0
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func withRaceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestReads_ofALargeRepositoryAllocateBoundedMemory reads a repository that is large in every way. It runs alone
// because it counts allocations. SHOAL_LARGE_HISTORY is the number of commits.
func TestReads_ofALargeRepositoryAllocateBoundedMemory(t *testing.T) {
	const files, lines, size = 80_000, 50_000, 200 << 20
	commits := 5000
	if n, err := strconv.Atoi(os.Getenv("SHOAL_LARGE_HISTORY")); err == nil {
		commits = n
	}
	r := newRepo(t)
	var s bytes.Buffer
	blob := func(mark int, text string) { fmt.Fprintf(&s, "blob\nmark :%d\ndata %d\n%s\n", mark, len(text), text) }
	blob(1, "the same everywhere\n")
	var old, now strings.Builder
	for i := range lines / 2 {
		fmt.Fprintf(&old, "old line %d\n", i)
		fmt.Fprintf(&now, "new line %d\n", i)
	}
	blob(2, old.String())
	blob(3, now.String())
	blob(4, strings.Repeat(strings.Repeat("x", 1023)+"\n", size/1024))
	commit := func(i int, message string) {
		fmt.Fprintf(&s, "commit refs/heads/main\ncommitter Ann <ann@example.org> %d +0000\ndata %d\n%s\n", at(i), len(message), message)
	}
	commit(1, "begin")
	s.WriteString("M 100644 :2 changed\nM 100644 :4 huge\n")
	for i := range files {
		fmt.Fprintf(&s, "M 100644 :1 d%d/e%d/f%d\n", i%40, i%200, i)
	}
	for i := range commits {
		commit(2+i, fmt.Sprintf("step %d", i))
		fmt.Fprintf(&s, "M 100644 inline d%d/step\ndata %d\n%d\n", i%40, len(strconv.Itoa(i)), i)
	}
	commit(3+commits, "the needle")
	s.WriteString("M 100644 :3 changed\n")
	runGit(t, r.dir, s.Bytes(), "fast-import", "--quiet")
	s = bytes.Buffer{}
	m := fetched(t, r.url())
	ctx := t.Context()
	if err := m.Groom(ctx); err != nil {
		t.Fatal(err)
	}
	head, err := m.Resolve(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	before, err := m.Resolve(ctx, "main~1")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		most uint64 // bytes
		read func() (string, error)
		want string
	}{
		{"a level of the tree", 4 << 20, func() (string, error) {
			entries, cut, err := m.List(ctx, head, "d1", ListOptions{})
			return fmt.Sprint(len(entries), cut), err
		}, "6 false"},
		{"the whole tree", 120 << 20, func() (string, error) {
			entries, cut, err := m.List(ctx, head, "", ListOptions{Depth: -1, Max: 100_000})
			return fmt.Sprint(len(entries), cut), err
		}, fmt.Sprint(files+2+40+200+40, false)},
		{"some of the tree", 40 << 20, func() (string, error) {
			entries, cut, err := m.List(ctx, head, "", ListOptions{Depth: -1, Max: 1000})
			return fmt.Sprint(len(entries), cut), err
		}, "1000 true"},
		{"the end of a file of 200 MB", 4 << 20, func() (string, error) {
			src, err := m.Source(ctx, head, "huge", SourceOptions{FirstLine: size/1024 - 1, Lines: 500, Count: true})
			return fmt.Sprint(src.Lines, src.Total, src.Size), err
		}, fmt.Sprint(2, size/1024, size)},
		{"the beginning of it", 4 << 20, func() (string, error) {
			src, err := m.Source(ctx, head, "huge", SourceOptions{Lines: 500})
			return fmt.Sprint(src.Lines), err
		}, "500"},
		{"a diff of 50,000 lines", 32 << 20, func() (string, error) {
			d, err := m.Diff(ctx, before, head, DiffOptions{})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(d.Files[0].Added, d.Files[0].Removed, d.Cut), nil
		}, fmt.Sprint(lines/2, lines/2, false)},
		{"a page of history", 4 << 20, func() (string, error) {
			page, err := m.Log(ctx, LogQuery{Commit: head, Skip: commits / 2})
			return fmt.Sprint(len(page.Commits)), err
		}, "50"},
		{"the commits of a path", 4 << 20, func() (string, error) {
			page, err := m.Log(ctx, LogQuery{Commit: head, Path: "changed"})
			return fmt.Sprint(len(page.Commits), page.Total, page.AtLeast), err
		}, "2 2 false"},
		{"the commits with a word", 4 << 20, func() (string, error) {
			page, err := m.Log(ctx, LogQuery{Commit: head, Query: "needle"})
			late := page.AtLeast && commits <= 5000 // reading may stop early on a page of a longer history
			return fmt.Sprint(len(page.Commits), page.Total, late), err
		}, "1 1 false"},
	} {
		began := time.Now()
		var got string
		var err error
		used := allocated(func() { got, err = tt.read() })
		t.Logf("%s: %v, %.1f MB", tt.name, time.Since(began).Round(time.Millisecond), float64(used)/1e6)
		if err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
		if used > tt.most {
			t.Errorf("%s: %d bytes were allocated, more than %d", tt.name, used, tt.most)
		}
	}
}
