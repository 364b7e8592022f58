package job

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
)

// indexFormat changes when the same input would give other shards.
const indexFormat = "1"

// index brings the mirror of a repository up to date and makes its new
// generation searchable. Where the mirror cannot be read because this disk has
// damaged it, it is made anew: waiting and trying again would not help.
func (r *Runner) index(ctx context.Context, a *attempt) error {
	err := r.indexOnce(ctx, a)
	if suspect := (mirrorError{}); !errors.As(err, &suspect) || ctx.Err() != nil {
		return err
	}
	id := catalog.SubjectRepo(a.job.Subject)
	a.step("checking the mirror")
	mirror := r.opt.Mirrors.Get(id)
	if mirror.Sound(ctx) {
		return err
	}
	r.opt.Log.Error("a mirror is damaged and is made anew", "repo", r.subject(a.job), "err", err)
	if err := mirror.Discard(ctx); err != nil {
		return fmt.Errorf("remove a damaged mirror: %w", err)
	}
	return r.indexOnce(ctx, a)
}

// mirrorError is a failure after the fetch, which a damaged mirror can be the
// cause of.
type mirrorError struct{ error }

// Unwrap returns the failure.
func (e mirrorError) Unwrap() error { return e.error }

func (r *Runner) indexOnce(ctx context.Context, a *attempt) error {
	began := r.opt.Now()
	repo := r.opt.Cluster.View().Repo(catalog.SubjectRepo(a.job.Subject))
	if repo == nil {
		return fmt.Errorf("the repository is gone: %w", errPermanent)
	}
	mirror, fetched, err := r.fetch(ctx, a, repo)
	if err != nil {
		return err
	}
	fin := &catalog.FinishIndex{Repo: repo.ID, Fence: a.job.Fence, DefaultBranch: fetched.DefaultBranch, Holder: r.opt.Cluster.Self()}
	revs, err := r.revisions(ctx, mirror, repo)
	if err != nil {
		return mirrorError{err}
	}
	for _, rev := range revs {
		fin.Revisions = append(fin.Revisions, catalog.Revision{Name: rev.Name, Commit: rev.Commit})
		if rev.Time.After(fin.PushedAt) {
			fin.PushedAt = rev.Time
		}
	}
	options := r.optionsKey()
	wish := wishKey(options, r.opt.Cluster.View(), repo)
	fin.InputKey = inputKey(wish, fin.Revisions)
	if repo.Indexed() && sameBuild(fin.InputKey, repo.InputKey) {
		here := r.complete(repo)
		untagged := r.opt.Tagger != nil && slices.ContainsFunc(repo.Shards, func(s catalog.ShardRef) bool { return s.Symbols == "" })
		switch {
		case here && untagged: // an attempt ended between text and symbols
			return r.symbolize(ctx, a, repo, fin, builtOf(repo))
		case here, !untagged && !r.lost(r.opt.Cluster.View(), repo):
			return r.unchanged(ctx, a, repo, fin, here)
		}
	}
	built, err := r.build(ctx, a, repo, mirror, revs, options)
	if err != nil {
		return mirrorError{err}
	}
	parts := partsOf(built)
	if err := r.publish(ctx, a, fin, built, r.opt.Tagger != nil && len(parts) > 0); err != nil {
		return err
	}
	r.logIndexed(a, repo, built, began)
	if fetched.Changed {
		a.step("grooming")
		if err := mirror.Groom(ctx); err != nil && ctx.Err() == nil {
			r.opt.Log.Warn("mirror could not be groomed", "repo", repo.Name, "err", err)
		}
	}
	if r.opt.Tagger == nil || len(parts) == 0 {
		return nil
	}
	return r.symbolize(ctx, a, repo, fin, built)
}

// unchanged ends a job that has nothing to build. Other globs that select the
// same commits are recorded all the same, or every poll would ask again. What
// others have is not copied for that: the placement says who should hold what.
func (r *Runner) unchanged(ctx context.Context, a *attempt, repo *catalog.Repo, fin *catalog.FinishIndex, here bool) error {
	fin.Unchanged, fin.Shards = fin.InputKey == repo.InputKey, repo.Shards
	if !here {
		fin.Holder = ""
	}
	_, err := r.propose(ctx, a.job, fin)
	return err
}

