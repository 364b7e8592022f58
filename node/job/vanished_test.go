package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard/git"
)

// A repository that git does not find is looked up once. If it is gone or renamed, it rests for
// hours and causes a listing. If the host still has it, it is retried soon.
func TestMissingRepository_isLookedUpOnceAndThenNotFetched(t *testing.T) {
	t.Parallel()
	failure := fmt.Errorf("fetch: %w", git.ErrNoRemote)
	for name, c := range map[string]struct {
		number int64
		url    string // as listed
		down   bool
		hinted bool
	}{
		"gone":            {number: 9, url: "URL/acme/r9.git", hinted: true},
		"renamed":         {number: 1, url: "URL/acme/former.git", hinted: true},
		"as it was":       {number: 1, url: "URL/acme/r1.git"},
		"nobody knows":    {number: 1, url: "URL/acme/r1.git", down: true},
		"of another host": {number: 0, url: "https://elsewhere.example.com/x.git"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPushWorld(t, 1)
			w.server.mu.Lock()
			w.server.down = c.down
			w.server.mu.Unlock()

			var hints []string
			x := &indexer{remotes: &remotes{view: w.View, hosts: w.follow.hosts}, now: w.Now, hint: func(c string) { hints = append(hints, c) }}
			repo := *w.View().Repo(1)
			repo.CloneURL = strings.Replace(c.url, "URL", w.server.URL, 1)
			repo.ExternalID = fmt.Sprintf("gitea:%s:%d", strings.TrimPrefix(w.server.URL, "http://"), c.number)
			if c.number == 0 {
				repo.ExternalID = "github:github.com:7"
			}

			err := x.explainMissing(t.Context(), &repo, failure)
			var told interface{ NotBefore() time.Time }
			rests := errors.As(err, &told) && told.NotBefore().Equal(w.Now().Add(vanishedWait))
			if !errors.Is(err, git.ErrNoRemote) || rests != c.hinted || (len(hints) == 1) != c.hinted {
				t.Errorf("%v; it rests: %v; hints %v", err, rests, hints)
			}
		})
	}
}

// After an ordinary failure polls go on before the back-off ends: the full disk may have room
// again.
func TestPolling_continuesAfterAnOrdinaryFailure(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 1)
	w.Pass(3 * time.Hour)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: "1"})
	fence := w.Grant(catalog.JobIndex, "1", "n1")
	w.Do(&catalog.FinishJob{Kind: catalog.JobIndex, Subject: "1", Fence: fence, Error: "no space left on device", NotBefore: w.Now().Add(maxBackoff)})
	w.poll.began = w.Now().Add(-time.Hour)

	if due := w.poll.duePolls(10); !slices.Contains(due, 1) {
		t.Errorf("%v are polled, want 1 too", due)
	}
}

// A resting repository is not polled, unless its host reports a push.
func TestMissingRepository_isNotPolledUntilAPush(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, 1)
	w.Pass(3 * time.Hour)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: "1"})
	fence := w.Grant(catalog.JobIndex, "1", "n1")
	w.Do(&catalog.FinishJob{Kind: catalog.JobIndex, Subject: "1", Fence: fence, Error: "gone", NotBefore: w.Now().Add(vanishedWait)})
	w.poll.began = w.Now().Add(-time.Hour) // do not wait for the first report of the host

	if due := w.poll.duePolls(10); !slices.Equal(due, []catalog.RepoID{2}) {
		t.Errorf("%v are polled, want 2 alone", due)
	}
	w.poll.Hear(&Signal{Connection: "a", Every: time.Minute, Marks: []host.Mark{{ExternalID: w.View().Repo(1).ExternalID, At: w.Now()}}})
	if due := w.poll.duePolls(10); !slices.Equal(due, []catalog.RepoID{1}) {
		t.Errorf("after a push %v are polled, want 1", due)
	}
	w.poll.recordPoll(1, "", false, false)
	w.Pass(vanishedWait)
	if due := w.poll.duePolls(10); !slices.Contains(due, 1) {
		t.Errorf("when its time has come %v are polled", due)
	}
}
