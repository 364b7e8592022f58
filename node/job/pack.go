package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
)

// pack joins the small files of a class, as they are now, and makes their
// repositories read the pack. It is built here and copied to the other
// members of the class by its hash. What changes meanwhile stays as it is.
func (r *Runner) pack(ctx context.Context, a *attempt) error {
	began := r.opt.Now()
	view := r.opt.Cluster.View()
	all := packClasses(view)[a.job.Subject]
	files := choosePack(slices.DeleteFunc(slices.Clone(all), func(f *packFile) bool { return !r.has(f) }), calm(view))
	if len(files) == 0 && len(choosePack(all, calm(view))) > 0 {
		return errors.New("the files are not here yet")
	}
	p := newPacking(a.job, files)
	if len(files) > 0 {
		if err := r.join(ctx, a, p); err != nil {
			return err
		}
	}
	fin := p.fin
	fin.Holder = r.opt.Cluster.Self()
	names := p.names()
	if len(p.fin.Repos) > 0 {
		a.step("copying")
		fin.Second = r.spread(ctx, p.fin.Repos[0].Repo, names)
	}
	a.step("publishing")
	if _, err := r.propose(ctx, a.job, fin); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if len(files) > 0 {
		r.opt.Log.Info("small repositories packed", "members", a.job.Subject, "job", a.job.Fence, "files", len(files),
			"repos", len(fin.Repos), "packs", len(fin.Packs), "took", r.opt.Now().Sub(began).Round(time.Millisecond))
	}
	return nil
}

// has tells whether this node has a file with all of its sides.
func (r *Runner) has(f *packFile) bool {
	for _, repo := range f.repos {
		for _, s := range repo.Shards {
			if s.ID != f.id {
				continue
			}
			for _, name := range PartOf(repo.ID, s).Files() {
				if !r.opt.Set.Has(name) {
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
	parts []shard.Part // that go into it
	built []shard.Built
}

func newPacking(j *catalog.Job, files []*packFile) *packing {
	p := &packing{fin: &catalog.FinishPack{Subject: j.Subject, Fence: j.Fence}}
	from, done := map[string]bool{}, map[catalog.RepoID]bool{}
	for _, f := range files {
		from[f.id] = true
		p.fin.From = append(p.fin.From, f.id)
	}
	in := func(id string) bool { return from[id] }
	for _, f := range files {
		for _, repo := range f.repos {
			if done[repo.ID] {
				continue
			}
			done[repo.ID] = true
			p.fin.Repos = append(p.fin.Repos, catalog.PackedRepo{Repo: repo.ID, Was: catalog.FilesHash(repo.Shards, in)})
			for _, s := range repo.Shards {
				if in(s.ID) {
					p.parts = append(p.parts, PartOf(repo.ID, s))
				}
			}
		}
	}
	slices.SortFunc(p.fin.Repos, func(a, b catalog.PackedRepo) int { return int(int64(a.Repo) - int64(b.Repo)) })
	return p
}

// join writes the pack, and its symbols where the files have any.
func (r *Runner) join(ctx context.Context, a *attempt, p *packing) error {
	release, err := r.processor(ctx, a)
	if err != nil {
		return err
	}
	defer release()
	a.step("packing")
	opt := r.buildOptions()
	opt.Progress, opt.Workers = a.count, 1
	built, err := r.opt.Set.Pack(ctx, p.parts, opt)
	if err != nil {
		return err
	}
	p.built = built
	if err := r.adopt(a, p.names()...); err != nil {
		return err
	}
	if slices.ContainsFunc(p.parts, func(part shard.Part) bool { return part.Symbols != "" }) {
		a.step("joining symbols")
		if err := r.packSymbols(ctx, a, p); err != nil {
			return err
		}
	}
	p.share(r.opt.Set.Size)
	return nil
}

// packSymbols copies the symbols of the parts; only what has none yet is
// looked at anew.
func (r *Runner) packSymbols(ctx context.Context, a *attempt, p *packing) error {
	tag := r.opt.Tagger
	if tag == nil {
		tag = func(context.Context, []shard.Untagged, func(shard.Definition), func(int, error)) error { return nil }
	}
	symbols := map[string]string{} // by shard
	for i := range p.built {
		b := &p.built[i]
		if _, done := symbols[b.Shard]; !done {
			part, err := r.opt.Set.Symbolize(ctx, b.Part, p.parts, tag)
			if err != nil {
				return fmt.Errorf("join symbols: %w", err)
			}
			if err := r.adopt(a, part.Symbols); err != nil {
				return err
			}
			symbols[b.Shard] = part.Symbols
		}
		b.Symbols = symbols[b.Shard]
	}
	return nil
}

// share says what each repository has of the packs.
func (p *packing) share(size func(name string) int64) {
	numbers, places := map[string]int{}, map[catalog.RepoID]int{}
	for i, repo := range p.fin.Repos {
		places[repo.Repo] = i
	}
	for _, b := range p.built {
		n, ok := numbers[b.Shard]
		if !ok {
			n = len(p.fin.Packs)
			numbers[b.Shard] = n
			p.fin.Packs = append(p.fin.Packs, catalog.ShardRef{
				ID: strings.TrimSuffix(b.Shard, ".shard"), Symbols: strings.TrimSuffix(b.Symbols, ".symbols"), Bytes: size(b.Shard), Pack: b.Pack,
			})
		}
		repo := &p.fin.Repos[places[b.Repo]]
		repo.Shares = append(repo.Shares, catalog.PackShare{Pack: uint32(n), Docs: uint32(b.Documents), Text: b.TextBytes})
	}
}

// names is the files of the packs.
func (p *packing) names() []string {
	var names []string
	for _, b := range p.built {
		names = append(names, b.Files()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
