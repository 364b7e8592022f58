package settings

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/operate"
)

const connectionsAt = "/settings/connections"

var connectionsTemplate = parse("connections.html")

// connectionMarks has the mark of each state of a connection.
var connectionMarks = map[string]mark{
	"synced": good("synced"), "syncing": busy("syncing"), "pending": busy("waiting"), "failed": bad("failed"),
}

// connectionRow is a connection in the list.
type connectionRow struct {
	*operate.ConnectionStatus
	Mark                        mark
	Synced, Ended, Next, HeldAt layout.When
	Reset, Expires              layout.When
	Left                        string // how many calls the host's rate limit still allows
	Pushes                      []pushWay
	URL                         string // page of the connection; "" on that page
	SyncURL, AcceptURL          string
}

// pushWay is one way by which the cluster learns of pushes.
type pushWay struct {
	Way  string
	Last layout.When // last push reported; none before the first
}

// syncRow is a listing that has ended.
type syncRow struct {
	Mark  mark
	Began layout.When
	Took  string
	Repos int
	Error string
}

// connectionsPage shows all connections, or one with its last listings.
type connectionsPage struct {
	Rows    []connectionRow
	All     string // link to the list, on the page of one connection
	Syncs   []syncRow
	Command string
}

// connections shows the list of connections.
func (p *Pages) connections(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	all, err := p.Operate.Connections(ctx, by)
	if err != nil {
		return err
	}

	data := connectionsPage{Command: "shoal connection list"}
	for i := range all {
		row := p.connectionRow(&all[i])
		row.URL = connectionsAt + "/" + url.PathEscape(row.Name)
		data.Rows = append(data.Rows, row)
	}
	return p.show(v, "connections", "Connections", connectionsTemplate, data)
}

// connection shows one connection with its last listings.
func (p *Pages) connection(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	// An invalid escape names no connection.
	name, err := url.PathUnescape(strings.TrimPrefix(v.Path, connectionsAt+"/"))
	if err != nil {
		return call.Fail(call.ErrNotFound, "There is no such connection.")
	}

	r, err := p.Operate.Connection(ctx, by, name)
	if err != nil {
		return err
	}

	data := connectionsPage{Rows: []connectionRow{p.connectionRow(&r.ConnectionStatus)}, All: connectionsAt, Command: shellCommand([]string{"shoal", "connection", "show", "SUBJECT"}, name)}
	for _, s := range r.Syncs {
		row := syncRow{Mark: bad("failed"), Began: p.when(s.BeganAt), Took: (time.Duration(s.TookMs) * time.Millisecond).String(), Error: s.Error}
		if s.Repos != nil {
			row.Mark, row.Repos = good("listed"), *s.Repos
		}
		data.Syncs = append(data.Syncs, row)
	}
	return p.show(v, "connections", "Connection "+layout.Plain(name), connectionsTemplate, data)
}

func (p *Pages) connectionRow(c *operate.ConnectionStatus) connectionRow {
	row := connectionRow{
		ConnectionStatus: c,
		Mark:             connectionMarks[c.State],
		Synced:           p.when(c.SyncedAt),
		Ended:            p.when(c.EndedAt),
		Next:             p.when(c.NextAt),
		HeldAt:           p.when(c.HeldAt),
		Expires:          p.when(c.ExpiresAt),
		Pushes:           p.pushWays(&c.Following),
		SyncURL:          askURL("sync", c.Name),
	}

	// Only some hosts report a limit.
	if l := c.Limit; l != nil {
		row.Left, row.Reset = fmt.Sprintf("%s of %s calls left", layout.Grouping(l.Remaining), layout.Grouping(l.Calls)), p.when(l.ResetAt)
	}

	// A listing can be accepted only if it missed repositories that are kept.
	if c.Held > 0 {
		row.AcceptURL = askURL("accept", c.Name)
	}
	return row
}

// pushWays returns the ways of learning about pushes, the fastest first.
func (p *Pages) pushWays(f *operate.FollowingStatus) (ways []pushWay) {
	if !f.HookAt.IsZero() {
		ways = append(ways, pushWay{"by a webhook", p.when(f.HookAt)})
	}

	// The cluster asks the host even if it has webhooks, because deliveries get lost.
	if f.Signal != "" && f.Problem == "" {
		ways = append(ways, pushWay{fmt.Sprintf("by asking the host for %s every %s", f.Signal, layout.Span(time.Duration(f.Seconds*float64(time.Second)))), p.when(f.LastAt)})
	}

	if f.Problem != "" {
		return append(ways, pushWay{"by fetching each repository from time to time, since the host tells of none: " + f.Problem, layout.When{}})
	}
	if len(ways) == 0 {
		return []pushWay{{"by fetching each repository from time to time", layout.When{}}}
	}
	return ways
}
