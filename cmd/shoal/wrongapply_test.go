package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/shoalsearch/shoal/node/nodetest"
)

var wrongProgram = flag.String("wrong", "", "program that applies each configuration in a way of its own, as SHOAL_WRONG says")

// TestProgramsThatApplyAnEntryWrongly_takeOverTheMajoritysCatalog runs real processes behind a balancer, some of whose programs apply an entry
// wrongly. The catalog of most voters counts: a node that differs takes it over, and no search
// notices. Without a majority for one catalog, changes are refused and searches continue.
func TestProgramsThatApplyAnEntryWrongly_takeOverTheMajoritysCatalog(t *testing.T) {
	if *wrongProgram == "" {
		t.Skip(".ci/pairs builds the program")
	}
	for _, c := range []struct {
		name     string
		wrong    []string // mark of each node, the leader first; "" for this program
		replaced []int    // nodes that take the catalog of the others
		disputed bool
	}{
		{"a follower", []string{"", "", "a"}, []int{2}, false},
		{"the leader, in the minority", []string{"a", "", ""}, []int{0}, false},
		{"the leader and a follower, the majority", []string{"a", "a", ""}, []int{2}, false},
		{"all in a way of their own", []string{"", "a", "b"}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) { wrongApply(t, c.wrong, c.replaced, c.disputed) })
	}
}

func wrongApply(t *testing.T, wrong []string, replaced []int, disputed bool) {
	p := startPair(t, binary(t))
	order := p.leaderBy()
	for i, mark := range wrong {
		if mark != "" {
			t.Setenv("SHOAL_WRONG", mark)
			p.restartOnly(t, order[i], *wrongProgram)
		}
	}
	// After a restart a program rebuilds the catalog from its log by its own rule. So it differs
	// until it takes that of the others.
	before := map[int]float64{}
	nodetest.Wait(t, "each node has taken what most have", func() error {
		for i, node := range order {
			before[node] = p.metric(node, "shoal_catalog_replaced_total")
			if wrong[i] != "" && before[node] < 1 {
				return fmt.Errorf("node %d: replaced %v", i, before[node])
			}
		}
		return nil
	})
	p.leads(t, order[0])
	load := p.load(t, "haproxy", p.balance(t, "haproxy", "haproxy.cfg", func(file, _ string) []string { return []string{"-db", "-f", file} }))
	load.more(t, 50)

	// One change, which the programs apply differently.
	if err := replace(filepath.Join(p.dir, "config.json"), strings.ReplaceAll(p.config, "CONTEXT", "changed")); err != nil {
		t.Fatal(err)
	}
	nodetest.Wait(t, "the nodes find the difference", func() error {
		without := 0.0 // the leader reports it
		for i, node := range order {
			without = max(without, p.metric(node, "shoal_catalog_disputed"))
			if took := p.metric(node, "shoal_catalog_replaced_total"); (took > before[node]) != slices.Contains(replaced, i) {
				return fmt.Errorf("node %d: replaced %v times, %v before", i, took, before[node])
			}
		}
		if (without > 0) != disputed {
			return fmt.Errorf("disputed: %v", without)
		}
		return nil
	})
	for i, node := range order {
		t.Logf("%s node (%s): %s", []string{"first", "second", "third"}[i], map[string]string{"": "right"}[wrong[i]]+wrong[i], p.says(node))
	}

	load.more(t, 100)
	load.report(t, "while the catalogs differed")
	key := func(i int) error {
		_, err := p.ask(http.MethodPost, order[1], "/api/keys", fmt.Sprintf(`{"name": "after %d"}`, i))
		return err
	}
	if !disputed {
		tries := 0
		nodetest.Wait(t, "a change is taken", func() error { tries++; return key(tries) })
		return
	}
	err := key(0)
	t.Logf("a change: %v", err)
	if err == nil || !strings.Contains(err.Error(), ": 503 ") || !strings.Contains(err.Error(), "differ") {
		t.Errorf("without a majority a change says %v", err)
	}

	// The repair from docs/upgrade.md: one version on all nodes, one after another.
	for i, mark := range wrong {
		if mark != "" {
			p.restartOnly(t, order[i], binary(t))
		}
	}
	tries := 0
	nodetest.Wait(t, "a change is taken after one version is on all nodes", func() error { tries++; return key(tries) })
	load.more(t, 50)
	load.report(t, "until one version was on all nodes")
}

// leaderBy returns the nodes, the leader first.
func (p *pair) leaderBy() []int {
	first := max(0, slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return p.leader(i) == p.host(i)+":7701" }))
	return []int{first, (first + 1) % 3, (first + 2) % 3}
}

// restartOnly starts a node with another program, and waits until it is ready.
func (p *pair) restartOnly(t *testing.T, i int, program string) {
	t.Helper()
	p.stop(t, i, syscall.SIGTERM)
	p.binary = program
	p.start(t, i)
	nodetest.Wait(t, fmt.Sprintf("node %d is back", i+1), func() error {
		_, err := p.get("http://" + p.host(i) + ":7700/readyz")
		return err
	})
}

// leads makes a node the leader.
func (p *pair) leads(t *testing.T, i int) {
	t.Helper()
	nodetest.Wait(t, "the node leads", func() error {
		if p.leader(i) == p.host(i)+":7701" {
			return nil
		}
		var s struct{ Node string }
		body, err := p.ask(http.MethodGet, i, "/api/status", "")
		if err == nil {
			err = json.Unmarshal(body, &s)
		}
		if err == nil {
			_, err = p.ask(http.MethodPost, i, "/api/nodes/"+s.Node+"/lead", "")
		}
		return fmt.Errorf("it does not lead: %v", err)
	})
}

// metric returns a metric of a node without labels; -1 if it has none.
func (p *pair) metric(i int, name string) (value float64) {
	body, err := p.ask(http.MethodGet, i, "/metrics", "")
	if m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(body); err == nil && m != nil {
		if _, err := fmt.Sscan(string(m[1]), &value); err == nil {
			return value
		}
	}
	return -1
}

// says returns what the status and the log of a node say about the difference.
func (p *pair) says(i int) string {
	var s struct{ Warnings []string }
	body, err := p.ask(http.MethodGet, i, "/api/status", "")
	if err != nil || json.Unmarshal(body, &s) != nil {
		return fmt.Sprint(err)
	}
	text, err := os.ReadFile(filepath.Join(p.dir, fmt.Sprintf("n%d.log", i)))
	if err != nil {
		return err.Error()
	}
	lines := regexp.MustCompile(`(?m)^.*(?:differ|majority).*$`).FindAllString(string(text), 3)
	return "\n  status: " + strings.Join(s.Warnings, "\n  status: ") + "\n  log: " + strings.Join(lines, "\n  log: ")
}
