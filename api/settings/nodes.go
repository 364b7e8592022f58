package settings

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
)

var (
	nodesTemplate     = parse("nodes.html")
	placementTemplate = parse("placement.html")
)

// nodeRow is a node in the list.
type nodeRow struct {
	*node.MemberStatus
	Mark                           mark
	Holds                          string
	Up                             layout.When
	Self                           bool // this node answers the request
	DrainURL, UndrainURL, ForgetIt string
}

// nodes shows the list of nodes, with what the viewer may know about them.
func (p *Pages) nodes(ctx context.Context, v *layout.Visit) error {
	s, err := p.State.Status(ctx, v.Viewer)
	if err != nil {
		return err
	}
	data := struct {
		Verdict mark
		Level   node.LevelStatus
		Rows    []nodeRow
	}{Verdict: verdictMark(s), Level: s.Level}

	// Only owners see links to changes. The methods behind the links check that too.
	for i := range s.Members {
		data.Rows = append(data.Rows, p.nodeRow(&s.Members[i], s.Node, v.Viewer.Role == catalog.RoleOwner))
	}
	return p.show(v, "nodes", "Nodes", nodesTemplate, data)
}

func (p *Pages) nodeRow(m *node.MemberStatus, self string, owner bool) nodeRow {
	row := nodeRow{MemberStatus: m, Self: m.ID == self, Holds: layout.Size(m.Bytes), Up: p.when(m.StartedAt)}

	// Check the health first: a dead node may be draining too, and must not appear as drained.
	switch {
	case m.Health != "alive":
		row.Mark = bad("does not answer")
	case m.Drained:
		row.Mark = good("drained: it can be stopped")
	case m.Draining && m.Left == 0:
		row.Mark = busy("draining") // what is left belongs to hidden repositories
	case m.Draining:
		row.Mark = busy("draining: " + layout.Counted(m.Left, "repository", "repositories") + " left")
	default:
		row.Mark = good("answers")
	}

	if !owner {
		return row
	}

	// A draining node can be taken back even while it does not answer.
	if m.Draining {
		row.UndrainURL = askURL("undrain", m.ID)
	} else if m.Health == "alive" {
		row.DrainURL = askURL("drain", m.ID)
	}

	// Removing a healthy node would lose copies without need.
	if m.Draining || m.Health != "alive" {
		row.ForgetIt = askURL("remove", m.ID)
	}
	return row
}

// placement shows how much data each node holds, and how many units have too few copies.
func (p *Pages) placement(ctx context.Context, v *layout.Visit) error {
	if _, err := account.AsOwner(v.Viewer); err != nil {
		return err
	}
	s, err := p.State.Status(ctx, v.Viewer)
	if err != nil {
		return err
	}

	type share struct {
		*node.MemberStatus
		Holds, Part string
	}

	// Percentages of the total show how even the distribution is.
	var total int64
	for i := range s.Members {
		total += s.Members[i].Bytes
	}

	data := struct {
		node.PlacementStatus
		Verdict mark
		Shares  []share
	}{PlacementStatus: s.Placement, Verdict: verdictMark(s)}

	for i := range s.Members {
		m := &s.Members[i]

		part := "" // percentage; an empty cluster has none
		if total > 0 {
			part = fmt.Sprintf("%.0f", 100*float64(m.Bytes)/float64(total))
		}
		data.Shares = append(data.Shares, share{m, layout.Size(m.Bytes), part})
	}
	return p.show(v, "placement", "Placement", placementTemplate, data)
}
