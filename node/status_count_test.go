package node

import (
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/hold"
)

// A repository whose index no node has is not counted as indexed: after restoring a catalog, the
// user must not take it for ready.
func TestStatus_lostIndexIsNotIndexed(t *testing.T) {
	t.Parallel()
	state, index, now := catalog.New(), uint64(0), time.Unix(1_700_000_000, 0)
	do := func(cmd catalog.Command) uint64 {
		t.Helper()
		index++
		r := state.Apply(catalog.Entry{Index: index, At: now, Node: "n1", Commands: []catalog.Command{cmd}})[0]
		if r.Err != nil {
			t.Fatalf("%T: %v", cmd, r.Err)
		}
		return r.ID
	}
	grant := func(kind catalog.JobKind, subject string) uint64 {
		t.Helper()
		return do(&catalog.GrantJob{Kind: kind, Subject: subject, Node: "n1", Epoch: 1 << 24, Deadline: now.Add(time.Hour)})
	}
	raw := []byte(`{"connections": {"a": {"type": "git", "url": "https://localhost/r"}}}`)
	file, err := config.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	do(&catalog.InitCluster{ID: "c"})
	do(catalog.NewSetConfig(raw, file))
	do(&catalog.PutMember{Member: catalog.Member{ID: "n1", Epoch: 1 << 24, Weight: 100, Zone: "z", Addr: "a"}})
	fence := grant(catalog.JobSync, "a")
	do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: []catalog.ListedRepo{{Name: "r"}}})
	do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: state.View().Connection("a").Hash, Complete: true, Listed: 1})
	repo := state.View().RepoByName("r").ID
	fence = grant(catalog.JobIndex, catalog.RepoSubject(repo))
	do(&catalog.FinishIndex{Repo: repo, Fence: fence, Holder: "n1", Shards: []catalog.ShardRef{{ID: strings.Repeat("ab", 32)}},
		Revisions: []catalog.Revision{{Name: "HEAD", Commit: strings.Repeat("cd", 20)}}})
	census := new(hold.Census)
	if got, want := repoCounts(census.At(state.View(), hold.Live{1: true}), nil), (RepoCounts{Total: 1, Indexed: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := repoCounts(census.At(state.View(), hold.Live{}), nil), (RepoCounts{Total: 1}); got != want {
		t.Errorf("while its only holder cannot be reached: got %+v, want %+v", got, want)
	}
	state.Refound(catalog.Successor{Cluster: "d", Node: "n2", Restored: true})
	if got, want := repoCounts(census.At(state.View(), hold.Live{1: true}), nil), (RepoCounts{Total: 1}); got != want {
		t.Errorf("after a restore: got %+v, want %+v", got, want)
	}
}

// Without a leader the status has the age of the catalog and the missing nodes.
func TestStatus_withoutALeaderHasTheCatalogsAge(t *testing.T) {
	t.Parallel()
	here := cluster.Member{Member: catalog.Member{ID: "n1", Addr: "10.0.0.1:7701"}, Alive: true, Self: true}
	away := cluster.Member{Member: catalog.Member{ID: "n2", Addr: "10.0.0.2:7701"}}
	for _, c := range []struct {
		members []cluster.Member
		want    string
	}{
		{nil, "this node is not part of a cluster yet: its log says what it waits for"},
		{[]cluster.Member{here}, "there is no leader: searches go on with the catalog of 1m30s ago, changes wait"},
		{[]cluster.Member{here, away}, "there is no leader: searches go on with the catalog of 1m30s ago, changes wait; nothing is heard of n2 at 10.0.0.2:7701"},
	} {
		if got := leaderlessText(c.members, 90*time.Second); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// If nodes want different numbers of replicas, the leader's counts.
func TestStatus_theLeadersReplicaCountDecides(t *testing.T) {
	t.Parallel()
	member := func(id string, replicas uint32, alive bool) cluster.Member {
		return cluster.Member{Member: catalog.Member{ID: id}, Alive: alive, Load: cluster.Load{Replicas: replicas}}
	}
	for _, c := range []struct {
		members []cluster.Member
		want    string
	}{
		{[]cluster.Member{member("a", 2, true), member("b", 2, true)}, ""},
		{[]cluster.Member{member("a", 2, true), member("b", 3, false)}, ""},
		{[]cluster.Member{member("a", 2, true), member("old", 0, true)}, ""},
		{[]cluster.Member{member("a", 2, true), member("b", 3, true), member("c", 2, true)}, "2 on a, c, 3 on b; start all with the same"},
	} {
		if got := differentReplicasWarning(c.members); !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q, want %q", c.members, got, c.want)
		}
	}
}

// A change of the cluster key is finished when all nodes accept the same one, also those that
// are away.
func TestStatus_reportsAnUnfinishedClusterKeyChange(t *testing.T) {
	t.Parallel()
	member := func(id, keys string, alive bool) cluster.Member {
		return cluster.Member{Member: catalog.Member{ID: id}, Alive: alive, Load: cluster.Load{Keys: keys}}
	}
	for _, c := range []struct {
		members []cluster.Member
		want    string
	}{
		{[]cluster.Member{member("a", "1f", true), member("b", "1f", true), member("old", "", true)}, ""},
		{[]cluster.Member{member("a", "1f 2e", true), member("b", "1f", true)}, ": 1f on b, 1f and 2e on a; go on with docs/how-to/rotate-keys.md"},
		{[]cluster.Member{member("a", "1f 2e", true), member("b", "1f 2e", true)}, ": 1f and 2e on a, b;"},
		{[]cluster.Member{member("a", "2e", true), member("b", "1f", false)}, ": 1f on b, 2e on a;"},
	} {
		if got := differentKeysWarning(c.members); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q, want %q", c.members, got, c.want)
		}
	}
}

// The newest back-up of any node counts, and none is missed where there never was one.
func TestStatus_reportsTheNewestBackupOfAnyNode(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 9, 12, 0, 0, 0, time.UTC)
	member := func(days float64) cluster.Member {
		return cluster.Member{Load: cluster.Load{Backup: now.Add(-time.Duration(days * 24 * float64(time.Hour)))}}
	}
	const most = 36 * time.Hour
	for _, c := range []struct {
		members []cluster.Member
		most    time.Duration
		want    string
	}{
		{[]cluster.Member{{}}, most, ""},
		{[]cluster.Member{member(9), {}, member(1)}, most, ""},
		{[]cluster.Member{member(9)}, 0, ""},
		{[]cluster.Member{member(9), member(1.75)}, most, "the newest back-up of the catalog is 42 hours old"},
		{[]cluster.Member{member(4.5), {}}, most, "the newest back-up of the catalog is 4 days old"},
	} {
		if got := oldBackupWarning(c.members, now, c.most); got != c.want {
			t.Errorf("%+v: %q, want %q", c.members, got, c.want)
		}
	}
}

