package host

import (
	"errors"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/glob"
)

// Reason says why a repository that the host lists is left out.
type Reason string

// The reasons.
const (
	ByFork     Reason = "forks"
	ByArchive  Reason = "archived"
	ByName     Reason = "excluded by name"
	ByTopic    Reason = "without a chosen topic"
	ByNoTopic  Reason = "excluded by topic"
	BySize     Reason = "size"
	ByOwner    Reason = "of users"
	ByNoCode   Reason = "without code"
	ByDisabled Reason = "disabled"
	ByHidden   Reason = "hidden"
	ByProject  Reason = "excluded by project"
)

// choice is what a connection includes and excludes of what a host lists.
type choice struct {
	forks, archived bool       // left out
	repos           glob.Globs // on the path, left out
	projects        glob.Globs // on the name of a project, left out
	selected        glob.Globs // on the path, of which one must match; none means all
	topics          glob.Globs // one of which must match; none means all
	noTopics        glob.Globs // left out
	size            config.Size
}

// choiceOf compiles what a connection says. A malformed glob is an error: the host
// would list what is to be left out.
func choiceOf(conn config.Connection) (*choice, error) {
	var errs error
	globs := func(letters glob.Case, patterns []string) glob.Globs {
		g, err := glob.Compile(letters, patterns...)
		errs = errors.Join(errs, err)
		return g
	}
	fold := func(patterns []string) glob.Globs { return globs(glob.Fold, patterns) }

	var c *choice
	switch n := conn.(type) {
	case *config.GitHub:
		e := n.Exclude
		c = &choice{forks: e.Forks, archived: e.Archived, repos: fold(e.Repos), topics: fold(n.Topics), noTopics: fold(e.Topics), size: e.Size}
	case *config.GitLab:
		e := n.Exclude
		c = &choice{forks: e.Forks, archived: e.Archived, repos: fold(e.Projects), topics: fold(n.Topics), noTopics: fold(e.Topics)}
	case *config.Gitea:
		c = &choice{forks: n.Exclude.Forks, archived: n.Exclude.Archived, repos: fold(n.Exclude.Repos)}

	// Of Gerrit the names of projects differ by case.
	case *config.Gerrit:
		c = &choice{repos: globs(glob.Exact, n.Exclude.Projects), selected: globs(glob.Exact, n.Projects)}

	case *config.Bitbucket:
		c = &choice{forks: n.Exclude.Forks, archived: n.Exclude.Archived && n.Deployment == config.Server, repos: fold(n.Exclude.Repos)}
	case *config.AzureDevOps:
		c = &choice{repos: fold(n.Exclude.Repos), projects: fold(n.Exclude.Projects), size: n.Exclude.Size}
	}
	return c, errs
}

// reason tells why a repository with this path at its host is left out, or
// nothing where it is chosen.
func (c *choice) reason(r *Repo, path string) Reason {
	// The first that holds is the one that is told and counted.
	switch {
	case r.leftOut != "":
		return r.leftOut
	case c.forks && r.Fork:
		return ByFork
	case c.archived && r.Archived:
		return ByArchive
	case c.repos.Match(path):
		return ByName
	case c.noTopics.MatchAny(r.Topics):
		return ByNoTopic
	case !c.topics.Empty() && !c.topics.MatchAny(r.Topics):
		return ByTopic
	case !sizeFits(c.size, r.SizeBytes):
		return BySize
	}
	return ""
}

// sizeFits reports whether a size lies within bounds, both inclusive. A size of
// 0 is one that the host has not computed yet: it never excludes.
func sizeFits(s config.Size, bytes int64) bool {
	if bytes == 0 {
		return true
	}
	return (s.Min == nil || bytes >= int64(*s.Min)) && (s.Max == nil || bytes <= int64(*s.Max))
}
