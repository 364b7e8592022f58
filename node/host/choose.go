package host

import (
	"errors"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/glob"
)

// Reason is why a listed repository is left out.
type Reason string

// Reasons.
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

// choice is what a connection includes and excludes.
type choice struct {
	forks, archived bool       // leave out forks, archived repositories
	repos           glob.Globs // leave out matching paths
	projects        glob.Globs // leave out matching projects
	selected        glob.Globs // include only matching paths; empty: all
	topics          glob.Globs // include only matching topics; empty: all
	noTopics        glob.Globs // leave out matching topics
	size            config.Size
	each            []oneGlob // all globs above, to report those that match nothing
}

// oneGlob is one glob of a property.
type oneGlob struct {
	property, pattern string
	glob              glob.Globs
	by                func(r *Repo, path string) []string // returns the texts to match
}

// choiceOf compiles the choice of a connection. A malformed glob is an error, because repositories
// that should be left out would be listed.
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

	// Names of Gerrit projects are case-sensitive.
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

// excludes reports whether the connection leaves out a repository with this path.
func (c *choice) excludes(r *Repo, path string) bool { return c.exclusionReason(r, path) != "" }

// exclusionReason returns the first reason why a repository with this path is left out; "": it is
// not.
func (c *choice) exclusionReason(r *Repo, path string) Reason {
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

// sizeFits reports whether a size is within the inclusive limits. A size of 0 is unknown to the
// host, and always fits.
func sizeFits(s config.Size, bytes int64) bool {
	if bytes == 0 {
		return true
	}
	return (s.Min == nil || bytes >= int64(*s.Min)) && (s.Max == nil || bytes <= int64(*s.Max))
}