func (r *Runner) logIndexed(a *attempt, repo *catalog.Repo, built []shard.Built, began time.Time) {
	var docs int
	var text, bytes int64
	for _, b := range built {
		docs, text, bytes = docs+b.Documents, text+b.TextBytes, bytes+b.Bytes
	}
	r.opt.Log.Info("repository indexed", "repo", repo.Name, "job", a.job.Fence, "documents", docs, "text_bytes", text,
		"index_bytes", bytes, "shards", len(built), "took", r.opt.Now().Sub(began).Round(time.Millisecond))
}

// fetch makes the mirror what the remote is now.
func (r *Runner) fetch(ctx context.Context, a *attempt, repo *catalog.Repo) (*git.Mirror, git.Fetched, error) {
	a.step("fetching")
	cred, err := r.credential(ctx, repo)
	if err != nil {
		return nil, git.Fetched{}, err
	}
	mirror := r.opt.Mirrors.Get(repo.ID)
	limit := r.opt.Cluster.View().File().Settings.RepoIndexTimeout
	fetched, err := mirror.Fetch(ctx, git.Remote{URL: repo.CloneURL, Credential: cred}, git.FetchOptions{Timeout: limit})
	r.opt.Mirrors.changed(repo.ID)
	if err != nil {
		return nil, fetched, fmt.Errorf("fetch: %w", err)
	}
	return mirror, fetched, nil
}

// credential is what opens the remote: that of the first connection which has
// one.
func (r *Runner) credential(ctx context.Context, repo *catalog.Repo) (git.Credential, error) {
	file := r.opt.Cluster.View().File()
	var failed error
	for _, link := range repo.Connections {
		conn := file.Connection(link.Name)
		if conn == nil {
			continue
		}
		cred, err := host.Credential(ctx, conn, repo.CloneURL, r.opt.Secret)
		if err != nil {
			failed = fmt.Errorf("credential of connection %s: %w", link.Name, err)
			continue
		}
		if cred != (git.Credential{}) {
			return cred, nil
		}
	}
	return git.Credential{}, failed
}

// revisions is what is to be indexed; none for a repository without commits.
func (r *Runner) revisions(ctx context.Context, m *git.Mirror, repo *catalog.Repo) ([]git.Revision, error) {
	b, t := globs(r.opt.Cluster.View(), repo)
	branches, err := config.CompileGlobs(b)
	if err != nil {
		return nil, fmt.Errorf("branches: %w", err)
	}
	tags, err := config.CompileGlobs(t)
	if err != nil {
		return nil, fmt.Errorf("tags: %w", err)
	}
	revs, skipped, err := m.Revisions(ctx, branches, tags)
	if errors.Is(err, git.ErrEmpty) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	if skipped > 0 {
		r.opt.Log.Warn("more revisions match than are indexed", "repo", repo.Name, "left_out", skipped, "limit", git.MaxRevisions)
	}
	return revs, nil
}

// globs is what the connections of a repository ask for, together.
func globs(view *catalog.View, repo *catalog.Repo) (branches, tags []string) {
	for _, link := range repo.Connections {
		if conn := view.File().Connection(link.Name); conn != nil {
			revs := conn.Shared().Revisions
			branches, tags = append(branches, revs.Branches...), append(tags, revs.Tags...)
		}
	}
	slices.Sort(branches)
	slices.Sort(tags)
	return slices.Compact(branches), slices.Compact(tags)
}

// optionsKey is what the bytes of an index depend on beside the commits.
func (r *Runner) optionsKey() string {
	s := r.opt.Cluster.View().File().Settings
	return hash(indexFormat, fmt.Sprint(s.MaxFileSize), fmt.Sprint(s.MaxTrigramCount), strings.Join(r.opt.Always(), "\x00"), r.opt.TaggerName)
}

// The key of an input is three hashes, <options>.<globs>.<revisions>: equal
// keys give equal answers. The first two, which need no mirror, are the wish.

