package change

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/git"
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

	for _, with := range []string{`"format":0`, `"format":"`} {
		rewrite(`"format":1`, with)
		if again, err := update(); err != nil || again.Commits != first.Commits {
			t.Errorf("%s: %+v, %v", with, again, err)
		}
	}
	rewrite(`"format":1`, `"format":2`)
	if _, err := update(); !errors.Is(err, file.ErrNewer) {
		t.Errorf("of a newer version: %v", err)
	}
	if text, _ := os.ReadFile(name); !strings.Contains(string(text), `"format":2`) {
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
