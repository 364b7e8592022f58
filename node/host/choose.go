package host

import (
	"errors"
	"strings"

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
	each            []oneGlob // of those above
}

// oneGlob is a glob of a property.
type oneGlob struct {
	property, pattern string
	glob              glob.Globs
	by                func(r *Repo, path string) []string // what it is compared with
}

// choiceOf compiles what a connection says. A malformed glob is an error: the host
// would list what is to be left out.
func choiceOf(conn config.Connection) (*choice, error) {
	var errs error
	c := &choice{}
	globs := func(property string, patterns []string, letters glob.Case, by func(*Repo, string) []string) glob.Globs {
		for _, p := range patterns {
			g, err := glob.Compile(letters, p)
			errs = errors.Join(errs, err)
			c.each = append(c.each, oneGlob{property, p, g, by})
		}
		g, _ := glob.Compile(letters, patterns...)
		return g
	}
	paths := func(property string, patterns []string) glob.Globs {
		return globs(property, patterns, glob.Fold, pathOf)
	}
	topics := func(property string, patterns []string) glob.Globs {
		return globs(property, patterns, glob.Fold, func(r *Repo, _ string) []string { return r.Topics })
	}

	switch n := conn.(type) {
	case *config.GitHub:
		c.forks, c.archived, c.size = n.Exclude.Forks, n.Exclude.Archived, n.Exclude.Size
		c.repos = paths("exclude.repos", n.Exclude.Repos)
		c.topics, c.noTopics = topics("topics", n.Topics), topics("exclude.topics", n.Exclude.Topics)
	case *config.GitLab:
		c.forks, c.archived = n.Exclude.Forks, n.Exclude.Archived
		c.repos = paths("exclude.projects", n.Exclude.Projects)
		c.topics, c.noTopics = topics("topics", n.Topics), topics("exclude.topics", n.Exclude.Topics)
	case *config.Gitea:
		c.forks, c.archived = n.Exclude.Forks, n.Exclude.Archived
		c.repos = paths("exclude.repos", n.Exclude.Repos)

	// Of Gerrit the names of projects differ by case.
	case *config.Gerrit:
		c.repos = globs("exclude.projects", n.Exclude.Projects, glob.Exact, pathOf)
		c.selected = globs("projects", n.Projects, glob.Exact, pathOf)

	case *config.Bitbucket:
		c.forks, c.archived = n.Exclude.Forks, n.Exclude.Archived && n.Deployment == config.Server
		c.repos = paths("exclude.repos", n.Exclude.Repos)
	case *config.AzureDevOps:
		c.size = n.Exclude.Size
		c.repos = paths("exclude.repos", n.Exclude.Repos)
		c.projects = globs("exclude.projects", n.Exclude.Projects, glob.Fold, func(_ *Repo, path string) []string {
			project, _, _ := strings.Cut(path, "/")
			return []string{project}
		})
	}
	return c, errs
}

func pathOf(_ *Repo, path string) []string { return []string{path} }

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
