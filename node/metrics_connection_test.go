package node

import (
	"regexp"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
)

// Metrics have the result of a connection's listing. Values that a host does not report are
// absent, not 0.
func TestConnectionMetrics_omitUnknownValues(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"a": {"type": "gitea", "url": "https://h.example", "orgs": ["x"]}, "b": {"type": "gitea", "url": "https://g.example", "orgs": ["x"]}}}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "a"})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "a", Node: "n1", Epoch: clustertest.Epoch, Deadline: w.Now().Add(time.Hour)})
	granted := w.Now()
	w.Pass(7 * time.Second)
	listed := w.Now()

	conn, fence := w.View().Connection("a"), w.View().Job(catalog.JobSync, "a").Fence
	expires := granted.Add(72 * time.Hour)
	w.Do(&catalog.FinishListing{
		FinishSync: catalog.FinishSync{Connection: "a", Fence: fence, Hash: conn.Hash, Complete: true,
			Held:     3,
			Excluded: []catalog.ReasonCount{{Reason: "forks", Count: 4}},
			Issues:   []catalog.ListingIssue{{Code: "SSO_REQUIRED"}, {Code: "NOT_FETCHABLE"}, {Code: "NOT_FETCHABLE"}},
			Account:  catalog.Account{Calls: 5, Limit: 5000, Remaining: 1000, Expires: expires}},
		Total: 12,
	})

	// The host of b refuses its token for a month.
	refusedAt := w.Now()
	for range 2 {
		w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "b", Urgent: true})
		w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "b", Node: "n1", Epoch: clustertest.Epoch, Deadline: w.Now().Add(time.Hour)})
		w.Do(&catalog.FinishJob{Kind: catalog.JobSync, Subject: "b", Fence: w.View().Job(catalog.JobSync, "b").Fence, Error: "401", TokenRefused: true})
		w.Pass(catalog.ServeRefused)
	}

	got := map[string]float64{}
	name := regexp.MustCompile(`fqName: "(\w+)"`)
	for _, m := range connectionMetrics() {
		m.Read(&snapshot{view: w.View()}, func(v float64, labels ...string) {
			key := name.FindStringSubmatch(m.Desc.String())[1]
			for _, l := range labels {
				key += " " + l
			}
			got[key] = v
		})
	}

	for key, want := range map[string]float64{
		"shoal_connection_failed a":                          0,
		"shoal_connection_repos a listed":                    12,
		"shoal_connection_repos a held":                      3,
		"shoal_connection_left_out_repos a forks":            4,
		"shoal_connection_issues a SSO_REQUIRED":             1,
		"shoal_connection_issues a NOT_FETCHABLE":            2,
		"shoal_connection_calls a":                           5,
		"shoal_connection_calls_left_ratio a":                0.2,
		"shoal_connection_token_expires_timestamp_seconds a": float64(expires.Unix()),
		"shoal_connection_listed_timestamp_seconds a":        float64(listed.Unix()),
		"shoal_connection_hidden a":                          0,
		"shoal_connection_hidden b":                          1,
		"shoal_connection_failed b":                          1,
		"shoal_connection_issues b TOKEN_REFUSED":            1,
		"shoal_connection_token_refused_timestamp_seconds b": float64(refusedAt.Unix()),
		"shoal_connection_listed_timestamp_seconds b":        0,
		"shoal_connection_listing_seconds a":                 7,
	} {
		if v, ok := got[key]; !ok || v != want {
			t.Errorf("%s is %v (%t), want %v", key, v, ok, want)
		}
	}
	for _, key := range []string{"shoal_connection_token_refused_timestamp_seconds a", "shoal_connection_calls_left_ratio b", "shoal_connection_token_expires_timestamp_seconds b", "shoal_connection_listed_timestamp_seconds c"} {
		if v, ok := got[key]; ok {
			t.Errorf("%s is %v, though nothing is known", key, v)
		}
	}
}
