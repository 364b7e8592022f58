package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/nodetest"
)

// history makes a repository, with one commit a second.
type history struct {
	nodetest.Stream
	commits int
}

// commit adds a commit; files are pairs of path and content.
func (h *history) commit(who, message string, files ...string) {
	h.commits++
	c := nodetest.Commit{Author: who, When: time.Unix(1_700_000_000+int64(h.commits), 0), Message: message}
	for i := 0; i+1 < len(files); i += 2 {
		c.Put = append(c.Put, nodetest.Entry{Path: files[i], Content: files[i+1]})
	}
	h.Commit(c)
}

// hostile is a kind of object made to do harm. path is the path of requests for it. fill makes it
// n times as large as the short form, up to a limit.
type hostile struct {
	name, path string
	fill       func(h *history, n int)
}

// hostiles has a row for each kind of object in a repository.
func hostiles() []hostile {
	rep := strings.Repeat
	file := func(name, path string, text func(n int) string) hostile {
		return hostile{name, path, func(h *history, n int) { h.commit("Eve", "one", path, text(n)) }}
	}
	return []hostile{
		{"message", "a.txt", func(h *history, n int) {
			for i := range 5 {
				h.commit("Eve", fmt.Sprintf("%d a%s\n\n%s", i, rep("s", n<<16), rep("b", n<<16)), "a.txt", fmt.Sprint("a", i))
			}
		}},
		{"author", "a.txt", func(h *history, n int) {
			for i := range 5 {
				h.commit(rep("n", n<<16), fmt.Sprint("a", i), "a.txt", fmt.Sprint("a", i))
			}
		}},
		{"tag", "a.txt", func(h *history, n int) {
			h.commit("Eve", "a", "a.txt", "a")
			for i := range 5 {
				fmt.Fprintf(h, "tag %s%d\nfrom refs/heads/main\ntagger Eve <e@example.org> 1700000000 +0000\ndata %d\n%s\n", rep("t", 200), i, n<<16, rep("m", n<<16))
			}
		}},
		{"wide", "f1", func(h *history, n int) {
			var files []string
			for i := range 60 * n {
				files = append(files, fmt.Sprint("f", i), "a\n")
			}
			h.commit(rep("&", 15<<10), rep("<", 15<<10), files...) // shown next to each file
		}},
		{"deep", "a.txt", func(h *history, n int) {
			// Some versions of git crash on these. The newest commit has none, so that it is
			// indexed.
			h.commit("Eve", "a", "a.txt", "a", rep("d/", 20_000)+"f", "a")
			h.Commit(nodetest.Commit{Message: "b", When: time.Unix(1_700_000_009, 0), Put: []nodetest.Entry{{Path: "a.txt", Content: "b"}}, Delete: []string{"d"}})
		}},
		{"path", "a.txt", func(h *history, n int) {
			h.commit("Eve", "a", "a.txt", "a", rep(rep("p", 250)+"/", min(15*n, 300))+"f", "a", "\x1b[31m\u202e\n\"'<b>", "a")
			h.commit("Eve", "b", "a.txt", "b", rep(rep("p", 250)+"/", min(15*n, 300))+"f", "b")
		}},
		{"ref", "a.txt", func(h *history, n int) {
			h.commit("Eve", "a", "a.txt", "a")
			for i := range min(600*n, 199_000) { // more are not listed at all
				fmt.Fprintf(h, "reset refs/heads/b%d\nfrom refs/heads/main\n\n", i)
			}
		}},
		file("blob", "a.txt", func(n int) string { return rep("a", min(max(n<<16, 3<<20), 15<<20)) }), // read from git, because the index does not take files of this size
		file("line", "a.js", func(n int) string { return rep("a", min(n<<18, 1<<20)) }),
		{"lines", "a.go", func(h *history, n int) {
			h.commit("Eve", "a", "a.go", rep("a(\n", n<<13), "b.go", rep("\n", n<<12))
			h.commit("Eve", "b", "b.go", "b")
		}},
		{"runs", "a.go", func(h *history, n int) { // each line is its own run in a blame
			var before, after strings.Builder
			for i := range min(n<<12, 100_000) {
				fmt.Fprintf(&before, "%d\n<\n", i)
				fmt.Fprintf(&after, "%d\n>\n", i)
			}
			h.commit("Eve", rep("<", 15<<10), "a.go", before.String())
			h.commit("Eve", rep(">", 15<<10), "a.go", after.String())
		}},
		{"pack", "a.txt", func(h *history, n int) {
			for i := range 20 {
				h.commit("Eve", "a", "a.txt", rep("a\n", n<<12)+fmt.Sprint(i))
			}
		}},
		file("attributes", ".gitattributes", func(n int) string { return rep("a?*[a-z]* text linguist-language=Go\n", n<<10) }),
		file("lfs", "a.bin", func(n int) string {
			return "version https://git-lfs.github.com/spec/v1\noid sha256:" + rep("a", 64) + "\nsize 9223372036854775807\n"
		}),
		file("notebook", "a.ipynb", func(n int) string {
			return `{"cells":[{"cell_type":"code","source":` + rep("[", n<<14) + rep("]", n<<14) + `}]}`
		}),
		file("markdown", "README.md", func(n int) string { return rep("- ", min(n*4_000, 250_000)) + "a" }),
		file("code-spans", "README.md", func(n int) string { return rep("\\```\n<code>|", min(n*1_000, 40_000)) }),
		file("svg", "a.svg", func(n int) string { return `<svg xmlns="http://www.w3.org/2000/svg">` + rep("<g>", n<<14) }),
		file("modules", ".gitmodules", func(n int) string { return rep("[submodule \"a\"]\n\tpath = a\n\turl = ../a\n", n<<10) }),
	}
}