// wishKey is the key of what is wanted of a repository.
func wishKey(options string, view *catalog.View, repo *catalog.Repo) string {
	branches, tags := globs(view, repo)
	return options + "." + hash(strings.Join(branches, "\x00"), strings.Join(tags, "\x00"))
}

// wishes makes the keys of many repositories: those of the same connections
// have the same.
type wishes struct {
	options string
	view    *catalog.View
	known   map[string]string // by the names of the connections
}

func (w *wishes) of(repo *catalog.Repo) string {
	names := ""
	for i, link := range repo.Connections {
		if i == 0 {
			names = link.Name
		} else {
			names += "\x00" + link.Name
		}
	}
	wish, ok := w.known[names]
	if !ok {
		wish = wishKey(w.options, w.view, repo)
		if w.known == nil {
			w.known = map[string]string{}
		}
		w.known[names] = wish
	}
	return wish
}

func inputKey(wish string, revs []catalog.Revision) string {
	parts := make([]string, 0, 2*len(revs))
	for _, rev := range revs {
		parts = append(parts, rev.Name, rev.Commit)
	}
	return wish + "." + hash(parts...)
}

// wishOf is the wish that a key was made for.
func wishOf(key string) string {
	return key[:max(strings.LastIndexByte(key, '.'), 0)]
}

// optionsOf is the options that a key was made with.
func optionsOf(key string) string {
	options, _, _ := strings.Cut(key, ".")
	return options
}

// sameBuild tells whether two inputs give the same shards.
func sameBuild(a, b string) bool {
	return optionsOf(a) == optionsOf(b) && a[strings.LastIndexByte(a, '.')+1:] == b[strings.LastIndexByte(b, '.')+1:]
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// complete tells whether this node has every file of the live generation.
func (r *Runner) complete(repo *catalog.Repo) bool {
	for _, p := range Parts(repo) {
		for _, f := range p.Files() {
			if !r.opt.Set.Has(f) {
				return false
			}
		}
	}
	return true
}

// build writes the shards of the next generation and opens them: on top of
// the live generation when that is here and made with the same options.
func (r *Runner) build(ctx context.Context, a *attempt, repo *catalog.Repo, m *git.Mirror, revs []git.Revision, options string) ([]shard.Built, error) {
	if len(revs) == 0 {
		return nil, nil
	}
	release, err := r.processor(ctx, a)
	if err != nil {
		return nil, err
	}
	defer release()
	a.step("listing files")
	src, err := newSource(ctx, m, repo, revs)
	if err != nil {
		return nil, err
	}
	src.read = a.addBytes
	a.step("building")
	opt := r.buildOptions()
	opt.Progress = a.count
	r.ensure(ctx, repo)
	if src.text() >= thriftyFrom {
		defer r.thrift.begin()()
	}
	var built []shard.Built
	if optionsOf(repo.InputKey) == options && len(repo.Shards) > 0 && r.complete(repo) {
		built, err = r.opt.Set.Update(ctx, Parts(repo), src, opt)
	} else {
		built, err = shard.Build(ctx, r.opt.Set.Dir(), src, opt)
	}
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	return built, nil
}

// processor waits for the right to use the processors.
func (r *Runner) processor(ctx context.Context, a *attempt) (release func(), err error) {
	a.step("waiting for a processor")
	select {
	case r.builds <- struct{}{}:
		return func() { <-r.builds }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *Runner) buildOptions() shard.BuildOptions {
	s := r.opt.Cluster.View().File().Settings
	patterns := r.opt.Always()
	opt := shard.BuildOptions{MaxFileSize: s.MaxFileSize, MaxTrigrams: s.MaxTrigramCount, Workers: r.opt.Workers, SliceBytes: r.opt.SliceBytes}
	if len(patterns) > 0 {
		opt.Always = func(path string) bool {
			return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, path) })
		}
	}
	return opt
}

// sliceFrom is how many bytes of index a repository has whose shards are
// placed one by one, so that many nodes search it together.
func (r *Runner) sliceFrom() int64 { return 4 * cmp.Or(r.opt.SliceBytes, 512<<20) }

