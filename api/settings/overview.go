package settings

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
)

var overviewTemplate = parse("overview.html")

// overview shows first what may fail, then the state of the cluster.
func (p *Pages) overview(ctx context.Context, v *layout.Visit) error {
	s, err := p.State.Status(ctx, v.Viewer)
	if err != nil {
		return err
	}

	owner := v.Viewer.Role == catalog.RoleOwner
	data := struct {
		*node.StatusResponse
		Verdict               mark
		Charts                []chart
		Tiles                 []tile
		Age                   string
		Shards, Mirrors, Disk string
		Changes               string // bytes of the index of commits
		Guide                 bool   // the cluster is empty
	}{
		StatusResponse: s, Verdict: verdictMark(s), Charts: charts(s, owner), Tiles: statusTiles(s, owner), Age: layout.Span(s.CatalogAge),
		Shards: layout.Size(s.Storage.ShardBytes), Mirrors: layout.Size(s.Storage.MirrorBytes), Disk: layout.Size(s.Storage.DiskFree),
		Changes: layout.Size(s.Storage.History.Bytes),
		Guide:   owner && s.Repos.Total == 0 && len(s.Connections) == 0,
	}
	return p.show(v, "overview", "Overview", overviewTemplate, data)
}

// tile is a number on the overview, with a link to details.
type tile struct {
	Name, Value, URL string
	Mark             mark
}

func statusTiles(s *node.StatusResponse, owner bool) []tile {
	voters := 0
	for _, m := range s.Members {
		if m.Role != "nonvoter" {
			voters++
		}
	}

	out := []tile{
		{"Voters", fmt.Sprintf("%d, quorum %d", voters, voters/2+1), "/settings/nodes", markIf(s.Leader == "", bad)},
		{"Catalog level", levelText(s.Level), "/settings/nodes", markIf(len(s.Level.WaitsFor) > 0, warn)},
		{"Failed repositories", layout.Grouping(s.Repos.Failed), "/settings/repos?state=failed", markIf(s.Repos.Failed > 0, warn)},
	}

	// The other tiles would reveal repositories that the viewer may not see.
	if !owner {
		return out
	}

	return append(out,
		tile{"With too few copies", layout.Grouping(s.Placement.UnderReplicated), "/settings/placement", markIf(s.Placement.UnderReplicated > 0, warn)},
		tile{"Jobs", fmt.Sprintf("%s waiting, %s running", layout.Grouping(s.Jobs.Pending), layout.Grouping(s.Jobs.Running)), "/settings/jobs", mark{}},
		tile{"Given up, tried again", fmt.Sprintf("%s, %s", layout.Grouping(s.Jobs.Failed), layout.Grouping(s.Jobs.Retrying)), "/settings/jobs", markIf(s.Jobs.Failed+s.Jobs.Retrying > 0, warn)},
	)
}

// levelText returns the level of the catalog, and how many nodes a higher one waits for.
func levelText(l node.LevelStatus) string {
	text := fmt.Sprint(l.Number)
	if n := len(l.WaitsFor); n > 0 {
		text += fmt.Sprintf(", %d waits for %s", l.Next, nodes(n))
	}
	return text
}

// markIf returns the mark of a problem if there is one, otherwise a good mark.
func markIf(hasProblem bool, problemMark func(string) mark) mark {
	if hasProblem {
		return problemMark("look at it")
	}
	return good("fine")
}

// verdictMark returns the verdict about the cluster, which is the first line of the overview.
func verdictMark(s *node.StatusResponse) mark {
	markOf, ok := map[node.VerdictState]func(string) mark{
		node.VerdictGood: good, node.VerdictUpgrading: warn, node.VerdictWeak: warn, node.VerdictFailing: bad,
	}[s.Verdict.State]
	if !ok {
		markOf = neutral
	}
	return markOf(s.Verdict.Sentence)
}

func nodes(n int) string { return layout.Counted(n, "node", "nodes") }
