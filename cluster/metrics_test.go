package cluster

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestClusterMetrics_haveTheirValuesAndEndWithTheNode(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir())
	r := prometheus.NewPedanticRegistry()
	o.Metrics = r
	n := start(t, o)
	n.propose(set("k", "v"))
	until(t, "the node is in the catalog", func() bool { return n.View().Member(n.Self()) != nil })
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		got[f.GetName()] = len(f.GetMetric())
		if !strings.HasPrefix(f.GetName(), "shoal_") || f.GetHelp() == "" {
			t.Errorf("metric %s: %q", f.GetName(), f.GetHelp())
		}
	}
	for name, series := range map[string]int{
		"shoal_propose_seconds": 1, "shoal_raft_disk_seconds": 1, "shoal_apply_seconds": 1, "shoal_raft_state": 3, "shoal_raft_term": 1,
		"shoal_raft_last_index": 1, "shoal_raft_servers": 2, "shoal_raft_log_bytes": 1, "shoal_raft_leaders_total": 1, "shoal_catalog_level": 1, "shoal_member_level": 1,
		"shoal_gossip_nodes": 2, "shoal_gossip_health": 1, "shoal_wire_connections": 4, "shoal_cluster_key_info": 1,
	} {
		if got[name] < series {
			t.Errorf("%s has %d series, want %d", name, got[name], series)
		}
	}
	n.stop()
	if families, err := r.Gather(); err != nil || len(families) != 0 {
		t.Errorf("after the end: %d metrics, %v", len(families), err)
	}
}
