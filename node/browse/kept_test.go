package browse

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp/syntax"
	"strings"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/trigram"
)

// registers returns a text of about so many bytes, similar to the headers of a graphics driver.
func registers(r *rand.Rand, size int) string {
	words := strings.Fields("DC HPD INT STATUS MASK VM FAULT CNTL CONFIG OTG PIPE PLANE HUBP CURSOR SCALER GAMMA LUT INDEX DATA ENABLE RESET CLK GATE MODE L2 TLB PAGE TABLE BASE ADDR RB WPTR QUEUE")
	word := func() string { return words[r.IntN(len(words))] }
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "#define %s%d_%s__%s_%s_MASK 0x%08XL\n", word(), r.IntN(20), word(), word(), word(), r.Uint32())
	}
	return b.String()
}

// keptSite returns the mirror of a repository with large files of these sizes and 1,000 small
// ones, and their paths.
func keptSite(t testing.TB, sizes ...int) (*site, []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "source.git")
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	var script strings.Builder
	script.WriteString("commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 1\nx\n")
	add := func(path, text string) {
		fmt.Fprintf(&script, "M 100644 inline %s\ndata %d\n%s\n", path, len(text), text)
	}

	var paths []string
	r := rand.New(rand.NewPCG(1, 2))
	for i, size := range sizes {
		paths = append(paths, fmt.Sprintf("drivers/gpu/include/regs/v%d/regs_%d.h", i%5, i))
		add(paths[i], registers(r, size)+fmt.Sprintf("#define KRAKEN_%d Kelvin\r\n", i))
	}
	for i := range 1000 {
		add(fmt.Sprintf("drivers/gpu/include/regs/v%d/small_%d.h", i%40, i), fmt.Sprintln(i))
	}
	add("picture", "KRAKEN\x00")

	gitRun(t, script.String(), "-C", dir, "fast-import", "--quiet", "--depth=1")
	m := git.Open(filepath.Join(t.TempDir(), "1.git"))
	t.Cleanup(func() { m.Close() })
	if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(dir)}, git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	return &site{mirror: m, repo: &catalog.Repo{ID: 1, Name: "example.org/app"}, kept: newKeptFiles()}, paths
}

// Only the first scan of files indexed by name reads them. The answer equals that of a node with
// an empty cache.
func TestFilesIndexedByName_areReadOnce(t *testing.T) {
	t.Parallel()
	s, paths := keptSite(t, 100_000, 300_000, 70_000)
	only := append([]string{"gone.h", "drivers"}, paths...)
	only = append(only, "picture")
	look := func(s *site, pattern string) *ScanResponse {
		t.Helper()
		r, err := ask(t, s, scanOperation, ScanRequest{Pattern: pattern, Limit: 2, Context: 1, Only: only})
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		return r
	}

	r := look(s, "KRAKEN_1")
	if len(r.Files) != 1 || r.Files[0].Path != paths[1] || len(r.Files[0].Lines) != 2 {
		t.Errorf("%+v", r)
	}
	if want := strings.Join(append(paths, "picture", "gone.h"), " "); strings.Join(r.Looked, " ") != want {
		t.Errorf("looked at %v, want %s", r.Looked, want)
	}
	if k := s.kept.currentCounts(); k.Read != 4 || k.Sketched+k.Remembered != 0 || k.Bytes < 470_000 || k.Bytes > 700_000 {
		t.Errorf("%+v", k)
	}

	for _, c := range []struct {
		pattern    string
		remembered int64 // how many of the 4 texts that are searched are cached
	}{
		{"mutex_lock_nested", 0}, {"KRAKEN_1 Kelvin", 1}, {"KRAKEN", 4}, {"(?i)kraken_2 k", 1}, {"Kelvin$", 3}, {"^#define KRAKEN", 3},
		{"(?i)\u212aelvin", 3}, {".", 4}, {"KRAKEN.*\n.*", 4}, {"^$", 4}, {"[0-9A-F]{8}L", 4}, {"kmalloc|kzalloc|KRAKEN_0 K", 1},
	} {
		before := s.kept.currentCounts()
		got := look(s, c.pattern)
		now := s.kept.currentCounts()
		if n := now.Remembered - before.Remembered; now.Read != before.Read || n != c.remembered || now.Sketched-before.Sketched != 4-n {
			t.Errorf("%s: %+v after %+v, want %d of the texts looked through", c.pattern, now, before, c.remembered)
		}

		fresh := *s
		fresh.kept = newKeptFiles()
		if want := look(&fresh, c.pattern); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, of a new node %+v", c.pattern, got, want)
		}
	}

	// The scan needs the mirror only for its refs.
	s.mirror.Close()
	if err := os.RemoveAll(filepath.Join(s.mirror.Dir(), "objects")); err != nil {
		t.Fatal(err)
	}
	only = paths
	for pattern, want := range map[string]int{"mutex_lock_nested": 0, "KRAKEN_1 Kelvin": 1} {
		if r := look(s, pattern); len(r.Looked) != 3 || r.Found != want {
			t.Errorf("%s without the mirror: %+v", pattern, r)
		}
	}
}

