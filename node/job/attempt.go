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

// errPermanent marks failures that a retry cannot fix.
var errPermanent = errors.New("no use to try again")

// errLost ends an attempt whose job was granted to another attempt.
var errLost = errors.New("the job was taken away")

// errChanged ends an attempt whose input has changed, see Kind.Input.
var errChanged = errors.New("what the job works by was changed")

// errStopping ends an attempt because the node stops.
var errStopping = errors.New("the node stops")

// attempt is one run of a job. Its proposals carry the job's fence.
type attempt struct {
	job     *catalog.Job
	input   string // the kind's Input at the start
	cluster Cluster
	files   *hold.Files

	cancel context.CancelCauseFunc
	ending atomic.Bool // its command was sent: only the catalog's answer may end the attempt
	guards []func()    // functions that release the adopted files
	progress
}

// retryPropose is the pause between two tries to reach a leader.
const retryPropose = 200 * time.Millisecond

// record proposes a change and keeps the job running. Meanwhile ending is set, so that the runner
// does not cancel the attempt while its proposal is under way.
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

// finishNoted proposes the command that ends the job, together with an audit event.
func (a *attempt) finishNoted(ctx context.Context, cmd catalog.Command, note *catalog.NoteEvent) error {
	a.ending.Store(true)
	return a.propose(ctx, cmd, note)
}

// propose proposes a command of the job until it is committed. Without a leader it retries as long
// as the attempt holds the job.
func (a *attempt) propose(ctx context.Context, cmds ...catalog.Command) error {
	for {
		err := commitAndApply(ctx, a.cluster, cmds...)
		if err == nil || !errors.Is(err, cluster.ErrNoLeader) {
			return err
		}

		// If another attempt holds the job now, the catalog would refuse this proposal.
		if !a.holds() {
			return errLost
		}
		if !clock.Wait(ctx, retryPropose) {
			return context.Cause(ctx)
		}
	}
}

// holds reports whether this attempt still holds the job, as far as this node knows.
func (a *attempt) holds() bool {
	now := a.cluster.View().Job(a.job.Kind, a.job.Subject)
	return now != nil && now.Fence == a.job.Fence && now.State == catalog.JobRunning
}

// succeeded reports whether this attempt's own command has ended its job successfully.
func (a *attempt) succeeded() bool {
	now := a.cluster.View().Job(a.job.Kind, a.job.Subject)
	return now != nil && now.Fence == a.job.Fence && now.State == catalog.JobDone
}

// adopt opens files that the attempt has written, and protects them from removal until release.
func (a *attempt) adopt(names ...string) error {
	release, err := a.files.Adopt(names...)
	a.guards = append(a.guards, release)
	return err
}

// release ends the protection of adopted files: by now a view names them, or they are garbage.
func (a *attempt) release() {
	for _, release := range a.guards {
		release()
	}
}

// subjectName names the job's subject for people.
func (a *attempt) subjectName() string {
	if repo := a.cluster.View().Repo(catalog.SubjectRepo(a.job.Subject)); repo != nil && a.job.Kind.OfRepo() {
		return repo.Name
	}
	return a.job.Subject
}

// commitAndApply proposes commands and waits until this node has applied them.
func commitAndApply(ctx context.Context, c Cluster, cmds ...catalog.Command) error {
	index, results, err := c.ProposeAll(ctx, cmds...)

	// An error with an index: the commands are committed, but this node is slow to apply them.
	if err != nil && index > 0 {
		err = c.Await(ctx, index)
	}
	if err == nil && results[0].Err != nil {
		err = fmt.Errorf("%s: %w", catalog.CommandName(cmds[0]), results[0].Err)
	}
	return err
}

// refused reports whether the catalog refused a command, so that a retry is useless.
func refused(err error) bool {
	_, is := catalog.Refused(err)
	return is
}
