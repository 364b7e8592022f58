package api

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

var (
	turnedFile = regexp.MustCompile(`<a class="path" href="([^"]+)">`)
	turnedSum  = regexp.MustCompile(`<span class="dim count">([\d,]+) match`)
	turnedNext = regexp.MustCompile(`<a id="next" href="([^"]+)"`)
	turnedMore = regexp.MustCompile(`<a href="(/search[^"]+)">(?:all matches|\+[\d,]+ more) in this file`)
)

// All pages of a result with thousands of matches together have each file once, and as many
// matches as an exhaustive count. Opening the file with the most matches shows them all.
func TestSearchPages_togetherCoverAllMatchesOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{"most.txt": strings.Repeat("a needle\n\n\n\n", 1300)}
	for i := range 900 {
		// Scores differ by name, by definition, and by density of the word.
		name := fmt.Sprintf("d%02d/f%03d.c", i%17, i)
		if i%23 == 0 {
			name = fmt.Sprintf("deep/er/needle%d.c", i)
		}
		text := strings.Repeat("void other(void);\n\n", i%11) + strings.Repeat("int needle; /* x */\n\n\n\n", 1+i*i%37)
		if i%31 == 0 {
			text = "int needle(void) { return 1; }\n" + text
		}
		files[name] = text
	}
	nodetest.NewRepo(t, dir+"/app", files)
	n := nodetest.Start(t, nodetest.Config{
		File: `{"connections": {"work": {"type": "git", "url": "file://` + dir + `/*"}}}`,
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
	})
	nodetest.Wait(t, "the repository", func() error {
		if st := n.Status(); st.Repos.Indexed != 1 {
			return fmt.Errorf("repositories %+v", st.Repos)
		}
		return nil
	})
	s := start(t, partsOf(n.Node))

	all, err := n.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: "count:all needle", Matches: 100_000})
	if err != nil || !all.Coverage.Exhaustive() {
		t.Fatalf("%+v, %v", all, err)
	}
	want := map[string]int{}
	for i := range all.Files {
		want[all.Files[i].Path] = all.Files[i].Matches
	}
	if all.Stats.TotalMatches < 8000 {
		t.Fatalf("%d matches are too few for a walk", all.Stats.TotalMatches)
	}

	got, most, pages := map[string]int{}, "", 0
	for at := "/search?query=needle"; at != ""; pages++ {
		_, body := askAs(t, s, "", "GET", at, "")
		for _, article := range strings.Split(string(body), "<article")[1:] {
			u, err := url.PathUnescape(turnedFile.FindStringSubmatch(article)[1])
			if err != nil {
				t.Fatal(err)
			}
			_, path, _ := strings.Cut(u, "/-/blob/")
			if got[path] > 0 {
				t.Errorf("%s is there twice", path)
			}
			got[path] = number(t, turnedSum.FindStringSubmatch(article)[1])
			if path == "most.txt" {
				most = html.UnescapeString(turnedMore.FindStringSubmatch(article)[1])
			}
		}
		if at = ""; turnedNext.Match(body) {
			at = html.UnescapeString(string(turnedNext.FindSubmatch(body)[1]))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d pages have %d files, the count says %d", pages, len(got), len(want))
	}
	for path, n := range want {
		if got[path] != n {
			t.Errorf("%s: %d matches, want %d", path, got[path], n)
		}
	}

	// The first page has no directory counts, because its search ends early; on request it counts
	// each.
	_, body := askAs(t, s, "", "GET", "/search?query=needle", "")
	if aside := cut(body, "<aside", "</aside>"); strings.Contains(aside, "≥") || !strings.Contains(aside, "deep/") || !strings.Contains(aside, "facets=all") {
		t.Errorf("facets of a page that is cut: %s", aside)
	}
	_, body = askAs(t, s, "", "GET", "/search?query=needle&facets=all", "")
	if aside := cut(body, "<aside", "</aside>"); !strings.Contains(aside, "Counted exactly: 901 files.") || strings.Contains(aside, "≥") || !strings.Contains(aside, `<bdi>deep/</bdi></a> <span class="dim">40<`) {
		t.Errorf("facets that are counted: %s", aside)
	}
	if got, want := cut(body, `<h1 class="summary">`, "<"), layout.Grouping(all.Stats.TotalMatches)+" matches in 901 files"; got != want {
		t.Errorf("counted, the page says %q, want %q", got, want)
	}

	// The API says the same as the page, on request.
	for _, c := range []struct {
		body string
		want string // of the directory deep/
	}{
		{`{"query":"needle","matches":20,"facets":true}`, `{"value":"deep/","count":40,"exact":true}`},
		{`{"query":"needle count:1 type:repo","facets":true}`, `{"value":"deep/","count":40,"exact":true}`},
		{`{"query":"type:file needle","matches":100000,"facets":true}`, `{"value":"deep/","count":40,"exact":true}`},
		{`{"query":"needle","matches":20}`, ``},
	} {
		for _, path := range []string{"/api/search", "/api/stream_search"} {
			_, body := askAs(t, s, "", "POST", path, c.body)
			if !strings.Contains(string(body), c.want) || strings.Contains(string(body), `"facets":`) != (c.want != "") {
				t.Errorf("%s %s: want %s in %.3000s", path, c.body, c.want, body)
			}
		}
	}

	// The progress at the end of a stream equals the counts of its answer.
	progress := &search.Progress{}
	whole, err := n.Node.Search.StreamSearch(t.Context(), catalog.Operator(), search.Request{Query: "count:all needle", Progress: progress}, func(*search.Chunk) error { return nil })
	if done := progress.Now(); err != nil || done.Found != int64(whole.Stats.TotalMatches) || done.Files == 0 || done.FilesDecided != done.Files || done.ShardsAnswered != int64(whole.Stats.ShardsRequired) {
		t.Errorf("told %+v of %+v, %v", done, whole, err)
	}

	lines := map[string]bool{}
	for at := most; at != ""; {
		_, body := askAs(t, s, "", "GET", at, "")
		if !strings.Contains(string(body), "1,300 matches in 1 file") || turnedMore.Match(body) {
			t.Errorf("the page of one file: %.3000s", body)
		}
		for _, hit := range strings.Split(string(body), `<div class="line hit"><a href="`)[1:] {
			line, _, _ := strings.Cut(hit, `"`)
			lines[line] = true
		}
		if at = ""; turnedNext.Match(body) {
			at = html.UnescapeString(string(turnedNext.FindSubmatch(body)[1]))
		}
	}
	if len(lines) != 1300 {
		t.Errorf("pages of one file show %d lines with matches, want 1,300", len(lines))
	}
}

// cut returns the text between two texts.
func cut(body []byte, from, to string) string {
	_, rest, _ := strings.Cut(string(body), from)
	inside, _, _ := strings.Cut(rest, to)
	return inside
}

// number parses a number with thousands separators.
func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
