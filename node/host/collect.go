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

// parallelTargets is how many targets of a connection are listed at once.
const parallelTargets = 4

// Sink receives what a listing finds. Several goroutines may call its methods.
type Sink interface {
	// Repo receives a repository. It may block to slow the listing down. An error ends the listing.
	Repo(ctx context.Context, r Repo) error
	// Issue receives a problem. The listing continues.
	Issue(Issue)
	// Skip receives the external id of a repository that the connection leaves out.
	Skip(externalID string, why Reason)
	// Progress receives how many repositories were found, and of how many; 0: unknown.
	Progress(done, total int)
}

// target is one selection of a connection: an organisation, a group, a project or a repository.
type target struct {
	name string // kind and name from the configuration, such as orgs/acme
	list func(ctx context.Context, found func(Repo, string) error) error
}

// collector lists the targets of a connection and passes each chosen repository on once.
type collector struct {
	sink   Sink
	choice *choice

	// seen holds hashes of ids. With a hundred thousand ids, one listing in billions misses a
	// repository because two ids collide. The catalog keeps a repository that one listing misses.
	seed maphash.Seed

	mu        sync.Mutex // guards the fields below
	listedIDs map[uint64]struct{}
	done      int
	unused    []oneGlob // globs that have matched no repository yet
}

func newCollector(sink Sink, c *choice) *collector {
	return &collector{sink: sink, choice: c, seed: maphash.MakeSeed(), listedIDs: map[uint64]struct{}{}, unused: slices.Clone(c.each)}
}

// run lists the targets, some at once. A failed target is an issue and does not stop others. A
// refused token ends all, because it would be refused again.
func (c *collector) run(ctx context.Context, targets []target) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	slots := make(chan struct{}, parallelTargets)
	var group sync.WaitGroup
	var failed sync.Map

	for _, t := range targets {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := c.listTarget(ctx, t); err != nil {
				failed.Store(t.name, err)
				if RefusesToken(err) || lacksToken(err) || isSinkError(err) {
					stop(err)
				}
			}
		})
	}
	group.Wait()

	if cause := context.Cause(ctx); cause != nil {
		return cause
	}

	// If some targets failed, the listing is partial. If all failed, it fails.
	var all error
	failures, absent := 0, 0
	for _, t := range targets {
		v, ok := failed.Load(t.name)
		if !ok {
			continue
		}

		err := v.(error)
		c.sink.Issue(issueOf(t.name, err))
		all = errors.Join(all, err)
		failures++
		if errors.Is(err, ErrGone) {
			absent++
		}
	}

	// Report unused globs only after a complete listing, and not if it is empty, which was reported.
	if failures == 0 && len(c.listedIDs) > 0 {
		c.reportUnused()
	}

	switch {
	case failures == 0 || failures < len(targets):
		return nil
	case absent == failures:
		return nothingThere{all}
	}
	return all
}

// nothingThere is the error of a listing without any existing target.
type nothingThere struct{ error }

func (e nothingThere) Unwrap() error { return e.error }

// NothingThere reports whether a listing failed because the host has none of its targets. Each was
// reported as an issue.
func NothingThere(err error) bool { return errors.As(err, &nothingThere{}) }

// sinkError is an error of the sink, which ends the listing.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

func isSinkError(err error) bool { return errors.As(err, &sinkError{}) }

// RefusesToken reports whether a host refused a connection's token.
func RefusesToken(err error) bool {
	r := (*Refusal)(nil)
	return errors.As(err, &r) && r.Code == TokenRefused
}

// lacksToken reports whether the token cannot be read. Then no target can be listed.
func lacksToken(err error) bool {
	r := (*Refusal)(nil)
	return errors.As(err, &r) && r.Code == TokenMissing
}

// listTarget lists one target. It reports an empty target, because many hosts answer with an empty
// list if the token may see none of the repositories.
func (c *collector) listTarget(ctx context.Context, t target) error {
	nonEmpty, unusable := false, 0
	err := t.list(ctx, func(r Repo, path string) error {
		nonEmpty = true
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}

		// Count repositories without an id, and continue.
		if r.ExternalID == "" {
			unusable++
			return nil
		}

		// Another target may have listed the repository already.
		if !c.markSeen(r.ExternalID) {
			return nil
		}

		c.recordMatches(&r, path)
		if why := c.choice.exclusionReason(&r, path); why != "" {
			c.sink.Skip(r.ExternalID, why)
			return nil
		}

		r.Target = t.name
		if err := c.sink.Repo(ctx, r); err != nil {
			return sinkError{err}
		}

		c.mu.Lock()
		c.done++
		done := c.done
		c.mu.Unlock()
		c.sink.Progress(done, 0)
		return nil
	})
	if err == nil && unusable > 0 {
		c.sink.Issue(issueOf(t.name, refusal(InvalidResponse, http.StatusOK, "the host lists %d repositories without a usable name or id, which are left out", unusable)))
	}
	if err == nil && !nonEmpty {
		c.sink.Issue(Issue{Code: TargetEmpty, Target: t.name, Text: "the host lists no repository of it: it has none, or the token of the connection may see none"})
	}
	return err
}

// markSeen records that a repository was listed, and reports whether that was the first time.
func (c *collector) markSeen(id string) (first bool) {
	key := maphash.String(c.seed, id)

	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.listedIDs[key]; known {
		return false
	}
	c.listedIDs[key] = struct{}{}
	return true
}

// recordMatches records which globs match a repository.
func (c *collector) recordMatches(r *Repo, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unused = slices.DeleteFunc(c.unused, func(u oneGlob) bool { return u.glob.MatchAny(u.by(r, path)) })
}

// reportUnused reports the properties with globs that match nothing.
func (c *collector) reportUnused() {
	patterns := map[string][]string{}
	for _, u := range c.unused {
		patterns[u.property] = append(patterns[u.property], u.pattern)
	}
	for _, property := range slices.Sorted(maps.Keys(patterns)) {
		list, more := patterns[property], ""
		if n := len(list) - maxNamedGlobs; n > 0 {
			list, more = list[:maxNamedGlobs], fmt.Sprintf(" and %d more", n)
		}
		c.sink.Issue(Issue{Code: NoEffect, Target: property, Text: fmt.Sprintf("no repository of the listing matches %s%s; correct the glob, or take it out", strings.Join(list, ", "), more)})
	}
}

// maxNamedGlobs is how many globs an issue names.
const maxNamedGlobs = 5

// hostID is the number of a repository at its host, or 0 if the JSON is no number of 63 bits. So
// one bad entry is counted as unusable, and the rest of the page is read.
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
