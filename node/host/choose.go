package host

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/shoalsearch/shoal/cluster/config"
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
	forks, archived bool     // left out
	repos           []string // globs on the path, left out
	topics          []string // globs, one of which must fit; empty means all
	noTopics        []string // globs, left out
	size            config.Size
	exact           bool // upper and lower case differ in paths of this host
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
	case anyGlob(c.repos, path, c.exact):
		return ByName
	case anyTopic(c.noTopics, r.Topics):
		return ByNoTopic
	case len(c.topics) > 0 && !anyTopic(c.topics, r.Topics):
		return ByTopic
	case !sizeFits(c.size, r.SizeBytes):
		return BySize
	}
	return ""
}

// anyGlob reports whether one of the globs fits a path.
func anyGlob(globs []string, path string, exact bool) bool {
	for _, g := range globs {
		if !exact {
			g, path = strings.ToLower(g), strings.ToLower(path)
		}
		if ok, err := doublestar.Match(g, path); ok && err == nil {
			return true
		}
	}
	return false
}

// anyTopic reports whether one of the globs fits one of the topics; upper and
// lower case are one.
func anyTopic(globs, topics []string) bool {
	for _, t := range topics {
		if anyGlob(globs, t, false) {
			return true
		}
	}
	return false
}

// sizeFits reports whether a size lies within bounds, both inclusive. A size of
// 0 is one that the host has not computed yet: it never excludes.
func sizeFits(s config.Size, bytes int64) bool {
	if bytes == 0 {
		return true
	}
	return (s.Min == nil || bytes >= int64(*s.Min)) && (s.Max == nil || bytes <= int64(*s.Max))
}
