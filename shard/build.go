package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Build writes the shard files of a source into dir: one, or several slices
// where there is more text than SliceBytes. With several repositories it returns
// one Built for each repository and file. A file gets its name only when it is
// complete and synced. A source without files makes none.
func Build(ctx context.Context, dir string, src Source, opt BuildOptions) ([]Built, error) {
	opt = opt.withDefaults()
	repos, blobs := src.Repositories(), src.Blobs()
	if err := checkSource(repos, blobs); err != nil {
		return nil, err
	}

	// Order and sizes first: progress is told in bytes of the source.
	order := arrange(blobs)
	var total, done int64
	for _, b := range blobs {
		total += b.Size
	}

	var end ending // of the slice before, beside which the next one is built
	for _, slice := range cutSlices(blobs, order, opt) {
		b := newBuilder(repos, blobs, opt)
		b.progress = func(n int64) { opt.Progress(done+n, total) }
		err := b.build(ctx, dir, src, slice)

		// One slice is finished while the next one is built.
		end.wait()

		// If only the slice before failed, this one's file is given up too.
		if err == nil && end.err != nil {
			b.out.Abort()
		}
		if err := errors.Join(end.err, err); err != nil {
			return nil, err
		}

		// This slice becomes the one that is finished beside the next.
		end.begin(b)
		for _, i := range slice {
			done += blobs[i].Size
		}

		opt.Progress(done, total)
	}
	end.wait()
	return end.built, end.err
}

// Build is [Build] into the directory of the set, in the versions that it writes. The
// files are not in the set yet.
func (s *Set) Build(ctx context.Context, src Source, opt BuildOptions) ([]Built, error) {
	opt.versions = s.versions()
	return Build(ctx, s.dir, src, opt)
}

// ending ends one slice after the other, each while the next one is built: an
// end is one goroutine's work, and waits for the disk.
type ending struct {
	done  chan struct{}
	built []Built
	err   error
}

// begin starts the end of a slice; the one before must have been waited for.
func (e *ending) begin(b *builder) {
	e.done = make(chan struct{})
	go func() {
		defer close(e.done)
		built, err := b.end()
		e.built, e.err = append(e.built, built...), errors.Join(e.err, err)
	}()
}

// wait waits for the end that was begun, if any.
func (e *ending) wait() {
	if e.done != nil {
		<-e.done
	}
}

// checkSource refuses what the format cannot hold.
func checkSource(repos []Repository, blobs []Blob) error {
	if len(repos) > 1<<16 {
		return fmt.Errorf("build shard: %d repositories, at most 65,536", len(repos))
	}

	for _, r := range repos {
		for _, v := range r.Revisions {
			if v.Bit >= maxRevisions {
				return fmt.Errorf("build shard: %s: bit %d of %s, at most 63", r.Name, v.Bit, v.Name)
			}
		}
	}

	// Ids of git, and places in repositories that are there.
	for _, b := range blobs {
		if len(b.OID) != 40 && len(b.OID) != 64 {
			return fmt.Errorf("build shard: blob id %q is neither SHA-1 nor SHA-256", b.OID)
		}
		for _, o := range b.Occurrences {
			if o.Repo < 0 || o.Repo >= len(repos) {
				return fmt.Errorf("build shard: blob %s is in repository %d of %d", b.OID, o.Repo, len(repos))
			}
		}
	}
	return nil
}

// arrange returns the order of the documents: by repository, then what a reader
// more likely wants (code before documentation, generated, tests, vendored), then
// by path, which keeps similar texts together. A blob in several places stands
// where the best of them does.
func arrange(blobs []Blob) []int {
	type key struct {
		repo  int
		kind  category
		path  string
		index int
	}

	// The best place of each blob; a blob without a place has no document.
	keys := make([]key, 0, len(blobs))
	for i, b := range blobs {
		if len(b.Occurrences) == 0 {
			continue
		}

		best := key{repo: 1 << 30}
		for _, o := range b.Occurrences {
			k := key{o.Repo, categoryOf(o.Path), o.Path, i}
			if k.repo < best.repo || k.repo == best.repo && (k.kind < best.kind || k.kind == best.kind && k.path < best.path) {
				best = k
			}
		}

		keys = append(keys, best)
	}

	// Ties are broken by the id, so that the order depends on the source alone.
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(a.repo-b.repo, int(a.kind)-int(b.kind), cmp.Compare(a.path, b.path), cmp.Compare(blobs[a.index].OID, blobs[b.index].OID))
	})

	order := make([]int, len(keys))
	for i, k := range keys {
		order[i] = k.index
	}
	return order
}

// cutSlices cuts the order into runs of about equal text. A run has at most the
// limit and one document. With a limit of 10, texts of 4 4 4 4 4 are n = 2 runs
// with a goal of 10: {4 4 4} {4 4}.
func cutSlices(blobs []Blob, order []int, opt BuildOptions) [][]int {
	size := func(i int) int64 {
		if opt.fate(blobs[i]) != indexed {
			return 0
		}
		return blobs[i].Size
	}

	var total int64
	for _, i := range order {
		total += size(i)
	}

	// n = ceil(total / limit) runs, of ceil(total / n) bytes each.
	n := (total + opt.SliceBytes - 1) / opt.SliceBytes
	goal := total
	if n > 1 {
		goal = (total + n - 1) / n
	}

	var cuts [][]int
	var sum int64
	start := 0
	for k, i := range order {
		sum += size(i)

		// Full, and something is left for the next.
		if sum >= goal && k+1 < len(order) && n > 1 {
			cuts = append(cuts, order[start:k+1])
			start, sum = k+1, 0
		}
	}

	if start < len(order) {
		cuts = append(cuts, order[start:])
	}
	return cuts
}

// fate says before a blob is read whether its content will be left out, and why.
func (o BuildOptions) fate(b Blob) skip {
	if known, ok := o.known[b.OID]; ok {
		return known.skip
	}
	if b.Size > maxDocument || b.Size > o.MaxFileSize && !alwaysIndexed(b, o) {
		return skippedLarge
	}
	return indexed
}

// alwaysIndexed reports whether no limit applies to a blob.
func alwaysIndexed(b Blob, opt BuildOptions) bool {
	if known, ok := opt.known[b.OID]; ok {
		return known.skip == indexed
	}
	return slices.ContainsFunc(b.Occurrences, func(o Occurrence) bool { return opt.Always(o.Path) })
}
