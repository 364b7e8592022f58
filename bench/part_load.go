package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// partLoad runs selective queries on growing numbers of connections, and then while heavy queries run.
func partLoad(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Requests per second, six selective queries in turn, 50 documents each", Columns: []string{"connections", "requests/s", "median", "p99", "errors"}}
	_, s, err := r.treeAndNode(ctx)
	if err != nil {
		return nil, err
	}

	bodies := make([][]byte, 0, len(selectiveQueries()))
	for _, q := range selectiveQueries() {
		bodies = append(bodies, q.body(50, countShown))
	}

	for _, conns := range []int{1, 2, 4, 8, 16, 32} {
		l := s.load(ctx, conns, 5*time.Second, bodies)
		p.row(conns, l.perSecond(), median(l.took), quantile(l.took, 0.99), l.errors)
	}

	// Run heavy queries until the light ones are done, to keep the processors busy.
	heavyCtx, stop := context.WithCancel(ctx)
	var heavy sync.WaitGroup
	for _, q := range []Query{{Text: `[a-z]+ = [a-z]+\[[0-9]+\]`, Regexp: true}, {Text: `.{120,}`, Regexp: true}} {
		heavy.Go(func() {
			for heavyCtx.Err() == nil {
				_, _, _ = s.search(heavyCtx, q.body(100, countAll)) // it fails when heavyCtx ends
			}
		})
	}

	l := s.load(ctx, 16, 5*time.Second, bodies)
	stop()
	heavy.Wait()
	p.row("16 beside 2 heavy", l.perSecond(), median(l.took), quantile(l.took, 0.99), l.errors)
	p.note("Target: 1,500 a second and p99 under 50 ms at 16 connections. The client runs on the same machine and takes its share.")
	return p, nil
}

// partMixed runs light queries alone, and then while heavy queries run.
func partMixed(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Light queries (50 documents, 4 connections) alone and beside heavy ones (every match counted)",
		Columns: []string{"heavy connections", "light requests/s", "light median", "light p99", "light worst", "heavy answers"}}
	_, s, err := r.treeAndNode(ctx)
	if err != nil {
		return nil, err
	}

	var bodies, heavy [][]byte
	for _, q := range selectiveQueries() {
		bodies = append(bodies, q.body(50, countShown))
	}

	for _, pattern := range []string{`[a-z]+ = [a-z]+\[[0-9]+\]`, `.{120,}`, `return`, `[^ \t\n]{80,}`} {
		heavy = append(heavy, Query{Text: pattern, Regexp: true}.body(1000, countAll))
	}

	const length = 10 * time.Second
	for _, conns := range []int{0, 1, 2, 8} {
		beside := make(chan loaded, 1)
		heavyCtx, stop := context.WithCancel(ctx)
		go func() { beside <- s.load(heavyCtx, conns, time.Minute, heavy) }()
		l := s.load(ctx, 4, length, bodies)
		stop()
		h := <-beside
		p.row(conns, l.perSecond(), median(l.took), quantile(l.took, 0.99), quantile(l.took, 1), len(h.took))
	}

	p.note("A heavy query gives its core to waiting light ones after each piece of work, and every fourth turn is a heavy one's: with both cores taken a light query waits for the rest of a piece.")
	return p, nil
}

// loaded is the result of a load test.
type loaded struct {
	took   []time.Duration
	errors int
	wall   time.Duration
}

func (l loaded) perSecond() float64 { return float64(len(l.took)) / l.wall.Seconds() }

// load sends searches with the bodies in turn, on several connections together, until length is over.
func (s *server) load(ctx context.Context, conns int, length time.Duration, bodies [][]byte) loaded {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()

	// Each connection records its own times. All take the next body from one list.
	var next, errors atomic.Int64
	took := make([][]time.Duration, conns)
	var wg sync.WaitGroup

	start := time.Now()
	for c := range conns {
		wg.Go(func() {
			for ctx.Err() == nil {
				body := bodies[int(next.Add(1))%len(bodies)]
				_, d, err := s.exchange(ctx, body)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					errors.Add(1)
					continue
				}

				took[c] = append(took[c], d)
			}
		})
	}

	wg.Wait()
	l := loaded{errors: int(errors.Load()), wall: time.Since(start)}
	for _, t := range took {
		l.took = append(l.took, t...)
	}
	return l
}