// Clocks that differ by five seconds or more are reported with their nodes.
func TestStatus_reportsNodesWhoseClocksDiffer(t *testing.T) {
	t.Parallel()
	member := func(id string, ahead time.Duration, alive bool) cluster.Member {
		return cluster.Member{Member: catalog.Member{ID: id}, Alive: alive, Ahead: ahead}
	}
	for _, c := range []struct {
		members []cluster.Member
		want    string
	}{
		{[]cluster.Member{member("a", 0, true), member("b", 4*time.Second, true), member("c", -4*time.Second, true)}, ""},
		{[]cluster.Member{member("a", 0, true), member("b", time.Hour, false)}, ""},
		{[]cluster.Member{member("a", 0, true), member("b", 5*time.Second, true), member("c", -90*time.Second, true)},
			"clocks differ; beside that of node a: b is 5s ahead, c is 1m30s behind; what most nodes say counts, set the others right"},
	} {
		if got := differentClocksWarning("a", c.members); got != c.want {
			t.Errorf("%+v: %q, want %q", c.members, got, c.want)
		}
	}
}

func TestStatus_reportsAHangingFetch(t *testing.T) {
	t.Parallel()
	repo := &catalog.Repo{Name: "h/a"}
	for taken, want := range map[time.Duration]string{
		19 * time.Second: "", 45 * time.Second: "h/a is being fetched for 45s; until",
	} {
		if got := strings.Join(slowFetchWarning(repo, taken), " "); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("after %s: %q, want %q", taken, got, want)
		}
	}
	if got := slowFetchWarning(nil, time.Hour); got != nil {
		t.Errorf("of a repository that has left: %q", got)
	}
}
