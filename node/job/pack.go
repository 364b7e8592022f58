package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/shard"
)

// packer joins small files into packs.
type packer struct {
	builder *builder
	copies  *hold.Transfers
	log     *slog.Logger
	now     func() time.Time
}

// kind returns how the cluster plans and runs the jobs that pack small index files into larger
// ones.
func (x *packer) kind() Kind {
	return Kind{
		Job:     catalog.JobPack,
		PerNode: always(1),
		Timeout: func(s config.Settings) time.Duration { return s.RepoIndexTimeout },
		Look:    LookPacks,
		Enqueue: enqueuePacks,
		Home:    packHome,
		Run:     x.pack,
	}
}

// pack joins the present small files of a class, and switches their repositories to the pack. It
// builds the pack here, and copies it to other members. Repositories that change meanwhile stay as
// they are.
func (x *packer) pack(ctx context.Context, a *attempt) error {
	began, view := x.now(), a.cluster.View()
	files, err := x.choose(a, view)
	if err != nil {
		return err
	}

	p := newPacking(a.job, files)
	if len(files) > 0 {
		if err := x.join(ctx, a, p); err != nil {
			return err
		}
	}

	// Copy the pack before publishing it: afterwards the small files are removed.
	p.fin.Holder = a.cluster.Self()
	if len(p.fin.Repos) > 0 {
		a.step("copying")
		p.fin.Second = x.copies.Second(ctx, p.fin.Repos[0].Repo, p.names())
	}

	a.step("publishing")
	if err := a.finish(ctx, p.fin); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if len(files) > 0 {
		x.log.Info("small repositories packed", "members", a.job.Subject, "job", a.job.Fence, "files", len(files),
			"repos", len(p.fin.Repos), "packs", len(p.fin.Packs), "took", x.now().Sub(began).Round(time.Millisecond))
	}
	return nil
}

// choose returns the files to join, of those on this node. It returns an error if there are files
// to join, but not here yet.
func (x *packer) choose(a *attempt, view *catalog.View) ([]*hold.ClassFile, error) {
	all, calm := packable(view)[a.job.Subject], hold.Calm(view)
	here := slices.DeleteFunc(slices.Clone(all), func(f *hold.ClassFile) bool { return !hasSides(a.files, f) })
	files := choosePack(here, calm)
	if len(files) == 0 && len(choosePack(all, calm)) > 0 {
		return nil, errors.New("the files are not here yet")
	}
	return files, nil
}

// hasSides reports whether this node has a file with all of its side files.
func hasSides(on *hold.Files, f *hold.ClassFile) bool {
	for _, repo := range f.Repos {
		for _, s := range repo.Shards {
			// Skip other files of the repository.
			if s.ID != f.ID {
				continue
			}

			for _, name := range hold.FilesOf(repo.ID, s) {
				if !on.Has(name) {
					return false
				}
			}
		}
	}
	return true
}

// packing is a pack that is being made.
type packing struct {
	fin   *catalog.FinishPack
	parts []shard.Part // to join
	built []shard.Built
}

// newPacking returns a job's plan to pack files: which repositories are in them, and which of their
// shards.
func newPacking(j *catalog.Job, files []*hold.ClassFile) *packing {
	p := &packing{fin: &catalog.FinishPack{Subject: j.Subject, Fence: j.Fence}}

	from, done := map[string]bool{}, map[catalog.RepoID]bool{}
	for _, f := range files {
		from[f.ID] = true
		p.fin.From = append(p.fin.From, f.ID)
	}

	in := func(id string) bool { return from[id] }

	// Pack a repository once, with all of its small files.
	for _, f := range files {
		for _, repo := range f.Repos {
			if done[repo.ID] {
				continue
			}
			done[repo.ID] = true
			p.fin.Repos = append(p.fin.Repos, catalog.PackedRepo{Repo: repo.ID, Was: catalog.FilesHash(repo.Shards, in)})

			for _, s := range repo.Shards {
				if in(s.ID) {
					p.parts = append(p.parts, hold.PartOf(repo.ID, s))
				}
			}
		}
	}

	slices.SortFunc(p.fin.Repos, func(a, b catalog.PackedRepo) int { return int(int64(a.Repo) - int64(b.Repo)) })
	return p
}

// join builds the pack, with its symbols if the files have any.
func (x *packer) join(ctx context.Context, a *attempt, p *packing) error {
	release, err := x.builder.acquireProcessor(ctx, a)
	if err != nil {
		return err
	}
	defer release()

	a.step("packing")

	opt := x.builder.options()
	opt.Progress, opt.Workers = a.count, 1
	if p.built, err = a.files.Pack(ctx, p.parts, opt); err != nil {
		return err
	}

	if err := a.adopt(p.names()...); err != nil {
		return err
	}

	// Files without symbols get none from joining.
	if slices.ContainsFunc(p.parts, func(part shard.Part) bool { return !part.Symbols.IsZero() }) {
		a.step("joining symbols")
		if err := x.symbols(ctx, a, p); err != nil {
			return err
		}
	}
	p.share(a.files.Size)
	return nil
}

// symbols copies the symbols of the parts. Only texts without symbols are tagged.
func (x *packer) symbols(ctx context.Context, a *attempt, p *packing) error {
	tag := x.builder.opt.Tagger
	if tag == nil {
		tag = func(context.Context, []shard.Untagged, func(shard.Definition), func(int, error)) error { return nil }
	}

	symbols := map[shard.FileID]shard.FileID{} // by shard
	for i := range p.built {
		b := &p.built[i]

		// Repositories of one pack share its symbols file.
		if _, done := symbols[b.Shard]; !done {
			part, err := a.files.Symbolize(ctx, b.Part, p.parts, false, tag)
			if err != nil {
				return fmt.Errorf("join symbols: %w", err)
			}
			if err := a.adopt(part.Symbols.Name(shard.KindSymbols)); err != nil {
				return err
			}
			symbols[b.Shard] = part.Symbols
		}

		b.Symbols = symbols[b.Shard]
	}
	return nil
}

// share records which part of the packs each repository gets.
func (p *packing) share(size func(name string) int64) {
	numbers, places := map[shard.FileID]int{}, map[catalog.RepoID]int{}
	for i, repo := range p.fin.Repos {
		places[repo.Repo] = i
	}

	for _, b := range p.built {
		// The command names each pack once; shares refer to it by index.
		n, ok := numbers[b.Shard]
		if !ok {
			n = len(p.fin.Packs)
			numbers[b.Shard] = n
			p.fin.Packs = append(p.fin.Packs, catalog.ShardRef{
				ID: b.Shard.String(), Symbols: b.Symbols.String(), Bytes: size(b.Shard.Name(shard.KindShard)), Pack: b.Pack,
			})
		}

		repo := &p.fin.Repos[places[b.Repo]]
		repo.Shares = append(repo.Shares, catalog.PackShare{Pack: uint32(n), Docs: uint32(b.Documents), Text: b.TextBytes})
	}
}

// names returns the files of the packs.
func (p *packing) names() []string {
	var names []string
	for _, b := range p.built {
		names = append(names, b.Files()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
