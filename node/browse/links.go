package browse

import (
	"net/url"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard/query"
)

// WebURL is the page of this service for a path: kind is blob or tree. rev is as in
// [LinkRef], or what a caller wrote.
func WebURL(base, repo, rev, kind, path string) string {
	at := ""
	if rev != "" && rev != "HEAD" {
		at = "@" + rev
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

// LinkRef is an indexed revision in links: short, or the full name of a branch whose short
// name means something else.
func LinkRef(repo *catalog.Repo, rev string) string {
	tagged := func(name string) bool {
		return slices.ContainsFunc(repo.Revisions, func(r catalog.Revision) bool { return r.Name == "refs/tags/"+name })
	}
	return linkRef(rev, tagged)
}

// linkRef is LinkRef where tagged reports whether there is a tag of a name: git takes the
// tag before the branch.
func linkRef(full string, tagged func(name string) bool) string {
	short := query.ShortRev(full)
	if strings.HasPrefix(short, "refs/") || strings.HasPrefix(full, "refs/heads/") && (short == "HEAD" || tagged(short)) {
		return full
	}
	return short
}

// escapeKeep escapes all but the slashes.
func escapeKeep(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
