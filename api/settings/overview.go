package settings

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
)

var overviewTemplate = parse("overview.html")

// overview says first what may fail, then how the cluster is.
func (p *Pages) overview(ctx context.Context, v *layout.Visit) error {
	s, err := p.State.Status(ctx, v.Viewer, node.StatusRequest{})
	if err != nil {
		return err
	}

	owner := v.Viewer.Role == catalog.RoleOwner
	data := struct {
		*node.StatusResponse
		Verdict               mark
		Tiles                 []tile
		Age                   string
		Shards, Mirrors, Disk string
		Guide                 bool // there is nothing here yet
	}{
		StatusResponse: s, Verdict: verdict(s), Tiles: tiles(s, owner), Age: layout.Span(s.CatalogAge),
		Shards: layout.Size(s.Storage.ShardBytes), Mirrors: layout.Size(s.Storage.MirrorBytes), Disk: layout.Size(s.Storage.DiskFree),
		Guide: owner && s.Repos.Total == 0 && len(s.Connections) == 0,
	}
	return p.show(v, "overview", "Overview", overviewTemplate, data)
}

// tile is a number of the overview, with the page that tells more.
type tile struct {
	Name, Value, URL string
	Mark             mark
}

func tiles(s *node.StatusResponse, owner bool) []tile {
	// Whether those that answer are enough is for the verdict to say.
	alive, voters := 0, 0
	for _, m := range s.Members {
		if m.Health == "alive" {
			alive++
		}
		if m.Role != "nonvoter" {
			voters++
		}
	}

	out := []tile{
		{"Nodes", fmt.Sprintf("%d of %d answer", alive, len(s.Members)), "/settings/nodes", unless(alive < len(s.Members), warn)},
		{"Voters", fmt.Sprintf("%d, quorum %d", voters, voters/2+1), "/settings/nodes", unless(s.Leader == "", bad)},
		{"Catalog level", levelText(s.Level), "/settings/nodes", unless(len(s.Level.WaitsFor) > 0, warn)},
		{"Repositories", fmt.Sprintf("%s, %s indexed", layout.Grouping(s.Repos.Total), layout.Grouping(s.Repos.Indexed)), "/settings/repos", mark{}},
		{"Failed repositories", layout.Grouping(s.Repos.Failed), "/settings/repos?state=failed", unless(s.Repos.Failed > 0, warn)},
	}

	// The rest is about repositories that others may not even know of.
	if !owner {
		return out
	}

	return append(out,
		tile{"With too few copies", layout.Grouping(s.Placement.UnderReplicated), "/settings/placement", unless(s.Placement.UnderReplicated > 0, warn)},
		tile{"Jobs", fmt.Sprintf("%s waiting, %s running", layout.Grouping(s.Jobs.Pending), layout.Grouping(s.Jobs.Running)), "/settings/jobs", mark{}},
		tile{"Given up, tried again", fmt.Sprintf("%s, %s", layout.Grouping(s.Jobs.Failed), layout.Grouping(s.Jobs.Retrying)), "/settings/jobs", unless(s.Jobs.Failed+s.Jobs.Retrying > 0, warn)},
	)
}

// levelText is the level of the catalog, and for how many nodes a higher one waits.
func levelText(l node.LevelStatus) string {
	text := fmt.Sprint(l.Number)
	if n := len(l.WaitsFor); n > 0 {
		text += fmt.Sprintf(", %d waits for %s", l.Next, nodes(n))
	}
	return text
}

// unless is good, or the other mark where something is wrong.
func unless(wrong bool, other func(string) mark) mark {
	if wrong {
		return other("look at it")
	}
	return good("fine")
}

// verdict is the first line of the overview: how many nodes may fail now, as
// the copies of everything and the voters that answer have it.
func verdict(s *node.StatusResponse) mark {
	alive := 0
	for _, m := range s.Members {
		if m.Health == "alive" {
			alive++
		}
	}

	t, few := s.Tolerates, layout.Counted(s.Placement.UnderReplicated, "repository has", "repositories have")

	// The worst first: a sentence is true only where those before it are not.
	switch {
	case t.Writes < 0:
		return bad("Reads work, changes wait: most voters do not answer. `shoal recover` brings back a cluster that lost them for good.")
	case t.Known && t.Searches < 0:
		return bad(layout.Counted(s.Placement.NoLiveCopy, "repository has", "repositories have") + " no live copy: searches lack them until a node comes back or they are indexed again.")

	// Where nothing is known of copies, that there is one node says enough.
	case alive <= 1:
		return plainly("One node: it must not fail.")
	// Of copies nothing is known, so only of changes something is said.
	case !t.Known && t.Writes == 0:
		return warn("The failure of a node would make changes wait.")
	case !t.Known:
		return good(fmt.Sprintf("Any %s may fail now; changes go on.", nodes(t.Writes)))

	case t.Searches == 0 && s.Placement.UnderReplicated > 0:
		return warn(few + " fewer copies than wanted: the failure of a node may make searches incomplete.")
	case t.Searches == 0:
		return warn("Nothing has a second copy: the failure of a node may make searches incomplete.")

	case t.Writes == 0:
		return warn(fmt.Sprintf("Any %s may fail now and searches stay complete, but changes would wait for it.", nodes(t.Searches)))
	}
	// Both have to hold for the sentence, so it is the smaller.
	return good(fmt.Sprintf("Any %s may fail now; searches stay complete.", nodes(min(t.Searches, t.Writes))))
}

func nodes(n int) string { return layout.Counted(n, "node", "nodes") }
