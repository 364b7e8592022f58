package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

var (
	lastProgram = flag.String("last", "", "program of the last release, beside which this one runs")
	nextProgram = flag.String("next", "", "program of the next release, which runs beside this one")
	pairsText   = flag.String("text", "", "directory of further repositories")
	pairsPause  = flag.Duration("pause", 0, "between two requests of a client")
	pairsFor    = flag.Duration("for", 20*time.Second, "how long nodes of two programs run in all")
)

// TestUpgradeAndDowngrade_loseNoRequestBetweenTwoReleases moves three nodes behind a balancer from one program to another and back, in the
// order of `shoal upgrade next` and with the leader first. Clients search and everything changes
// meanwhile. No request fails, no answer is incomplete, and the catalogs are equal.
func TestUpgradeAndDowngrade_loseNoRequestBetweenTwoReleases(t *testing.T) {
	older, newer := *lastProgram, binary(t)
	switch {
	case *nextProgram != "":
		older, newer = newer, *nextProgram
	case older == "":
		t.Skip(".ci/pairs names the programs")
	}

	p := startPair(t, older)
	url := p.balance(t, "haproxy", "haproxy.cfg", func(file, _ string) []string { return []string{"-db", "-f", file} })
	load := p.load(t, "haproxy", url)
	began := time.Now()
	end := p.change(t)

	const steps = 6
	p.rest = *pairsFor / steps
	p.upgrade(t, newer)
	if *nextProgram == "" { // else the level has risen, and there is no way back
		p.leaderFirst(t, older)
	}
	load.more(t, 100)
	end()
	took, requests, failed, incomplete := time.Since(began).Round(time.Second), load.asked.Load(), 0, 0
	load.mu.Lock()
	for _, wrong := range load.wrong {
		if failed++; strings.Contains(wrong, "exhaustive false") {
			incomplete++
		}
	}
	load.mu.Unlock()
	load.report(t, "in "+took.String())
	hash := p.compare(t)
	p.tellChanges(t)
	t.Logf("\n| repositories | time | requests | failed | incomplete | longest without a leader | changes | changes failed | hash of all catalogs |\n|---|---|---|---|---|---|---|---|---|\n| %d | %s | %d | %d | %d | %s | %v | %d | %s |",
		p.repos, took, requests, failed-incomplete, incomplete, p.leaderless.Round(100*time.Millisecond), p.changes, len(p.wrong), hash)
}

// pair has three nodes of two programs.
type pair struct {
	*processes
	key  string        // an owner's
	rest time.Duration // after each restart

	mu         sync.Mutex     // guards the fields below
	changes    map[string]int // changes made, by kind
	wrong      []string       // changes that no node made
	leaderless time.Duration  // the longest
}