// textsOf returns files with these texts, and a function that reads them.
func textsOf(texts []string) (files []git.Entry, read func(oid string) ([]byte, error)) {
	byID := map[string]string{}
	for i, text := range texts {
		e := git.Entry{Path: fmt.Sprintf("f%02d", i), OID: fmt.Sprintf("%040x", i), Size: int64(len(text))}
		files = append(files, e)
		byID[e.OID] = text
	}
	return files, func(oid string) ([]byte, error) { return []byte(byID[oid]), nil }
}

// finderOf returns a finder for a pattern; nil if it is invalid.
func finderOf(pattern string) (*finder, *trigram.Question) {
	re, err := syntax.Parse(pattern, query.RegexpFlags)
	if err != nil {
		return nil, nil
	}
	m, err := match.Compile(pattern, match.Options{})
	if err != nil {
		return nil, nil
	}
	return &finder{m: m, limit: 100, around: 1, expired: func() bool { return false }}, trigram.Ask(re)
}

// FuzzCachedSketches_doNotChangeResults compares the results with and without cached sketches.
func FuzzCachedSketches_doNotChangeResults(f *testing.F) {
	f.Add("foo.*bar", "a foo and a bar\n", "foo\r\nbar", "\x00foo bar")
	f.Add(`(?i)k[0-9]+s$`, "K1234ſ\n", "\u212a1s\r\n", "")
	f.Add(`^$`, "\n", "\r\n", "x")
	f.Add(`\bneedle\b|[^a]{3}é`, "a needle", "pin\nneedles", "\xff\xfeé")
	f.Add(`.*`, "a", "b", "c")
	f.Add("\ufffd", "\xff", "\ufffd", "a")
	f.Fuzz(func(t *testing.T, pattern, a, b, c string) {
		if len(pattern) > 200 || len(a)+len(b)+len(c) > 4000 {
			return
		}
		files, read := textsOf([]string{a, b, c, strings.Repeat(a+"\n", 20) + b})

		// Search every file without a cache.
		naive, _ := finderOf(pattern)
		if naive == nil {
			return
		}
		for _, e := range files {
			text, _ := read(e.OID)
			naive.searchFile(e, text)
		}

		k := newKeptFiles()
		for look := range 3 {
			got, question := finderOf(pattern)
			if err := k.scanFiles(got, 1, files, question, read); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.files, naive.files) || !reflect.DeepEqual(got.looked, naive.looked) || got.matches != naive.matches || got.found != naive.found || got.late {
				t.Fatalf("%q, look %d: %+v of %v; without: %+v of %v", pattern, look, got.files, got.looked, naive.files, naive.looked)
			}
		}
	})
}

