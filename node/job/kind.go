package job

import (
	"context"
	"math"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// Kind is what planning and running know of a kind of jobs: a row of the table
// that New makes. The other half, what the catalog knows, is catalog.JobRow.
// To add a kind: a row there, a row in a file of its own here, and the row's
// name in New.
type Kind struct {
	Job catalog.JobKind

	// Planning, on the leader. These depend on nothing but their arguments.

	// PerNode and PerCluster are how many may run at once; nil: any number.
	PerNode, PerCluster func(config.Settings) int
	// Timeout is how long an attempt may take.
	Timeout func(config.Settings) time.Duration
	// Look is the look that asks for jobs whose time has come; 0: only
	// commands and other jobs ask for them.
	Look Look
	// Enqueue asks for them. It ends when the planner takes no more.
	Enqueue func(*planner)
	// Blocked reports whether a waiting job must not begin yet; nil: it never must not.
	Blocked func(*planner, *catalog.Job) bool
	// Home is the nodes that may run a job, and whether none else may where
	// there are none; nil: any.
	Home func(*planner, *catalog.Job) (nodes []string, bound bool)
	// Key is what decides between nodes that are equally busy; nil: the subject.
	Key func(*catalog.Job) uint64

	// Input is what an attempt works by; where it changes, the attempt is stopped and begun
	// again. Nil: nothing that changes.
	Input func(*catalog.View, *catalog.Job) string

	// Run does the work of an attempt, on the node that has the job. What it
	// returns nil for is in the catalog.
	Run func(context.Context, *attempt) error
}

// Look says which schedules a plan looks at: each has a pace of its own.
type Look uint8

// The looks. They are bits.
const (
	LookConnections Look = 1 << iota // at the polling interval of connections
	LookRepos                        // at the polling interval of repositories
	LookPacks                        // about once a second, when something changed
)

// kinds is the table of kinds.
type kinds []Kind

// of returns nil for a kind that this version does not run.
func (ks kinds) of(job catalog.JobKind) *Kind {
	for i := range ks {
		if ks[i].Job == job {
			return &ks[i]
		}
	}
	return nil
}

// perNode is how many jobs of the kind may run on a node.
func (k *Kind) perNode(s config.Settings) int { return limit(k.PerNode, s) }

// perCluster is how many jobs of the kind may run at all.
func (k *Kind) perCluster(s config.Settings) int { return limit(k.PerCluster, s) }

func limit(of func(config.Settings) int, s config.Settings) int {
	if of == nil {
		return math.MaxInt
	}
	return of(s)
}

// always is a limit or time that no setting changes.
func always[T any](v T) func(config.Settings) T {
	return func(config.Settings) T { return v }
}
