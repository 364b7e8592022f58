package tool

import (
	"path"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/shard/git"
)

// mostReleases is the largest number of parts of a repository whose first releases are named.
const mostReleases = 3

// firstRelease names the first release that contains a commit. Of several parts of a repository with
// tags of their own, it is that of the parts which paths belong to. It returns "" if that is unknown.
func firstRelease(t *browse.FirstTag, paths []string) string {
	switch {
	case t == nil, t.Late && t.Name == "":
		return ""
	case t.Name == "":
		return "no tag"
	}

	name := label(t.Name)
	switch {
	case t.Release != "":
		name = label(t.Release) + " (before it " + name + ")"
	case strings.ContainsAny(t.Name, "0123456789") && git.IsPreRelease(t.Name):
		name += " (a pre-release)"
	}
	if git.IsVersion(t.Name) {
		return name
	}
	if own := releasesOf(strings.Fields(t.Parts), paths); own != nil {
		for i, tag := range own {
			if own[i] = label(tag); tag == t.Release {
				own[i] = name
			}
		}
		return strings.Join(own, ", ")
	}
	if t.Whole != "" && t.Whole != t.Name && t.Whole != t.Release {
		name += " (without a part's name " + label(t.Whole) + ")"
	}
	return name
}

// releasesOf returns those tags of parts that paths belong to; nil for none or too many.
func releasesOf(tags, paths []string) (own []string) {
	for _, p := range paths {
		best, depth := "", -1
		for _, tag := range tags {
			if d := depthOfPart(tag, p); d > depth {
				best, depth = tag, d
			}
		}
		if best != "" && !slices.Contains(own, best) {
			own = append(own, best)
		}
	}
	if len(own) > mostReleases {
		return nil
	}
	return own
}

// depthOfPart returns how deep in a path the part is named that a tag belongs to: packages/mobx/src is of
// mobx@6.7.0, and sdk/store of sdk/store/v1.2. It is -1 if the path does not name the part.
func depthOfPart(tag, file string) int {
	version := strings.IndexAny(tag, "0123456789")
	if version < 0 {
		return -1
	}
	part := strings.TrimRight(strings.TrimSuffix(tag[:version], "v"), "@-_/.")
	if part == "" {
		return -1
	}
	if strings.Contains(part, "/") && strings.HasPrefix(file+"/", part+"/") {
		return strings.Count(part, "/")
	}
	dirs := strings.Split(file, "/")
	for i := len(dirs) - 1; i >= 0; i-- {
		if dirs[i] == path.Base(part) {
			return i
		}
	}
	return -1
}

// pathsOfDiff returns the paths that tell which part a commit belongs to: the one that the caller
// named, or those of all files.
func pathsOfDiff(a *Args, r *browse.DiffResponse) (paths []string) {
	if p := strings.Trim(a.Text("path"), "/"); p != "" {
		return []string{p}
	}
	for i := range r.Files {
		paths = append(paths, r.Files[i].NewPath)
	}
	return paths
}

// withoutTag removes a tag from the references of a commit.
func withoutTag(refs, tag string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(refs, ", "), func(ref string) bool { return ref == "tag: "+tag }), ", ")
}
