package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestFetch_updatesBranchesAndTags(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a.txt", "1\n")
	h.commit("refs/heads/dev", 2, "Bob", "two", "b.txt", "2\n")
	h.commit("refs/heads/feature/x", 3, "Bob", "three", "c.txt", "3\n")
	r.load(h)
	r.git("tag", "light", "main")
	r.git("tag", "-a", "-m", "annotated", "v1", "dev")
	r.git("tag", "-a", "-m", "nested", "v1-again", "v1")
	r.git("tag", "tree", "main^{tree}")
	address := serve(t, filepath.Dir(r.dir), nil) + "/source.git"
	m, ctx := newMirror(t), within(t)
	fetch := func() Fetched {
		t.Helper()
		f, err := m.Fetch(ctx, Remote{URL: address}, FetchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := fetch(); !f.Changed || f.DefaultBranch != "main" || f.Refs != 7 {
		t.Errorf("first fetch: %+v", f)
	}
	if f := fetch(); f.Changed {
		t.Errorf("nothing is new: %+v", f)
	}
	revs, _, err := m.Revisions(ctx, globs{"**"}, globs{"v*", "light", "tree"})
	if want := "HEAD refs/heads/main refs/heads/feature/x refs/heads/dev refs/tags/v1 refs/tags/v1-again refs/tags/light"; err != nil || names(revs) != want {
		t.Errorf("revisions %q, %v, want %q", names(revs), err, want)
	}
	if revs[4].Commit != r.git("rev-parse", "v1^{commit}") || revs[5].Commit != revs[4].Commit {
		t.Errorf("annotated tags are not peeled: %+v", revs)
	}
	revs, _, _ = m.Revisions(ctx, globs{"*"}, nil)
	if want := "HEAD refs/heads/main refs/heads/dev"; names(revs) != want {
		t.Errorf("a star does not pass a slash: %q, want %q", names(revs), want)
	}

	// The next fetch has a forced push, a deleted branch, a name that becomes a directory, and a
	// moved tag.
	h = &stream{}
	h.commit("refs/heads/rewritten", 9, "Eve", "other", "z.txt", "z\n")
	r.load(h)
	r.git("update-ref", "refs/heads/main", "refs/heads/rewritten")
	r.git("update-ref", "-d", "refs/heads/dev")
	r.git("update-ref", "-d", "refs/heads/feature/x")
	r.git("update-ref", "refs/heads/feature", "refs/heads/rewritten")
	r.git("tag", "-f", "light", "rewritten")
	r.git("tag", "-d", "v1-again")
	r.git("symbolic-ref", "HEAD", "refs/heads/rewritten")
	if f := fetch(); !f.Changed || f.DefaultBranch != "rewritten" {
		t.Errorf("after the changes: %+v", f)
	}
	want := strings.Fields(r.git("for-each-ref", "--format=%(refname)=%(objectname)"))
	got := strings.Fields(runGit(t, m.Dir(), nil, "for-each-ref", "--format=%(refname)=%(objectname)"))
	if !slices.Equal(got, want) {
		t.Errorf("mirror has %q, want %q", got, want)
	}
}

// A reader that reads the references during a fetch must not leave the old ones in the cache for
// later readers.
func TestReferences_readDuringAFetchAreNotCached(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a.txt", "1\n")
	r.load(h)
	m := fetched(t, r.url())
	m.dropCachedRefs()
	m.mu.Lock()
	before := m.fetched
	m.mu.Unlock()
	old, err := m.readRefs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.git("update-ref", "refs/heads/main", r.git("commit-tree", "-m", "two", "main^{tree}"))
	if _, err := m.Fetch(t.Context(), Remote{URL: r.url()}, FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	if m.cacheRefs(old, before) {
		t.Error("what was read before the fetch is remembered after it")
	}
	now, err := m.refs(t.Context())
	if err != nil || now.head == old.head {
		t.Errorf("after the fetch HEAD is %s as before, %v", now.head, err)
	}
}

func TestFetch_acceptsEmptyDetachedAndShallowRepositories(t *testing.T) {
	t.Parallel()
	fill := func(r *repo, branches ...string) {
		h := &stream{}
		for i, b := range branches {
			h.commit("refs/heads/"+b, i, "Ann", "commit", "f", b)
		}
		r.load(h)
	}
	for _, tt := range []struct {
		name string
		make func(t *testing.T) *repo
		want string // default branch and revisions
	}{
		{"empty", func(t *testing.T) *repo { return newRepo(t) }, "empty"},
		{"unborn HEAD", func(t *testing.T) *repo {
			r := newRepo(t)
			fill(r, "one", "two")
			return r
		}, "one: HEAD refs/heads/one refs/heads/two"},
		{"detached HEAD", func(t *testing.T) *repo {
			r := newRepo(t)
			fill(r, "main", "main")
			r.git("update-ref", "--no-deref", "HEAD", r.git("rev-parse", "main~1"))
			return r
		}, ": HEAD refs/heads/main"},
		{"SHA-256", func(t *testing.T) *repo {
			r := newRepo(t, "--object-format=sha256")
			fill(r, "main", "dev")
			return r
		}, "main: HEAD refs/heads/main refs/heads/dev"},
		{"tags only", func(t *testing.T) *repo {
			r := newRepo(t)
			fill(r, "main")
			r.git("tag", "v1", "main")
			r.git("update-ref", "-d", "refs/heads/main")
			return r
		}, "empty"},
		{"a shallow clone", func(t *testing.T) *repo {
			r := newRepo(t)
			fill(r, "main", "main", "main")
			dir := filepath.Join(t.TempDir(), "source.git")
			runGit(t, "", nil, "clone", "--quiet", "--bare", "--depth=1", r.url(), dir)
			return &repo{t, dir}
		}, "main: HEAD refs/heads/main"},
	} {
		for _, scheme := range []string{"http", "file"} {
			t.Run(tt.name+" by "+scheme, func(t *testing.T) {
				t.Parallel()
				r := tt.make(t)
				address := r.url()
				if scheme == "http" {
					address = serve(t, filepath.Dir(r.dir), nil) + "/source.git"
				}
				m, ctx := newMirror(t), within(t)
				for range 2 {
					f, err := m.Fetch(ctx, Remote{URL: address}, FetchOptions{})
					if err != nil {
						t.Fatal(err)
					}
					revs, _, err := m.Revisions(ctx, globs{"*"}, nil)
					if tt.want == "empty" {
						if !errors.Is(err, ErrEmpty) {
							t.Errorf("error %v, want ErrEmpty", err)
						}
						continue
					}
					if got := f.DefaultBranch + ": " + names(revs); err != nil || got != tt.want {
						t.Errorf("got %q, %v, want %q", got, err, tt.want)
					}
					if revs[0].Time.IsZero() {
						t.Error("HEAD has no time")
					}
				}
			})
		}
	}
}

func TestFetch_remoteChangesItsHashOrBecomesEmpty(t *testing.T) {
	t.Parallel()
	ctx, m := within(t), newMirror(t)
	dir := filepath.Join(t.TempDir(), "source.git")
	for i, extra := range []string{"--object-format=sha1", "--object-format=sha256", "--object-format=sha1"} {
		os.RemoveAll(dir)
		r := newRepoAt(t, dir, extra)
		h := &stream{}
		h.commit("refs/heads/main", i, "Ann", "commit", "f", extra)
		r.load(h)
		if _, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err != nil {
			t.Fatal(err)
		}
		head, err := m.Resolve(ctx, "HEAD")
		if want := r.git("rev-parse", "main"); err != nil || head != want {
			t.Errorf("%s: HEAD is %s, %v, want %s", extra, head, err, want)
		}
	}
	os.RemoveAll(dir)
	r := newRepoAt(t, dir)
	f, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{})
	if err != nil || !f.Empty || !f.Changed {
		t.Errorf("the remote is empty now: %+v, %v", f, err)
	}
	if _, _, err := m.Revisions(ctx, nil, nil); !errors.Is(err, ErrEmpty) {
		t.Errorf("revisions of an empty mirror: %v", err)
	}
}

func TestRevisions_areTheNewest64(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	for i := range 100 {
		h.commit(fmt.Sprintf("refs/heads/b%02d", i), i, "Ann", "commit", "f", fmt.Sprint(i))
	}
	h.commit("refs/heads/main", 0, "Ann", "commit", "f", "main")
	r.load(h)
	m := fetched(t, r.url())
	revs, skipped, err := m.Revisions(within(t), globs{"b*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// 63 branches, and HEAD with its branch, are 64 different commits.
	if len(revs) != 65 || skipped != 37 || revs[1].Name != "refs/heads/main" || revs[2].Name != "refs/heads/b99" || revs[64].Name != "refs/heads/b37" {
		t.Errorf("%d revisions, %d skipped: %s", len(revs), skipped, names(revs))
	}
	revs, skipped, _ = m.Revisions(within(t), globs{"*"}, globs{"*"})
	if len(revs) != 65 || skipped != 100-63 {
		t.Errorf("%d revisions, %d skipped", len(revs), skipped)
	}
}

func TestFetch_neverWritesIntoALocalRepository(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	for i := range 50 {
		h.commit("refs/heads/main", i, "Ann", "commit", fmt.Sprintf("d%d/f%d", i%7, i), strings.Repeat("x", i))
	}
	r.load(h)
	parent := filepath.Dir(r.dir)
	worktree := filepath.Join(parent, "work tree %41")
	runGit(t, "", nil, "clone", "--quiet", r.dir, worktree)
	readOnly(t, parent)
	before := snapshot(t, parent)
	ctx := within(t)
	for _, dir := range []string{r.dir, worktree} {
		m := newMirror(t)
		address := LocalURL(dir)
		for range 2 {
			if _, err := m.Fetch(ctx, Remote{URL: address}, FetchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Groom(ctx); err != nil {
			t.Fatal(err)
		}
		if l, err := OpenLocal(ctx, dir, ""); err != nil || l.Root != dir {
			t.Errorf("%+v, %v", l, err)
		}
	}
	if after := snapshot(t, parent); !maps.Equal(before, after) {
		t.Errorf("the source changed:\nbefore %v\nafter  %v", before, after)
	}
}

func TestFetch_readsALocalRepositoryOfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", "1\n")
	r.load(h)
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 65534, 65534))
	})
	if err != nil {
		t.Fatal(err)
	}
	fetched(t, LocalURL(r.dir))
	if _, err := OpenLocal(within(t), r.dir, ""); err != nil {
		t.Error(err)
	}
}

// readOnly removes the right to write from everything below dir.
func readOnly(t *testing.T, dir string) {
	set := func(mode fs.FileMode) {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if d.IsDir() {
				os.Chmod(path, mode|0o111)
			} else if d.Type().IsRegular() {
				os.Chmod(path, mode)
			}
			return nil
		})
	}
	set(0o444)
	t.Cleanup(func() { set(0o644) })
}

