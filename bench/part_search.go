package bench

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/shard/match"
)

// partTable runs the table of queries on every engine, counting every match.
func partTable(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "The table of queries on L, every match counted, 100 shown",
		Columns: []string{"query", "files", "matches", "rg files", "rg matches", "Shoal", "rg", "csearch", "Shoal / rg", "bound", ""}}
	tree, s, err := r.treeAndNode(ctx)
	if err != nil {
		return nil, err
	}

	_, index, err := r.cindex(ctx, tree)
	if err != nil {
		return nil, err
	}

	met := 0
	for _, q := range baselineQueries() {
		a, took, err := s.bestSearch(ctx, q.body(100, countAll), r.Repeat)
		if err != nil {
			return nil, err
		}

		files, matches, rg, err := bestRipgrep(ctx, tree, q, 2)
		if err != nil {
			return nil, err
		}

		cs, err := shortest(2, func() (time.Duration, error) { return csearch(ctx, tree, index, q) })
		if err != nil {
			return nil, err
		}

		// Allow 3 ms, because in less time HTTP takes the larger part. Weak queries always take longer.
		limit := max(3*time.Millisecond, time.Duration(q.bound()*float64(rg)))
		if q.weak() {
			limit = time.Duration(q.bound() * float64(rg))
		}

		if took <= limit {
			met++
		}
		p.row(q.Text, a.Stats.FileCount, a.Stats.TotalMatchCount, files, matches, took, rg, cs, ratio(float64(took)/float64(rg)), limit, took <= limit)
	}

	p.note("%d of %d within their bound: 0.4 × zoekt by its ratio to ripgrep (or 3 ms), 0.3 × ripgrep, 0.1 × for the weak ones.", met, len(p.Rows))
	p.note("ripgrep: --count-matches --no-ignore --hidden --max-filesize 2 MiB. Shoal: best of %d over the HTTP API, the answer decoded by the client left out.", r.Repeat)
	return p, nil
}

// partHard runs regular expressions for which an index helps little.
func partHard(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Hard regular expressions on L, every match counted", Columns: []string{"query", "matches", "rg matches", "Shoal", "rg", "Shoal / rg", "rg by lines"}}
	tree, s, err := r.treeAndNode(ctx)
	if err != nil {
		return nil, err
	}

	var ratios []time.Duration // as durations: a ratio of 1 is a second
	slower, slowerByLines := 0, 0
	for _, q := range hardQueries() {
		a, took, err := s.bestSearch(ctx, q.body(100, countAll), 2)
		if err != nil {
			return nil, err
		}

		_, matches, byLines, err := bestRipgrep(ctx, tree, q, 1)
		if err != nil {
			return nil, err
		}

		// By default ripgrep searches line by line. A match over several lines needs --multiline.
		rg := byLines
		spans, err := match.SpansLines(q.Text)
		if err != nil {
			return nil, err
		}

		if spans {
			if _, matches, rg, err = bestRipgrep(ctx, tree, q, 1, "--multiline"); err != nil {
				return nil, err
			}
		}

		share := float64(took) / float64(rg)
		ratios = append(ratios, time.Duration(share*float64(time.Second)))
		if share > 1 {
			slower++
		}

		if took > byLines {
			slowerByLines++
		}
		p.row(q.Text, a.Stats.TotalMatchCount, matches, took, rg, ratio(share), byLines)
	}

	p.note("Median %.3g × ripgrep; %d of %d slower than ripgrep.", median(ratios).Seconds(), slower, len(ratios))
	p.note("Where a match may hold a newline, ripgrep is asked with --multiline, which is the same question; by lines it finds less, and %d of its answers come sooner.", slowerByLines)
	return p, nil
}

// partTop requests the best hundred matches only, as users do.
func partTop(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Top results only (matches 100) on L", Columns: []string{"query", "Shoal"}}
	_, s, err := r.treeAndNode(ctx)
	if err != nil {
		return nil, err
	}

	var all []time.Duration
	over := 0

	for _, q := range append(baselineQueries(), hardQueries()...) {
		_, took, err := s.bestSearch(ctx, q.body(100, countShown), r.Repeat)
		if err != nil {
			return nil, err
		}

		all = append(all, took)
		if took > 50*time.Millisecond {
			over++
		}
		p.row(q.Text, took)
	}

	p.note("Median %s, worst %s; %d of %d over 50 ms.", cell(median(all)), cell(quantile(all, 1)), over, len(all))
	p.note("Median of the table of queries alone: %s.", cell(median(all[:len(baselineQueries())])))
	return p, nil
}

// partMany compares one large repository with the same tree cut into thousands of repositories.
func partMany(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "One repository (L) and one for each directory (M)", Columns: []string{"query", "L", "M", "M / L", ""}}
	_, l, err := r.treeAndNode(ctx)
	if err != nil {
		return nil, err
	}

	root, repos, err := r.corpora.manyRepositories(ctx)
	if err != nil {
		return nil, err
	}

	m, b, err := r.index(ctx, "M", "off", len(repos), map[string]connection{"M": {"type": "git", "url": "file://" + root + "/*"}})
	if err != nil {
		return nil, err
	}
	defer m.stop()

	fresh, err := m.status(ctx)
	if err != nil {
		return nil, err
	}

	if err := m.waitIdle(ctx); err != nil {
		return nil, err
	}
	packed, err := m.status(ctx)
	if err != nil {
		return nil, err
	}

	packedBytes, err := m.diskBytes("shards")
	if err != nil {
		return nil, err
	}

	met := 0
	for _, q := range baselineQueries() {
		_, one, err := l.bestSearch(ctx, q.body(100, countAll), r.Repeat)
		if err != nil {
			return nil, err
		}

		_, many, err := m.bestSearch(ctx, q.body(100, countAll), r.Repeat)
		if err != nil {
			return nil, err
		}

		share := float64(many) / float64(one)
		if share <= 1.5 {
			met++
		}
		p.row(q.Text, one, many, ratio(share), share <= 1.5)
	}

	p.note("%d repositories indexed in %s, %s CPU (git %s more), %s on disk, peak memory %s.", len(repos), cell(b.wall), cell(b.own), cell(b.git), cell(bytesize(b.disk)), cell(bytesize(b.peak)))
	p.note("%d files when all was indexed, %d after packing, %s; %s on disk.", fresh.Storage.Shards, packed.Storage.Shards, cell(time.Since(m.start)), cell(bytesize(packedBytes)))
	p.note("%d of %d within 1.5 × of L.", met, len(p.Rows))
	return p, nil
}

func (r *run) treeAndNode(ctx context.Context) (string, *server, error) {
	tree, err := r.corpora.linuxTree(ctx)
	if err != nil {
		return "", nil, err
	}
	s, err := r.largeNode(ctx)
	return tree, s, err
}

// bestSearch runs a search once to warm up and then n times, and returns the answer and the shortest time:
// other work on the machine only adds time.
func (s *server) bestSearch(ctx context.Context, body []byte, n int) (answer, time.Duration, error) {
	var a answer
	took, err := shortest(n+1, func() (time.Duration, error) { // the first warms up
		var d time.Duration
		var err error
		a, d, err = s.search(ctx, body)
		return d, err
	})
	return a, took, err
}

func bestRipgrep(ctx context.Context, tree string, q Query, n int, options ...string) (files, matches int, took time.Duration, err error) {
	took, err = shortest(n, func() (time.Duration, error) {
		var d time.Duration
		var err error
		files, matches, d, err = ripgrep(ctx, tree, q, options...)
		return d, err
	})
	return files, matches, took, err
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
