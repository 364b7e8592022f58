package node

import (
	"time"

	"github.com/shoalsearch/shoal/cluster/gauge"
	"github.com/shoalsearch/shoal/node/job"
)

// permissionMetrics returns the gauges of permission sync: which questions to code hosts are
// answered. They come from the catalog, so every node shows the same.
func permissionMetrics() []stateMetric {
	return []stateMetric{
		{Desc: gauge.Desc("shoal_permission_questions", "What is asked of code hosts, people and repositories, by how it was answered: wanted (all), answered, ended (too old to count), refused (people), failing.", "host", "of", "state"),
			Read: eachAnswers(func(a *job.Answers, host, of string, emit gauge.Emit) {
				for state, n := range map[string]int{"wanted": a.Wanted, "answered": a.Answered, "ended": a.Ended, "refused": a.Refused, "failing": a.Failing} {
					emit(float64(n), host, of, state)
				}
			})},

		{Desc: gauge.Desc("shoal_permission_newest_answer_timestamp_seconds", "When a code host gave its last good answer; absent before the first.", "host", "of"),
			Read: eachAnswers(func(a *job.Answers, host, of string, emit gauge.Emit) { emitTime(a.Newest, host, of, emit) })},
		{Desc: gauge.Desc("shoal_permission_oldest_answer_timestamp_seconds", "When a code host gave the oldest answer that counts; absent where none does.", "host", "of"),
			Read: eachAnswers(func(a *job.Answers, host, of string, emit gauge.Emit) { emitTime(a.Oldest, host, of, emit) })},

		// People who may see less than they should, and the load of questions to hosts.
		{Desc: gauge.Desc("shoal_permission_accounts_unlinked", "Active accounts that are linked to nobody at a code host; 0 where code hosts are not asked."),
			Read: func(s *snapshot, emit gauge.Emit) { emit(float64(s.permissions.Unlinked)) }},
		{Desc: gauge.Desc("shoal_permission_running", "How many people and repositories code hosts are asked for at once now, in the cluster.", "of"),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.permissions.PeopleRunning), "people")
				emit(float64(s.permissions.ReposRunning), "repos")
			}},
		{Desc: gauge.Desc("shoal_permission_limit", "How many people and repositories code hosts may be asked for at once, in the cluster.", "of"),
			Read: func(s *snapshot, emit gauge.Emit) {
				emit(float64(s.permissions.PeopleLimit), "people")
				emit(float64(s.permissions.ReposLimit), "repos")
			}},
	}
}

// eachAnswers makes a reader that calls read for every host, once for people and once for
// repositories.
func eachAnswers(read func(a *job.Answers, host, of string, emit gauge.Emit)) func(*snapshot, gauge.Emit) {
	return func(s *snapshot, emit gauge.Emit) {
		for i := range s.permissions.Hosts {
			h := &s.permissions.Hosts[i]
			read(&h.People, h.Host, "people", emit)
			read(&h.Repos, h.Host, "repos", emit)
		}
	}
}

func emitTime(at time.Time, host, of string, emit gauge.Emit) {
	if !at.IsZero() {
		emit(float64(at.Unix()), host, of)
	}
}
