package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
)

// The output depends on the level of the catalog and on what nodes and program can apply.
func TestUpgradeCheck_failsIfAnUpgradeIsImpossible(t *testing.T) {
	t.Parallel()
	build := func(lowest uint64, highest int) catalog.Build {
		return catalog.Build{Lowest: lowest, Versions: []string{"0.1.0", "0.2.0", "0.3.0"}[:highest]}
	}
	for name, c := range map[string]struct {
		program  catalog.Build
		status   string
		possible bool
		want     string
	}{
		"nothing new": {build(1, 1),
			`{"level": {"number": 1, "version": "0.1.0"}, "members": [{"id": "n1", "version": "0.1.0", "level": 1}]}`,
			true, "brings no higher level"},
		"a higher level": {build(1, 2),
			`{"level": {"number": 1, "version": "0.1.0"}, "members": [{"id": "n1", "version": "0.1.0", "level": 1}, {"id": "n2", "version": "0.1.0", "level": 1}]}`,
			true, "Level 2 waits for: n1 (version 0.1.0), n2 (version 0.1.0)."},
		"one node left": {build(1, 2),
			`{"level": {"number": 1, "version": "0.1.0", "next": 2, "waitsFor": ["n2"]}, "members": [{"id": "n1", "version": "0.2.0", "level": 2}, {"id": "n2", "version": "0.1.0", "level": 1}]}`,
			true, "Level 2 waits for: n2 (version 0.1.0)."},
		"a node that reports nothing": {build(1, 1),
			`{"level": {"number": 1, "version": "0.1.0"}, "members": [{"id": "n1"}]}`,
			true, "brings no higher level"},
		"a node that reports nothing holds back": {build(1, 2),
			`{"level": {"number": 1, "version": "0.1.0"}, "members": [{"id": "n1", "level": 2}, {"id": "n2"}]}`,
			true, "Level 2 waits for: n2 (version unknown)."},
		"the old program beside new nodes": {build(1, 1),
			`{"level": {"number": 1, "version": "0.1.0", "next": 2, "waitsFor": ["n1"]}, "members": [{"id": "n1", "version": "0.1.0", "level": 1}, {"id": "n2", "version": "0.2.0", "level": 2}]}`,
			true, "Level 2 waits for: n1 (version 0.1.0)."},
		"all can": {build(1, 2),
			`{"level": {"number": 1, "version": "0.1.0"}, "members": [{"id": "n1", "version": "0.2.0", "level": 2}]}`,
			true, "the catalog is raised within seconds"},
		"too old": {build(1, 1),
			`{"level": {"number": 2, "version": "0.2.0"}, "members": [{"id": "n1", "version": "0.2.0", "level": 2}]}`,
			false, "cannot run nodes of this cluster: the catalog has level 2, and this program applies level 1 alone: start version 0.2.0 or a later one."},
		"a release too far": {build(1, 3),
			`{"level": {"number": 1, "version": "0.1.0"}, "members": [{"id": "n1", "version": "0.1.0", "level": 1}]}`,
			false, "version 0.3.0 and version 0.1.0 of node n1 are no neighbouring releases: bring all nodes to the release between them first."},
		"too new": {build(2, 3),
			`{"level": {"number": 1, "version": "0.1.0"}, "members": [{"id": "n1", "version": "0.1.0", "level": 1}]}`,
			false, "start version 0.1.0"},
	} {
		var s node.StatusResponse
		if err := json.Unmarshal([]byte(c.status), &s); err != nil {
			t.Fatal(err)
		}
		u := compareVersions(&s, c.program, c.program.Versions[len(c.program.Versions)-1])
		if got := strings.Join(u.Summary, " "); u.Possible != c.possible || !strings.Contains(got, c.want) {
			t.Errorf("%s: possible %v, %q; want %v, %q", name, u.Possible, got, c.possible, c.want)
		}
		var text strings.Builder
		if err := u.print(&text, false); err != nil || !strings.Contains(text.String(), u.Summary[0]) || !strings.Contains(text.String(), "n1") {
			t.Errorf("%s: it prints %q, %v", name, text.String(), err)
		}
	}
}

// The next node is one with another version, the leader last. No node may stop while something is
// missing that the cluster could have.
func TestUpgradeNext_namesTheLeaderLast(t *testing.T) {
	t.Parallel()
	status := func(changes ...func(*node.StatusResponse)) *node.StatusResponse {
		s := &node.StatusResponse{Leader: "n1", Verdict: node.Verdict{State: node.VerdictGood}, Members: []node.MemberStatus{
			{ID: "n1", Role: "leader", Health: "alive", Version: "0.1.0"},
			{ID: "n2", Role: "voter", Health: "alive", Version: "0.1.0"},
			{ID: "n3", Role: "voter", Health: "alive", Version: "0.1.0"},
			{ID: "n4", Role: "nonvoter", Health: "alive", Version: "0.1.0"},
		}}
		for _, c := range changes {
			c(s)
		}
		return s
	}
	s := status()
	for i, want := range []string{"n4", "n2", "n3", "n1"} {
		m := nextNode(s, "0.2.0")
		if m == nil || m.ID != want || unsafeReason(s) != "" {
			t.Fatalf("node %d is %+v, want %s; %q", i, m, want, unsafeReason(s))
		}
		m.Version = "0.2.0"
	}
	if m := nextNode(s, "0.2.0"); m != nil {
		t.Errorf("after all, %s is next", m.ID)
	}
	if m := nextNode(s, "0.1.0"); m == nil || m.ID != "n4" {
		t.Errorf("on the way back, %+v is next", m)
	}

	for want, change := range map[string]func(*node.StatusResponse){
		"no leader":            func(s *node.StatusResponse) { s.Leader = "" },
		"n3 does not answer":   func(s *node.StatusResponse) { s.Members[2].Health = "suspect" },
		"n4 does not answer":   func(s *node.StatusResponse) { s.Members[3].Health = "dead" },
		"n2 drains":            func(s *node.StatusResponse) { s.Members[1].Draining = true },
		"n2 has not caught up": func(s *node.StatusResponse) { s.Members[1].Lag = maxLag + 1 },
		"7 are left":           func(s *node.StatusResponse) { s.Storage.Rebuild.Unread = 7 },
		"fewer copies": func(s *node.StatusResponse) {
			s.Verdict = node.Verdict{State: node.VerdictWeak, Sentence: "fewer copies"}
		},
		"most voters": func(s *node.StatusResponse) {
			s.Verdict = node.Verdict{State: node.VerdictFailing, Sentence: "most voters"}
		},
	} {
		if got := unsafeReason(status(change)); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}

	// Two versions are what an upgrade is: it goes on.
	if got := unsafeReason(status(func(s *node.StatusResponse) { s.Verdict.State = node.VerdictUpgrading })); got != "" {
		t.Errorf("the second node waits: %s", got)
	}

	// It does not wait for what so few nodes cannot have, nor for a lag caused by changes.
	if got := unsafeReason(status(func(s *node.StatusResponse) { s.Verdict.State = node.VerdictSmall; s.Members[1].Lag = 3 })); got != "" {
		t.Errorf("a small cluster waits: %s", got)
	}
}
