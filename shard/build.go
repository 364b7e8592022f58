package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Build writes the shard files of a source into dir. It writes several files (slices) if there is
// more text than SliceBytes. It returns one Built for each repository in each file. A file gets its
// name only when it is complete and synced. For a source without blobs Build writes no file.
func Build(ctx context.Context, dir string, src Source, opt BuildOptions) ([]Built, error) {
	opt = opt.withDefaults()
	repos, blobs := src.Repositories(), src.Blobs()
	if err := checkSource(repos, blobs); err != nil {
		return nil, err
	}

	// Compute order and sizes first, because progress is reported in bytes of the source.
	order := sortBlobs(blobs)
	var total, done int64
	for _, b := range blobs {
		total += b.Size
	}

	var finishing finisher // finishes the previous slice while the next one is built
	for _, slice := range cutSlices(blobs, order, opt) {
		b := newBuilder(repos, blobs, opt)
		b.progress = func(n int64) { opt.Progress(done+n, total) }
		err := b.build(ctx, dir, src, slice)

		// Wait until the previous slice is finished. If it failed, drop the file of this one too.
		finishing.wait()
		if err == nil && finishing.err != nil {
			b.out.Abort()
		}
		if err := errors.Join(finishing.err, err); err != nil {
			return nil, err
		}

		finishing.startFinishing(b)
		for _, i := range slice {
			done += blobs[i].Size
		}

		opt.Progress(done, total)
	}
	finishing.wait()
	return finishing.built, finishing.err
}

// Build is like [Build], with the directory of the set and the versions that it writes. It does not
// add the files to the set.
func (s *Set) Build(ctx context.Context, src Source, opt BuildOptions) ([]Built, error) {
	opt.versions = s.versions()
	return Build(ctx, s.dir, src, opt)
}

// finisher finishes one slice after the other, each while the next one is built. Finishing takes
// one goroutine and waits for the disk.
type finisher struct {
	done  chan struct{}
	built []Built
	err   error
}

// startFinishing finishes a slice on a new goroutine, which adds the result to e.built and e.err.
// The caller must have called wait for the slice before.
func (e *finisher) startFinishing(b *builder) {
	e.done = make(chan struct{})
	go func() {
		defer close(e.done)
		built, err := b.finish()
		e.built, e.err = append(e.built, built...), errors.Join(e.err, err)
	}()
}

// wait returns when the slice of the last startFinishing is finished; at once if there is none.
func (e *finisher) wait() {
	if e.done != nil {
		<-e.done
	}
}

// checkSource returns an error if the format cannot store the repositories and blobs.
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

// sortBlobs returns the order of the documents, as indexes of blobs: by repository, then by
// category (code, documentation, generated, tests, vendored), then by path, which puts similar
// texts together. The first occurrence of a blob in this order decides. A blob without an
// occurrence has no document.
func sortBlobs(blobs []Blob) []int {
	type key struct {
		repo  int
		kind  category
		path  string
		index int
	}

	keys := make([]key, 0, len(blobs))
	for i, b := range blobs {
		if len(b.Occurrences) == 0 {
			continue
		}

		first := key{repo: 1 << 30} // greater than every repository
		for _, o := range b.Occurrences {
			k := key{o.Repo, categoryOf(o.Path), o.Path, i}
			if k.repo < first.repo || k.repo == first.repo && (k.kind < first.kind || k.kind == first.kind && k.path < first.path) {
				first = k
			}
		}

		keys = append(keys, first)
	}

	// The id breaks ties, so that the order depends on the source alone.
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(a.repo-b.repo, int(a.kind)-int(b.kind), cmp.Compare(a.path, b.path), cmp.Compare(blobs[a.index].OID, blobs[b.index].OID))
	})

	order := make([]int, len(keys))
	for i, k := range keys {
		order[i] = k.index
	}
	return order
}

// cutSlices cuts the order into slices with about equal amounts of text. A slice may exceed
// SliceBytes by part of one document. With a limit of 10, texts of 4 4 4 4 4 become n = 2 slices
// with a goal of 10 each: {4 4 4} {4 4}.
func cutSlices(blobs []Blob, order []int, opt BuildOptions) [][]int {
	size := func(i int) int64 {
		if opt.skipReason(blobs[i]) != indexed {
			return 0
		}
		return blobs[i].Size
	}

	var total int64
	for _, i := range order {
		total += size(i)
	}

	// n = ceil(total / limit) slices, of ceil(total / n) bytes each.
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

// skipReason returns skippedLarge for a blob whose size keeps its content out of the index,
// otherwise indexed. When packing, it returns the reason of the first build.
func (o BuildOptions) skipReason(b Blob) skip {
	if known, ok := o.known[b.OID]; ok {
		return known.skip
	}
	if b.Size > maxDocument || b.Size > o.MaxFileSize && !alwaysIndexed(b, o) {
		return skippedLarge
	}
	return indexed
}

// alwaysIndexed reports whether MaxFileSize and MaxTrigrams do not apply to a blob.
func alwaysIndexed(b Blob, opt BuildOptions) bool {
	if known, ok := opt.known[b.OID]; ok {
		return known.skip == indexed
	}
	return slices.ContainsFunc(b.Occurrences, func(o Occurrence) bool { return opt.Always(o.Path) })
}
