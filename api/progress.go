package api

import (
	"context"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/search"
)

// progressEvery is how often a stream tells how far its search has come.
const progressEvery = 100 * time.Millisecond

// tellProgress sends how far a search has come, from time to time, until the function
// that it returns is called: after that nothing more is sent. It may be called again.
// Without somebody to be told, p is nil, nothing is sent.
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

// sendEvent hands a part of a stream over, and waits until the last one was written.
func sendEvent(ctx context.Context, events chan<- event, data []byte) error {
	select {
	case events <- event{data: data}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// progressEvent is how far a search has come.
type progressEvent struct {
	Type string `json:"type"`
	search.Done
}
