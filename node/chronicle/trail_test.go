package chronicle

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// testTrail is a trail with a policy that the test sets.
type testTrail struct {
	*trail
	dir string

	mu     sync.Mutex
	policy Policy
}

func newTestTrail(dir string, p Policy) *testTrail {
	b := &testTrail{dir: dir, policy: p}
	b.trail = newTrail(trailDeps{
		Dir: dir, Node: "n1", Index: func() uint64 { return 7 }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Hash: func(_ context.Context, q string) (string, error) { return fmt.Sprintf("hash of %d", len(q)), nil },
		Policy: func() Policy {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.policy
		},
	})
	return b
}

// running runs the trail during f, and waits for its end.
func (b *testTrail) running(t *testing.T, f func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.run(ctx) }()
	f()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// list searches the trail while it runs.
func (b *testTrail) list(t *testing.T, q look) *looked {
	t.Helper()
	got, err := b.search(t.Context(), &q)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (b *testTrail) files(kind string) (names []string) {
	names, _ = filepath.Glob(filepath.Join(b.dir, kind+"-*.jsonl"))
	return names
}

var ann = catalog.Actor{Type: catalog.ActorUser, ID: "u1", Name: "ann@example.com", Key: "s1", Address: "192.0.2.7", Agent: "Firefox\x1b[31m"}

const plenty = 1 << 30

// Reads are in a file with private modes. The query's text is stored only if asked for. Searches
// find lines by actor and action.
func TestAuditFile_storesAccessesPrivately(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		queries config.Queries
		want    string
	}{{config.NoQueries, ""}, {config.HashedQueries, `"queryHash":"hash of 6"`}, {config.WholeQueries, `"query":"secret"`}} {
		synctest.Test(t, func(t *testing.T) {
			b := newTestTrail(filepath.Join(t.TempDir(), "audit"), Policy{Disk: plenty, Queries: c.queries})
			b.running(t, func() {
				b.queue(Access{Action: "code.searched", Actor: ann, Query: "secret", Status: 200})
				b.queue(Access{Action: "code.read", Actor: catalog.Actor{Type: catalog.ActorGuest}, TargetType: "repository", Target: "a/b", Status: 404})
				b.queue(Access{Action: "login.failed", Refusal: true, Actor: catalog.Actor{Type: catalog.ActorGuest, Address: "192.0.2.9"}, Status: 401})
				synctest.Wait()

				if got := b.list(t, look{Limit: 10}); len(got.Lines) != 3 || got.More || got.Lines[0].Action != "login.failed" || got.Lines[2].ActorName != "ann@example.com" {
					t.Errorf("all: %+v", got)
				}
				if got := b.list(t, look{Limit: 10, Action: "code", Actor: "ANN@example.com"}); len(got.Lines) != 1 || got.Lines[0].Metadata["catalogIndex"] != "7" {
					t.Errorf("of ann: %+v", got)
				}
				if got := b.list(t, look{Limit: 2}); len(got.Lines) != 2 || !got.More {
					t.Errorf("the newest two: %+v", got)
				}
			})

			files := b.files("reads")
			if len(files) != 1 || len(b.files("refusals")) != 1 {
				t.Fatalf("files %v and %v", files, b.files("refusals"))
			}
			for path, mode := range map[string]os.FileMode{b.dir: 0o700, files[0]: 0o600} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
			}
			text, err := os.ReadFile(files[0])
			if err != nil || !strings.Contains(string(text), c.want) || c.want == "" && strings.Contains(string(text), "uery") || strings.Contains(string(text), "\x1b") {
				t.Errorf("queries %s: %s, %v", c.queries, text, err)
			}
		})
	}
}

// A stuck writer does not block requests. Accesses that find no room are counted, and reported
// later.
func TestAuditFile_neverBlocksRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTestTrail(t.TempDir(), Policy{Disk: plenty})
		for range queueSize + 10 {
			b.queue(Access{Action: "code.read", Actor: ann})
		}
		b.running(t, func() {
			synctest.Wait()
			time.Sleep(tidyEvery)
			synctest.Wait()
		})

		got := b.listStopped(t, look{Limit: 1})
		if len(got.Lines) != 1 || got.Lines[0].Action != "audit.lost" || got.Lines[0].Count != 10 || b.reads.totalLost.Load() != 10 || b.reads.written.Load() != queueSize+1 {
			t.Errorf("%+v, lost %d, written %d", got, b.reads.totalLost.Load(), b.reads.written.Load())
		}
	})
}

// listStopped searches the trail while it does not run.
func (b *testTrail) listStopped(t *testing.T, q look) *looked {
	t.Helper()
	return b.reads.search(t.Context(), &q)
}

// The files have a size limit, and old ones are deleted. Refusals take no room from reads.
func TestAuditFile_limitsItsSize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const disk = 1 << 20
		b := newTestTrail(t.TempDir(), Policy{Disk: disk, Keep: 24 * time.Hour})
		long := strings.Repeat("x", 190)
		b.running(t, func() {
			b.queue(Access{Action: "first", Actor: ann})
			synctest.Wait()
			for i := range 20000 {
				b.queue(Access{Action: "login.failed", Refusal: true, Target: long, Actor: catalog.Actor{Address: fmt.Sprint("192.0.2.", i%200)}})
				if i%100 == 99 {
					time.Sleep(time.Second)
					synctest.Wait()
				}
			}
		})
		if got := b.listStopped(t, look{Limit: 10}); len(got.Lines) != 1 {
			t.Errorf("the read is gone, or has company: %+v", got)
		}
		size := int64(0)
		for _, path := range b.files("refusals") {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
		if size > disk/shares || size < disk/shares/2 {
			t.Errorf("refusals have %d bytes in %d files, want at most %d", size, len(b.files("refusals")), disk/shares)
		}

		// After two days, the next line deletes the old files.
		b.running(t, func() {
			time.Sleep(48 * time.Hour)
			b.queue(Access{Action: "login.failed", Refusal: true, Actor: ann})
			synctest.Wait()
			time.Sleep(tidyEvery)
			synctest.Wait()
		})
		if n := len(b.files("refusals")); n != 1 {
			t.Errorf("%d files are left", n)
		}
	})
}

