package layout

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// siteStyle is for every page, readStyle for pages with text to read: all but pagesWithoutText.
const (
	siteStyle = "css/site.css"
	readStyle = "css/read.css"
)

var pagesWithoutText = []string{"home", "search", "repos", "error", "settings", "login", "join", "consent"}

// stylesOf returns the styles of a page.
func stylesOf(page string) []string {
	if slices.Contains(pagesWithoutText, page) {
		return []string{siteStyle}
	}
	return []string{siteStyle, readStyle}
}

// embeddedStyle returns a style to embed in a page, so that a visitor from another site does not wait
// for a second request.
func embeddedStyle(name string) template.CSS {
	files, _ := assets()
	return template.CSS(files[name].Body)
}

// embeddingCSP returns CSP with permission for exactly the embedded styles.
var embeddingCSP = sync.OnceValue(func() string {
	allowed := "style-src 'self'"
	for _, name := range []string{siteStyle, readStyle} {
		sum := sha256.Sum256([]byte(embeddedStyle(name)))
		allowed += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.Replace(CSP, "style-src 'self'", allowed, 1)
})

// Arrives reports, by the headers of a request, whether the visitor comes from another site. A visitor
// who comes from a page of this site has the styles in the browser's cache.
func Arrives(sent func(name string) string) bool {
	// A script inserts a part into a page, which has its styles already.
	if sent("X-Shoal-Part") != "" {
		return false
	}

	// Some browsers do not send Sec-Fetch-Site, and none does without TLS. All send Referer within a
	// site.
	if site := sent("Sec-Fetch-Site"); site != "" {
		return site != "same-origin"
	}
	from, err := url.Parse(sent("Referer"))
	return err != nil || from.Host == "" || !strings.EqualFold(from.Host, sent("Host"))
}

// Policy returns the Content-Security-Policy of the page: CSP, plus the embedded styles on a first
// visit.
func (v *Visit) Policy() string {
	if v.Arrives {
		return embeddingCSP()
	}
	return CSP
}