func startPair(t *testing.T, program string, before ...func(*processes)) *pair {
	t.Helper()
	model := modeltest.Start(t, modeltest.Turn{Text: "A whale is a mammal."})
	p := &pair{processes: newProcesses(t, program), changes: map[string]int{}}
	p.repos = 2
	nodetest.NewRepo(t, filepath.Join(p.dir, "repos", "pushed"), map[string]string{"a.txt": "narwhal\n"})
	more := ""
	if *pairsText != "" {
		further, err := os.ReadDir(*pairsText)
		if err != nil {
			t.Fatal(err)
		}
		p.repos, p.patience = p.repos+len(further), time.Hour
		more = fmt.Sprintf(`, "text": {"type": "git", "url": "file://%s/*"}`, *pairsText)
	}
	p.config = fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/repos/*"}%s},
		"models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}], "contexts": {"CONTEXT": {"include": ["local/*"]}}}`, p.dir, more, model.URL)
	for _, change := range before {
		change(p.processes)
	}
	p.launch(t)

	out, err := exec.Command(program, "key", "create", "pairs", "--role", "owner", "--data-dir", filepath.Join(p.dir, "n0")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(out)) {
		if strings.HasPrefix(word, "shoal_") {
			p.key = word
		}
	}
	if p.key == "" {
		t.Fatalf("no key in %q", out)
	}
	return p
}

// restart starts a node with another program, and waits until all data is complete again.
func (p *pair) restart(t *testing.T, i int, program string) {
	t.Helper()
	p.stop(t, i, syscall.SIGTERM)
	p.binary = program
	p.start(t, i)
	p.wait(t, fmt.Sprintf("node %d is back", i+1), p.settled)
	nodetest.Moment(p.rest)
}

// upgrade asks the new program which node is next, as docs/upgrade.md says, until none is left.
func (p *pair) upgrade(t *testing.T, program string) {
	t.Helper()
	for range p.nodes {
		cmd := exec.Command(program, "upgrade", "next", "--timeout", p.patience.String(), "--key", p.key, "--url", "http://"+p.host(0)+":7700")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		i := slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return strings.Contains(string(out), " "+p.host(i)+":") })
		if err != nil || i < 0 {
			t.Fatalf("upgrade next: %q, %v", out, err)
		}
		p.restart(t, i, program)
	}
}

func (p *pair) leaderFirst(t *testing.T, program string) {
	t.Helper()
	first := slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return p.leader(i) == p.host(i)+":7701" })
	for i := range p.nodes {
		p.restart(t, (max(first, 0)+i)%len(p.nodes), program)
	}
}

// leader returns the address of the leader as a node knows it, "" for none.
func (p *pair) leader(i int) string {
	var s struct {
		Leader  string
		Members []struct{ ID, Address string }
	}
	body, err := p.ask(http.MethodGet, i, "/api/status", "")
	if err != nil || json.Unmarshal(body, &s) != nil {
		return ""
	}
	for _, m := range s.Members {
		if m.ID == s.Leader {
			return m.Address
		}
	}
	return ""
}

// ask sends a request to a node as an owner.
func (p *pair) ask(method string, i int, path, body string) ([]byte, error) {
	req, err := http.NewRequest(method, "http://"+p.host(i)+":7700"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %d %.200s", path, res.StatusCode, answer)
	}
	return answer, err
}

// change changes everything at one node after the other, until end is called.
func (p *pair) change(t *testing.T) (end func()) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	loop := func(pause time.Duration, run func(round int)) {
		all.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-stop:
					return
				case <-time.After(pause):
					run(round)
				}
			}
		})
	}

	for kind, call := range map[string]func(round int) (method, path, body string){
		"people": func(r int) (string, string, string) {
			return "POST", "/api/users", fmt.Sprintf(`{"email": "p%d@example.com"}`, r)
		},
		"keys": func(r int) (string, string, string) { return "POST", "/api/keys", fmt.Sprintf(`{"name": "k%d"}`, r) },
		"grants": func(r int) (string, string, string) {
			return "POST", "/api/users/p0@example.com/grants", fmt.Sprintf(`{"%s": ["local/app"]}`, []string{"add", "remove"}[r%2])
		},
		"jobs": func(int) (string, string, string) { return "POST", "/api/repos/1/reindex", "" },
		"webhooks": func(int) (string, string, string) {
			return "POST", "/api/webhook/local", `{"repository": {"clone_url": "file://x"}}`
		},
		"secrets": func(int) (string, string, string) { return "POST", "/api/webhook/local/rotate", "" },
		"questions": func(r int) (string, string, string) {
			return "POST", "/api/chat/blocking", fmt.Sprintf(`{"query": "What is a whale? %d"}`, r)
		},
	} {
		loop(500*time.Millisecond, func(round int) {
			method, path, body := call(round)
			p.note(kind, p.somewhere(round, func(i int) error {
				answer, err := p.ask(method, i, path, body)
				if kind == "questions" && err == nil {
					err = p.forget(i, answer) // so that a long run does not fill the list of threads
				}
				if kind == "people" && err != nil && strings.Contains(err.Error(), ": 409 ") {
					return nil // an earlier attempt succeeded, but its answer was lost with the node
				}
				return err
			}))
		})
	}

	// One file for all nodes, which changes for all at once as with a tool, and a push.
	loop(2*time.Second, func(round int) {
		text := strings.ReplaceAll(p.config, "CONTEXT", fmt.Sprint("context", round))
		p.note("configuration", replace(filepath.Join(p.dir, "config.json"), text))
	})
	loop(3*time.Second, func(round int) {
		cmd := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", fmt.Sprint(round))
		cmd.Dir = filepath.Join(p.dir, "repos", "pushed")
		p.note("pushes", cmd.Run())
	})

	var last atomic.Int64
	last.Store(time.Now().UnixNano())
	loop(100*time.Millisecond, func(round int) {
		if p.leader(round%len(p.nodes)) != "" {
			gap := time.Duration(time.Now().UnixNano() - last.Swap(time.Now().UnixNano()))
			p.mu.Lock()
			p.leaderless = max(p.leaderless, gap)
			p.mu.Unlock()
		}
	})
	return func() {
		close(stop)
		all.Wait()
	}
}

// forget deletes the thread of an answer.
func (p *pair) forget(i int, answer []byte) error {
	var thread struct{ ChatID string }
	if err := json.Unmarshal(answer, &thread); err != nil {
		return err
	}
	_, err := p.ask(http.MethodDelete, i, "/api/chat/"+thread.ChatID, "")
	return err
}

// somewhere does something at one of the nodes, like a client with all their addresses.
func (p *pair) somewhere(first int, do func(i int) error) (err error) {
	for try := range 40 {
		if err = do((first + try) % len(p.nodes)); err == nil {
			return nil
		}
		if try >= len(p.nodes) {
			nodetest.Moment(500 * time.Millisecond) // as a client waits before it retries at the same node
		}
	}
	return err
}

func replace(path, text string) error {
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (p *pair) note(kind string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes[kind]++; err != nil {
		p.wrong = append(p.wrong, kind+": "+err.Error())
	}
}

// compare waits until the catalogs of all nodes are the same bytes. It fails if one was replaced.
func (p *pair) compare(t *testing.T) (hash string) {
	t.Helper()
	// With the audit off, nothing changes the catalog.
	quiet := strings.Replace(p.config, "{", `{"environmentOverrides": {"SOURCEBOT_EE_AUDIT_LOGGING_ENABLED": {"type": "string", "value": "false"}},`, 1)
	if err := replace(filepath.Join(p.dir, "config.json"), quiet); err != nil {
		t.Fatal(err)
	}
	nodetest.Wait(t, "the catalogs are equal", func() error {
		var sums []string
		for i := range p.nodes {
			body, err := p.ask(http.MethodGet, i, "/api/snapshot", "")
			if err != nil {
				return err
			}
			sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(body))[:12])
		}
		if len(slices.Compact(slices.Clone(sums))) > 1 {
			return fmt.Errorf("their hashes are %v", sums)
		}
		hash = sums[0]
		return nil
	})
	p.wait(t, "the index files are made anew", func() error {
		for i := range p.nodes {
			body, err := p.ask(http.MethodGet, i, "/metrics", "")
			if err != nil || !bytes.Contains(body, []byte("\nshoal_older_files{read=\"true\"} 0\n")) {
				return fmt.Errorf("not at node %d: %w", i+1, err)
			}
		}
		return nil
	})
	for i := range p.nodes {
		body, err := p.ask(http.MethodGet, i, "/metrics", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"shoal_catalog_replaced_total", "shoal_catalog_disputed", "shoal_damaged_files_total"} {
			if !bytes.Contains(body, []byte("\n"+name+" 0\n")) {
				t.Errorf("node %d: %s is not 0", i+1, name)
			}
		}
	}
	return hash
}

func (p *pair) tellChanges(t *testing.T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wrong) > 0 {
		t.Errorf("changes failed, such as %s", p.wrong[0])
	}
	for _, kind := range []string{"people", "keys", "grants", "jobs", "webhooks", "secrets", "questions", "configuration", "pushes"} {
		if p.changes[kind] == 0 {
			t.Errorf("no %s were changed", kind)
		}
	}
}
