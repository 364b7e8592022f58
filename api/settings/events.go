package settings

import (
	"context"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

var eventsTemplate = parse("events.html")

// eventMarks has the mark of each kind of event that an operator should notice.
var eventMarks = map[string]mark{"unreachable": bad("unreachable"), "removed": warn("removed"), "draining": warn("draining")}

// events shows the latest events of the cluster.
func (p *Pages) events(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	// Show the last 200 events. The API has older ones.
	r, err := p.Chronicle.Events(ctx, by, chronicle.EventsRequest{Limit: 200})
	if err != nil {
		return err
	}

	type row struct {
		chronicle.Event
		Mark mark
		When layout.When
	}
	data := struct {
		Since layout.When
		Rows  []row
	}{Since: p.when(r.Since)}

	// An event of another kind, perhaps of a newer version, gets a neutral mark.
	for _, e := range r.Events {
		m, ok := eventMarks[e.Kind]
		if !ok {
			m = busy(e.Kind)
		}

		data.Rows = append(data.Rows, row{e, m, p.when(e.At)})
	}
	return p.show(v, "events", "Events", eventsTemplate, data)
}