// snapshot returns the size and the time of change of everything below dir.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all[path] = fmt.Sprint(info.Mode(), info.ModTime(), inode(info))
			if !d.IsDir() {
				all[path] += fmt.Sprint(" ", info.Size())
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFetch_failureHidesThePasswordAndKeepsTheMirror(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	for i := range 2000 {
		h.commit("refs/heads/main", i, "Ann", "commit", fmt.Sprintf("f%d", i%100), strings.Repeat(fmt.Sprint(i), 50))
	}
	r.load(h)
	root := filepath.Dir(r.dir)
	secret := Credential{User: "ann", Password: "s3cret/@:%"}
	for _, tt := range []struct {
		name string
		wrap func(http.Handler) http.Handler
		path string
		cred Credential
		want error
	}{
		{"asks for a password", demand("ann", secret.Password), "", Credential{}, ErrAuth},
		{"refuses the password", demand("ann", "other"), "", secret, ErrAuth},
		{"forbids", func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) })
		}, "", Credential{}, ErrAuth},
		{"is not there", nil, "/other", Credential{}, ErrNoRemote},
		{"is no git server", func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>hello") })
		}, "", Credential{}, ErrNoRemote},
		{"stalls at once", stall("", 0), "", Credential{}, ErrStalled},
		{"stalls midway", stall("/git-upload-pack", 20_000), "", Credential{}, ErrStalled},
		{"dies midway", die("/git-upload-pack", 20_000), "", Credential{}, nil},
		{"works with the password", demand("ann", secret.Password), "", secret, fs.ErrInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := serve(t, root, tt.wrap) + "/source.git" + tt.path
			m, ctx := newMirror(t), within(t)
			_, err := m.Fetch(ctx, Remote{URL: address, Credential: tt.cred}, FetchOptions{Stall: time.Second})
			if tt.want == fs.ErrInvalid { // no error expected
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if strings.Contains(fmt.Sprint(err), "s3cret") {
				t.Errorf("the error tells the password: %v", err)
			}
			// The same mirror works as soon as the remote works.
			good := serve(t, root, nil) + "/source.git"
			if _, err := m.Fetch(ctx, Remote{URL: good}, FetchOptions{}); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// The remote lacks an object. Fetch reports it, and the mirror keeps its old content.
func TestFetch_fromADamagedRemoteKeepsTheMirror(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", "1\n")
	r.load(h)
	address := serve(t, filepath.Dir(r.dir), nil) + "/source.git"
	m, ctx := newMirror(t), within(t)
	if _, err := m.Fetch(ctx, Remote{URL: address}, FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	had := r.git("rev-parse", "main")

	h.commit("refs/heads/main", 2, "Ann", "two", "b", "2\n")
	r.load(h)
	lost := r.git("rev-parse", "main:b") // a loose object, since there are few
	if err := os.Remove(filepath.Join(r.dir, "objects", lost[:2], lost[2:])); err != nil {
		t.Fatal(err)
	}

	_, err := m.Fetch(ctx, Remote{URL: address}, FetchOptions{})
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("error %v", err)
	}
	if got, err := m.Resolve(ctx, had); err != nil || got != had {
		t.Errorf("the mirror has lost %s: %v, %v", had, got, err)
	}
}

// TestFetch_hidesThePasswordFromOtherProcessesAndServers searches the arguments of every process on the machine while
// git asks a server, and while a server redirects git to another one.
func TestFetch_hidesThePasswordFromOtherProcessesAndServers(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", "1\n")
	r.load(h)
	root := filepath.Dir(r.dir)
	secret := Credential{User: "ann", Password: "s3cret/@:% '$x\"`"}
	var seen atomic.Int64
	watched := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, file := range files {
				// A process may end in between.
				if text, _ := os.ReadFile(file); bytes.Contains(text, []byte("s3cret")) {
					t.Errorf("%s has the password: %q", file, text)
				}
			}
			seen.Add(1)
			demand(secret.User, secret.Password)(next).ServeHTTP(w, r)
		})
	}
	good := serve(t, root, watched)
	if _, err := newMirror(t).Fetch(within(t), Remote{URL: good + "/source.git", Credential: secret}, FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	if seen.Load() == 0 {
		t.Error("the server was not asked")
	}

	// The first server redirects to this one, which asks for a credential too.
	var told atomic.Int64
	other := serve(t, root, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				told.Add(1)
			}
			demand(secret.User, secret.Password)(next).ServeHTTP(w, r)
		})
	})
	away := serve(t, root, func(http.Handler) http.Handler {
		return demand(secret.User, secret.Password)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other+r.URL.String(), http.StatusMovedPermanently)
		}))
	})
	if _, err := newMirror(t).Fetch(within(t), Remote{URL: away + "/source.git", Credential: secret}, FetchOptions{}); !errors.Is(err, ErrAuth) {
		t.Errorf("redirected to another server: %v", err)
	}
	if told.Load() > 0 {
		t.Error("the other server was told the password")
	}
}

