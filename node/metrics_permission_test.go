package node

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/job"
)

// Metrics have the answers of code hosts. A warning appears if somebody sees less because of one.
// A host without an answer has no time.
func TestPermissionMetrics_countTheAnswersOfHosts(t *testing.T) {
	t.Parallel()
	first := time.Unix(1_700_000_000, 0)
	state := &job.PermissionState{
		Sync: catalog.PermissionSyncOn, Unlinked: 4, PeopleRunning: 2, PeopleLimit: 8, ReposRunning: 1, ReposLimit: 3,
		Hosts: []job.HostPermissions{{
			Host:   "github:github.com",
			People: job.Answers{Wanted: 9, Answered: 5, Ended: 2, Refused: 1, Failing: 1, Newest: first.Add(time.Hour), Oldest: first},
			Repos:  job.Answers{Wanted: 3},
		}},
	}
	got := map[string]float64{}
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	for _, m := range permissionMetrics() {
		m.Read(&snapshot{permissions: state}, func(v float64, labels ...string) {
			got[strings.Join(append(name.FindStringSubmatch(m.Desc.String())[1:], labels...), " ")] = v
		})
	}
	for key, want := range map[string]float64{
		"shoal_permission_questions github:github.com people wanted":                9,
		"shoal_permission_questions github:github.com people answered":              5,
		"shoal_permission_questions github:github.com people ended":                 2,
		"shoal_permission_questions github:github.com people refused":               1,
		"shoal_permission_questions github:github.com people failing":               1,
		"shoal_permission_questions github:github.com repos wanted":                 3,
		"shoal_permission_questions github:github.com repos answered":               0,
		"shoal_permission_newest_answer_timestamp_seconds github:github.com people": 1_700_003_600,
		"shoal_permission_oldest_answer_timestamp_seconds github:github.com people": 1_700_000_000,
		"shoal_permission_accounts_unlinked":                                        4,
		"shoal_permission_running people":                                           2,
		"shoal_permission_running repos":                                            1,
		"shoal_permission_limit people":                                             8,
		"shoal_permission_limit repos":                                              3,
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s is %v (%t), want %v", key, v, ok, want)
		}
	}
	if _, there := got["shoal_permission_newest_answer_timestamp_seconds github:github.com repos"]; there {
		t.Error("a host that gave no answer has a time of one")
	}

	if warnings := permissionWarnings(state); len(warnings) != 3 {
		t.Errorf("warnings %q, want one of lists that ended, one of refusals, one of failures", warnings)
	}
	if warnings := permissionWarnings(&job.PermissionState{Hosts: []job.HostPermissions{{People: job.Answers{Wanted: 1}, Repos: job.Answers{Wanted: 1, Answered: 1}}}}); len(warnings) != 0 {
		t.Errorf("where all is well: %q", warnings)
	}
}
