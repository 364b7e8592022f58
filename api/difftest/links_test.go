package difftest

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"
)

// linksOpen follows the links of answers. Each opens the revision that was found, also if a
// branch and a tag share a name.
func linksOpen(t *testing.T, w *twin, s *server) {
	a := w.named("local/refs")
	opens := func(link, text string) {
		_, path, ok := strings.Cut(link, "/browse/")
		path = regexp.MustCompile(`/-/(blob|tree)/.*`).ReplaceAllString(path, "/-/raw/f.txt")
		if _, body, err := s.ask("/browse/"+path, nil); !ok || err != nil || string(body) != text {
			t.Errorf("%s opens %q, %v, want %q", link, body, err, text)
		}
	}

	texts := map[string]string{} // of branches, by name
	for _, r := range a.refs {
		name, isBranch := strings.CutPrefix(r.name, "refs/heads/")
		f := r.fileAt("f.txt")
		if isBranch {
			texts[name] = f.text
		}

		_, body, err := s.ask("/api/search", map[string]any{"query": `reposet:local/refs file:^f\.txt$ rev:"` + r.name + `"`})
		var got searchAnswer
		if err != nil || json.Unmarshal(body, &got) != nil || len(got.Files) != 1 {
			t.Errorf("%s: %v, %.300s", r.name, err, body)
			continue
		}
		opens(got.Files[0].WebURL, f.text)

		// The links of a result page are for the requested revision.
		_, page, err := s.get("/search", map[string]any{"query": `reposet:local/refs file:^f\.txt$ rev:"` + r.name + `"`})
		m := regexp.MustCompile(`class="path" href="([^"]+)"`).FindSubmatch(page)
		if err != nil || m == nil {
			t.Errorf("%s: the page has no link: %v", r.name, err)
			continue
		}
		opens(html.UnescapeString(string(m[1])), f.text)
	}

	_, page, err := s.ask("/browse/local/refs/-/branches", nil)
	rows := regexp.MustCompile(`<a href="(/browse/local/refs@[^"]+/-/tree/)"[^>]*>(?:<bdi>)?([^<]+)<`).FindAllSubmatch(page, -1)
	if err != nil || len(rows) < len(texts) {
		t.Errorf("%d rows of %d branches, %v: %.3000s", len(rows), len(texts), err, page)
	}
	for _, row := range rows {
		opens(html.UnescapeString(string(row[1])), texts[html.UnescapeString(string(row[2]))])
	}
}
