package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// partGrowth indexes growing parts of L.
func partGrowth(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Growth with the corpus", Columns: []string{"part of L", "CPU", "wall", "on disk", "rare literal", "weak expression", "common word"}}
	f := newFit("CPU", "disk", "rare literal", "weak expression", "common word")

	// Begin with the smallest part. Each contains the one before, so the page cache helps all alike.
	for _, n := range []int{8, 4, 2, 1} {
		repo, err := r.corpora.largeRepository(ctx)
		if n > 1 && err == nil {
			repo, err = r.corpora.partOfLarge(ctx, n)
		}
		if err != nil {
			return nil, err
		}

		s, b, err := r.index(ctx, "growth", "off", 1, map[string]connection{"L": {"type": "git", "url": "file://" + repo}})
		if err != nil {
			return nil, err
		}

		took, err := r.searchTimes(ctx, s)
		if err != nil {
			return nil, err
		}

		if err := s.stop(); err != nil {
			return nil, err
		}
		p.row(fmt.Sprintf("1/%d", n), b.own+b.git, b.wall, bytesize(b.disk), took[0], took[1], took[2])
		f.add(1/float64(n), append([]float64{(b.own + b.git).Seconds(), float64(b.disk)}, millis(took)...)...)
	}

	p.note("Fitted exponents over the size: %s.", f)
	return p, nil
}

// fit collects values that grow with a size, to fit an exponent to each.
type fit struct {
	names []string    // of the values
	xs    []float64   // sizes
	ys    [][]float64 // for each name its value at each size
}

func newFit(names ...string) *fit { return &fit{names: names, ys: make([][]float64, len(names))} }

func (f *fit) add(x float64, values ...float64) {
	f.xs = append(f.xs, x)
	for i, v := range values {
		f.ys[i] = append(f.ys[i], v)
	}
}

// String returns the fitted exponents.
func (f *fit) String() string {
	var parts []string
	for i, name := range f.names {
		parts = append(parts, fmt.Sprintf("%s %.2f", name, exponent(f.xs, f.ys[i])))
	}
	return strings.Join(parts, ", ")
}

// growthQueries returns a rare literal, a weak expression and a common word.
func growthQueries() []Query {
	return []Query{{Text: "tg3_read_firmware_ver"}, {Text: `[0-9]{8}`, Regexp: true, Case: true}, {Text: "return"}}
}

// searchTimes returns the time of each growth query.
func (r *run) searchTimes(ctx context.Context, s *server) ([]time.Duration, error) {
	var took []time.Duration
	for _, q := range growthQueries() {
		_, d, err := s.bestSearch(ctx, q.body(100, countAll), r.Repeat)
		if err != nil {
			return nil, err
		}
		took = append(took, d)
	}
	return took, nil
}

func millis(all []time.Duration) []float64 {
	var out []float64
	for _, d := range all {
		out = append(out, ms(d))
	}
	return out
}

// partGrowthRepos indexes growing parts of M.
func partGrowthRepos(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Growth with the number of repositories", Columns: []string{"repositories", "CPU of the node", "CPU of git", "wall", "on disk", "CPU of a second at rest", "rare literal", "weak expression", "common word"}}
	f := newFit("CPU", "disk", "rest", "rare literal", "weak expression", "common word")
	all, repos, err := r.corpora.manyRepositories(ctx)
	if err != nil {
		return nil, err
	}

	// Begin with the smallest part. The last one is all of M.
	for _, part := range []int{8, 4, 2, 1} {
		n, root := len(repos)/part, all
		if part > 1 {
			if root, err = r.corpora.someRepositories(ctx, n); err != nil {
				return nil, err
			}
		}

		s, b, err := r.index(ctx, "growth", "off", n, map[string]connection{"M": {"type": "git", "url": "file://" + root + "/*"}})
		if err != nil {
			return nil, err
		}

		// Wait until the node has packed its thousands of files.
		if err := s.waitIdle(ctx); err != nil {
			return nil, err
		}

		idle, err := s.idleCPU(ctx)
		if err != nil {
			return nil, err
		}

		took, err := r.searchTimes(ctx, s)
		if err != nil {
			return nil, err
		}

		if err := s.stop(); err != nil {
			return nil, err
		}
		p.row(n, b.own, b.git, b.wall, bytesize(b.disk), idle, took[0], took[1], took[2])
		f.add(float64(n), append([]float64{(b.own + b.git).Seconds(), float64(b.disk), ms(idle)}, millis(took)...)...)
	}

	p.note("Fitted exponents over the number of repositories: %s.", f)
	return p, nil
}

