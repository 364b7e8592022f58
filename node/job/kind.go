package job

import (
	"context"
	"math"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// Kind tells how to plan and run a kind of job. It is a row of the table that New makes.
// catalog.JobRow is the catalog's part. To add a kind, add a row there, a row in a file of its own
// here, and the row's name in New.
type Kind struct {
	Job catalog.JobKind

	// Planning, on the leader. These functions depend only on their arguments.

	// PerNode and PerCluster limit the concurrent jobs; nil: no limit.
	PerNode, PerCluster func(config.Settings) int
	// Timeout is the time limit of an attempt.
	Timeout func(config.Settings) time.Duration
	// Look is the schedule that enqueues due jobs; 0: only commands and other jobs do.
	Look Look
	// Enqueue enqueues due jobs. It must stop when the planner is full.
	Enqueue func(*planner)
	// Blocked reports whether a waiting job must not begin yet; nil: never.
	Blocked func(*planner, *catalog.Job) bool
	// Home returns the preferred nodes for a job. If bound is set, no other node may run it. nil:
	// any node.
	Home func(*planner, *catalog.Job) (nodes []string, bound bool)
	// Key decides between equally busy nodes; nil: the subject.
	Key func(*catalog.Job) uint64

	// Input returns the input of an attempt. If it changes, the attempt is stopped and begins
	// again. nil: the input never changes.
	Input func(*catalog.View, *catalog.Job) string

	// Run does the work of an attempt. If it returns nil, the result must be in the catalog.
	Run func(context.Context, *attempt) error
}

// Look is a set of schedules. Each schedule has its own pace.
type Look uint8

// The schedules, as bits.
const (
	LookConnections Look = 1 << iota // at the polling interval of connections
	LookRepos                        // at the polling interval of repositories
	LookPacks                        // about once a second, if something changed
)

// kinds is the table of kinds.
type kinds []Kind

// kindOf returns the row of a kind, or nil if this version does not run it.
func (ks kinds) kindOf(job catalog.JobKind) *Kind {
	for i := range ks {
		if ks[i].Job == job {
			return &ks[i]
		}
	}
	return nil
}

// perNode returns how many jobs of the kind may run on a node at the same time.
func (k *Kind) perNode(s config.Settings) int { return limitOf(k.PerNode, s) }

// perCluster returns how many jobs of the kind may run in the cluster.
func (k *Kind) perCluster(s config.Settings) int { return limitOf(k.PerCluster, s) }

func limitOf(get func(config.Settings) int, s config.Settings) int {
	if get == nil {
		return math.MaxInt
	}
	return get(s)
}

// always returns a function that ignores the settings.
func always[T any](v T) func(config.Settings) T {
	return func(config.Settings) T { return v }
}
