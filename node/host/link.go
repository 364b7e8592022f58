package host

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Ref is a revision in the URL of a host's page.
type Ref struct {
	Name string // short name; HEAD if the branch, tag or commit is unknown
	Kind RefKind
}

// RefKind is the kind of a revision's name. Some hosts need it in URLs.
type RefKind uint8

// Kinds of revisions.
const (
	Head RefKind = iota
	Branch
	Tag
	Commit
)

// RefOf parses a revision: HEAD or "", a full ref, a commit, or a name, which counts as a branch.
// HEAD becomes the default branch, if that is known.
func RefOf(rev, defaultBranch string) Ref {
	// A full ref is unambiguous.
	if branch, ok := strings.CutPrefix(rev, "refs/heads/"); ok {
		return Ref{branch, Branch}
	}
	if tag, ok := strings.CutPrefix(rev, "refs/tags/"); ok {
		return Ref{tag, Tag}
	}

	switch {
	// Prefer the branch, because not all hosts have pages for HEAD.
	case (rev == "" || rev == "HEAD") && defaultBranch != "":
		return Ref{defaultBranch, Branch}
	case rev == "" || rev == "HEAD":
		return Ref{"HEAD", Head}
	// Full SHA-1 or SHA-256. A short hash may be the name of a branch.
	case (len(rev) == 40 || len(rev) == 64) && strings.Trim(rev, "0123456789abcdef") == "":
		return Ref{rev, Commit}
	}
	return Ref{rev, Branch}
}

// filePages returns the URL of a file's page, by host type.
var filePages = map[string]func(web string, ref Ref, path string) string{
	"github": func(web string, ref Ref, path string) string {
		return web + "/blob/" + escapeSegments(ref.Name) + "/" + escapeSegments(path)
	},
	"gitlab": func(web string, ref Ref, path string) string {
		return web + "/-/blob/" + escapeSegments(ref.Name) + "/" + escapeSegments(path)
	},
	"gitea": func(web string, ref Ref, path string) string {
		kind := map[RefKind]string{Tag: "tag", Commit: "commit"}[ref.Kind]
		if kind == "" {
			kind = "branch"
		}
		return web + "/src/" + kind + "/" + escapeSegments(ref.Name) + "/" + escapeSegments(path)
	},
	"gerrit": func(web string, ref Ref, path string) string {
		// Only gitiles has URLs for files; the other viewers of Gerrit have none.
		if strings.Contains(web, "gitweb") || strings.Contains(web, "/cgit") {
			return ""
		}
		return web + "/+/" + escapeSegments(fullRef(ref)) + "/" + escapeSegments(path)
	},
	"bitbucketCloud": func(web string, ref Ref, path string) string {
		return web + "/src/" + escapeSegments(ref.Name) + "/" + escapeSegments(path)
	},
	"bitbucketServer": func(web string, ref Ref, path string) string {
		if ref.Kind == Head {
			return web + "/browse/" + escapeSegments(path)
		}
		return web + "/browse/" + escapeSegments(path) + "?at=" + url.QueryEscape(fullRef(ref))
	},
	"azuredevops": func(web string, ref Ref, path string) string {
		version := map[RefKind]string{Branch: "&version=GB", Tag: "&version=GT", Commit: "&version=GC"}[ref.Kind]
		if version != "" {
			version += url.QueryEscape(ref.Name)
		}
		return web + "?path=" + url.QueryEscape("/"+path) + version
	},
}

// FileURL returns the URL of a file's page, or "" for an unknown host type. The argument web is the
// page of the repository.
func FileURL(hostType, web string, ref Ref, path string) string {
	page := filePages[hostType]
	if page == nil || web == "" {
		return ""
	}
	return page(strings.TrimSuffix(web, "/"), ref, path)
}

// rendered are extensions of files that GitHub shows without lines, unless asked for plain text.
var rendered = []string{".md", ".markdown", ".mdown", ".rst", ".adoc", ".asciidoc", ".org", ".textile", ".rdoc", ".pod", ".wiki", ".ipynb"}

// lineMarks adds lines to the URL of a file's page, by host type.
var lineMarks = map[string]func(page string, first, last int) string{
	"github": func(page string, first, last int) string {
		if slices.Contains(rendered, strings.ToLower(path.Ext(page))) {
			page += "?plain=1"
		}
		return page + fmt.Sprintf("#L%d-L%d", first, last)
	},
	"gitlab":          func(page string, first, last int) string { return page + fmt.Sprintf("#L%d-%d", first, last) },
	"gitea":           func(page string, first, last int) string { return page + fmt.Sprintf("#L%d-L%d", first, last) },
	"gerrit":          func(page string, first, _ int) string { return page + fmt.Sprintf("#%d", first) },
	"bitbucketCloud":  func(page string, first, last int) string { return page + fmt.Sprintf("#lines-%d:%d", first, last) },
	"bitbucketServer": func(page string, first, last int) string { return page + fmt.Sprintf("#%d-%d", first, last) },
	"azuredevops": func(page string, first, last int) string {
		return page + fmt.Sprintf("&line=%d&lineEnd=%d&lineStartColumn=1&lineEndColumn=1&_a=contents", first, last+1)
	},
}

// LinesURL adds lines, counted from 1, to a URL from [FileURL]. It returns the URL unchanged if the
// host type has no URLs for lines.
func LinesURL(hostType, page string, first, last int) string {
	mark := lineMarks[hostType]
	if mark == nil || page == "" || first < 1 {
		return page
	}
	return mark(page, first, max(first, last))
}

// fullRef returns an unambiguous name of a revision.
func fullRef(ref Ref) string {
	switch ref.Kind {
	case Branch:
		return "refs/heads/" + ref.Name
	case Tag:
		return "refs/tags/" + ref.Name
	}
	return ref.Name
}

// escapeSegments escapes a path except for slashes.
func escapeSegments(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
