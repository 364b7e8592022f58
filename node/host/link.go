package host

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Ref is a revision in the address of a host's page.
type Ref struct {
	Name string // short; HEAD where neither branch nor tag nor commit is known
	Kind RefKind
}

// RefKind is what a name of a revision is: some hosts tell them apart in
// addresses.
type RefKind uint8

// The kinds of revisions.
const (
	Head RefKind = iota
	Branch
	Tag
	Commit
)

// RefOf reads a revision: HEAD or nothing, a full ref, a commit, or a name,
// which is taken for that of a branch. HEAD is the default branch where that
// is known.
func RefOf(rev, defaultBranch string) Ref {
	// A full name leaves no doubt; the rest of what is told may be anything.
	if branch, ok := strings.CutPrefix(rev, "refs/heads/"); ok {
		return Ref{branch, Branch}
	}
	if tag, ok := strings.CutPrefix(rev, "refs/tags/"); ok {
		return Ref{tag, Tag}
	}

	switch {
	// By its name where that is known: not all hosts have pages for HEAD.
	case (rev == "" || rev == "HEAD") && defaultBranch != "":
		return Ref{defaultBranch, Branch}
	case rev == "" || rev == "HEAD":
		return Ref{"HEAD", Head}
	// SHA-1 and SHA-256, in full: a short hash could as well be the name of a branch.
	case (len(rev) == 40 || len(rev) == 64) && strings.Trim(rev, "0123456789abcdef") == "":
		return Ref{rev, Commit}
	}
	return Ref{rev, Branch}
}

// filePages is the address of the page of a file, by the type of host that
// repositories have. To add one: a row.
var filePages = map[string]func(web string, ref Ref, path string) string{
	"github": func(web string, ref Ref, path string) string {
		return web + "/blob/" + segments(ref.Name) + "/" + segments(path)
	},
	"gitlab": func(web string, ref Ref, path string) string {
		return web + "/-/blob/" + segments(ref.Name) + "/" + segments(path)
	},
	"gitea": func(web string, ref Ref, path string) string {
		kind := map[RefKind]string{Tag: "tag", Commit: "commit"}[ref.Kind]
		if kind == "" {
			kind = "branch"
		}
		return web + "/src/" + kind + "/" + segments(ref.Name) + "/" + segments(path)
	},
	"gerrit": func(web string, ref Ref, path string) string {
		// Of the pages that a Gerrit may have, those of gitiles have an address for files.
		if strings.Contains(web, "gitweb") || strings.Contains(web, "/cgit") {
			return ""
		}
		return web + "/+/" + segments(fullRef(ref)) + "/" + segments(path)
	},
	"bitbucketCloud": func(web string, ref Ref, path string) string {
		return web + "/src/" + segments(ref.Name) + "/" + segments(path)
	},
	"bitbucketServer": func(web string, ref Ref, path string) string {
		if ref.Kind == Head {
			return web + "/browse/" + segments(path)
		}
		return web + "/browse/" + segments(path) + "?at=" + url.QueryEscape(fullRef(ref))
	},
	"azuredevops": func(web string, ref Ref, path string) string {
		version := map[RefKind]string{Branch: "&version=GB", Tag: "&version=GT", Commit: "&version=GC"}[ref.Kind]
		if version != "" {
			version += url.QueryEscape(ref.Name)
		}
		return web + "?path=" + url.QueryEscape("/"+path) + version
	},
}

// FileURL is the page of a file at a host of a type; empty where hosts of that
// type have none that is known. web is the page of the repository.
func FileURL(hostType, web string, ref Ref, path string) string {
	page := filePages[hostType]
	if page == nil || web == "" {
		return ""
	}
	return page(strings.TrimSuffix(web, "/"), ref, path)
}

// rendered are files that GitHub shows as a page, without lines, unless it is
// asked for their text.
var rendered = []string{".md", ".markdown", ".mdown", ".rst", ".adoc", ".asciidoc", ".org", ".textile", ".rdoc", ".pod", ".wiki", ".ipynb"}

// lineMarks leads from the page of a file to some of its lines, by the type of
// host that repositories have. To add one: a row.
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

// LinesURL is the page of a file, see [FileURL], at some of its lines, counted
// from 1; the page itself where hosts of the type have no address for lines.
func LinesURL(hostType, page string, first, last int) string {
	mark := lineMarks[hostType]
	if mark == nil || page == "" || first < 1 {
		return page
	}
	return mark(page, first, max(first, last))
}

// fullRef is the name of a revision that no other kind can have too.
func fullRef(ref Ref) string {
	switch ref.Kind {
	case Branch:
		return "refs/heads/" + ref.Name
	case Tag:
		return "refs/tags/" + ref.Name
	}
	return ref.Name
}

// segments escapes all but the slashes.
func segments(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
