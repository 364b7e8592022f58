package job

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/heap"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/shard"
)

// largeBuild is the size of text in bytes from which on a build counts as large.
const largeBuild = 64 << 20

// BuildOptions configures how index files are built on this node.
type BuildOptions struct {
	// Always returns globs of files that have no size limit (ALWAYS_INDEX_FILE_PATTERNS).
	Always func() []string
	// Tagger finds symbols; nil: index without symbols. TaggerName is its kind and version, and is
	// part of the key of an index.
	Tagger     shard.Tagger
	TaggerName string
	// SliceBytes limits the text of one shard; 0 means 512 MiB.
	SliceBytes int64
	// MinCopyText is the text in bytes from which on a copy of another repository shares its files; 0
	// means 1 MiB.
	MinCopyText int64
	// Workers limits the cores that a build uses; 0 means all.
	Workers int
}

// builder builds index files.
type builder struct {
	files    *hold.Files
	settings func() config.Settings
	opt      BuildOptions
	slots    chan struct{} // holds a value per build that uses the processors
	first    firstBuilds
}

// maxBuilds limits concurrent builds on a node: each uses all processors, and much memory.
const maxBuilds = 2

func newBuilder(files *hold.Files, settings func() config.Settings, opt BuildOptions) *builder {
	if opt.Always == nil {
		opt.Always = func() []string { return nil }
	}
	return &builder{files: files, settings: settings, opt: opt, slots: make(chan struct{}, maxBuilds)}
}

// options returns the options of the next build.
func (b *builder) options() shard.BuildOptions { return b.opt.With(b.settings()) }

// With returns the build options for these settings.
func (o BuildOptions) With(s config.Settings) shard.BuildOptions {
	var patterns []string
	if o.Always != nil {
		patterns = o.Always()
	}
	opt := shard.BuildOptions{MaxFileSize: s.MaxFileSize, MaxTrigrams: s.MaxTrigramCount, Workers: o.Workers, SliceBytes: o.SliceBytes}
	if globs, err := glob.Compile(glob.Exact, patterns...); err == nil && len(patterns) > 0 { // the environment has rejected malformed globs
		opt.Always = globs.Match
	}
	return opt
}

// optionsKey returns a key of everything that index files depend on besides the commits.
func (b *builder) optionsKey() string {
	s := b.settings()
	return hashParts(indexFormat, b.files.Written(), fmt.Sprint(s.MaxFileSize), fmt.Sprint(s.MaxTrigramCount), strings.Join(b.opt.Always(), "\x00"), b.opt.TaggerName)
}

// minSlicedBytes returns the index size in bytes from which on each shard of a repository is placed
// on its own, so that many nodes search the repository together.
func (b *builder) minSlicedBytes() int64 { return 4 * cmp.Or(b.opt.SliceBytes, 512<<20) }

// acquireProcessor waits for a slot to use the processors.
func (b *builder) acquireProcessor(ctx context.Context, a *attempt) (release func(), err error) {
	a.setStep("waiting for a processor")
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// buildShards builds the shards of the next generation. It adds to the live shards if these are here and
// were built with the same options, or else to those of a repository with nearly the same files.
func (b *builder) buildShards(ctx context.Context, a *attempt, repo *catalog.Repo, src *source, options string) ([]shard.Built, error) {
	a.setStep("building")
	opt := b.options()
	opt.Progress, src.read = a.setCount, a.addBytes
	if src.totalSize() >= largeBuild {
		defer heap.Small()()
	}

	if b.hasGeneration(repo, options) {
		return b.files.Update(ctx, hold.Parts(repo), src, opt)
	}

	// Guard the files of an original: it may get others while this build runs.
	if original := b.originalOf(a.cluster.View(), src, options); original != nil {
		if err := a.adopt(fileNames(original)...); err == nil {
			return b.files.Update(ctx, partsAsCopy(original, repo.ID), src, opt)
		}
	}
	return b.files.Build(ctx, src, opt)
}

// hasGeneration reports whether the live shards of a repository are on this node, and were built with
// the given options.
func (b *builder) hasGeneration(repo *catalog.Repo, options string) bool {
	return optionsPart(repo.InputKey) == options && len(repo.Shards) > 0 && b.files.Complete(repo)
}

// awaitOriginal waits while this node builds the first index of a repository that has nearly the same
// files. Until the attempt ends, copies of this repository wait for it in turn.
func (b *builder) awaitOriginal(ctx context.Context, a *attempt, repo *catalog.Repo, src *source, options string) error {
	if b.hasGeneration(repo, options) || src.totalSize() < b.minCopyText() {
		return nil
	}
	a.setStep("waiting for a processor")
	leave, err := b.first.enter(ctx, src)
	if err == nil {
		a.guards = append(a.guards, leave)
	}
	return err
}

// addSymbols finds the symbols of the built shards that have none. It copies the symbols of texts
// that are in the known shards. If again is set, it retries the texts on which ctags failed there.
func (b *builder) addSymbols(ctx context.Context, a *attempt, known []shard.Part, built []shard.Built, again bool) error {
	tag := func(ctx context.Context, texts []shard.Untagged, use func(shard.Definition), done func(int, error)) error {
		err := b.opt.Tagger(ctx, texts, use, done)
		for range texts {
			a.addDone()
		}
		return err
	}

	for i := range built {
		if !built[i].Symbols.IsZero() {
			continue // an unchanged shard with its symbols
		}
		part, err := b.files.Symbolize(ctx, built[i].Part, known, again, tag)
		if err != nil {
			return fmt.Errorf("find symbols: %w", err)
		}

		// Adopt at once: the next shard may take long.
		if err := a.adopt(part.Symbols.Name(shard.KindSymbols)); err != nil {
			return err
		}
		built[i].Part = part
	}
	return nil
}
