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
	"github.com/shoalsearch/shoal/node/place"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
)

// indexer fetches repositories and makes them searchable.
type indexer struct {
	remotes *remotes
	builder *builder
	copies  *hold.Transfers
	hint    func(connection string) // see Follower.Hint
	log     *slog.Logger
	now     func() time.Time
}

// kind returns how the cluster plans and runs index jobs.
func (x *indexer) kind() Kind {
	return Kind{
		Job:     catalog.JobIndex,
		PerNode: func(s config.Settings) int { return s.MaxRepoIndexingJobs },
		Timeout: func(s config.Settings) time.Duration { return s.RepoIndexTimeout },
		Look:    LookRepos,
		Enqueue: enqueueIndexes,
		Blocked: indexBlocked,
		Home:    indexHome,
		Key:     func(j *catalog.Job) uint64 { return place.GroupOf(catalog.SubjectRepo(j.Subject)) },
		Run:     x.runJob,
	}
}

// rebuildWait is the time after an index job during which its data does not count as lost.
const rebuildWait = 10 * time.Second

// enqueueIndexes enqueues the first index job of new repositories, and one for repositories whose
// data is lost. The poller enqueues later jobs. Repositories that cannot be fetched get none.
func enqueueIndexes(p *planner) {
	for r := range p.in.View.Repos() {
		if r.Orphaned() || r.Unfetchable != "" {
			continue
		}
		subject := catalog.RepoSubject(r.ID)
		j := p.in.View.Job(catalog.JobIndex, subject)
		due := p.mayEnqueue(j, p.settings.ReindexInterval) && (!r.Indexed() || p.dataLost(r))
		if due && !p.addIfRoom(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: subject}) {
			return
		}
	}
}

// dataLost reports whether the mirror or a file of a repository has no holder, or only lost ones, so
// that the repository must be indexed again. A new generation gets rebuildWait first.
func (p *planner) dataLost(r *catalog.Repo) bool {
	if !p.elapsed(r.IndexedAt, min(rebuildWait, p.settings.ReindexInterval)) {
		return false
	}
	for key := range hold.KeysOf(r) {
		if !slices.ContainsFunc(p.in.View.Holders(key), p.notLost) {
			return true
		}
	}
	return false
}

// notLost reports whether a node is there, or may come back soon.
func (p *planner) notLost(id string) bool {
	n := p.nodeByID(id)
	return n != nil && !n.Lost()
}

// indexBlocked reports whether a repository is an orphan, or is being collected.
func indexBlocked(p *planner, j *catalog.Job) bool {
	r := p.in.View.Repo(catalog.SubjectRepo(j.Subject))
	return r == nil || r.Orphaned() || p.isRunning(catalog.JobCollect, j.Subject)
}

// indexHome returns the preferred nodes for indexing a repository; none: any node. Of the nodes
// with the mirror it prefers those with most of the files, because a build copies missing files,
// and one of them may be a large pack. So a repository that moves is indexed by its old holders
// until the files have arrived.
func indexHome(p *planner, j *catalog.Job) (home []string, bound bool) {
	repo := p.in.View.Repo(catalog.SubjectRepo(j.Subject))
	if repo == nil {
		return nil, false
	}

	closed := func(id string) bool { return !p.nodeTakesJobs(id) }
	targets := slices.DeleteFunc(hold.RepoTargets(p.in.View, repo.ID), closed)
	holders := slices.DeleteFunc(p.in.View.Holders(catalog.MirrorKey(repo.ID)), closed)

	// No node has the mirror yet: one that should hold it clones it.
	if len(holders) == 0 {
		return targets, false
	}

	// Among these, prefer one that should hold the data, so that nothing is copied twice.
	home = nodesWithMost(holders, func(id string) int64 { return heldBytes(p.in.View, repo, id) })
	notTarget := func(id string) bool { return !slices.Contains(targets, id) }
	if both := slices.DeleteFunc(slices.Clone(home), notTarget); len(both) > 0 {
		home = both
	}
	return home, false
}