// demand wraps a handler so that it requires basic authentication.
func demand(user, password string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			u, p, ok := r.BasicAuth()
			if !ok || u != user || p != password {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// stall sends n bytes of each answer to a path, then nothing until the client disconnects.
func stall(suffix string, n int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, suffix) {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(&brake{ResponseWriter: w, left: n, then: func() { <-r.Context().Done() }}, r)
		})
	}
}

// die breaks the connection after n bytes of each answer to a path.
func die(suffix string, n int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, suffix) {
				next.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(&brake{ResponseWriter: w, left: n, then: func() { panic(http.ErrAbortHandler) }}, r)
		})
	}
}

// brake lets a fixed number of bytes pass.
type brake struct {
	http.ResponseWriter
	left int
	then func()
}

func (b *brake) Write(p []byte) (int, error) {
	if len(p) > b.left {
		n, _ := b.ResponseWriter.Write(p[:b.left])
		b.left = 0
		http.NewResponseController(b.ResponseWriter).Flush()
		b.then()
		return n, io.ErrClosedPipe
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}

func TestFetch_stopsAtItsContextAndTimeout(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	address := serve(t, filepath.Dir(r.dir), stall("", 0)) + "/source.git"
	start := time.Now()
	_, err := newMirror(t).Fetch(within(t), Remote{URL: address}, FetchOptions{Timeout: 300 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("a timeout of 0.3 s took %v", d)
	}
}

func TestFetch_remakesAMirrorWithDamagedObjects(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", "1\n")
	r.load(h)
	m, ctx := fetched(t, r.url()), within(t)
	packs, _ := filepath.Glob(filepath.Join(m.Dir(), "objects/pack/*"))
	for _, p := range packs {
		os.Chmod(p, 0o644)
		os.Truncate(p, 10)
	}
	// Locks of a killed git do not block later fetches.
	os.WriteFile(filepath.Join(m.Dir(), "packed-refs.lock"), nil, 0o644)
	os.WriteFile(filepath.Join(m.Dir(), "refs/heads/main.lock"), nil, 0o644)
	h.commit("refs/heads/main", 2, "Ann", "two", "a", "2\n")
	r.load(h)
	if _, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	s, err := m.Source(ctx, r.git("rev-parse", "main"), "a", SourceOptions{})
	if err != nil || string(s.Content) != "2\n" {
		t.Errorf("%q, %v", s.Content, err)
	}
}

// A remote that sends without end does not fill the disk, and the files of a failed try are removed
// before the next one.
func TestFetch_failsBeforeItFillsTheDisk(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the files of git are bounded on Linux only")
	}
	r := newRepo(t)
	large := make([]byte, 8<<20)
	if _, err := rand.NewChaCha8([32]byte{}).Read(large); err != nil {
		t.Fatal(err)
	}
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", string(large))
	r.load(h)
	address := serve(t, filepath.Dir(r.dir), nil) + "/source.git"
	halves := func(m *Mirror) int {
		left, err := filepath.Glob(filepath.Join(m.Dir(), "objects/pack/tmp_*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}

	m, ctx := newMirror(t), within(t)
	for range 2 {
		if _, err := m.Fetch(ctx, Remote{URL: address}, FetchOptions{Most: 1 << 20}); !errors.Is(err, ErrTooLarge) || halves(m) > 0 {
			t.Errorf("a pack of 8 MB where 1 MB may be received: %v, %d halves are left", err, halves(m))
		}
	}
	if _, err := m.Fetch(ctx, Remote{URL: address}, FetchOptions{}); err != nil {
		t.Errorf("with room enough: %v", err)
	}

	// This fetch hangs in the middle.
	m = newMirror(t)
	address = serve(t, filepath.Dir(r.dir), stall("/git-upload-pack", 2<<20)) + "/source.git"
	if _, err := m.Fetch(ctx, Remote{URL: address}, FetchOptions{Timeout: 3 * time.Second}); err == nil || halves(m) > 0 {
		t.Errorf("a fetch that hangs: %v, %d halves are left", err, halves(m))
	}
}

// Other fetches of a repository wait for this one, so it gives up a silent server early.
func TestListReferences_failsEarlyForASilentServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fetch, list FetchOptions }{
		{FetchOptions{}, FetchOptions{Stall: 20 * time.Second, Timeout: 2 * time.Minute}},
		{FetchOptions{Stall: time.Second, Timeout: time.Minute}, FetchOptions{Stall: time.Second, Timeout: time.Minute}},
	} {
		if got := tt.fetch.listing(); got != tt.list {
			t.Errorf("a fetch with %+v lists with %+v", tt.fetch, got)
		}
	}
}
