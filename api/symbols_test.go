package api

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/suggest"
)

// Symbols are found by name: the name itself, then names that begin with it, then names with its
// letters. If there are none, the answer suggests similar names.
func TestSymbolSearch_ranksExactNamesThenPrefixesThenSimilarOnes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{
		"swim/swim.go":  "package pool\n\nfunc Swim() {}\n\ntype Swimmer struct{}\n\nfunc (Swimmer) Wait() {}\n",
		"set/width.go":  "package set\n\nfunc SetWidthMin() {}\n\nfunc swim() {}\n",
		"set/other.txt": "func Swimming() {}\n",
	})
	nodetest.NewRepo(t, filepath.Join(dir, "other"), map[string]string{"a.go": "package a\n\nfunc Swim() {}\n"})
	n := nodetest.Start(t, nodetest.Config{
		Edit: func(o *node.Options) { o.Ctags = "" }, // from PATH
		File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
	})
	n.WaitIndexed(2)
	s := start(t, partsOf(n.Node))

	found := func(query string) (text string, status int) {
		resp, body := askAs(t, s, "", "GET", "/api/symbols?repo=local/app&"+query, "")
		var got struct {
			Commit       string
			Symbols      []suggest.FoundSymbol
			IsTruncated  bool
			SimilarNames []string
			Message      string
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v: %s", query, err, body)
		}
		if resp.StatusCode != 200 {
			return got.Message, resp.StatusCode
		}

		var words []string
		for _, x := range got.Symbols {
			words = append(words, fmt.Sprintf("%s=%s:%d", x.Name, x.Path, x.Line))
		}
		if got.IsTruncated {
			words = append(words, "cut")
		}
		if len(got.Commit) != 40 {
			t.Errorf("%s: of commit %q", query, got.Commit)
		}
		return strings.Join(append(words, got.SimilarNames...), " "), 200
	}
	nodetest.Wait(t, "the symbols", func() error {
		if got, _ := found("query=Wait"); got != "Wait=swim/swim.go:7" {
			return fmt.Errorf("found %s", got)
		}
		return nil
	})

	_, body := askAs(t, s, "", "GET", "/api/commit?ref=HEAD&repo=local/app", "")
	var head struct{ Hash string }
	if err := json.Unmarshal(body, &head); err != nil || len(head.Hash) != 40 {
		t.Fatalf("%v: %s", err, body)
	}

	for _, c := range []struct{ query, want string }{
		{"query=Swim", "Swim=swim/swim.go:3 swim=set/width.go:5 Swimmer=swim/swim.go:5 SetWidthMin=set/width.go:3"},
		{"query=swim&limit=3", "swim=set/width.go:5 Swim=swim/swim.go:3 Swimmer=swim/swim.go:5 cut"},
		{"query=swim&limit=1", "swim=set/width.go:5 cut"},
		{"query=s+w+m+n", "SetWidthMin=set/width.go:3"},
		{"query=Swimer&ref=HEAD", "Swimmer=swim/swim.go:5"},
		{"query=Swinner", "Swimmer"}, // no match: suggests a similar name
		{"query=nothinglikeit", ""},
		{"query=Swimmer&ref=" + head.Hash[:10], "Swimmer=swim/swim.go:5"},
	} {
		if got, status := found(c.query); got != c.want || status != 200 {
			t.Errorf("%s: %d %s\nwant %s", c.query, status, got, c.want)
		}
	}

	for _, c := range []struct{ query, want string }{
		{"query=a&path=swim/swim.go", "not both"},
		{"query=", "query: required"},
		{"query=+", "query: expected a name of 1 to 256 bytes on one line"},
		{"query=" + url.QueryEscape("a\nb"), "on one line"},
		{"query=" + strings.Repeat("a", 257), "256 bytes"},
		{"query=a&limit=201", "limit: must be between 1 and 200"},
		{"path=swim/swim.go&limit=5", "limit: only beside query"},
		{"ref=HEAD", "path: required"},
	} {
		if got, status := found(c.query); !strings.Contains(got, c.want) || status != 400 {
			t.Errorf("%.80s: %d %s\nwant %s", c.query, status, got, c.want)
		}
	}
}