// heldBytes returns how many bytes of the live generation of a repository a node has, plus one for
// each file. The size of side files is unknown: they count only as one.
func heldBytes(view *catalog.View, repo *catalog.Repo, node string) (held int64) {
	for _, s := range repo.Shards {
		for key := range hold.FilesOf(repo.ID, s) {
			if !view.Holds(node, key) {
				continue
			}

			held++
			if key == catalog.ShardKey(s.ID) {
				held += s.Bytes
			}
		}
	}
	return held
}

// runJob runs an index job. If the mirror is damaged, it clones the mirror again and runs the job a
// second time.
func (x *indexer) runJob(ctx context.Context, a *attempt) error {
	err := x.indexOnce(ctx, a)
	if errors.Is(err, git.ErrBeyond) {
		return fmt.Errorf("%w: %w", err, errPermanent)
	}
	if suspect := (mirrorError{}); !errors.As(err, &suspect) || ctx.Err() != nil {
		return err
	}

	// Discard the mirror only if it is really damaged: a clone is expensive.
	a.setStep("checking the mirror")
	mirror := a.files.Mirrors.Get(catalog.SubjectRepo(a.job.Subject))
	if mirror.Sound(ctx) {
		return err
	}

	x.log.Error("a mirror is damaged and is made anew", "repo", a.subjectName(), "err", err)
	if err := mirror.Discard(ctx); err != nil {
		return fmt.Errorf("remove a damaged mirror: %w", err)
	}
	return x.indexOnce(ctx, a)
}

// mirrorError is a failure after the fetch. A damaged mirror may be the cause.
type mirrorError struct{ error }

// Unwrap returns the failure.
func (e mirrorError) Unwrap() error { return e.error }

// indexOnce fetches the mirror, builds the shards and publishes them. Then it adds the symbols.
func (x *indexer) indexOnce(ctx context.Context, a *attempt) error {
	began := x.now()
	repo := a.cluster.View().Repo(catalog.SubjectRepo(a.job.Subject))
	if repo == nil {
		return fmt.Errorf("the repository is gone: %w", errPermanent)
	}

	// A listing enqueues the job when the repository can be fetched.
	if repo.Unfetchable != "" {
		return fmt.Errorf("not fetched: %s: %w", repo.Unfetchable, errPermanent)
	}

	in, err := x.fetchMirror(ctx, a, repo)
	if noRemote(err) {
		return x.explainMissing(ctx, repo, err)
	}
	if err != nil {
		return err
	}
	if err := x.chooseRevisions(ctx, a, in); err != nil {
		return mirrorError{err}
	}

	// If the input is unchanged, there is nothing to build.
	if done, err := x.endIfSame(ctx, a, in); done {
		return err
	}

	built, err := x.buildGeneration(ctx, a, in)
	if err != nil {
		return mirrorError{err}
	}

	// Publish the text first: ctags takes longer.
	tag := x.builder.opt.Tagger != nil && len(built) > 0
	if err := x.publish(ctx, a, in.fin, built, tag); err != nil {
		return err
	}
	x.logIndexed(a, repo, built, began)
	x.groomMirror(ctx, a, in)

	if !tag {
		return nil
	}
	return x.symbolize(ctx, a, in, built, false)
}

// input is the input of one run of an index job.
type input struct {
	repo    *catalog.Repo // record at the start of the run
	mirror  *git.Mirror
	changed bool                 // the fetch has changed the mirror
	revs    []git.Revision       // to index
	options string               // key of the build options
	fin     *catalog.FinishIndex // the command that publishes
}

// fetchMirror updates the mirror from the remote.
func (x *indexer) fetchMirror(ctx context.Context, a *attempt, repo *catalog.Repo) (*input, error) {
	a.setStep("fetching")
	limit := a.cluster.View().File().Settings.RepoIndexTimeout
	mirror, fetched, err := x.remotes.fetchMirror(ctx, repo, git.FetchOptions{Timeout: limit})
	if err != nil {
		return nil, err
	}
	fin := &catalog.FinishIndex{Repo: repo.ID, Fence: a.job.Fence, DefaultBranch: fetched.DefaultBranch, Holder: a.cluster.Self()}
	return &input{repo: repo, mirror: mirror, changed: fetched.Changed, fin: fin}, nil
}

