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

type eventsJSON struct {
	Since  string      `json:"since,omitempty"`
	Events []eventJSON `json:"events"`
}

type eventJSON struct {
	At      string `json:"at"`
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// listEvents is GET /api/events.
func (s *Server) listEvents(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := chronicle.EventsRequest{Limit: p.integer("limit", 100, 1, 1000)}
	if err := p.err(); err != nil {
		return err
	}
	r, err := s.parts.events.Events(ctx, by, req)
	if err != nil {
		return err
	}
	out := eventsJSON{Since: stamp(r.Since), Events: make([]eventJSON, len(r.Events))}
	for i, e := range r.Events {
		out.Events[i] = eventJSON{stamp(e.At), e.Kind, e.Subject, e.Text}
	}
	return c.json(out)
}
