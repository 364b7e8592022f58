package search

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard/query"
)

// Limits of searching commits that are not indexed.
const (
	pastRepos  = 8 // repositories that are read from git for one query
	pastAtOnce = 4
)

// searchGit searches commits in git that a query asks for and the index does not have: rev: of a
// commit, branch or tag that is not indexed, or at: of a date. The index still searches the files
// that an indexed revision has in common with the commit:
//
//	rev:1a2b needle     (rev:1a2b needle)                            where 1a2b is indexed
//	                 or (rev:main needle -file:^(a\.go|b/c\.go)$)    where it is near main, but for two files
//	                 or what the mirror finds in those two
func (q *question) searchGit(ctx context.Context, v catalog.Viewer, scanner Scanner, at time.Time) error {
	rev, ok := singleRev(q.tree)
	q.rev = rev
	_, single := glob.Start(rev)

	// Most queries name no commit and no date.
	switch {
	case !ok && at.IsZero():
		return nil
	case !ok:
		return call.Fail(call.ErrQuery, "at: needs one revision for the whole query: HEAD, or what a single rev: names")

	// Only one exact name can be a commit that is not indexed. A head or a pattern selects indexed
	// revisions.
	case at.IsZero() && (rev == "HEAD" || !single):
		return nil
	case !single:
		return call.Fail(call.ErrQuery, "at: needs one revision: rev:%s names several", rev)
	}

	indexed, missing, err := q.whereIndexed(rev, at)
	if err != nil {
		return err
	}
	switch {
	case len(missing) == 0:
		return nil
	case at.IsZero() && len(missing) > pastRepos:
		// With many repositories, search those that have the revision indexed, and say so in the
		// answer.
		q.revision = revisionGap(rev, int(q.repos.GetCardinality()), missing)
		return nil
	case len(missing) > pastRepos:
		return call.Fail(call.ErrTooLarge, "at: reads from git, and this query is about %d repositories; at most %d are read. Name them with repo:.", len(missing), pastRepos)
	}

	if err := q.askMirrors(ctx, v, scanner, missing, rev, at); err != nil {
		return err
	}
	q.searchBeside(indexed, rev)
	return nil
}

// revisionGap says what an answer lacks because the index of some of the searched repositories, all
// in number, does not have the revision, and no mirror was asked. Repositories without an index have a
// gap of their own.
func revisionGap(rev string, all int, missing []*catalog.Repo) coverage.Gap {
	gap := coverage.Gap{Kind: coverage.Revision, Ref: rev}
	for _, repo := range missing {
		if repo.Indexed() && !repo.NoCommit() {
			gap.Count++
		}
	}

	gap.Of = all - len(missing) + gap.Count
	if gap.Count == gap.Of {
		gap.Kind = coverage.NoRevision
	}
	return gap
}

// whereIndexed divides the repositories by whether the index has the revision. Those that miss it
// must be read from git.
func (q *question) whereIndexed(rev string, at time.Time) (indexed *roaring.Bitmap, missing []*catalog.Repo, err error) {
	indexed = roaring.New()
	for it := q.repos.Iterator(); it.HasNext(); {
		repo, err := q.visible.ByID(it.Next())
		if err != nil {
			return nil, nil, err
		}

		// The index has revisions as they are now, so it says nothing about a date.
		if at.IsZero() && hasRevision(repo, rev) {
			indexed.Add(repo.ID)
		} else {
			missing = append(missing, repo)
		}
	}
	return indexed, missing, nil
}

// askMirrors asks the holders of mirrors. A repository without such a commit has no part in the
// answer. If no repository has one, at: is refused.
func (q *question) askMirrors(ctx context.Context, v catalog.Viewer, scanner Scanner, repos []*catalog.Repo, rev string, at time.Time) error {
	slices.SortFunc(repos, func(a, b *catalog.Repo) int { return strings.Compare(a.Name, b.Name) })
	found := make([]*browse.PastResponse, len(repos))
	none := make([]error, len(repos))

	// A failure in one repository ends the search: an answer from the rest would look complete.
	group, ctx := call.NewGroup(ctx, pastAtOnce)
	for i, repo := range repos {
		group.Go(func() (err error) {
			found[i], err = scanner.Past(ctx, v, repo.Name, q.pastRequest(repo, rev, at))
			// A repository without such a commit is a valid result.
			if errors.Is(err, call.ErrRef) {
				none[i], err = err, nil
			}
			return err
		})
	}

	if err := group.Wait(); err != nil {
		return err
	}

	q.commits = map[uint32]string{}
	for i, repo := range repos {
		if found[i] != nil {
			q.past = append(q.past, pastPart{repo, found[i]})
			q.commits[repo.ID] = found[i].Commit
		}
	}

	if len(q.past) == 0 && !at.IsZero() {
		return none[0]
	}
	return nil
}