// The commit is known but not indexed, so it has no symbols to search.
func TestSymbolSearch_anUnindexedRevisionHasNoSymbols(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nfunc Swim() {}\n"})
	repo.Git("branch", "side")
	repo.Commit(map[string]string{"b.go": "package a\n\nfunc Whale() {}\n"})
	n := nodetest.Start(t, nodetest.Config{
		Edit: func(o *node.Options) { o.Ctags = "" }, // from PATH
		File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
	})
	n.WaitIndexed(1)
	s := start(t, partsOf(n.Node))

	resp, body := askAs(t, s, "", "GET", "/api/symbols?repo=local/app&ref=side&query=Swim", "")
	if code := failureOf(t, "not indexed", resp.StatusCode, body); code != codeRef || !strings.Contains(string(body), `is not indexed`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// The definition nearest to the place of the name comes first, also with a limit. Without a place
// the order is the usual one.
func TestDefinitions_nearestToThePositionComesFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "one"), map[string]string{"sea/a.go": "package sea\n\nfunc Swim() {}\n", "sea/b.py": "def Swim():\n    pass\n"})
	nodetest.NewRepo(t, filepath.Join(dir, "two"), map[string]string{"land/a.go": "package land\n\nfunc Swim() {}\n\ntype t struct{}\n\nfunc (t) Swim() {}\n"})
	n := nodetest.Start(t, nodetest.Config{
		Edit: func(o *node.Options) { o.Ctags = "" }, // from PATH
		File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
	})
	n.WaitIndexed(2)
	s := start(t, partsOf(n.Node))

	found := func(members string) string {
		_, body := askAs(t, s, "", "POST", "/api/find_definitions", `{"symbolName":"Swim"`+members+`}`)
		var got struct {
			Stats struct{ MatchCount int }
			Files []struct {
				FileName, Repository string
				Matches              []struct {
					Range struct{ Start struct{ LineNumber int } }
				}
			}
			RepositoryInfo     []struct{ Name string }
			IsSearchExhaustive bool
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%v: %s", err, body)
		}

		var words []string
		for _, f := range got.Files {
			words = append(words, strings.TrimPrefix(f.Repository, "local/")+"/"+f.FileName)
			for _, m := range f.Matches {
				words[len(words)-1] += fmt.Sprintf(":%d", m.Range.Start.LineNumber)
			}
		}
		return fmt.Sprintf("%s %d %d %t", strings.Join(words, " "), got.Stats.MatchCount, len(got.RepositoryInfo), got.IsSearchExhaustive)
	}
	nodetest.Wait(t, "the symbols", func() error {
		if got := found(""); !strings.HasSuffix(got, " 4 2 true") {
			return fmt.Errorf("found %s", got)
		}
		return nil
	})

	for _, c := range []struct{ members, want string }{
		{`,"path":"sea/c.py","pathRepoName":"local/one"`, "one/sea/b.py:1 one/sea/a.go:3 two/land/a.go:3:7 4 2 true"},
		{`,"path":"sea/c.go","pathRepoName":"local/one","limit":1`, "one/sea/a.go:3 1 1 false"},
		{`,"path":"land/a.go","line":7`, "two/land/a.go:7:3 one/sea/a.go:3 one/sea/b.py:1 4 2 true"},
		{`,"path":"land/a.go","line":5,"repoName":"local/two"`, "two/land/a.go:3:7 2 1 true"},
		{`,"path":"land/a.go","line":7,"column":1,"limit":1`, "two/land/a.go:3:7 2 1 false"},
		{`,"path":"land/a.go","pathRepoName":"local/hidden","limit":2`, found(`,"limit":2,"path":"nowhere.go"`)},
	} {
		if got := found(c.members); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.members, got, c.want)
		}
	}
}
