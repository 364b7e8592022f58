package settings

import (
	"context"
	"fmt"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/operate"
)

var connectionsTemplate = parse("connections.html")

// connectionMarks is how each state is shown.
var connectionMarks = map[string]mark{
	"synced": good("synced"), "syncing": busy("syncing"), "pending": busy("waiting"), "failed": bad("failed"),
}

// connectionRow is a connection in the list.
type connectionRow struct {
	*operate.ConnectionStatus
	Mark                        mark
	Synced, Ended, Next, HeldAt when
	Reset, Expires              when
	Left                        string // of the calls that the host allows
	SyncURL, AcceptURL          string
}

// connections is the list of connections with their last listings.
func (p *Pages) connections(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	all, err := p.Connections.Connections(ctx, by)
	if err != nil {
		return err
	}

	rows := make([]connectionRow, len(all))
	for i := range all {
		c := &all[i]
		rows[i] = connectionRow{
			ConnectionStatus: c,
			Mark:             connectionMarks[c.State],
			Synced:           p.when(c.SyncedAt),
			Ended:            p.when(c.EndedAt),
			Next:             p.when(c.NextAt),
			HeldAt:           p.when(c.HeldAt),
			Reset:            p.when(c.ResetAt),
			Expires:          p.when(c.ExpiresAt),
			SyncURL:          askURL("sync", c.Name),
		}

		// Only some hosts tell of a limit.
		if c.Limit > 0 {
			rows[i].Left = fmt.Sprintf("%s of %s calls left", layout.Grouping(c.Remaining), layout.Grouping(c.Limit))
		}

		// Without something held there is nothing to accept.
		if c.Held > 0 {
			rows[i].AcceptURL = askURL("accept", c.Name)
		}
	}
	return p.show(v, "connections", "Connections", connectionsTemplate, rows)
}
