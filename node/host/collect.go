package host

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// parallel is how many targets of a connection are listed at a time.
const parallel = 4

// Sink takes what a listing finds, as it comes. Its methods may be called
// from several goroutines.
type Sink interface {
	// Repo takes a repository. It may block, which slows the listing down; an
	// error ends the listing.
	Repo(ctx context.Context, r Repo) error
	// Issue takes a problem; the listing goes on.
	Issue(Issue)
	// Skip takes the external id of a repository that the host lists and the
	// connection leaves out.
	Skip(externalID string, why Reason)
	// Progress tells how many repositories have come, of how many; 0 where
	// that is not known.
	Progress(done, total int)
}

// target is one selection of a connection: an organisation, a group, a
// project, a repository.
type target struct {
	name string // as the configuration has it, with its kind: orgs/acme
	list func(ctx context.Context, found func(Repo, string) error) error
}

// collector lists the targets of a connection and passes on each chosen
// repository once.
type collector struct {
	sink   Sink
	choice *choice

	// The ids that came, as hashes: of a hundred thousand, two agree in less
	// than one of a billion listings, and the catalog keeps what a listing misses.
	seed maphash.Seed

	mu     sync.Mutex // guards the fields below
	seen   map[uint64]struct{}
	done   int
	unused []oneGlob // those that match none of the repositories so far
}

func newCollector(sink Sink, c *choice) *collector {
	return &collector{sink: sink, choice: c, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}, unused: slices.Clone(c.each)}
}

// run lists the targets, some at a time. A target that fails is an issue and
// stops no other; a refused token ends them all, since each further try with
// it would be refused too.
func (c *collector) run(ctx context.Context, targets []target) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	slots := make(chan struct{}, parallel)
	var group sync.WaitGroup
	var failed sync.Map

	for _, t := range targets {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := c.target(ctx, t); err != nil {
				failed.Store(t.name, err)
				if RefusesToken(err) || lacksToken(err) || isEnd(err) {
					stop(err)
				}
			}
		})
	}
	group.Wait()

	if cause := context.Cause(ctx); cause != nil {
		return cause
	}

	// One target that fails makes the listing partial; all of them make it fail.
	var all error
	n, absent := 0, 0
	for _, t := range targets {
		v, ok := failed.Load(t.name)
		if !ok {
			continue
		}

		err := v.(error)
		c.sink.Issue(issueOf(t.name, err))
		all = errors.Join(all, err)
		n++
		if errors.Is(err, ErrGone) {
			absent++
		}
	}

	switch {
	// What did not come might have matched; of nothing each target tells already.
	case n == 0 && len(c.seen) > 0:
		c.tellUnused()
		return nil
	case n < len(targets), n == 0:
		return nil
	case absent == n:
		return nothingThere{all}
	}
	return all
}

// nothingThere is the error of a listing of which the host has no target.
type nothingThere struct{ error }

func (e nothingThere) Unwrap() error { return e.error }

// NothingThere reports whether a listing failed since the host answered that it
// has none of what the connection names. Each of them was told as an issue.
func NothingThere(err error) bool { return errors.As(err, &nothingThere{}) }

// end is an error of the sink: there is nobody left to list for.
type end struct{ error }

func (e end) Unwrap() error { return e.error }

func isEnd(err error) bool { return errors.As(err, &end{}) }

// RefusesToken reports whether a host refused the token of a connection.
func RefusesToken(err error) bool {
	r := (*Refusal)(nil)
	return errors.As(err, &r) && r.Code == TokenRefused
}

// lacksToken reports whether a token cannot be read: no target can be listed without it.
func lacksToken(err error) bool {
	r := (*Refusal)(nil)
	return errors.As(err, &r) && r.Code == TokenMissing
}

// target lists one target. One that has nothing is told of: many hosts answer so
// where the token may see nothing of it.
func (c *collector) target(ctx context.Context, t target) error {
	came, odd := false, 0
	err := t.list(ctx, func(r Repo, path string) error {
		came = true
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}

		// One that cannot be told from others keeps nobody from the rest.
		if r.ExternalID == "" {
			odd++
			return nil
		}

		// The selection that lists it first has it: another may list it again.
		if !c.first(r.ExternalID) {
			return nil
		}

		c.use(&r, path)
		if why := c.choice.reason(&r, path); why != "" {
			c.sink.Skip(r.ExternalID, why)
			return nil
		}

		r.Target = t.name
		if err := c.sink.Repo(ctx, r); err != nil {
			return end{err}
		}

		c.mu.Lock()
		c.done++
		done := c.done
		c.mu.Unlock()
		c.sink.Progress(done, 0)
		return nil
	})
	if err == nil && odd > 0 {
		c.sink.Issue(issueOf(t.name, refusal(InvalidResponse, http.StatusOK, "the host lists %d repositories without a usable name or id, which are left out", odd)))
	}
	if err == nil && !came {
		c.sink.Issue(Issue{Code: TargetEmpty, Target: t.name, Text: "the host lists no repository of it: it has none, or the token of the connection may see none"})
	}
	return err
}

// first reports whether a repository was not met before.
func (c *collector) first(id string) bool {
	key := maphash.String(c.seed, id)

	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.seen[key]; known {
		return false
	}
	c.seen[key] = struct{}{}
	return true
}

// use notes which globs match a repository.
func (c *collector) use(r *Repo, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unused = slices.DeleteFunc(c.unused, func(u oneGlob) bool { return u.glob.MatchAny(u.by(r, path)) })
}

// tellUnused reports each property that has globs which match nothing.
func (c *collector) tellUnused() {
	patterns := map[string][]string{}
	for _, u := range c.unused {
		patterns[u.property] = append(patterns[u.property], u.pattern)
	}
	for _, property := range slices.Sorted(maps.Keys(patterns)) {
		list, more := patterns[property], ""
		if n := len(list) - fewGlobs; n > 0 {
			list, more = list[:fewGlobs], fmt.Sprintf(" and %d more", n)
		}
		c.sink.Issue(Issue{Code: NoEffect, Target: property, Text: fmt.Sprintf("no repository of the listing matches %s%s; correct the glob, or take it out", strings.Join(list, ", "), more)})
	}
}

// fewGlobs is how many globs an issue names.
const fewGlobs = 5

// hostID is the number of a repository at its host; 0 for what is no number of 63 bits. So an
// entry with such an id is counted as one without a usable number, and its page is read.
type hostID int64

// UnmarshalJSON implements json.Unmarshaler.
func (id *hostID) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		n = 0
	}
	*id = hostID(n)
	return nil
}

// String returns the decimal form.
func (id hostID) String() string { return strconv.FormatInt(int64(id), 10) }
