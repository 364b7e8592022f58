package job

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
)

// errPermanent marks failures that no further attempt can mend.
var errPermanent = errors.New("no use to try again")

// errLost ends an attempt whose fence is no longer the job's.
var errLost = errors.New("the job was taken away")

// errChanged ends an attempt whose input is no longer in force.
var errChanged = errors.New("what the job works by was changed")

// errStopping ends an attempt because the node stops.
var errStopping = errors.New("the node stops")

// attempt is one run of a job. What it proposes carries the fence of the job.
type attempt struct {
	job     *catalog.Job
	input   string // as its kind says, at the start
	cluster Cluster
	files   *hold.Files

	cancel context.CancelCauseFunc
	ending atomic.Bool // its last command is on its way: the catalog alone judges it
	guards []func()    // let go of the files that it has adopted
	progress
}

// retryPropose is the pause between two tries to reach a leader.
const retryPropose = 200 * time.Millisecond

// record proposes a change and keeps the job running. ending is set meanwhile, so that only
// the catalog decides whether the attempt still holds the job.
func (a *attempt) record(ctx context.Context, cmd catalog.Command) error {
	a.ending.Store(true)
	defer a.ending.Store(false)
	return a.propose(ctx, cmd)
}

// finish proposes the command that ends the job.
func (a *attempt) finish(ctx context.Context, cmd catalog.Command) error {
	a.ending.Store(true)
	return a.propose(ctx, cmd)
}

// finishNoted is finish with an event for the audit in the same entry.
func (a *attempt) finishNoted(ctx context.Context, cmd catalog.Command, note *catalog.NoteEvent) error {
	a.ending.Store(true)
	return a.propose(ctx, cmd, note)
}

// propose sends a command of the job until it is committed: without a leader it
// tries again as long as the job is this attempt's.
func (a *attempt) propose(ctx context.Context, cmds ...catalog.Command) error {
	for {
		// Agreed on, or refused for good: only the lack of a leader passes.
		err := commit(ctx, a.cluster, cmds...)
		if err == nil || !errors.Is(err, cluster.ErrNoLeader) {
			return err
		}

		// The fence of another attempt is in force: what this one proposes is refused.
		if !a.holds() {
			return errLost
		}
		if !clock.Wait(ctx, retryPropose) {
			return context.Cause(ctx)
		}
	}
}

// holds reports whether the job is still this attempt's, as far as this node
// knows.
func (a *attempt) holds() bool {
	now := a.cluster.View().Job(a.job.Kind, a.job.Subject)
	return now != nil && now.Fence == a.job.Fence && now.State == catalog.JobRunning
}

// ended reports whether the attempt's own report has ended its job well.
func (a *attempt) ended() bool {
	now := a.cluster.View().Job(a.job.Kind, a.job.Subject)
	return now != nil && now.Fence == a.job.Fence && now.State == catalog.JobDone
}

// adopt opens files that the attempt has written and keeps them for as long as
// it lasts.
func (a *attempt) adopt(names ...string) error {
	release, err := a.files.Adopt(names...)
	a.guards = append(a.guards, release)
	return err
}

// release lets go of the adopted files: now a view names them, or nobody does.
func (a *attempt) release() {
	for _, release := range a.guards {
		release()
	}
}

// subject is how people know what the job is about.
func (a *attempt) subject() string {
	if repo := a.cluster.View().Repo(catalog.SubjectRepo(a.job.Subject)); repo != nil && a.job.Kind.OfRepo() {
		return repo.Name
	}
	return a.job.Subject
}

// commit proposes a command, and what its entry notes beside it, and waits, as
// long as the context lasts, until this node has applied it. Once it has an index it is agreed upon: that this
// node is behind the others is no failure of it.
func commit(ctx context.Context, a Cluster, cmds ...catalog.Command) error {
	index, results, err := a.ProposeAll(ctx, cmds...)
	if err != nil && index > 0 {
		err = a.Await(ctx, index)
	}
	if err == nil && results[0].Err != nil {
		err = fmt.Errorf("%s: %w", catalog.CommandName(cmds[0]), results[0].Err)
	}
	return err
}

// refused reports whether the catalog did not take a command, so that trying
// again is of no use.
func refused(err error) bool {
	_, is := catalog.Refused(err)
	return is
}
