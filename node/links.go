package node

import (
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// webURL is the page of this service for a path: kind is blob or tree.
func webURL(base, repo, rev, kind, path string) string {
	at := ""
	if rev != "" && rev != "HEAD" {
		at = "@" + shortRef(rev)
	}
	return base + "/browse/" + escapeKeep(repo) + escapeKeep(at) + "/-/" + kind + "/" + url.PathEscape(path)
}

// externalURL is the page of the code host for a file; "" when the kind of
// host has none.
func externalURL(repo *catalog.Repo, rev, path string) string {
	if repo.WebURL == "" {
		return ""
	}
	ref := shortRef(rev)
	if ref == "" {
		ref = "HEAD"
	}
	web, file := strings.TrimSuffix(repo.WebURL, "/"), escapeKeep(path)
	switch repo.HostKind {
	case "github":
		return web + "/blob/" + escapeKeep(ref) + "/" + file
	case "gitlab":
		return web + "/-/blob/" + escapeKeep(ref) + "/" + file
	case "gitea":
		return web + "/src/branch/" + escapeKeep(ref) + "/" + file
	case "gerrit":
		return web + "/+/" + escapeKeep(ref) + "/" + file
	case "bitbucketCloud":
		return web + "/src/" + escapeKeep(ref) + "/" + file
	case "bitbucketServer":
		return web + "/browse/" + file + "?at=" + url.QueryEscape(ref)
	case "azuredevops":
		return web + "?path=" + url.QueryEscape(path) + "&version=" + url.QueryEscape(ref)
	}
	return ""
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
