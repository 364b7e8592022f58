package host

import (
	"context"
	"errors"
	"sync"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Trial is the beginning of a listing, for a person to inspect.
type Trial struct {
	Repos   []Repo
	Skipped map[Reason]int // repositories left out, by reason
	Issues  []Issue
	More    bool // the listing has more

	// Allowance is what the host announced of the credential's limit.
	Allowance Allowance
}

// errEnough ends a listing after enough repositories.
var errEnough = errors.New("enough was listed")

// Try lists a connection up to a number of repositories. The error says why the listing failed. The
// trial has what was found before.
func Try(ctx context.Context, conn config.Connection, t Tools, limit int) (Trial, error) {
	h, err := Open(conn, t)
	if err != nil {
		return Trial{}, err
	}

	s := &trialSink{limit: limit, trial: Trial{Skipped: map[Reason]int{}}}

	// errEnough is not a failure.
	err = h.List(ctx, s)
	if errors.Is(err, errEnough) {
		err = nil
	}

	if m, ok := h.(Metered); ok {
		s.trial.Allowance = m.Allowance()
	}
	return s.trial, err
}

// trialSink ends the listing one repository after the limit.
type trialSink struct {
	limit int

	mu    sync.Mutex // guards the trial
	trial Trial
}

func (s *trialSink) Repo(_ context.Context, r Repo) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.trial.Repos) == s.limit {
		s.trial.More = true
		return errEnough
	}
	s.trial.Repos = append(s.trial.Repos, r)
	return nil
}

func (s *trialSink) Issue(i Issue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trial.Issues = append(s.trial.Issues, i)
}

func (s *trialSink) Skip(_ string, why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trial.Skipped[why]++
}

func (s *trialSink) Progress(int, int) {}
