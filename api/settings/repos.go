package settings

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
)

var reposTemplate = parse("repos.html")

// reposPerPage is the number of repositories on a page.
const reposPerPage = 100

// repoOrders are the orders of the list, the default first.
var repoOrders = []struct {
	Value, Name, sort string
	desc              bool
}{
	{"name", "by name", "name", false},
	{"pushed", "by last push", "pushed", true},
	{"size", "by size", "size", true},
	{"stars", "by stars", "stars", true},
}

// repoMarks has the mark of each state of a repository.
var repoMarks = map[string]mark{
	browse.StateIndexed: good("indexed"), browse.StateIndexing: busy("indexing"), browse.StateWaiting: busy("waiting"),
	browse.StateFailed: bad("failed"), browse.StateUnfetchable: warn("unfetchable"),
}

// repoRow is a repository in the list.
type repoRow struct {
	*browse.RepoInfo
	Mark             mark
	URL, Text, Index string
	When             layout.When
	Revisions        string
	ReindexURL       string
}

// repos shows the list of repositories that the viewer may see.
func (p *Pages) repos(ctx context.Context, v *layout.Visit) error {
	q := v.Query
	number, _ := strconv.Atoi(q.Get("page"))
	req := browse.ReposRequest{
		Query:      q.Get("query"),
		Connection: q.Get("connection"),
		State:      q.Get("state"),
		Page:       max(1, number),
		PerPage:    reposPerPage,
	}

	// Ignore an unknown state, as in an old link.
	if !slices.Contains(browse.RepoStates(), req.State) {
		req.State = ""
	}

	// Ignore an unknown order.
	order := repoOrders[0]
	for _, o := range repoOrders {
		if o.Value == q.Get("sort") {
			order = o
		}
	}
	req.Sort, req.Desc = order.sort, order.desc

	r, err := p.Browse.Repos(ctx, v.Viewer, req)
	if err != nil {
		return err
	}

	data := struct {
		Request browse.ReposRequest
		Order   string
		Orders  any
		States  []string
		Total   string
		Rows    []repoRow
		Turns   turns
	}{Request: req, Order: order.Value, Orders: repoOrders, States: browse.RepoStates(), Total: layout.Counted(r.Total, "repository", "repositories")}

	for i := range r.Repos {
		data.Rows = append(data.Rows, p.repoRow(&r.Repos[i]))
	}

	data.Turns = turnsOf("/settings/repos", q, req.Page, reposPerPage, r.Total)
	return p.show(v, "repos", "Repositories", reposTemplate, data)
}

func (p *Pages) repoRow(r *browse.RepoInfo) repoRow {
	row := repoRow{
		RepoInfo: r, Mark: repoMarks[r.State], URL: browse.WebURL("", r.Name, "", "tree", ""), When: p.when(r.IndexedAt),
		Revisions:  layout.Counted(len(r.Revisions), "revision", "revisions"),
		ReindexURL: askURL("reindex", r.Name),
	}

	// A repository has no size before it is indexed.
	if r.TextBytes > 0 {
		row.Text, row.Index = layout.Size(r.TextBytes), layout.Size(r.ShardBytes)
	}
	return row
}

// turns are the links to the previous and the next page.
type turns struct{ Newer, Older string }

// turnsOf returns the links around page at of a list with total entries. It changes q.
func turnsOf(path string, q url.Values, at, per, total int) turns {
	pageURL := func(n int) string {
		q.Set("page", fmt.Sprint(n))
		q.Del("did") // shows the message about a change, which the reader has seen
		return path + "?" + q.Encode()
	}

	var t turns
	if at > 1 {
		t.Newer = pageURL(at - 1)
	}

	// at comes from the URL. The first comparison limits it, so that at*per cannot overflow.
	if at < total/per+1 && at*per < total {
		t.Older = pageURL(at + 1)
	}
	return t
}
