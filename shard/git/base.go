package git

import (
	"context"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// base is the directory of a mirror with the state of its references.
type base struct {
	dir  string
	pool *run.Pool
	now  func() time.Time

	mu      sync.Mutex // guards the fields below
	state   *refState  // from the last read of the references; nil if unknown
	fetched uint64     // how often the references have changed
}

// Dir returns the directory of the mirror.
func (b *base) Dir() string { return b.dir }

// git returns a command that runs in the mirror.
func (b *base) git(args ...string) *run.Command {
	return &run.Command{Dir: b.dir, Args: args}
}

// reader reads single objects, and trees.
type reader struct{ *run.CatFile }

// with calls use with a reader, for use in one goroutine; see [run.Pool.With].
func (b *base) with(ctx context.Context, use func(reader) error) error {
	return b.pool.With(ctx, func(c *run.CatFile) error { return use(reader{c}) })
}

// refs returns the mirror's references. It reads them only if a fetch has changed them.
func (b *base) refs(ctx context.Context) (*refState, error) {
	for {
		// If a fetch changes the references while they are read, cacheRefs refuses the state: read
		// them again.
		b.mu.Lock()
		s, fetched := b.state, b.fetched
		b.mu.Unlock()
		if s != nil {
			return s, nil
		}

		if format, err := formatOf(b.dir); err != nil {
			return nil, err
		} else if format == "" {
			return nil, ErrEmpty
		}

		s, err := b.readRefs(ctx)
		if err != nil {
			return nil, err
		}
		if b.cacheRefs(s, fetched) {
			return s, nil
		}
	}
}

// cacheRefs caches a state of the references and returns true. fetched is b.fetched before the
// state was read: if a fetch has changed the references since then, cacheRefs returns false, because
// a caller that has just fetched must not get old references.
func (b *base) cacheRefs(s *refState, fetched uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fetched != fetched {
		return false
	}
	b.state = s
	return true
}

// dropCachedRefs drops the cached state of the references.
func (b *base) dropCachedRefs() {
	b.mu.Lock()
	b.state, b.fetched = nil, b.fetched+1
	b.mu.Unlock()
}

// maxCachedAnswers is the number of results in most caches of a mirror.
const maxCachedAnswers = 64
