package api

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/nodetest"
)

// changing serves a repository whose branches main and side part at v1. Of the two
// commits of main the first changes blanks alone; alone has no commit in common with it.
func changing(t *testing.T) (*Server, *nodetest.Repo) {
	t.Helper()
	dir := t.TempDir()
	r := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nvar x = 1\n", "old.txt": strings.Repeat("walrus\n", 20)})
	r.Git("tag", "v1")
	r.Git("checkout", "-q", "-b", "side")
	r.Commit(map[string]string{"side.go": "package a\n"})
	r.Git("checkout", "-q", "main")
	r.Commit(map[string]string{"a.go": "package a\n\nvar\tx  =  1\n"})
	r.Git("tag", "blanks")
	r.Commit(map[string]string{"a.go": "package a\n\n\tvar x = 2\n", "old.txt": "", "new.txt": strings.Repeat("walrus\n", 20) + "seal\n"})
	r.Git("checkout", "-q", "--orphan", "alone")
	r.Commit(map[string]string{"b.go": "package b\n"})
	r.Git("checkout", "-q", "main")

	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
	})
	n.WaitIndexed(1)
	return start(t, partsOf(n.Node)), r
}

// difference is an answer of GET /api/diff with its details.
type difference struct {
	BaseCommit, HeadCommit string
	Files                  []struct {
		Hunks []hunkJSON
		changeJSON
	}
}

func changed(t *testing.T, s *Server, query string) (d difference) {
	t.Helper()
	resp, body := askAs(t, s, "", "GET", "/api/diff?repo=local/app&"+query, "")
	if err := json.Unmarshal(body, &d); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s: %d %s", query, resp.StatusCode, body)
	}
	return d
}

// The details of a difference are there for who asks, and its hunks are as many and
// as long as asked for.
func TestADifferenceHasDetails(t *testing.T) {
	t.Parallel()
	s, r := changing(t)
	d := changed(t, s, "base=v1&head=main")
	if len(d.Files) != 2 || d.Files[0].changeJSON != (changeJSON{}) || d.BaseCommit != "" || d.Files[0].Hunks[0].OldRange.Lines != 3 {
		t.Errorf("plain: %+v", d)
	}

	d = changed(t, s, "base=v1&head=main&details=true&context=0")
	if d.BaseCommit != r.Git("rev-parse", "v1") || d.HeadCommit != r.Git("rev-parse", "main") || len(d.Files) != 2 {
		t.Fatalf("with details: %+v", d)
	}
	if h := d.Files[0].Hunks; len(h) != 1 || h[0].Body != "-var x = 1\n+\tvar x = 2\n" {
		t.Errorf("nothing around: %+v", h)
	}
	if d.Files[0].changeJSON != (changeJSON{Status: "modified", OldMode: "100644", NewMode: "100644", Added: 1, Removed: 1}) {
		t.Errorf("a file that changed: %+v", d.Files[0])
	}
	if c := d.Files[1].changeJSON; c.Status != "renamed" || c.Similarity < 90 || c.Similarity > 99 || c.Added != 1 {
		t.Errorf("a file that was renamed: %+v", c)
	}

	stat := changed(t, s, "base=v1&head=main&stat=true")
	for i, f := range stat.Files {
		if len(f.Hunks) != 0 || f.changeJSON != d.Files[i].changeJSON {
			t.Errorf("counted: %+v", f)
		}
	}
}
