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

// startProgress sends the progress of a search every progressEvery until stop is called, which may
// happen twice. Nothing is sent after stop has returned. If p is nil, nothing is sent at all.
func startProgress(ctx context.Context, p *search.Progress, events chan<- event) (stop func()) {
	if p == nil {
		return func() {}
	}

	ctx, cancel := context.WithCancel(ctx)
	var sender sync.WaitGroup
	sender.Go(func() {
		for clock.Wait(ctx, progressEvery) {
			if sendEvent(ctx, events, appendValue(nil, progressEvent{"progress", p.Now()})) != nil {
				return // stop was called, or the client has gone
			}
		}
	})
	return func() {
		cancel()
		sender.Wait()
	}
}

// sendEvent sends a part of a stream to its writer, once the writer has written the previous one. It
// fails if ctx ends before.
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