// chooseRevisions finds the revisions to index, and computes the key of the input.
func (x *indexer) chooseRevisions(ctx context.Context, a *attempt, in *input) (err error) {
	revs, leftOut, err := x.remotes.revisionsToIndex(ctx, in.mirror, in.repo)
	if err != nil {
		return err
	}

	in.revs, in.fin.LeftOut = revs, uint32(leftOut)

	// Log it only when the number changes.
	if leftOut > 0 && in.fin.LeftOut != in.repo.LeftOut {
		x.log.Warn("more revisions match than are indexed", "repo", in.repo.Name, "left_out", leftOut, "limit", git.MaxRevisions)
	}

	for _, rev := range in.revs {
		in.fin.Revisions = append(in.fin.Revisions, catalog.Revision{Name: rev.Name, Commit: rev.Commit})
		if rev.Time.After(in.fin.PushedAt) {
			in.fin.PushedAt = rev.Time
		}
	}

	in.options = x.builder.optionsKey()
	in.fin.InputKey = inputKey(wantedKey(in.options, a.cluster.View(), in.repo), in.fin.Revisions)
	return nil
}

// endIfSame ends a job whose input equals that of the live generation, and then returns true. It first
// adds missing symbols. It returns false if the repository must be built, as after a loss of files.
func (x *indexer) endIfSame(ctx context.Context, a *attempt, in *input) (done bool, err error) {
	repo := in.repo
	if !repo.Indexed() || !sameBuild(in.fin.InputKey, repo.InputKey) {
		return false, nil
	}

	complete := a.files.Complete(repo) // on this node
	tags := x.builder.opt.Tagger != nil
	untagged := tags && slices.ContainsFunc(repo.Shards, func(s catalog.ShardRef) bool { return s.Symbols == "" })
	switch {
	case complete && untagged: // an attempt ended between text and symbols
		return true, x.symbolize(ctx, a, in, liveFiles(repo), false)
	case complete && tags && unknownSymbols(a.files, repo) > 0: // ctags failed on some files
		return true, x.symbolize(ctx, a, in, withoutUnknown(a.files, repo), true)
	case complete, !untagged && !x.copies.AnyFileLost(a.cluster.View(), repo):
		return true, x.finishUnchanged(ctx, a, in, complete)
	}
	return false, nil
}

// unknownSymbols counts the files of a repository for which ctags failed.
func unknownSymbols(files *hold.Files, repo *catalog.Repo) (count int) {
	for _, p := range hold.Parts(repo) {
		n, _ := files.UnknownSymbols(p)
		count += n
	}
	return count
}

// withoutUnknown returns the live generation without those symbols files that lack some symbols.
func withoutUnknown(files *hold.Files, repo *catalog.Repo) []shard.Built {
	built := liveFiles(repo)
	for i := range built {
		if n, _ := files.UnknownSymbols(built[i].Part); n > 0 {
			built[i].Symbols = shard.FileID{}
		}
	}
	return built
}

// finishUnchanged ends a job that has nothing to build. If only the key has changed, it records the
// new key, because otherwise every poll would enqueue a job. complete means that all files are
// on this node.
func (x *indexer) finishUnchanged(ctx context.Context, a *attempt, in *input, complete bool) error {
	in.fin.Unchanged, in.fin.Shards = in.fin.InputKey == in.repo.InputKey, in.repo.Shards
	if !complete {
		in.fin.Holder = ""
	}
	return a.finish(ctx, in.fin)
}

// liveFiles returns the live generation of a repository in the form of a build's result.
func liveFiles(repo *catalog.Repo) []shard.Built {
	built := make([]shard.Built, len(repo.Shards))
	for i, s := range repo.Shards {
		built[i] = shard.Built{
			Part:      hold.PartOf(repo.ID, s),
			Bytes:     s.Bytes,
			Documents: int(s.Docs),
			TextBytes: s.Text,
			Pack:      s.Pack,
		}
	}
	return built
}

