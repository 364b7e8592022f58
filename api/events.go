package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

// events is what the route and the page of events need.
type events interface {
	Events(context.Context, account.Owner, chronicle.EventsRequest) (*chronicle.EventsResponse, error)
}

// eventRoutes are the routes of events.
type eventRoutes struct{ events events }

func (a *eventRoutes) rows() []route {
	return []route{
		row("GET", "/api/events", accessOwner, quickTimeout, owners(a.list)),
	}
}

// list is GET /api/events.
func (a *eventRoutes) list(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := chronicle.EventsRequest{Limit: p.integer("limit", 100, 1, 1000), After: p.text("after")}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.events.Events(ctx, by, req)
	if err != nil {
		return err
	}

	return c.json(r)
}
