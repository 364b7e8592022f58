package browse

import (
	"net/url"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard/query"
)

// WebURL returns this service's page for a path; kind is blob or tree. rev is as in [LinkRef], or
// as the caller wrote it.
func WebURL(base, repo, rev, kind, path string) string {
	at := ""
	if rev != "" && rev != "HEAD" {
		at = "@" + rev
	}
	return base + "/browse/" + escapePath(repo) + escapePath(at) + "/-/" + kind + "/" + url.PathEscape(path)
}

// ExternalURL returns the code host's page for a file; "" if the kind of host has none.
func ExternalURL(repo *catalog.Repo, rev, path string) string {
	return host.FileURL(repo.HostKind, repo.WebURL, host.RefOf(rev, repo.DefaultBranch), path)
}

// externalLines returns ExternalURL with a range of lines.
func externalLines(repo *catalog.Repo, rev, path string, first, lines int) string {
	page := ExternalURL(repo, rev, path)
	if first < 1 || lines < 1 {
		return page
	}
	return host.LinesURL(repo.HostKind, page, first, first+lines-1)
}

// LinkRef returns the name of an indexed revision for links: the short name, or the full name of
// a branch whose short name is ambiguous.
func LinkRef(repo *catalog.Repo, rev string) string {
	tagged := func(name string) bool {
		return slices.ContainsFunc(repo.Revisions, func(r catalog.Revision) bool { return r.Name == "refs/tags/"+name })
	}
	return linkRef(rev, tagged)
}

// linkRef returns the short form of a ref for links, unless git would take that for another ref.
// tagged reports whether a tag has the name: git prefers a tag to a branch.
func linkRef(full string, tagged func(name string) bool) string {
	short := query.ShortRev(full)
	if strings.HasPrefix(short, "refs/") || strings.HasPrefix(full, "refs/heads/") && (short == "HEAD" || tagged(short)) {
		return full
	}
	return short
}

// escapePath escapes a path except its slashes.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}
