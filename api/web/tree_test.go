package web

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// oneDirectory has a directory whose last commits are known, except for one entry.
type oneDirectory struct {
	browse.Reader
	asked []string // revisions
}

func (d *oneDirectory) ListTree(_ context.Context, _ catalog.Viewer, req browse.ListTreeRequest) (*browse.ListTreeResponse, error) {
	d.asked = append(d.asked, req.Ref)
	return &browse.ListTreeResponse{Commit: "c0ffee", Entries: []browse.TreeEntry{
		{Path: "d/sub", Name: "sub", Type: "tree"}, {Path: "d/a<b", Name: "a<b", Type: "blob", Size: 3}, {Path: "d/old", Name: "old", Type: "blob"},
	}}, nil
}

func (d *oneDirectory) LastCommits(_ context.Context, _ catalog.Viewer, req browse.LastCommitsRequest) (*browse.LastCommitsResponse, error) {
	d.asked = append(d.asked, req.Ref+" "+req.Path)
	return &browse.LastCommitsResponse{
		Entries: []browse.LastEntry{{Name: "a<b", Hash: "beef"}, {Name: "old", From: "f00d"}, {Name: "sub", Hash: "dad"}},
		Commits: map[string]browse.LastCommit{
			"beef": {Hash: "beef", Date: time.Unix(0, 0), Message: "<b>bold", AuthorName: `An"n`}, "dad": {Hash: "dad", Date: time.Unix(3000, 0), AuthorName: "Bob"},
		},
	}, nil
}

// A directory is a list. For a script it has the last commit of each entry, as of the shown
// commit; an entry without a result in time links to the history.
func TestDirectoryPage_listsTheLastCommitOfEachEntry(t *testing.T) {
	t.Parallel()
	d := &oneDirectory{}
	p := &sources{dating: dating{func() time.Time { return time.Unix(3600, 0) }}, reader: d}
	drawn := func(part, query string) string {
		t.Helper()
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		v := &layout.Visit{Part: part, Query: q, Status: 200, Sent: func(string) string { return "" }}
		if err := p.tree(t.Context(), v, place{Repo: "r", Rev: "main", Kind: "tree", Path: "d"}); err != nil {
			t.Fatal(err)
		}
		return string(v.Body)
	}

	whole, part := drawn("whole", ""), drawn("last", "at=c0ffee")
	if strings.Contains(whole, `class="last"><a`) || !strings.Contains(whole, `id="entries" data-last="/browse/r@main/-/tree/d?at=c0ffee"`) {
		t.Errorf("the page is\n%s", whole)
	}
	if got := strings.Join(d.asked, ", "); got != "main, c0ffee, c0ffee d" {
		t.Errorf("asked for %s", got)
	}
	if n := strings.Count(part, "<tr>"); n != strings.Count(whole, "<tr>") || n != 4 || strings.Contains(part, "<b>") || strings.Contains(part, "data-last") {
		t.Errorf("%d rows:\n%s", n, part)
	}
	for _, want := range []string{
		`<bdi>sub</bdi>/</a></td><td class="last"><a href="/browse/r/-/commit/dad" title="dad, 1970-01-01 00:50 UTC, Bob"><code>dad</code></a> <span class="dim"><bdi>Bob</bdi></span></td><td class="dim when">10 minutes ago</td>`,
		`title="beef, 1970-01-01 00:00 UTC, An&#34;n"><bdi>&lt;b&gt;bold</bdi></a>`,
		`<span class="dim">not found in time:</span> <a href="/browse/r@main/-/commits/d/old">history</a></td><td class="dim when"></td>`,
	} {
		if !strings.Contains(part, want) {
			t.Errorf("the part has no %s:\n%s", want, part)
		}
	}
}
