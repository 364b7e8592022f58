package host

import (
	"context"
	"errors"
	"sync"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Trial is the beginning of a listing, to be looked at by a person.
type Trial struct {
	Repos   []Repo
	Skipped map[Reason]int // met beside them and left out
	Issues  []Issue
	More    bool // the listing went on

	// Allowance is what the host told of the credential meanwhile.
	Allowance Allowance
}

// errEnough ends a listing of which enough has been seen.
var errEnough = errors.New("enough was listed")

// Try lists a connection until it has come to most repositories. The error is
// why the host listed nothing; what came before it is in the trial.
func Try(ctx context.Context, conn config.Connection, t Tools, most int) (Trial, error) {
	h, err := Open(conn, t)
	if err != nil {
		return Trial{}, err
	}

	s := &trialSink{most: most, trial: Trial{Skipped: map[Reason]int{}}}

	// That it has seen enough is how a trial ends.
	err = h.List(ctx, s)
	if errors.Is(err, errEnough) {
		err = nil
	}

	if m, ok := h.(Metered); ok {
		s.trial.Allowance = m.Allowance()
	}
	return s.trial, err
}

// trialSink ends the listing with the repository after the last that is wanted.
type trialSink struct {
	most int

	mu    sync.Mutex // guards the trial
	trial Trial
}

func (s *trialSink) Repo(_ context.Context, r Repo) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.trial.Repos) == s.most {
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
