package ask

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

// agreed is a catalog that all nodes have.
type agreed struct{ *clustertest.World }

func (agreed) Await(context.Context, uint64) error { return nil }
func (agreed) Outlived() error                     { return nil }

// shaky is a cluster with the file local/app a.go, whose nodes are unreachable for a while.
type shaky struct {
	browse.Reader
	symbols.Searcher
	back  time.Time // when answers begin
	fails func(ctx context.Context) error
}

func (s *shaky) down(ctx context.Context) error {
	if time.Now().Before(s.back) {
		return s.fails(ctx)
	}
	return nil
}

func (s *shaky) ReadFile(ctx context.Context, _ catalog.Viewer, req browse.ReadFileRequest) (*browse.ReadFileResponse, error) {
	if err := s.down(ctx); err != nil {
		return nil, err
	}
	if req.Path != "src/a.go" {
		return nil, call.Fail(call.ErrFileNotFound, "no %s", req.Path)
	}
	return &browse.ReadFileResponse{Repo: req.Repo, Path: req.Path, Commit: "c0ffee", First: 1, Total: 1, Lines: [][]byte{[]byte("func Open()")}}, nil
}

func (s *shaky) Glob(ctx context.Context, _ catalog.Viewer, req search.GlobRequest) (*search.GlobResponse, error) {
	if err := s.down(ctx); err != nil {
		// Like a search, which returns what it has.
		return &search.GlobResponse{Coverage: coverage.Of(coverage.Parts, 1, 0).With(coverage.Gap{Kind: coverage.Lost, Count: 1, Of: 1})}, nil
	}
	if req.Pattern != "**/a.go" {
		return &search.GlobResponse{}, nil
	}
	return &search.GlobResponse{Repos: []search.GlobRepo{{Repo: req.Repo, Paths: []string{"src/a.go"}}}}, nil
}

func (s *shaky) Outline(context.Context, catalog.Viewer, browse.OutlineRequest) (*browse.OutlineResponse, error) {
	return nil, call.Fail(call.ErrUnavailable, "no ctags here")
}

// silent fails like a node whose machine just lost power.
func silent(ctx context.Context) error {
	<-ctx.Done()
	return call.Fail(call.ErrTimeout, "reading took too long")
}

func unreachable(context.Context) error {
	return call.Fail(call.ErrUnavailable, "no node that has it can be reached")
}

// Citations are checked while nodes are unreachable, for a moment or for longer than the timeout.
func TestCitation_isUncheckedNotWrongIfANodeIsGone(t *testing.T) {
	t.Parallel()
	const read = "By `Open` "
	for name, tt := range map[string]struct {
		mark  string
		gone  time.Duration
		fails func(context.Context) error
		want  CiteState
		most  time.Duration
	}{
		"there":                    {"local/app::src/a.go:1", 0, unreachable, Cited, 0},
		"a moment":                 {"local/app::src/a.go:1", 4 * time.Second, unreachable, Cited, 5 * time.Second},
		"a moment, without a word": {"local/app::src/a.go:1", 6 * time.Second, silent, Cited, 11 * time.Second},
		"a defect for a moment":    {"local/app::src/a.go:1", time.Second, func(context.Context) error { return errors.New("git: signal: killed") }, Cited, 2 * time.Second},
		"by its end":               {"local/app::a.go:1", 4 * time.Second, unreachable, Cited, 5 * time.Second},
		"too long":                 {"local/app::src/a.go:1", time.Hour, unreachable, Unchecked, checkPatience},
		"too long, without a word": {"local/app::src/a.go:1", time.Hour, silent, Unchecked, checkPatience + lookTime},
		"no such file":             {"local/app::b.go:1", 0, unreachable, Unverified, 0},
		"no such file, later":      {"local/app::b.go:1", 4 * time.Second, unreachable, Unverified, 5 * time.Second},
		"no such repository":       {"local/no::b.go:1", time.Hour, unreachable, Unverified, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				k := newShaky(t, &shaky{back: began.Add(tt.gone), fails: tt.fails})
				c := k.checkCitation(t.Context(), tt.mark, read)
				if took := time.Since(began); c.State != tt.want || took > tt.most {
					t.Errorf("%s after %v, want %s in %v", c.State, took, tt.want, tt.most)
				}
				if c.Found() == (c.URL("") == "") || c.State == Unchecked && c.Repo+c.Commit != "" {
					t.Errorf("%+v has the address %q", c, c.URL(""))
				}
			})
		})
	}
}

// All citations of an answer share one timeout while no node is reachable.
func TestCitations_shareOneTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		k := newShaky(t, &shaky{back: began.Add(time.Hour), fails: unreachable})
		for range 100 {
			if c := k.checkCitation(t.Context(), "local/app::src/a.go:1", ""); c.State != Unchecked {
				t.Errorf("%+v", c)
			}
		}
		if took := time.Since(began); took > checkPatience {
			t.Errorf("it took %v", took)
		}
	})

	// Stopping the question ends the wait.
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		k := newShaky(t, &shaky{back: began.Add(time.Hour), fails: unreachable})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if c := k.checkCitation(ctx, "local/app::src/a.go:1", ""); c.State != Unchecked || time.Since(began) > time.Second {
			t.Errorf("%+v after %v", c, time.Since(began))
		}
	})
}

func newShaky(t *testing.T, s *shaky) *checker {
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	w.Do(&catalog.SyncPage{Connection: "c", Fence: w.View().Job(catalog.JobSync, "c").Fence, Repos: []catalog.ListedRepo{{Name: "local/app"}}})
	led := newLedger(Sources{Search: s, Browse: s}, nil)
	return &checker{gate: account.NewGate(agreed{w}), viewer: catalog.Operator(), ledger: led, left: maxChecks, patience: checkPatience}
}
