package bench

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// SoakOptions configures a soak.
type SoakOptions struct {
	Shoal  string        // program to measure
	Dir    string        // work folder; deleted first
	Repo   string        // repository to copy and change; "" makes a small one
	Rounds int           // commits; each must become searchable before the next
	Load   time.Duration // mixed load after the rounds
	Every  int           // rounds between two samples
	Log    func(format string, args ...any)
}

// Soak re-indexes a changing repository many times under a light load, then loads the node. It
// samples memory and disk, which must not grow.
func Soak(ctx context.Context, o SoakOptions) (*Part, error) {
	if err := os.RemoveAll(o.Dir); err != nil {
		return nil, err
	}
	repo := filepath.Join(o.Dir, "changing.git")
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}

	if err := changingRepository(ctx, o.Repo, repo); err != nil {
		return nil, err
	}
	config := filepath.Join(o.Dir, "config.json")
	if err := writeConfig(config, map[string]any{"repoGarbageCollectionGracePeriodMs": 500}, map[string]connection{"soak": {"type": "git", "url": "file://" + repo}}); err != nil {
		return nil, err
	}

	s, err := serve(ctx, o.Shoal, filepath.Join(o.Dir, "data"), config, "ctags")
	if err != nil {
		return nil, err
	}
	defer s.stop()

	if err := s.waitIndexed(ctx, 1); err != nil {
		return nil, err
	}

	p := &Part{Title: "Soak", Columns: []string{"after", "resident", "not backed by files", "goroutines", "files in shards/", "shards/", "mirrors/"}}
	if err := s.sample(ctx, p, "start"); err != nil {
		return nil, err
	}

	for round := 1; round <= o.Rounds; round++ {
		if err := s.soakRound(ctx, repo, round); err != nil {
			return nil, fmt.Errorf("round %d: %w", round, err)
		}
		if round%o.Every == 0 || round == o.Rounds {
			o.Log("round %d of %d", round, o.Rounds)
			if err := s.sample(ctx, p, fmt.Sprintf("%d rounds", round)); err != nil {
				return nil, err
			}
		}
	}

	if err := s.mixedLoad(ctx, o, p); err != nil {
		return nil, err
	}
	return p, nil
}

// mixedLoad runs light and heavy queries together and samples ten times.
func (s *server) mixedLoad(ctx context.Context, o SoakOptions, p *Part) error {
	var light, heavy [][]byte
	for _, q := range selectiveQueries() {
		light = append(light, q.body(50, countShown))
	}
	for _, q := range hardQueries()[:12] {
		heavy = append(heavy, q.body(1000, countAll))
	}

	for i := range 10 {
		if o.Load <= 0 {
			return nil
		}

		// Run both together, because they use different memory.
		var wg sync.WaitGroup
		var l, h loaded
		wg.Go(func() { l = s.load(ctx, 8, o.Load/10, light) })
		wg.Go(func() { h = s.load(ctx, 4, o.Load/10, heavy) })
		wg.Wait()
		o.Log("load %d of 10: %d light, %d heavy, %d errors", i+1, len(l.took), len(h.took), l.errors+h.errors)
		if err := s.sample(ctx, p, fmt.Sprintf("load %s", o.Load/10*time.Duration(i+1))); err != nil {
			return err
		}
	}

	return nil
}

// changingRepository copies a repository, or makes a small one.
func changingRepository(ctx context.Context, from, to string) error {
	if from != "" {
		_, err := measure(ctx, "", nil, "git", "clone", "-q", "--bare", from, to)
		return err
	}

	// A small repository makes a round quick. Leaks grow with rounds, not with its size.
	if _, err := measure(ctx, "", nil, "git", "init", "-q", "--bare", "-b", "main", to); err != nil {
		return err
	}
	var stream strings.Builder
	stream.WriteString("commit refs/heads/main\ncommitter bench <bench@localhost> 1700000000 +0000\ndata 6\ncorpus\n")

	for i := range 200 {
		text := strings.Repeat(fmt.Sprintf("int function_%d(void) { return %d; }\n", i, i), 50)
		fmt.Fprintf(&stream, "M 100644 inline src/file%d.c\ndata %d\n%s\n", i, len(text), text)
	}
	return fastImport(ctx, to, strings.NewReader(stream.String()))
}

// soakRound commits two changed files, and waits until a search finds the new text and nothing else.
func (s *server) soakRound(ctx context.Context, repo string, round int) error {
	branch, err := gitIn(ctx, repo, nil, nil, "symbolic-ref", "HEAD")
	if err != nil {
		return err
	}

	head, err := gitIn(ctx, repo, nil, nil, "rev-parse", "HEAD")
	if err != nil {
		return err
	}

	word := fmt.Sprintf("soak_round_%d_end", round)

	// Change one file in every round, and one of fifty others, so that shards are rebuilt and dropped.
	text := "int " + word + "(void);\n"
	stream := fmt.Sprintf("commit %s\ncommitter bench <bench@localhost> %d +0000\ndata 5\nround\nfrom %s\nM 100644 inline soak/changing.c\ndata %d\n%s\nM 100644 inline soak/f%d.c\ndata %d\n%s\n",
		branch, 1700000000+round, head, len(text), text, round%50, len(text), strings.Replace(text, "_end", "_too", 1))

	if err := fastImport(ctx, repo, strings.NewReader(stream)); err != nil {
		return err
	}
	var list []struct{ RepoID int }
	if err := s.get(ctx, "/api/repos", &list); err != nil || len(list) == 0 {
		return fmt.Errorf("list repositories: %d, %w", len(list), err)
	}

	if err := s.post(ctx, fmt.Sprintf("/api/repos/%d/reindex", list[0].RepoID), []byte("{}"), nil); err != nil {
		return err
	}
	return poll(ctx, time.Minute, 2*time.Millisecond, word, func() bool {
		a, _, err := s.search(ctx, Query{Text: word}.body(10, countShown))
		return err == nil && a.Stats.FileCount == 1
	})
}

// sample adds a row with the memory, goroutines and disk space of the node. after says when it is taken.
func (s *server) sample(ctx context.Context, p *Part, after string) error {
	_, resident, anonymous, err := procMemory(s.cmd.Process.Pid)
	if err != nil {
		return err
	}

	shards, err := s.diskBytes("shards")
	if err != nil {
		return err
	}

	mirrors, err := s.diskBytes("mirrors")
	if err != nil {
		return err
	}

	files, err := os.ReadDir(filepath.Join(s.dir, "shards"))
	if err != nil {
		return err
	}

	goroutines, err := s.metric(ctx, "go_goroutines")
	if err != nil {
		return err
	}

	p.row(after, bytesize(resident), bytesize(anonymous), goroutines, len(files), bytesize(shards), bytesize(mirrors))
	return nil
}

// metric returns the value of a metric that has no labels.
func (s *server) metric(ctx context.Context, name string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return "", err
	}

	data, err := s.read(req)
	if err != nil {
		return "", err
	}

	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("no metric %s", name)
}
