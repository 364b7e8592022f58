// Package web holds the browser pages: one document and one script that call
// the public API, embedded in the binary. It knows nothing of the product but
// the API's JSON, so whatever a page shows, a program can fetch.
//
//	/                                     the search box
//	/search?query=...                     results
//	/repos                                the repositories that the viewer may see
//	/status                               members, leader, repositories, jobs
//	/browse/<repo>[@<rev>]/-/blob/<path>  a file; also tree, commits, commit, blame
package web

import (
	"embed"
	"path"
	"strings"
)

//go:embed static
var files embed.FS

// CSP is the Content-Security-Policy of every page: nothing inline, nothing
// from elsewhere.
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Page returns what stands at a path of the site: a static file, or the
// document for every path that the script draws. ok is false for other paths.
// It may be called concurrently; the caller does not change body.
func Page(url string) (body []byte, mime string, ok bool) {
	switch {
	case url == "/", url == "/search", url == "/repos", url == "/status", strings.HasPrefix(url, "/browse/"):
		return read("index.html")
	case strings.HasPrefix(url, "/static/"):
		return read(strings.TrimPrefix(url, "/static/"))
	}
	return nil, "", false
}

func read(name string) ([]byte, string, bool) {
	mime, known := map[string]string{
		".html": "text/html; charset=utf-8",
		".js":   "text/javascript; charset=utf-8",
		".css":  "text/css; charset=utf-8",
		".svg":  "image/svg+xml",
	}[path.Ext(name)]
	if !known {
		return nil, "", false
	}
	body, err := files.ReadFile("static/" + name)
	return body, mime, err == nil
}