// calls returns a request for each route, tool and page that reads a repository.
func calls(repo, path string) (urls []string, posts map[string]any) {
	q := "?repo=" + url.QueryEscape(repo)
	at := q + "&path=" + url.QueryEscape(path)
	for _, u := range []string{"source" + at, "raw" + at, "commits" + q, "commits" + at, "commits" + at + "&follow=true", "commits" + q + "&query=a", "commits" + q + "&author=a", "commit" + q + "&ref=HEAD",
		"commits/authors" + q, "diff" + q + "&base=HEAD~1&head=HEAD", "diff" + q + "&base=HEAD~1&head=HEAD&stat=true", "blame" + at, "branches" + q, "tags" + q, "lastcommits" + q, "ref" + q + "&ref=HEAD", "files" + q + "&query=a", "symbols" + q} {
		urls = append(urls, "/api/"+u)
	}
	page := "/browse/" + repo
	for _, u := range []string{"", "/-/tree/", "/-/blob/" + path, "/-/blob/" + path + "?plain=1", "/-/blame/" + path, "/-/raw/" + path, "/-/commits", "/-/commits/" + path, "/-/commit/HEAD", "/-/compare/HEAD~1...HEAD", "/-/branches", "/-/tags", "/-/find", "/-/symbols", "/-/commits.atom"} {
		urls = append(urls, page+u)
	}
	urls = append(urls, "/search?query="+url.QueryEscape("a repo:"+repo))

	posts = map[string]any{
		"/api/search": map[string]any{"query": "a repo:" + repo}, "/api/tree": map[string]any{"repoName": repo, "revisionName": "HEAD", "paths": []string{""}},
		"/api/find_definitions": map[string]any{"symbolName": "a", "repoName": repo}, "/api/find_references": map[string]any{"symbolName": "a", "repoName": repo},
	}
	for tool, more := range map[string]map[string]any{"list_commits": {"query": "a"}, "list_branches": {}, "list_tree": {}, "glob": {"pattern": "**"}, "grep": {"pattern": "a"}, "read_file": {"path": path}, "outline": {"path": path},
		"blame": {"path": path}, "get_diff": {"base": "HEAD~1", "head": "HEAD"}, "find_symbol_definitions": {"symbol": "a"}, "find_symbol_references": {"symbol": "a"}, "search": {"query": "a"}} {
		more["repo"] = repo
		posts["/api/mcp#"+tool] = map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": more}}
	}
	return urls, posts
}

