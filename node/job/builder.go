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

// largeBuild is the text, in bytes, from which on a build is large.
const largeBuild = 64 << 20

// BuildOptions is how index files are made on this node.
type BuildOptions struct {
	// Always is the globs of files without limits of size (ALWAYS_INDEX_FILE_PATTERNS).
	Always func() []string
	// Tagger finds symbols; nil indexes without them. TaggerName is its kind
	// and version, a part of what an index is made from.
	Tagger     shard.Tagger
	TaggerName string
	// SliceBytes is the text of one shard at most; 0 means 512 MiB.
	SliceBytes int64
	// Workers is how many cores a build may use; 0 means all.
	Workers int
}

// builder writes index files.
type builder struct {
	files    *hold.Files
	settings func() config.Settings
	opt      BuildOptions
	slots    chan struct{} // one for each build that may use the processors
}

// maxBuilds is how many builds may use the processors of a node at once:
// each uses all of them, and its memory.
const maxBuilds = 2

func newBuilder(files *hold.Files, settings func() config.Settings, opt BuildOptions) *builder {
	if opt.Always == nil {
		opt.Always = func() []string { return nil }
	}
	return &builder{files: files, settings: settings, opt: opt, slots: make(chan struct{}, maxBuilds)}
}

// options is how the next build is made.
func (b *builder) options() shard.BuildOptions { return b.opt.With(b.settings()) }

// With is how an index is made with the settings of now.
func (o BuildOptions) With(s config.Settings) shard.BuildOptions {
	var patterns []string
	if o.Always != nil {
		patterns = o.Always()
	}
	opt := shard.BuildOptions{MaxFileSize: s.MaxFileSize, MaxTrigrams: s.MaxTrigramCount, Workers: o.Workers, SliceBytes: o.SliceBytes}
	if globs, err := glob.Compile(glob.Exact, patterns...); err == nil && len(patterns) > 0 { // the environment refuses others
		opt.Always = globs.Match
	}
	return opt
}

// optionsKey is what the bytes of an index depend on beside the commits.
func (b *builder) optionsKey() string {
	s := b.settings()
	return hash(indexFormat, b.files.Written(), fmt.Sprint(s.MaxFileSize), fmt.Sprint(s.MaxTrigramCount), strings.Join(b.opt.Always(), "\x00"), b.opt.TaggerName)
}

// sliceFrom is how many bytes of index a repository has whose shards are
// placed one by one, so that many nodes search it together.
func (b *builder) sliceFrom() int64 { return 4 * cmp.Or(b.opt.SliceBytes, 512<<20) }

// processor waits for the right to use the processors.
func (b *builder) processor(ctx context.Context, a *attempt) (release func(), err error) {
	a.step("waiting for a processor")
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// build writes the shards of the next generation: on top of the live one when
// that is here and was made with the same options.
func (b *builder) build(ctx context.Context, a *attempt, repo *catalog.Repo, src *source, options string) ([]shard.Built, error) {
	a.step("building")
	opt := b.options()
	opt.Progress, src.read = a.count, a.addBytes
	if src.text() >= largeBuild {
		defer heap.Small()()
	}

	if optionsOf(repo.InputKey) == options && len(repo.Shards) > 0 && b.files.Complete(repo) {
		return b.files.Update(ctx, hold.Parts(repo), src, opt)
	}
	return b.files.Build(ctx, src, opt)
}

// symbols finds the symbols of the files that have none, and takes over what
// the known ones have of the same texts. again tries those once more that the known
// ones do not know.
func (b *builder) symbols(ctx context.Context, a *attempt, known []shard.Part, built []shard.Built, again bool) error {
	tag := func(ctx context.Context, texts []shard.Untagged, use func(shard.Definition), done func(int, error)) error {
		err := b.opt.Tagger(ctx, texts, use, done)
		for range texts {
			a.addDone()
		}
		return err
	}

	for i := range built {
		if !built[i].Symbols.IsZero() {
			continue // a file that stays, with its symbols
		}
		part, err := b.files.Symbolize(ctx, built[i].Part, known, again, tag)
		if err != nil {
			return fmt.Errorf("find symbols: %w", err)
		}

		// Kept at once: the next file may take long.
		if err := a.adopt(part.Symbols.Name(shard.KindSymbols)); err != nil {
			return err
		}
		built[i].Part = part
	}
	return nil
}
