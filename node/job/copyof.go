package job

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/shard"
)

// Forks and copies of a repository have nearly all of its files. The first index of a copy reads the
// index files of the original: it writes only what the copy has besides them, and a .dead file.
//
//	original   s1 {a b c d}
//	copy       s1, .dead {b}   s2 {e}      of s1 it sees a, c and d as its own
//
// So twenty forks take little more CPU and disk than one. A search looks into s1 once for each of
// them, as into twenty files. The original is found by the content, not by what the host says. It
// must have all of its files on this node.

// Limits of looking for an original.
const (
	maxOriginals   = 16 // repositories of about the same size to compare with
	minCommonParts = 4  // a copy has all but one in minCommonParts of its blobs in common
)

// minCopyText returns the text in bytes from which on a copy shares files. Less is built at once, and
// packed later.
func (b *builder) minCopyText() int64 { return cmp.Or(b.opt.MinCopyText, 1<<20) }

// hasCommon reports whether common of all blobs are enough to share an index.
func hasCommon(common, all int) bool { return common >= all-all/minCommonParts }

// sameSize reports whether two repositories with this many documents may have enough in common.
func sameSize(a, b int) bool { return hasCommon(min(a, b), max(a, b)) }

// originalOf returns the repository with the most blobs of a source in its index; nil if none has
// enough. Both must be built with the same options.
func (b *builder) originalOf(view *catalog.View, src *source, options string) *catalog.Repo {
	if src.totalSize() < b.minCopyText() {
		return nil
	}

	var near []*catalog.Repo
	for r := range view.Repos() {
		if r.ID != src.repo.ID && r.Indexed() && optionsPart(r.InputKey) == options && sameSize(documentsOf(r), len(src.blobs)) && !isPacked(r) && b.files.Complete(r) {
			near = append(near, r)
		}
	}

	// Compare with those of the most similar size. The lowest number wins, so that many copies share
	// one file.
	distance := func(r *catalog.Repo) int { d := documentsOf(r) - len(src.blobs); return max(d, -d) }
	slices.SortFunc(near, func(a, b *catalog.Repo) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a.ID, b.ID))
	})
	near = near[:min(len(near), maxOriginals)]
	if len(near) == 0 {
		return nil
	}

	blobs := blobSet(src)
	var best *catalog.Repo
	most := 0
	for _, r := range near {
		if common := b.files.CountCommon(hold.Parts(r), func(oid string) bool { return blobs[oid] }); common > most {
			best, most = r, common
		}
	}
	if !hasCommon(most, len(src.blobs)) {
		return nil
	}
	return best
}

// documentsOf returns the number of documents of a repository.
func documentsOf(r *catalog.Repo) (n int) {
	for _, s := range r.Shards {
		n += int(s.Docs)
	}
	return n
}

// isPacked reports whether a repository has documents in a pack.
func isPacked(r *catalog.Repo) bool {
	return slices.ContainsFunc(r.Shards, func(s catalog.ShardRef) bool { return s.Pack > 0 })
}

// blobSet returns the ids of the blobs of a source.
func blobSet(src *source) map[string]bool {
	blobs := make(map[string]bool, len(src.blobs))
	for _, b := range src.blobs {
		blobs[b.OID] = true
	}
	return blobs
}

// fileNames returns the names of all files of a repository.
func fileNames(r *catalog.Repo) (names []string) {
	for _, p := range hold.Parts(r) {
		names = append(names, p.Files()...)
	}
	return names
}

// partsAsCopy returns the parts of a repository as those of a copy.
func partsAsCopy(original *catalog.Repo, repo catalog.RepoID) []shard.Part {
	parts := hold.Parts(original)
	for i := range parts {
		parts[i] = parts[i].AsCopy(repo)
	}
	return parts
}

// firstBuilds are the running builds of repositories that have no index yet. A copy of one of them
// waits for its end, to share its files. It is safe for concurrent use.
type firstBuilds struct {
	mu      sync.Mutex // guards the field below
	running []*firstBuild
}

type firstBuild struct {
	src  *source
	done chan struct{} // closed when the files are published, or the build has failed
}

// enter returns when no build of a similar repository is running. The caller must call leave at its
// end. Builds that wait are not in the list, so two never wait for each other.
func (f *firstBuilds) enter(ctx context.Context, src *source) (leave func(), err error) {
	blobs := sync.OnceValue(func() map[string]bool { return blobSet(src) }) // most builds run alone
	for {
		f.mu.Lock()
		i := slices.IndexFunc(f.running, func(o *firstBuild) bool {
			return sameSize(len(o.src.blobs), len(src.blobs)) && isCopy(o.src, blobs())
		})
		if i < 0 {
			b := &firstBuild{src: src, done: make(chan struct{})}
			f.running = append(f.running, b)
			f.mu.Unlock()
			return func() { f.remove(b) }, nil
		}
		other := f.running[i]
		f.mu.Unlock()

		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isCopy reports whether a source has enough of some blobs.
func isCopy(src *source, blobs map[string]bool) bool {
	common := 0
	for _, b := range src.blobs {
		if blobs[b.OID] {
			common++
		}
	}
	return hasCommon(common, len(blobs))
}

// remove ends a build.
func (f *firstBuilds) remove(b *firstBuild) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = slices.DeleteFunc(f.running, func(o *firstBuild) bool { return o == b })
	close(b.done)
}