// Many refusals of one address are written as some lines and a count.
func TestAuditFile_sumsUpManyRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTestTrail(t.TempDir(), Policy{Disk: plenty})
		b.running(t, func() {
			for range 1000 {
				b.queue(Access{Action: "credential.refused", Refusal: true, Actor: catalog.Actor{Type: catalog.ActorGuest, Address: "192.0.2.9"}, Status: 401})
			}
			b.queue(Access{Action: "login.failed", Refusal: true, Actor: ann, Status: 401})
			synctest.Wait()
			time.Sleep(tidyEvery)
			synctest.Wait()

			got := b.list(t, look{Limit: 100})
			if len(got.Lines) != maxOfAddress+2 || got.Lines[0].Count != 1000-maxOfAddress || got.Lines[0].Address != "192.0.2.9" || got.Lines[0].ActorType != catalog.ActorGuest || got.Lines[1].Action != "login.failed" {
				t.Errorf("%d lines, the newest %+v", len(got.Lines), got.Lines[:2])
			}
		})
	})
}

// The first access is written at once, those of the next moment together. A search finds all.
func TestAuditFile_batchesWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTestTrail(t.TempDir(), Policy{Disk: plenty})
		b.running(t, func() {
			steps := []struct {
				notes   int
				pass    time.Duration
				ask     bool
				written int64
			}{
				{notes: 1, written: 1},
				{notes: 3, written: 1},
				{pass: batchTime, written: 4},
				{pass: time.Second, written: 4},
				{notes: 1, written: 5},
				{notes: 2, ask: true, written: 7},
				{notes: 1, written: 7},
			}
			for i, step := range steps {
				for range step.notes {
					b.queue(Access{Action: "code.read", Actor: ann})
				}
				time.Sleep(step.pass)
				synctest.Wait()
				if step.ask {
					b.reads.flush(t.Context())
				}
				if n := b.reads.written.Load(); n != step.written {
					t.Errorf("step %d: %d written, want %d", i, n, step.written)
				}
			}
		})
		if n := b.reads.written.Load(); n != 8 {
			t.Errorf("%d written at the end, want 8", n)
		}
	})
}

// A list read page by page has each line once, across files, a restart, a clock set back and a line
// cut by a crash.
func TestAuditFile_pagesHaveEachLineOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		const lines = 400
		for part := range 2 {
			b := newTestTrail(dir, Policy{Disk: 1 << 20})
			b.running(t, func() {
				for i := range lines / 2 {
					b.queue(Access{Action: "code.read", Actor: ann, Target: fmt.Sprint(part*lines/2 + i)})
					if i%20 == 0 {
						time.Sleep(batchTime)
						synctest.Wait()
					}
				}
				synctest.Wait()
			})
			files := b.files("reads")
			f, err := os.OpenFile(files[len(files)-1], os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			f.WriteString(`{"id":"cut","action":"code.re`)
			f.Close()
		}

		b := newTestTrail(dir, Policy{Disk: plenty})
		if len(b.files("reads")) < 2 {
			t.Fatalf("one file only: %v", b.files("reads"))
		}
		want, q := lines-1, look{Limit: 7}
		for {
			got := b.listStopped(t, q)
			for i := range got.Lines {
				if got.Lines[i].TargetID != fmt.Sprint(want) {
					t.Fatalf("%s, want %d", got.Lines[i].TargetID, want)
				}
				want--
			}
			if !got.More {
				break
			}
			q.After = &got.Lines[len(got.Lines)-1]
		}
		if want != -1 {
			t.Errorf("%d lines are missing", want+1)
		}

		// Time limits skip whole files.
		last := b.listStopped(t, look{Limit: 1}).Lines[0].At
		if got := b.listStopped(t, look{Limit: 1000, Since: last}); len(got.Lines) != 1 {
			t.Errorf("since the last: %d lines", len(got.Lines))
		}
		if got := b.listStopped(t, look{Limit: 1000, Until: last}); len(got.Lines) != lines-1 {
			t.Errorf("before the last: %d lines", len(got.Lines))
		}
	})
}

// If files cannot be written, requests continue, and losses are counted.
func TestAuditFile_countsUnwritableLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit")
		if err := os.WriteFile(path, nil, 0o600); err != nil { // a file in place of the folder
			t.Fatal(err)
		}
		b := newTestTrail(path, Policy{Disk: plenty})
		b.running(t, func() {
			b.queue(Access{Action: "code.read", Actor: ann})
			synctest.Wait()
		})
		if b.reads.totalLost.Load() == 0 || b.reads.written.Load() != 0 {
			t.Errorf("lost %d, written %d", b.reads.totalLost.Load(), b.reads.written.Load())
		}
	})
}

// With the audit off, nothing is stored.
func TestAuditFile_isEmptyIfTheAuditIsOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTestTrail(filepath.Join(t.TempDir(), "audit"), Policy{Off: true})
		b.running(t, func() {
			b.queue(Access{Action: "code.read", Actor: ann})
			b.queue(Access{Action: "login.failed", Refusal: true, Actor: ann})
			synctest.Wait()
			time.Sleep(tidyEvery)
			synctest.Wait()
		})
		if len(b.files("*")) > 0 {
			t.Errorf("files %v", b.files("*"))
		}
	})
}
