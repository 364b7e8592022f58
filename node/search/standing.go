package search

import (
	"regexp"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/query"
)

// Standing is a query that is asked of one repository at a time, again and again. It is immutable
// and safe for concurrent use.
type Standing struct {
	Query *query.Query

	names map[*query.Repo]*regexp.Regexp
}

// NewStanding parses a query. Its errors are those of a search.
func NewStanding(req Request) (*Standing, error) {
	parsed, err := query.Parse(req.Query, req.toggles())
	if err != nil {
		return nil, mistake(req, err)
	}
	s := &Standing{Query: parsed, names: map[*query.Repo]*regexp.Regexp{}}
	var wrong error
	query.Map(parsed.Q, func(n query.Q) query.Q {
		if atom, ok := n.(*query.Repo); ok {
			if s.names[atom], err = compileName(atom); err != nil {
				wrong = err
			}
		}
		return n
	})
	if wrong != nil {
		return nil, wrong
	}
	if parsed.Type.Changes() {
		return s, checkCommits(parsed, &req)
	}
	return s, nil
}

// In returns the query for one repository, with all conditions on repositories decided. It is false
// for a repository that the query is not about. Whether the viewer may see the repository is for
// the caller to check: visible returns what they may see, and is called only for reposet:.
func (s *Standing) In(view *catalog.View, repo *catalog.Repo, visible func() (*account.Repos, error)) (query.Q, error) {
	resolved, err := query.Resolve(s.Query.Q, func(atom query.Q) (*roaring.Bitmap, error) {
		has, err := s.decides(view, repo, visible, atom)
		if err != nil || !has {
			return roaring.New(), err
		}
		return roaring.BitmapOf(repo.ID), nil
	})
	if err != nil {
		return nil, err
	}
	return ofRepo(resolved, repo.ID), nil
}

// decides reports whether a condition holds for a repository.
func (s *Standing) decides(view *catalog.View, repo *catalog.Repo, visible func() (*account.Repos, error), atom query.Q) (bool, error) {
	switch a := atom.(type) {
	case *query.Repo:
		re := s.names[a]
		if repo.NameMatches(re.MatchString) {
			return true, nil
		}
		for _, name := range view.FormerNames(repo) {
			if re.MatchString(name) {
				return true, nil
			}
		}
		return false, nil
	case *query.Flag:
		return passesFlag(repo, a), nil
	case *query.Context:
		set, ok := view.Context(a.Name)
		if !ok {
			return false, call.Fail(call.ErrContextNotFound, "Search context %q not found", a.Name)
		}
		return set.Contains(repo.ID), nil
	case *query.RepoSet:
		seen, err := visible()
		if err != nil {
			return false, err
		}
		return seen.Named(a.Names).Contains(repo.ID), nil
	}
	return false, nil
}
