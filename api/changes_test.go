package api

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// changing serves a repository whose branches main and side diverge at v1. The first of main's
// two commits only changes blanks; branch alone has no common commit.
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

// difference is a detailed answer of GET /api/diff.
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

// A difference has details on request, with the requested number and size of hunks.
func TestDiff_hasHunksOnlyOnRequest(t *testing.T) {
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

// On request the history of a file continues through renames, with the old names.
func TestFileHistory_followsRenamesOnRequest(t *testing.T) {
	t.Parallel()
	s, _ := changing(t)
	for target, want := range map[string]string{
		"path=new.txt": "1 []", "path=new.txt&follow=true": "2 [new.txt old.txt]", "path=new.txt&follow=true&perPage=1&page=2": "2 [old.txt]",
		"path=old.txt&follow=true": "2 [old.txt old.txt]", "follow=false": "3 []",
	} {
		resp, body := askAs(t, s, "", "GET", "/api/commits?repo=local/app&"+target, "")
		var commits []browse.CommitInfo
		if err := json.Unmarshal(body, &commits); err != nil {
			t.Fatalf("%s: %d %s", target, resp.StatusCode, body)
		}
		names := []string{}
		for _, c := range commits {
			if c.Path != "" {
				names = append(names, c.Path)
			}
		}
		if got := fmt.Sprint(resp.Header.Get("X-Total-Count"), " ", names); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}

	for target, want := range map[string]string{
		"follow=true": "path: required with follow", "path=/&follow=true": "is a directory", "path=a.go&follow=true&since=2020": "leave out query, author, since and until", "path=a.go&follow=2": "follow: expected true or false",
	} {
		resp, body := askAs(t, s, "", "GET", "/api/commits?repo=local/app&"+target, "")
		if failureOf(t, target, resp.StatusCode, body); resp.StatusCode != 400 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s, want %s", target, resp.StatusCode, body, want)
		}
	}
}

// The API and pages can ignore blanks. A page says so if nothing is left.
func TestDiff_ignoresWhitespaceOnRequest(t *testing.T) {
	t.Parallel()
	s, _ := changing(t)
	if d := changed(t, s, "base=v1&head=blanks"); len(d.Files) != 1 || len(d.Files[0].Hunks) != 1 {
		t.Errorf("with blanks: %+v", d)
	}
	for _, more := range []string{"", "&stat=true", "&details=true"} {
		if d := changed(t, s, "base=v1&head=blanks&ignoreWhitespace=true"+more); len(d.Files) != 0 {
			t.Errorf("without blanks%s: %+v", more, d)
		}
	}

	const nothing = "Nothing is left of this change once blanks are ignored."
	for path, want := range map[string]bool{
		"commit/blanks": false, "commit/blanks?w=1": true, "commit/main?w=1": false,
		"compare/v1..blanks": false, "compare/v1..blanks?w=1": true, "compare/v1...main?w=1": false, "compare/v1..v1": false,
	} {
		resp, body := askAs(t, s, "", "GET", "/browse/local/app/-/"+path, "")
		page := string(body)
		if got := strings.Contains(page, nothing); resp.StatusCode != 200 || got != want {
			t.Errorf("%s: %d, says that nothing is left: %t", path, resp.StatusCode, got)
		}
		if drawn := strings.Contains(page, `<article class="file"`); drawn == want && path != "compare/v1..v1" {
			t.Errorf("%s: changes are drawn: %t", path, drawn)
		}
	}

	// Each link changes one setting and keeps the others.
	_, body := askAs(t, s, "", "GET", "/browse/local/app/-/compare/v1...main?w=1&view=split&context=10", "")
	for _, want := range []string{
		`href="?context=10&amp;w=1"`, `href="?view=split&amp;w=1"`, `href="?context=50&amp;view=split&amp;w=1"`, `href="?context=10&amp;view=split">blanks count`,
		`href="?context=10&amp;view=split&amp;w=1" aria-current="true">blanks ignored`, `href="/browse/local/app/-/compare/main...v1?context=10&amp;view=split&amp;w=1"`,
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %s", want)
		}
	}
}

// Two dots compare the named revisions, three dots the head with the merge base.
func TestCompare_threeDotsCompareWithTheMergeBase(t *testing.T) {
	t.Parallel()
	s, r := changing(t)
	parted := r.Git("rev-parse", "v1")
	if d := changed(t, s, "base=main&head=side&mergeBase=true&details=true"); len(d.Files) != 1 || d.Files[0].Status != "added" || d.BaseCommit != parted {
		t.Errorf("since they parted: %+v", d)
	}
	if d := changed(t, s, "base=main&head=side"); len(d.Files) != 3 {
		t.Errorf("directly: %+v", d)
	}

	// The form on the page of tags may leave out what to compare with.
	if resp, _ := askAs(t, s, "", "GET", "/browse/local/app/-/compare/?base=&head=side", ""); resp.StatusCode != 200 || !strings.HasSuffix(resp.Request.URL.Path, "/-/compare/main...side") {
		t.Errorf("without a base: %d, %s", resp.StatusCode, resp.Request.URL)
	}

	for path, want := range map[string][]string{
		"main..side":  {"</bdi> .. <bdi", `meta">3 files`, `/-/compare/side..main">the other way round`, `/-/compare/main...side">from where`, `/-/compare/main..side" aria-current`},
		"main...side": {"</bdi> ... <bdi", `meta">1 file `, `/-/compare/side...main">the other way round`, `href="/browse/local/app/-/commit/` + parted + `">since they parted at`, `/-/compare/main...side" aria-current`},
		"side...main": {`meta">2 files`},
	} {
		resp, body := askAs(t, s, "", "GET", "/browse/local/app/-/compare/"+path, "")
		for _, w := range want {
			if resp.StatusCode != 200 || !strings.Contains(string(body), w) {
				t.Errorf("%s: %d without %s", path, resp.StatusCode, w)
			}
		}
	}

	// Without a merge base the message says what to do.
	resp, body := askAs(t, s, "", "GET", "/api/diff?repo=local/app&base=main&head=alone&mergeBase=true", "")
	if code := failureOf(t, "nothing in common", resp.StatusCode, body); code != codeInvalidParams || !strings.Contains(string(body), "compare them directly (with two dots, or without mergeBase)") {
		t.Errorf("nothing in common: %s", body)
	}
	resp, body = askAs(t, s, "", "GET", "/browse/local/app/-/compare/main...alone", "")
	if resp.StatusCode != 400 || !strings.Contains(string(body), "compare them directly") {
		t.Errorf("the page of nothing in common: %d", resp.StatusCode)
	}
}