// idleCPU returns the CPU time that an idle node uses in a second, at least a millisecond.
func (s *server) idleCPU(ctx context.Context) (time.Duration, error) {
	before, _, err := procUsage(s.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}

	// Ten seconds include several rounds of work that runs every second or two.
	const seconds = 10
	over := time.After(seconds * time.Second)
	select {
	case <-over:
	case <-ctx.Done():
		return 0, ctx.Err()
	}

	after, _, err := procUsage(s.cmd.Process.Pid)
	return max((after-before)/seconds, time.Millisecond), err
}

// partGrowthRevisions indexes R with growing numbers of tags.
func partGrowthRevisions(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Growth with the number of revisions", Columns: []string{"revisions", "unique text", "CPU of the node", "CPU of git", "on disk"}}
	repo := filepath.Join(r.Dir, "R.git")
	if ok, err := exists(repo); err != nil || !ok {
		return nil, fmt.Errorf("%s is not there: put a bare repository with history and 64 tags in its place", repo)
	}

	list, err := gitIn(ctx, repo, nil, nil, "tag", "--sort=-creatordate")
	if err != nil {
		return nil, err
	}

	tags := strings.Fields(list)
	byRevisions, byText := newFit("CPU", "disk"), newFit("CPU", "disk")

	// The numbers grow by a factor, because the fit uses logarithms. They include HEAD.
	for _, n := range []int{1, 4, 16, 64} {
		named := tags[:min(n-1, len(tags))]
		conn := connection{"type": "git", "url": "file://" + repo}
		if len(named) > 0 {
			conn["revisions"] = map[string]any{"tags": named}
		}

		s, b, err := r.index(ctx, "growth", "off", 1, map[string]connection{"R": conn})
		if err != nil {
			return nil, err
		}

		if err := s.stop(); err != nil {
			return nil, err
		}

		// Fit over the unique text too, because revisions share most of their text.
		unique, err := uniqueBytes(ctx, repo, append([]string{"HEAD"}, named...))
		if err != nil {
			return nil, err
		}

		p.row(1+len(named), bytesize(unique), b.own, b.git, bytesize(b.disk))
		byRevisions.add(float64(1+len(named)), (b.own + b.git).Seconds(), float64(b.disk))
		byText.add(float64(unique), (b.own + b.git).Seconds(), float64(b.disk))
	}

	p.note("Fitted exponents over the number of revisions: %s; over their unique text: %s.", byRevisions, byText)
	return p, nil
}

// partGrowthMatches searches L for more and more frequent words.
func partGrowthMatches(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Growth with the number of matches, every match counted, 100 shown", Columns: []string{"word", "files", "matches", "Shoal"}}
	s, err := r.largeNode(ctx)
	if err != nil {
		return nil, err
	}

	// The words are ever more frequent: from one match to one in nearly every line.
	f := newFit("time")
	for _, word := range []string{"tg3_read_firmware_ver", "mutex_lock_interruptible", "spin_lock_irqsave", "printk", "struct device", "static", "return", "the", "e"} {
		a, took, err := s.bestSearch(ctx, Query{Text: word}.body(100, countAll), r.Repeat)
		if err != nil {
			return nil, err
		}

		p.row(word, a.Stats.FileCount, a.Stats.TotalMatchCount, took)
		f.add(float64(a.Stats.TotalMatchCount), ms(took))
	}

	p.note("Fitted exponent over the number of matches: %s.", f)
	return p, nil
}

// uniqueBytes adds up the sizes of the distinct blobs of some revisions.
func uniqueBytes(ctx context.Context, repo string, revs []string) (int64, error) {
	counted := map[string]bool{}
	var sum int64
	for _, rev := range revs {
		u, err := measure(ctx, repo, nil, "git", "ls-tree", "-r", "-l", "--full-tree", rev)
		if err != nil {
			return 0, err
		}

		// A line of a tree has mode, kind, name, size and path; a submodule has no size.
		for line := range strings.Lines(string(u.Out)) {
			f := strings.Fields(line)
			if len(f) < 5 || f[1] != "blob" || counted[f[2]] {
				continue
			}

			counted[f[2]] = true
			var n int64
			if _, err := fmt.Sscan(f[3], &n); err != nil {
				return 0, err
			}
			sum += n
		}
	}

	return sum, nil
}