// pastRequest returns the request to search a revision of a repository in its mirror.
func (q *question) pastRequest(repo *catalog.Repo, rev string, at time.Time) browse.PastRequest {
	req := browse.PastRequest{
		Ref:      rev,
		At:       at,
		Q:        q.tree,
		Matches:  q.leaf.Matches,
		Files:    q.leaf.Files,
		Context:  q.leaf.Context,
		Whole:    q.leaf.Whole,
		Count:    q.leaf.CountAll,
		NoChunks: q.leaf.NoChunks,
		After:    q.leaf.After,
	}

	if repo.Indexed() {
		req.Beside = repo.Revisions
	}
	// In one repository all files are equally recent.
	if q.repos.GetCardinality() > 1 {
		req.Recency = float64(recencyOf(q.visible.View, repo)) / 255
	}
	return req
}

// searchBeside changes the query to the part of the answer that the index has.
func (q *question) searchBeside(indexed *roaring.Bitmap, rev string) {
	// If no mirror has the commit, the query stays as it is.
	if len(q.past) == 0 {
		return
	}

	arms := []query.Q{&query.And{Subs: []query.Q{
		&query.Repos{Set: indexed},
		&query.Rev{Pattern: rev},
	}}}
	q.repos = indexed.Clone()
	for _, p := range q.past {
		if p.found.Beside.Name == "" {
			continue // the mirror read all files
		}

		// Only the files that differ from the near indexed revision come from git.
		arm := []query.Q{
			&query.Repos{Set: roaring.BitmapOf(p.repo.ID)},
			&query.Rev{Pattern: p.found.Beside.Name},
		}
		if len(p.found.Paths) > 0 {
			changed := &query.Text{Field: query.Name, Regexp: true, Pattern: exactPaths(p.found.Paths)}
			arm = append(arm, &query.Not{Sub: changed})
		}

		arms = append(arms, &query.And{Subs: arm})
		q.repos.Add(p.repo.ID)
	}

	either := &query.Or{Subs: arms}
	whole := query.Map(q.tree, func(q query.Q) query.Q {
		if _, ok := q.(*query.Rev); ok {
			return either
		}
		return q
	})
	q.tree = query.Simplify(whole)
	q.leaf.Q = queryBox{q.tree}
}

// pastRepos returns, for each repository that was searched at an earlier time, which commit that
// was and how much was read from git.
func (q *question) pastRepos() []PastRepo {
	var out []PastRepo
	for _, p := range q.past {
		out = append(out, PastRepo{
			Repository: p.repo.Name,
			Commit:     p.found.Commit,
			Time:       p.found.Time.UTC(),
			Beside:     query.ShortRev(p.found.Beside.Name),
			Read:       p.found.Read,
			Bytes:      p.found.Bytes,
		})
	}
	return out
}

// singleRev returns the revision that applies to all of a query; false if its parts have different
// ones.
func singleRev(q query.Q) (string, bool) {
	var revs []string
	query.Map(q, func(q query.Q) query.Q {
		if r, ok := q.(*query.Rev); ok {
			revs = append(revs, r.Pattern)
		}
		return q
	})

	subs := []query.Q{q}
	if and, ok := q.(*query.And); ok {
		subs = and.Subs
	}
	above := slices.ContainsFunc(subs, func(q query.Q) bool {
		_, ok := q.(*query.Rev)
		return ok
	})

	// A revision inside an alternative or a negation does not apply to all of the query.
	if len(revs) != 1 || !above {
		return "", false
	}
	return revs[0], true
}

// exactName returns an expression for a name. A byte that is not UTF-8 becomes a replacement
// character, which matches such bytes.
func exactName(path string) string { return regexp.QuoteMeta(string([]rune(path))) }

// exactPaths returns an expression for some paths and no others.
func exactPaths(paths []string) string {
	quoted := make([]string, len(paths))
	for i, p := range paths {
		quoted[i] = exactName(p)
	}
	return `\A(?:` + strings.Join(quoted, "|") + `)\z`
}

// needsJoin reports whether the answer still lacks what was read from git.
func (a *answer) needsJoin() bool { return len(a.q.past) > 0 && !a.joined }

// joinPast merges the results from git of the repositories that are searched at an earlier time. It
// does so only once.
func (a *answer) joinPast() {
	if a.joined {
		return
	}
	a.joined = true

	for _, p := range a.q.past {
		f := p.found
		a.merge(&leafResponse{
			Files:    f.Files,
			Stats:    f.Stats,
			Cut:      f.Cut,
			Untagged: f.Untagged,
			More:     f.More,
			Full:     f.Full,
		})
	}
}

// unknownRevision returns the revision of the query if nothing was found and no repository has it,
// neither in the index nor in a mirror that was asked.
func (a *answer) unknownRevision() string {
	if a.q.rev == "" || a.q.rev == "HEAD" || a.q.repos.IsEmpty() || len(a.q.past) > 0 || a.stats.Files > 0 {
		return ""
	}
	for it := a.q.repos.Iterator(); it.HasNext(); {
		if repo, err := a.q.visible.ByID(it.Next()); err != nil || hasRevision(repo, a.q.rev) {
			return ""
		}
	}
	return a.q.rev
}