// Every route, tool and page is called for hostile repositories of each kind. A node with a
// gigabyte of memory answers or refuses, and survives. SHOAL_HOSTILE=long uses the largest sizes.
func TestHostileRepositories_needLessThanAGigabyte(t *testing.T) {
	t.Parallel()
	n, most := 1, time.Minute
	if os.Getenv("SHOAL_HOSTILE") == "long" {
		n, most = 320, 2*time.Minute
	}
	p := newProcess(t)
	p.env = append(p.env, "GOMEMLIMIT=512MiB")
	p.http.Timeout = most
	kinds := hostiles()
	for _, k := range kinds {
		h := &history{}
		k.fill(h, n)
		h.Import(t, filepath.Join(p.dir, "repos", k.name))
	}
	p.start(t)
	p.searchable(t)
	p.settled(t, most*5)
	t.Logf("%-12s %4d MB at most", "indexing", p.memory(t)>>20)

	for _, k := range kinds {
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0) // resets the peak
		began := time.Now()
		urls, posts := calls("local/"+k.name, k.path)
		for _, u := range urls {
			p.survives(t, k.name, u, nil)
		}
		for u, body := range posts {
			p.survives(t, k.name, u, body)
		}
		peak := p.memory(t)
		t.Logf("%-12s %4d MB at most, %v", k.name, peak>>20, time.Since(began).Round(time.Millisecond))
		if peak > 1<<30 {
			t.Errorf("%s: the node took %d MB", k.name, peak>>20)
		}
	}
}

// settled waits until no repository waits for its first index.
func (p *process) settled(t *testing.T, most time.Duration) {
	t.Helper()
	ends := time.Now().Add(most)
	nodetest.Wait(t, "each repository is indexed or refused", func() error {
		if err := p.alive(); err != nil {
			t.Fatal(err)
		}
		resp, err := p.http.Get(p.url() + "/api/repos?perPage=100")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var repos []struct {
			RepoName  string
			IndexedAt string
		}
		if err := json.NewDecoder(resp.Body).Decode(&repos); err != nil {
			return err
		}
		i := slices.IndexFunc(repos, func(r struct{ RepoName, IndexedAt string }) bool { return r.IndexedAt == "" })
		if i >= 0 && time.Now().Before(ends) && !strings.Contains(p.log(), "local/"+filepath.Base(repos[i].RepoName)+" ") {
			return fmt.Errorf("%s is not indexed", repos[i].RepoName)
		}
		return nil
	})
}

// survives sends a request, which must be answered or refused in time, with little memory, and
// without a fault of the node.
func (p *process) survives(t *testing.T, kind, u string, body any) {
	t.Helper()
	method, text := "GET", []byte(nil)
	if body != nil {
		method = "POST"
		text, _ = json.Marshal(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, p.url()+u, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := p.http.Do(req)
	if err != nil {
		t.Fatalf("%s: %s: %v; %v", kind, u, err, p.alive())
	}
	defer resp.Body.Close()
	var head bytes.Buffer
	length, err := io.Copy(&head, io.LimitReader(resp.Body, 4<<10))
	if err == nil {
		var rest int64
		rest, err = io.Copy(io.Discard, resp.Body)
		length += rest
	}

	// This node has no ctags, and says so if symbols are requested.
	failed := resp.StatusCode == http.StatusInternalServerError && !strings.Contains(head.String(), "ctags")
	if err != nil || failed || length > 64<<20 && !strings.Contains(u, "raw") {
		t.Errorf("%s: %s: status %d, %d bytes, %v: %.200s", kind, u, resp.StatusCode, length, err, head.String())
	}
}
