package api

import (
	"context"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/search"
)

// progressEvery is how often a stream reports the progress of its search.
const progressEvery = 100 * time.Millisecond

// tellProgress sends the progress of a search from time to time, until end is called. After that
// it sends nothing more. end may be called twice. If p is nil, nothing is sent.
func tellProgress(ctx context.Context, p *search.Progress, events chan<- event) (end func()) {
	if p == nil {
		return func() {}
	}

	ctx, cancel := context.WithCancel(ctx)
	var teller sync.WaitGroup
	teller.Go(func() {
		for clock.Wait(ctx, progressEvery) {
			if sendEvent(ctx, events, appendValue(nil, progressEvent{"progress", p.Now()})) != nil {
				return // the search has ended, or its client has gone
			}
		}
	})
	return func() {
		cancel()
		teller.Wait()
	}
}

// sendEvent passes on a part of a stream, once the previous one is written.
func sendEvent(ctx context.Context, events chan<- event, data []byte) error {
	select {
	case events <- event{data: data}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// progressEvent is the progress of a search.
type progressEvent struct {
	Type string `json:"type"`
	search.Done
}
