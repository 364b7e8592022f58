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
		Run:     x.runJob,
	}
}

// runJob joins the present small files of a class, and switches their repositories to the pack. It
// builds the pack here, and copies it to other members. Repositories that change meanwhile stay as
// they are.
func (x *packer) runJob(ctx context.Context, a *attempt) error {
	began, view := x.now(), a.cluster.View()
	files, err := x.chooseFiles(a, view)
	if err != nil {
		return err
	}

	p := newPacking(a.job, files)
	if len(files) > 0 {
		if err := x.buildPack(ctx, a, p); err != nil {
			return err
		}
	}

	// Copy the pack before publishing it: afterwards the small files are removed.
	p.fin.Holder = a.cluster.Self()
	if len(p.fin.Repos) > 0 {
		a.setStep("copying")
		p.fin.Second = x.copies.CopyBeforePublish(ctx, p.fin.Repos[0].Repo, p.fileNames())
	}

	a.setStep("publishing")
	if err := a.finish(ctx, p.fin); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if len(files) > 0 {
		x.log.Info("small repositories packed", "members", a.job.Subject, "job", a.job.Fence, "files", len(files),
			"repos", len(p.fin.Repos), "packs", len(p.fin.Packs), "took", x.now().Sub(began).Round(time.Millisecond))
	}
	return nil
}

// chooseFiles returns those files on this node that the job should join. If only files of other nodes
// could be joined, it returns an error: the job is retried after they were copied here.
func (x *packer) chooseFiles(a *attempt, view *catalog.View) ([]*hold.ClassFile, error) {
	all := packableFiles(view)[a.job.Subject]
	settled := hold.FirstIndexesDone(view)
	localFiles := slices.DeleteFunc(slices.Clone(all), func(f *hold.ClassFile) bool { return !hasAllFiles(a.files, f) })
	files := choosePack(localFiles, settled)
	if len(files) == 0 && len(choosePack(all, settled)) > 0 {
		return nil, errors.New("the files are not here yet")
	}
	return files, nil
}

// hasAllFiles reports whether this node has a file with all of its side files.
func hasAllFiles(on *hold.Files, f *hold.ClassFile) bool {
	for _, repo := range f.Repos {
		for _, s := range repo.Shards {
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

// newPacking returns the packing of a job: the repositories that use the files, and their shards in
// them.
func newPacking(j *catalog.Job, files []*hold.ClassFile) *packing {
	p := &packing{fin: &catalog.FinishPack{Subject: j.Subject, Fence: j.Fence}}

	from := map[string]bool{} // ids of the files
	done := map[catalog.RepoID]bool{}
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

// buildPack builds the pack, with its symbols if the files have any.
func (x *packer) buildPack(ctx context.Context, a *attempt, p *packing) error {
	release, err := x.builder.acquireProcessor(ctx, a)
	if err != nil {
		return err
	}
	defer release()

	a.setStep("packing")

	opt := x.builder.options()
	opt.Progress, opt.Workers = a.setCount, 1
	if p.built, err = a.files.Pack(ctx, p.parts, opt); err != nil {
		return err
	}

	if err := a.adopt(p.fileNames()...); err != nil {
		return err
	}

	// Join symbols only if some file has symbols.
	if slices.ContainsFunc(p.parts, func(part shard.Part) bool { return !part.Symbols.IsZero() }) {
		a.setStep("joining symbols")
		if err := x.joinSymbols(ctx, a, p); err != nil {
			return err
		}
	}
	p.recordShares(a.files.Size)
	return nil
}

// joinSymbols copies the symbols of the parts into the symbols files of the packs. It runs ctags only
// on texts without symbols.
func (x *packer) joinSymbols(ctx context.Context, a *attempt, p *packing) error {
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

// recordShares records which part of the packs each repository gets.
func (p *packing) recordShares(size func(name string) int64) {
	packIndex := map[shard.FileID]int{}   // index in p.fin.Packs
	repoIndex := map[catalog.RepoID]int{} // index in p.fin.Repos
	for i, repo := range p.fin.Repos {
		repoIndex[repo.Repo] = i
	}

	for _, b := range p.built {
		// The command names each pack once; shares refer to it by index.
		n, ok := packIndex[b.Shard]
		if !ok {
			n = len(p.fin.Packs)
			packIndex[b.Shard] = n
			p.fin.Packs = append(p.fin.Packs, catalog.ShardRef{
				ID: b.Shard.String(), Symbols: b.Symbols.String(), Bytes: size(b.Shard.Name(shard.KindShard)), Pack: b.Pack,
			})
		}

		repo := &p.fin.Repos[repoIndex[b.Repo]]
		repo.Shares = append(repo.Shares, catalog.PackShare{Pack: uint32(n), Docs: uint32(b.Documents), Text: b.TextBytes})
	}
}

// fileNames returns the files of the packs.
func (p *packing) fileNames() []string {
	var names []string
	for _, b := range p.built {
		names = append(names, b.Files()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
