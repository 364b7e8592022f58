package settings

import (
	"context"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

var eventsTemplate = parse("events.html")

// eventMarks are the marks of events that are no good news.
var eventMarks = map[string]mark{"unreachable": bad("unreachable"), "removed": warn("removed"), "draining": warn("draining")}

// events shows the latest events of the cluster.
func (p *Pages) events(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	// More than people read; the API has the others.
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

	// An unknown event, of a newer node, is no alarm.
	for _, e := range r.Events {
		m, ok := eventMarks[e.Kind]
		if !ok {
			m = busy(e.Kind)
		}

		data.Rows = append(data.Rows, row{e, m, p.when(e.At)})
	}
	return p.show(v, "events", "Events", eventsTemplate, data)
}
