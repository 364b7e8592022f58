package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
)

// What the check says, by the level of the catalog and what nodes and program can apply.
func TestUpgradeCheck(t *testing.T) {
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
		u := upgradeOf(&s, c.program, c.program.Versions[len(c.program.Versions)-1])
		if got := strings.Join(u.Summary, " "); u.Possible != c.possible || !strings.Contains(got, c.want) {
			t.Errorf("%s: possible %v, %q; want %v, %q", name, u.Possible, got, c.possible, c.want)
		}
		var text strings.Builder
		if err := u.print(&text, false); err != nil || !strings.Contains(text.String(), u.Summary[0]) || !strings.Contains(text.String(), "n1") {
			t.Errorf("%s: it prints %q, %v", name, text.String(), err)
		}
	}
}
