package shard

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// gitSource is a Source with HEAD of a git repository.
type gitSource struct {
	m     *git.Mirror
	repo  Repository
	blobs []Blob
}

func newGitSource(t testing.TB, dir, commit string) *gitSource {
	m := git.Open(dir)
	blobs, err := m.Union(context.Background(), []string{commit})
	if err != nil {
		t.Fatal(err)
	}
	s := &gitSource{m: m, repo: Repository{ID: 1, Name: "linux", Revisions: []Revision{{Name: "HEAD", Commit: commit}}}}
	for _, b := range blobs {
		x := Blob{OID: b.OID, Size: b.Size}
		for _, o := range b.Occurrences {
			x.Occurrences = append(x.Occurrences, Occurrence{Path: o.Path, Mask: o.Commits})
		}
		s.blobs = append(s.blobs, x)
	}
	return s
}

func (s *gitSource) Repositories() []Repository { return []Repository{s.repo} }
func (s *gitSource) Blobs() []Blob              { return s.blobs }

func (s *gitSource) Read(ctx context.Context, want []int, use func(int, []byte) error) error {
	b, err := s.m.Blobs(ctx, func(yield func(string) bool) {
		for _, i := range want {
			if !yield(s.blobs[i].OID) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	defer b.Close()
	var buf []byte
	for _, i := range want {
		if buf, err = b.Next(buf[:0]); err != nil {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
		if err := use(i, buf); err != nil {
			return err
		}
	}
	return nil
}

func cpu() time.Duration {
	var self, children syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &self)
	_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children)
	sum := time.Duration(0)
	for _, u := range []syscall.Rusage{self, children} {
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum
}

// TestBuild_logsSizeAndTimeForALargeRepository builds an index of the repository in SHOAL_LARGE_REPO in the directory
// SHOAL_LARGE_DIR and prints its cost.
func TestBuild_logsSizeAndTimeForALargeRepository(t *testing.T) {
	repo, dir, commit := os.Getenv("SHOAL_LARGE_REPO"), os.Getenv("SHOAL_LARGE_DIR"), os.Getenv("SHOAL_LARGE_COMMIT")
	if repo == "" || dir == "" {
		t.Skip("SHOAL_LARGE_REPO and SHOAL_LARGE_DIR are not set")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	start, used := time.Now(), cpu()
	src := newGitSource(t, repo, commit)
	t.Logf("listing: %v wall, %v cpu", time.Since(start), cpu()-used)
	built, err := Build(context.Background(), dir, src, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var bytes, text int64
	for _, b := range built {
		t.Logf("%+v", b)
		bytes += b.Bytes
		text += b.TextBytes
	}
	t.Logf("%d bytes, %.3f of the text, %v wall, %v cpu", bytes, float64(bytes)/float64(text), time.Since(start), cpu()-used)
}

// asked are the queries of the published comparison: text, regexp, fold.
var asked = []struct {
	text         string
	regexp, fold bool
}{
	{"kzalloc_node_failed_xyz", false, true}, {"tg3_read_firmware_ver", false, true}, {"io_uring_cmd_import_fixed", false, true},
	{"struct workqueue_struct", false, false}, {"mutex_lock_interruptible", false, true}, {"EXPORT_SYMBOL_GPL", false, false},
	{"return", false, true}, {"unsigned int", false, true}, {"static inline void", false, false}, {"if", false, true},
	{"rcu", false, true}, {"->x", false, false}, {"interrupt context static", false, true}, {"return static int struct", false, true},
	{"copyright", false, true}, {"spin_lock_irqsave", false, true}, {"todo", false, true},
	{`ext4_[a-z]+_inode`, true, false}, {`(kmalloc|kzalloc)\(sizeof`, true, false}, {`struct [a-z_]+_operations`, true, false},
	{`spin_(un)?lock_irqsave\(&[a-z]+->lock`, true, false}, {`[a-z]+_lock\(`, true, false},
	{`\bv[0-9]+\.[0-9]+\.[0-9]+\b`, true, false}, {`[0-9]{8}`, true, false}, {`[A-Z]{20,}`, true, false},
	{`copyright.*google`, true, true}, {`fixme|xxx|hack`, true, true}, {`^#define [A-Z]+_MAX`, true, false}, {`^}$`, true, false},
}

// TestSearch_queriesOfTheComparisonAreMeasured runs the queries of the comparison on the index in SHOAL_LARGE_DIR.
func TestSearch_queriesOfTheComparisonAreMeasured(t *testing.T) {
	dir := os.Getenv("SHOAL_LARGE_DIR")
	if dir == "" || os.Getenv("SHOAL_LARGE_TABLE") == "" {
		t.Skip("SHOAL_LARGE_DIR and SHOAL_LARGE_TABLE are not set")
	}
	start := time.Now()
	set, err := OpenSet(dir, SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	t.Logf("open: %v", time.Since(start))
	var parts []Part
	for _, name := range set.Names() {
		if id, kind, _ := ParseFileName(name); kind == KindShard {
			parts = append(parts, Part{Repo: 1, Shard: id})
		}
	}
	v, _ := set.Acquire(parts)
	defer v.Release()
	for _, row := range asked {
		q := &query.And{Subs: []query.Q{&query.Text{Pattern: row.text, Regexp: row.regexp, Fold: row.fold}, &query.Rev{Pattern: "HEAD"}}}
		var best, work [2]time.Duration
		var results [2]*Result
		for mode := range best {
			best[mode], work[mode] = time.Hour, time.Hour
			for range 4 {
				start, used := time.Now(), cpu()
				res, err := v.Search(context.Background(), Request{Q: q, MaxMatches: 100, CountAll: mode == 0})
				if err != nil {
					t.Fatal(err)
				}
				best[mode] = min(best[mode], time.Since(start))
				work[mode] = min(work[mode], cpu()-used)
				results[mode] = res
			}
		}
		st := results[0].Stats
		t.Logf("%-42s %6d files %8d matches  all %9.2f ms, cpu %8.2f  top %8.2f ms, cpu %7.2f  units %d docs %d %d MB", row.text, st.Files, st.TotalMatches,
			float64(best[0])/1e6, float64(work[0])/1e6, float64(best[1])/1e6, float64(work[1])/1e6, st.NgramMatches, st.FilesConsidered, st.ContentBytes>>20)
	}
}
