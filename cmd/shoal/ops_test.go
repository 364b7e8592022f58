package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/host"
)

// Every danger of losing data has an alert rule.
func TestAlertRules_coverDataLoss(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile(filepath.Join("..", "..", "ops", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{
		"shoal_ready", "shoal_leading", "shoal_under_replicated_repos", "shoal_repos_without_live_copy", "shoal_config_file_differs", "shoal_config_refused",
		"shoal_connection_failed", "shoal_connection_token_refused_timestamp_seconds", "shoal_connection_hidden", "shoal_connection_listed_timestamp_seconds", "shoal_connection_token_expires_timestamp_seconds",
		"shoal_connection_repos", "shoal_connection_issues", "shoal_connection_calls_left_ratio", "shoal_disk_bytes", "shoal_damaged_files_total", "shoal_certificate_expires_timestamp_seconds", "shoal_audit_lost_total", "shoal_tolerates", "shoal_snapshot_saved_timestamp_seconds", "shoal_cluster_key_info",
	} {
		if !regexp.MustCompile(`expr: .*\b` + metric + `\b`).Match(rules) {
			t.Errorf("no rule asks for %s", metric)
		}
	}
}

// Behind each balancer of examples/ a node can tell clients apart, and gets all requests that it
// accepts.
func TestLoadBalancerExamples_forwardTheClientsAddress(t *testing.T) {
	t.Parallel()
	for file, all := range map[string][]string{
		"haproxy.cfg": {"\n    option forwardfor\n"},
		"nginx.conf":  {"proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;", "proxy_set_header Host $host;", fmt.Sprintf("client_max_body_size %dm;", host.MaxDelivery>>20)},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range all {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
}

// Rules and dashboards with unknown metrics fail silently. So every metric in ops/ must be made
// in the code.
func TestOpsFiles_nameRealMetrics(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	var code strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		code.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		data, err := os.ReadFile(filepath.Join(root, "ops", file))
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`shoal_[a-z_]+`).FindAllString(string(data), -1)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !strings.Contains(code.String(), `"`+strings.TrimSuffix(name, "_bucket")+`"`) {
				t.Errorf("ops/%s names %s, which nothing makes", file, name)
			}
		}
	}
}

// Each alert fires with its fault, and none fires without faults.
func TestAlertRules_fireExactlyOnTheirFault(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "ops")
	rules, err := os.ReadFile(filepath.Join(folder, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(filepath.Join(folder, "alerts_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllSubmatch(rules, -1) {
		for _, want := range []string{"alertname: " + string(m[1]) + ",", "- name: " + string(m[1]) + "\n"} {
			if !strings.Contains(string(tests), want) {
				t.Errorf("ops/alerts_test.yaml has no %q", want)
			}
		}
	}

	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not here: Debian's package prometheus has it")
	}
	cmd := exec.Command(promtool, "test", "rules", "alerts_test.yaml")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The dashboard has every metric of connections. Each panel says what it shows, asks for the chosen
// cluster and node, and overlaps no other.
func TestDashboard_showsEveryConnectionMetric(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	code, err := os.ReadFile(filepath.Join(root, "node", "metrics_connection.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "ops", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}

	var board struct {
		Panels []struct {
			ID          int
			Title       string
			Description string
			GridPos     struct{ X, Y int }
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	places := map[any]string{}
	for _, p := range board.Panels {
		if p.Description == "" {
			t.Errorf("%q does not say what it shows", p.Title)
		}
		for _, key := range []any{p.ID, p.GridPos} {
			if other, taken := places[key]; taken {
				t.Errorf("%q and %q have one number or place", other, p.Title)
			}
			places[key] = p.Title
		}
		for _, target := range p.Targets {
			shown.WriteString(target.Expr + "\n")
			for _, selector := range regexp.MustCompile(`\{[^}]*\}`).FindAllString(target.Expr, -1) {
				if !strings.Contains(selector, `cluster=~"$cluster"`) || !strings.Contains(selector, `instance=~"$instance"`) {
					t.Errorf("%q asks for %s, whatever cluster and node are chosen", p.Title, selector)
				}
			}
		}
	}

	for _, name := range regexp.MustCompile(`"(shoal_connection_\w+)"`).FindAllStringSubmatch(string(code), -1) {
		if !regexp.MustCompile(`\b` + name[1] + `\b`).MatchString(shown.String()) {
			t.Errorf("no panel shows %s", name[1])
		}
	}
}

// A -run that matches nothing passes, so every test named in the Makefile must exist.
func TestMakefile_namesOnlyExistingTests(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}

	// For a try-out no balancers are installed, because Debian would start them.
	if !regexp.MustCompile(`\nrun: build\n\t@\.ci/install git universal-ctags\n`).Match(makefile) {
		t.Error("make run installs something else than README says")
	}

	found := regexp.MustCompile(`-run (Test\w+).* \./(\S+)`).FindAllStringSubmatch(string(makefile), -1)
	if len(found) < 3 {
		t.Fatalf("%d tests named in the Makefile, want at least 3", len(found))
	}
	for _, m := range found {
		files, err := filepath.Glob(filepath.Join(root, m[2], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		there := false
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			there = there || strings.Contains(string(data), "func "+m[1]+"(")
		}
		if !there {
			t.Errorf("the Makefile runs %s in %s, which is not there", m[1], m[2])
		}
	}
}
