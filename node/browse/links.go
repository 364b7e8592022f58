package browse

import (
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
)

// WebURL is the page of this service for a path: kind is blob or tree.
func WebURL(base, repo, rev, kind, path string) string {
	at := ""
	if rev != "" && rev != "HEAD" {
		at = "@" + shortRef(rev)
	}
	return base + "/browse/" + escapeKeep(repo) + escapeKeep(at) + "/-/" + kind + "/" + url.PathEscape(path)
}

// ExternalURL is the page of the code host for a file; "" when the kind of
// host has none.
func ExternalURL(repo *catalog.Repo, rev, path string) string {
	return host.FileURL(repo.HostKind, repo.WebURL, host.RefOf(rev, repo.DefaultBranch), path)
}

// externalLines is ExternalURL at some lines of the file.
func externalLines(repo *catalog.Repo, rev, path string, first, lines int) string {
	page := ExternalURL(repo, rev, path)
	if first < 1 || lines < 1 {
		return page
	}
	return host.LinesURL(repo.HostKind, page, first, first+lines-1)
}

// shortRef is a ref without refs/heads/ or refs/tags/.
func shortRef(rev string) string {
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		if s, ok := strings.CutPrefix(rev, prefix); ok {
			return s
		}
	}
	return rev
}

// escapeKeep escapes all but the slashes.
func escapeKeep(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