// buildGeneration builds the shards of the next generation.
func (x *indexer) buildGeneration(ctx context.Context, a *attempt, in *input) ([]shard.Built, error) {
	if len(in.revs) == 0 {
		return nil, nil
	}

	src, err := x.listFiles(ctx, a, in)
	if err != nil {
		return nil, err
	}
	x.copies.CopyMissingFiles(ctx, in.repo) // to build on top of the live shards
	if err := x.builder.awaitOriginal(ctx, a, in.repo, src, in.options); err != nil {
		return nil, err
	}

	// Builds take turns on this node's processors.
	release, err := x.builder.acquireProcessor(ctx, a)
	if err != nil {
		return nil, err
	}
	defer release()

	built, err := x.builder.buildShards(ctx, a, in.repo, src, in.options)
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	return built, nil
}

// listFiles lists the files of the revisions to index.
func (x *indexer) listFiles(ctx context.Context, a *attempt, in *input) (*source, error) {
	release, err := x.builder.acquireProcessor(ctx, a)
	if err != nil {
		return nil, err
	}
	defer release()

	a.setStep("listing files")
	return newSource(ctx, in.mirror, in.repo, in.revs)
}

// publish makes the built files the live generation of the repository: it opens them, has another
// node copy them, and proposes the command. If more is set, the job continues afterwards.
func (x *indexer) publish(ctx context.Context, a *attempt, fin *catalog.FinishIndex, built []shard.Built, more bool) error {
	var names []string
	var bytes int64
	fin.Shards = nil
	for _, b := range built {
		names = append(names, b.Files()...)
		fin.Shards = append(fin.Shards, hold.RefOf(b))
		bytes += b.Bytes
	}

	// Place the shards of a large repository one by one, so that many nodes search it.
	if bytes >= x.builder.minSlicedBytes() && len(built) > 1 {
		for i := range fin.Shards {
			fin.Shards[i].Slice = uint16(i + 1)
		}
	}

	// No view names the files yet: adopt them, so that the collector does not remove them.
	if err := a.adopt(names...); err != nil {
		return err
	}

	a.setStep("copying")
	fin.Second = x.copies.CopyBeforePublish(ctx, fin.Repo, names)

	a.setStep("publishing")
	propose := a.finish
	if fin.Continue = more; more {
		propose = a.record
	}
	if err := propose(ctx, fin); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// groomMirror repacks the mirror if a fetch has changed it. A failure is logged, not returned.
func (x *indexer) groomMirror(ctx context.Context, a *attempt, in *input) {
	if !in.changed {
		return
	}
	a.setStep("grooming")
	if err := in.mirror.Groom(ctx); err != nil && ctx.Err() == nil {
		x.log.Warn("mirror could not be groomed", "repo", in.repo.Name, "err", err)
	}
}

// symbolize adds symbols to a generation that is already searchable. If again is set, it retries the
// files on which ctags failed.
func (x *indexer) symbolize(ctx context.Context, a *attempt, in *input, built []shard.Built, again bool) error {
	release, err := x.builder.acquireProcessor(ctx, a)
	if err != nil {
		return err
	}
	defer release()

	a.setStep("finding symbols")

	// addSymbols copies the symbols of unchanged files from the live shards on this node.
	known := slices.DeleteFunc(hold.Parts(in.repo), func(p shard.Part) bool {
		return slices.ContainsFunc(p.Files(), func(f string) bool { return !a.files.Has(f) })
	})
	if err := x.builder.addSymbols(ctx, a, known, built, again); err != nil {
		return err
	}
	return x.publish(ctx, a, in.fin, built, false)
}

// logIndexed logs the size of a new generation, and how long it took.
func (x *indexer) logIndexed(a *attempt, repo *catalog.Repo, built []shard.Built, began time.Time) {
	var docs int
	var text, bytes int64
	for _, b := range built {
		docs, text, bytes = docs+b.Documents, text+b.TextBytes, bytes+b.Bytes
	}
	x.log.Info("repository indexed", "repo", repo.Name, "job", a.job.Fence, "documents", docs, "text_bytes", text,
		"index_bytes", bytes, "shards", len(built), "took", x.now().Sub(began).Round(time.Millisecond))
}
