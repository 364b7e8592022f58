package catalog

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// For random jobs, JobsToGrant returns the ready jobs in the same order as a scan and sort of all
// jobs.
func TestJobsToGrant_returnsWhatAScanOfAllJobsFinds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for seed := range 20 {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		s := New()
		for range 300 {
			subject := fmt.Sprint(r.IntN(60))
			kind := JobKind(1 + r.IntN(3))
			if r.IntN(5) == 0 {
				s.dropJob(kind, subject)
				continue
			}
			j := &Job{Kind: kind, Subject: subject, Urgent: r.IntN(4) == 0, EnqueuedAt: start.Add(-time.Duration(r.IntN(5)) * time.Millisecond)}
			j.State = [...]JobState{JobWaiting, JobWaiting, JobBackoff, JobRunning, JobDone}[r.IntN(5)]
			if j.State == JobBackoff {
				j.NotBefore = start.Add(time.Duration(r.IntN(9)-4) * time.Second)
			}
			if r.IntN(2) == 0 {
				j.GoodAt = start
			}
			s.setJob(j)
		}

		v := s.View()
		for kind := JobKind(1); kind <= 3; kind++ {
			var want []*Job
			for j := range v.JobsOf(JobWaiting, JobBackoff) {
				if j.Kind == kind && !start.Before(j.NotBefore) {
					want = append(want, j)
				}
			}
			slices.SortFunc(want, func(a, b *Job) int {
				return cmp.Or(cmp.Compare(urgency(a), urgency(b)), a.readyAt().Compare(b.readyAt()), cmp.Compare(a.Subject, b.Subject))
			})
			if got := slices.Collect(v.JobsToGrant(kind, start)); !slices.Equal(got, want) {
				t.Fatalf("seed %d, kind %d: %d jobs, want %d", seed, kind, len(got), len(want))
			}
			for i := 1; i < len(want); i++ {
				if !want[i-1].GrantedBefore(want[i]) || want[i].GrantedBefore(want[i-1]) {
					t.Fatalf("seed %d: the order is not that of the turns", seed)
				}
			}
		}
	}
}