// A blob of one repository is not available to another that names it.
func TestTextCache_isSeparateForEachRepository(t *testing.T) {
	t.Parallel()
	k := newKeptFiles()
	files, read := textsOf([]string{"the needle\n"})
	scan := func(repo catalog.RepoID, pattern string, read func(string) ([]byte, error)) error {
		f, question := finderOf(pattern)
		return k.scanFiles(f, repo, files, question, read)
	}
	if err := scan(1, "needle", read); err != nil {
		t.Fatal(err)
	}

	missing := errors.New("missing")
	for _, pattern := range []string{"needle", "nothing"} {
		if err := scan(2, pattern, func(string) ([]byte, error) { return nil, missing }); !errors.Is(err, missing) {
			t.Errorf("%s: %v, want %v", pattern, err, missing)
		}
	}
}

// A sketch is made from the decoded text, not from the encoded bytes.
func TestSketch_isMadeFromTheDecodedText(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"utf-8 with a mark": "\xef\xbb\xbfkraken\n", "utf-16le": "\xff\xfek\x00r\x00a\x00k\x00e\x00n\x00\n\x00", "utf-16be": "\xfe\xff\x00k\x00r\x00a\x00k\x00e\x00n\x00\n",
	} {
		k := newKeptFiles()
		for range 2 { // the second scan has the sketch
			f, question := finderOf("^kraken$")
			err := k.scanFiles(f, 1, []git.Entry{{Path: name, OID: name, Size: 20}}, question, func(string) ([]byte, error) { return []byte(file), nil })
			if err != nil || f.matches != 1 {
				t.Errorf("%s: %d matches, %v", name, f.matches, err)
			}
		}
	}
}

// A file that is too large is not read at all.
func TestGitScan_skipsTooLargeFiles(t *testing.T) {
	t.Parallel()
	k := newKeptFiles()
	f, question := finderOf("x")
	err := k.scanFiles(f, 1, []git.Entry{{Path: "huge", Size: keptBytes + 1}}, question, func(string) ([]byte, error) {
		return nil, errors.New("it is read")
	})
	if err != nil || len(f.looked) != 0 {
		t.Errorf("%v, %v", f.looked, err)
	}
}

// After a failed read, the next scan reads the file again.
func TestGitScan_retriesAFailedRead(t *testing.T) {
	t.Parallel()
	k := newKeptFiles()
	files, _ := textsOf([]string{"the needle\n"})
	broken := errors.New("broken")
	scan := func(text []byte, fails error) (int, error) {
		f, question := finderOf("needle")
		err := k.scanFiles(f, 1, files, question, func(string) ([]byte, error) { return text, fails })
		return f.found, err
	}
	for range 2 {
		if _, err := scan(nil, broken); !errors.Is(err, broken) {
			t.Errorf("%v, want %v", err, broken)
		}
	}
	if found, err := scan([]byte("a needle"), nil); found != 1 || err != nil {
		t.Errorf("%d files, %v", found, err)
	}
	if c := k.currentCounts(); c.Read != 1 {
		t.Errorf("%+v, want one that was read", c)
	}
}

// BenchmarkCachedFiles searches 20 large files that were scanned before: for what none has, for
// what one has and for what all may have, by one and by 16 clients.
func BenchmarkCachedFiles(b *testing.B) {
	var sizes []int
	for i := range 30 {
		sizes = append(sizes, 1<<20+i*100_000)
	}
	s, paths := keptSite(b, sizes...)
	look := func(pattern string) {
		r, err := answerScan(b.Context(), s, ScanRequest{Pattern: pattern, Limit: 100, Only: paths[:20]})
		if err != nil || len(r.Looked) != 20 {
			b.Error(r, err)
		}
	}
	look("first")

	for _, c := range []struct{ name, pattern string }{{"absent", "mutex_lock_nested"}, {"once", "KRAKEN_7 K"}, {"unknown", "OTG9_DC__"}} {
		for _, n := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				for b.Loop() {
					var wg sync.WaitGroup
					for range n {
						wg.Go(func() { look(c.pattern) })
					}
					wg.Wait()
				}
			})
		}
	}
}
