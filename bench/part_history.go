package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// historyMirrors names bare repositories, with blanks between, over which part history asks.
const historyMirrors = "SHOAL_BENCH_MIRRORS"

// pastQuery is a question about commits. Git is what answers it without an index: options of git log,
// none where it has no such question.
type pastQuery struct {
	text string
	git  []string
}

// pastQueries are what people ask of a history.
func pastQueries() []pastQuery {
	added := func(word string) pastQuery { return pastQuery{"type:diff added:" + word, []string{"-G" + word}} }
	either := func(word string) pastQuery {
		return pastQuery{"type:commit (added:" + word + " or removed:" + word + ")", []string{"-i", "-G" + word}}
	}
	said := func(word string) pastQuery {
		return pastQuery{"type:commit message:" + word, []string{"-i", "-F", "--grep=" + word}}
	}
	return []pastQuery{
		added("TODO"), added("FIXME"), added("deprecated"), added("nowhere_at_all"), added("password"),
		either("timeout"), either("mutex"), either("retry"), either("utf8"), either("nowhere_at_all"),
		said("revert"), said("fix"), said("security"), said("CVE"), said("release"), said("nowhere_at_all"),
		{"type:diff removed:deprecated", nil},
		{"type:diff the", nil},
		{"type:diff return", nil},
		{`type:diff "if err != nil"`, nil},
		{"type:diff added:import file:test", nil},
		{"type:diff -added:import file:test", nil},
		{"type:diff lang:python added:raise removed:return", nil},
		{"type:diff file:\\.md$ added:http", nil},
		{"type:commit author:a since:2015 fix", nil},
		{"type:commit author:smith", []string{"-i", "--author=smith"}},
		{"type:commit merge:only message:merge", nil},
		{"type:commit since:2020-01 until:2020-06 fix", nil},
		{"type:commit fix -message:typo file:src", nil},
	}
}

// body returns a request for POST /api/search_commits.
func (q pastQuery) body() []byte {
	return requestBody(map[string]any{"query": q.text, "matches": 50})
}

// partHistory builds the index of commits and asks it: alone, at 16 connections, on three nodes, and
// beside git log.
func partHistory(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Questions about commits", Columns: []string{"query", "found", "p50", "p99", "three nodes p50", "p99", "git log, CPU", "git / p50"}}
	root, repos, err := r.corpora.histories(ctx, strings.Fields(os.Getenv(historyMirrors)))
	if err != nil {
		return nil, err
	}
	s, err := r.pastNode(ctx, p, root, len(repos))
	if err != nil {
		return nil, err
	}
	defer s.stop()
	w, err := r.swarm(ctx, 3, root, len(repos))
	if err != nil {
		return nil, err
	}
	defer w.stop()
	for _, n := range w.nodes {
		n.route = commitsRoute
	}
	if err := w.nodes[0].waitHistory(ctx); err != nil {
		return nil, err
	}

	// Ask each question at one node, at three, and with git.
	var alone, spread []time.Duration
	var bodies [][]byte
	for _, q := range pastQueries() {
		bodies = append(bodies, q.body())
		one, found, err := s.repeat(ctx, q.body(), 10*r.Repeat)
		if err != nil {
			return nil, err
		}
		three, err := w.ask(ctx, 10*r.Repeat, [][]byte{q.body()})
		if err != nil {
			return nil, err
		}
		alone, spread = append(alone, one...), append(spread, three...)

		byGit, share := "", ""
		if q.git != nil {
			took, err := logOf(ctx, repos, q.git)
			if err != nil {
				return nil, err
			}
			byGit, share = cell(took), cell(ratio(float64(took)/float64(median(one))))
		}
		p.row(q.text, found, median(one), quantile(one, 0.99), median(three), quantile(three, 0.99), byGit, share)
	}

	busy := s.load(ctx, 16, 20*time.Second, bodies)
	p.note("All %d: alone %s and %s (p50, p99), three nodes %s and %s, 16 connections %s and %s at %.1f requests a second, %d errors.", len(bodies),
		cell(median(alone)), cell(quantile(alone, 0.99)), cell(median(spread)), cell(quantile(spread, 0.99)), cell(median(busy.took)), cell(quantile(busy.took, 0.99)), busy.perSecond(), busy.errors)
	return p, nil
}

// pastNode starts a node over the repositories, and notes what their index of commits costs.
func (r *run) pastNode(ctx context.Context, p *Part, root string, repos int) (*server, error) {
	connections := map[string]connection{"H": {"type": "git", "url": "file://" + root + "/*"}}
	s, b, err := r.index(ctx, "H", "off", repos, connections)
	if err != nil {
		return nil, err
	}
	s.route = commitsRoute
	if err := s.waitHistory(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}

	own, git, err := procUsage(s.cmd.Process.Pid)
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	peak, _, _, err := procMemory(s.cmd.Process.Pid)
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	st, err := s.status(ctx)
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}

	h := st.Storage.History
	p.note("%d repositories, %d commits. Text: %s of CPU, git %s more, peak memory %s. Then commits: %s, git %s more, peak memory %s, %s on disk. Text and commits overlap, so the second figures are least ones.",
		repos, h.Commits, cell(b.own), cell(b.git), cell(bytesize(b.peak)), cell(own-b.own), cell(git-b.git), cell(bytesize(peak)), cell(bytesize(h.Bytes)))
	return s, nil
}

// waitHistory waits until the commits of all repositories are indexed.
func (s *server) waitHistory(ctx context.Context) error {
	return poll(ctx, time.Hour, time.Second, "the commits to be indexed", func() bool {
		st, err := s.status(ctx)
		h := st.Storage.History
		return err == nil && h.Repositories > 0 && h.Covered == h.Repositories
	})
}

// repeat asks a question some times, and returns how long each took and how much was found.
func (s *server) repeat(ctx context.Context, body []byte, times int) (took []time.Duration, found int, err error) {
	for range times {
		data, d, err := s.exchange(ctx, body)
		if err != nil {
			return nil, 0, err
		}
		var a struct{ TotalCount int }
		if err := json.Unmarshal(data, &a); err != nil {
			return nil, 0, err
		}
		took, found = append(took, d), a.TotalCount
	}
	return took, found, nil
}

// logOf returns the CPU time of git log over all repositories, one after the other.
func logOf(ctx context.Context, repos, options []string) (sum time.Duration, err error) {
	for _, dir := range repos {
		u, err := measure(ctx, dir, nil, "git", append([]string{"log", "--format=%H", "HEAD"}, options...)...)
		if err != nil {
			return 0, err
		}
		sum += u.CPU
	}
	return sum, nil
}

// histories returns a folder with clones of some bare repositories, and these clones.
func (c corpora) histories(ctx context.Context, mirrors []string) (root string, repos []string, err error) {
	if len(mirrors) == 0 {
		return "", nil, fmt.Errorf("%s names no bare repositories", historyMirrors)
	}
	root = filepath.Join(c.dir, "H")
	for _, dir := range mirrors {
		name := filepath.Base(dir)
		if name == "repo" {
			name = filepath.Base(filepath.Dir(dir))
		}
		path := filepath.Join(root, strings.TrimSuffix(name, ".git")+".git")
		repos = append(repos, path)
		if ok, err := exists(path); ok || err != nil {
			continue
		}
		if _, err := measure(ctx, c.dir, nil, "git", "clone", "-q", "--bare", dir, path); err != nil {
			return "", nil, err
		}
	}
	return root, repos, nil
}