// publish opens the files and switches the repository to them.
func (r *Runner) publish(ctx context.Context, a *attempt, fin *catalog.FinishIndex, built []shard.Built, more bool) error {
	var names []string
	var bytes int64
	fin.Shards = nil
	for _, b := range built {
		names = append(names, b.Files()...)
		fin.Shards = append(fin.Shards, refOf(b))
		bytes += b.Bytes
	}
	if bytes >= r.sliceFrom() && len(built) > 1 {
		for i := range fin.Shards {
			fin.Shards[i].Slice = uint16(i + 1)
		}
	}
	if err := r.adopt(a, names...); err != nil {
		return err
	}
	a.step("copying")
	fin.Second = r.spread(ctx, fin.Repo, names)
	a.step("publishing")
	fin.Continue = more
	if _, err := r.propose(ctx, a.job, fin); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// symbolize adds the symbols to a generation that is searchable already.
func (r *Runner) symbolize(ctx context.Context, a *attempt, old *catalog.Repo, fin *catalog.FinishIndex, built []shard.Built) error {
	release, err := r.processor(ctx, a)
	if err != nil {
		return err
	}
	defer release()
	a.step("finding symbols")
	known := slices.DeleteFunc(Parts(old), func(p shard.Part) bool {
		return slices.ContainsFunc(p.Files(), func(f string) bool { return !r.opt.Set.Has(f) })
	})
	var tagged int64
	tag := func(ctx context.Context, texts []shard.Untagged, use func(shard.Definition), done func(int, error)) error {
		return r.opt.Tagger(ctx, texts, use, func(i int, err error) {
			done(i, err)
			a.tagged(&tagged)
		})
	}
	for i := range built {
		if built[i].Symbols != "" {
			continue // a file that stays, with its symbols
		}
		part, err := r.opt.Set.Symbolize(ctx, built[i].Part, known, tag)
		if err != nil {
			return fmt.Errorf("find symbols: %w", err)
		}
		if err := r.adopt(a, part.Symbols); err != nil { // the next file may take long
			return err
		}
		built[i].Part = part
	}
	return r.publish(ctx, a, fin, built, false)
}

func (p *progress) tagged(done *int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*done++
	p.now.Done = *done
}

// Parts is the live generation of a repository as package shard has it.
func Parts(repo *catalog.Repo) []shard.Part {
	parts := make([]shard.Part, len(repo.Shards))
	for i, s := range repo.Shards {
		parts[i] = PartOf(repo.ID, s)
	}
	return parts
}

// PartOf is one shard of a repository as package shard has it.
func PartOf(repo catalog.RepoID, s catalog.ShardRef) shard.Part {
	p := shard.Part{Repo: repo, Shard: s.ID + ".shard"}
	if s.Dead != "" {
		p.Dead = s.Dead + ".dead"
	}
	if s.Symbols != "" {
		p.Symbols = s.Symbols + ".symbols"
	}
	return p
}

func refOf(b shard.Built) catalog.ShardRef {
	return catalog.ShardRef{
		ID: strings.TrimSuffix(b.Shard, ".shard"), Dead: strings.TrimSuffix(b.Dead, ".dead"), Symbols: strings.TrimSuffix(b.Symbols, ".symbols"),
		Bytes: b.Bytes, Docs: uint32(b.Documents), Text: b.TextBytes, Pack: b.Pack,
	}
}

// builtOf is the live generation of a repository as it was built.
func builtOf(repo *catalog.Repo) []shard.Built {
	built := make([]shard.Built, len(repo.Shards))
	for i, s := range repo.Shards {
		built[i] = shard.Built{Part: PartOf(repo.ID, s), Bytes: s.Bytes, Documents: int(s.Docs), TextBytes: s.Text, Pack: s.Pack}
	}
	return built
}

func partsOf(built []shard.Built) []shard.Part {
	parts := make([]shard.Part, len(built))
	for i, b := range built {
		parts[i] = b.Part
	}
	return parts
}
