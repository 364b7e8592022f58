package host

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/host/hosttest"
)

// After a restart, hosts with versions send only what changed. Other hosts get the same calls as
// the first time, and no more.
func TestHTTPCache_survivesRestarts(t *testing.T) {
	t.Parallel()
	// The hosts with versions.
	known := map[string]bool{"github": true, "github enterprise server": true, "gitlab": true}
	anew := map[string]int{"gitlab": 1}
	for _, st := range deploymentTests() {
		t.Run(st.host.Name, func(t *testing.T) {
			t.Parallel()
			repos := world()
			tr := st.start(t, repos...)
			dir := t.TempDir()

			// run is one process: it lists single repositories, looks one up, and looks for pushes.
			run := func() (listed string, calls, same int) {
				before, had := tr.s.Calls(), tr.s.Same()
				tr.tools.Answers = NewAnswers(dir)
				rec, err := tr.list(wanted{repos: []string{"acme/app", "acme/vault", "acme/app-old"}})
				if err != nil {
					t.Fatal(err)
				}
				slices.SortFunc(rec.repos, func(a, b Repo) int { return strings.Compare(a.ExternalID, b.ExternalID) })
				if finder, ok := tr.open(wanted{owners: []string{"acme"}}).(Finder); ok {
					if _, _, err := finder.Lookup(t.Context(), rec.repos[0].ExternalID); err != nil {
						t.Error(err)
					}
				}
				if changer, ok := tr.open(wanted{owners: []string{"acme"}}).(Changer); ok {
					if _, err := changer.Changed(t.Context(), repos[0].Pushed.Add(-time.Hour), func(Mark) {}); err != nil {
						t.Error(err)
					}
				}
				return ids(rec), tr.s.Calls() - before, tr.s.Same() - had
			}

			first, calls, _ := run()
			second, again, same := run()
			if second != first || again != calls {
				t.Errorf("%s in %d calls, then %s in %d", first, calls, second, again)
			}
			if known[st.host.Name] && same != again-anew[st.host.Name] || !known[st.host.Name] && same != 0 {
				t.Errorf("of %d calls of the second process %d are answered by saying that it has the answer", again, same)
			}
			t.Logf("%s: %d calls, of which the second process had %d", st.host.Name, again, same)

			// A changed answer is sent again.
			tr.s.Do(func(s *hosttest.State) { (*s.Repos)[0].Description = "another" })
			if _, _, same := run(); known[st.host.Name] && same >= again-anew[st.host.Name] {
				t.Errorf("all of %d calls are as they were after a change", again)
			}

			// The files contain no secret, and nobody else may read them.
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil || known[st.host.Name] != (len(files) > 0) {
				t.Errorf("kept are %v, %v", files, err)
			}
			for _, f := range files {
				info, err := os.Stat(f)
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", f, info.Mode(), err)
				}
				kept, err := readAnswer(f)
				if err != nil || strings.Contains(string(kept.Body)+filepath.Base(f), hosttest.Token) {
					t.Errorf("%s holds %+v, %v", f, kept, err)
				}
			}
		})
	}
}

// A token gets a cached answer only if the host confirms it, so a token with fewer rights gets
// nothing.
func TestHTTPCache_isUsedOnlyIfTheHostConfirms(t *testing.T) {
	t.Parallel()
	st := githubDeployment(hosttest.GitHub())
	tr := st.start(t, world()...)
	tr.tools.Answers = NewAnswers(t.TempDir())
	one := wanted{repos: []string{"acme/vault"}}
	if rec, err := tr.list(one); err != nil || ids(rec) != "4" {
		t.Fatalf("%s, %v", ids(rec), err)
	}
	tr.s.Do(func(s *hosttest.State) { *s.Token = "another" })
	if rec, err := tr.list(one); !RefusesToken(err) || len(rec.repos) != 0 {
		t.Errorf("with a token that is refused: %s, %v", ids(rec), err)
	}
	if _, _, err := tr.open(one).(Finder).Lookup(t.Context(), "github:github.com:4"); !RefusesToken(err) {
		t.Errorf("looked up: %v", err)
	}
}

// The cache is limited. Damaged files count as missing, and crashes leave no files.
func TestHTTPCache_dropsTheLeastUsedAndIgnoresDamage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "answers")
	a := NewAnswers(dir)
	name := func(i int) string { s := strconv.Itoa(i); return strings.Repeat("0", 64-len(s)) + s }
	kept := func(text string) *cachedAnswer {
		return &cachedAnswer{Tag: "v", Head: http.Header{"Link": {"next"}}, Body: json.RawMessage(`"` + text + `"`)}
	}
	for i := range 20 {
		a.store(name(i), kept(strconv.Itoa(i)))
	}
	a.store(name(20), kept(strings.Repeat("x", maxAnswerSize)))

	// a damaged file, and one half written
	if err := os.WriteFile(filepath.Join(dir, name(3)), []byte("\x1f\x8bnot it"), 0o600); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, name(4)+".new")
	if err := os.WriteFile(half, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	again := NewAnswers(dir)
	for i, want := range []bool{2: true, 3: false, 19: true, 20: false} {
		if i != 2 && i != 3 && i < 19 {
			continue
		}
		got := again.load(name(i))
		if (got != nil) != want {
			t.Errorf("answer %d: %+v", i, got)
		}
		if got != nil && (got.Tag != "v" || got.Head.Get("Link") != "next" || string(got.Body) != `"`+strconv.Itoa(i)+`"`) {
			t.Errorf("answer %d is %+v", i, got)
		}
	}
	if _, err := os.Stat(half); !os.IsNotExist(err) {
		t.Errorf("what was half written: %v", err)
	}

	// Beyond the limit, the least recently used is removed, not the one just read.
	again.limit = 10
	again.load(name(0))
	again.store(name(30), kept("30"))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 10 || again.load(name(0)) == nil || again.load(name(30)) == nil {
		t.Errorf("%d files, %v", len(files), err)
	}
}
