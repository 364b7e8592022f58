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

// The styles: one for every page, and one for pages with text to read. readLess lists the pages
// without the second.
const (
	siteStyle = "css/site.css"
	readStyle = "css/read.css"
)

var readLess = []string{"home", "search", "repos", "error", "settings", "login", "join", "consent"}

// stylesOf returns the styles of a page.
func stylesOf(page string) []string {
	if slices.Contains(readLess, page) {
		return []string{siteStyle}
	}
	return []string{siteStyle, readStyle}
}

// carried returns a style to embed in a page. A visitor from another site would otherwise wait for
// a second request.
func carried(name string) template.CSS {
	files, _ := assets()
	return template.CSS(files[name].Body)
}

// carrying returns the CSP that allows exactly the embedded styles.
var carrying = sync.OnceValue(func() string {
	allowed := "style-src 'self'"
	for _, name := range []string{siteStyle, readStyle} {
		sum := sha256.Sum256([]byte(carried(name)))
		allowed += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.Replace(CSP, "style-src 'self'", allowed, 1)
})

// Arrives reports by the headers of a request whether the visitor comes from another site. Within
// the site, browsers have the styles in their cache.
func Arrives(sent func(name string) string) bool {
	// A part is inserted into a page that has its style.
	if sent("X-Shoal-Part") != "" {
		return false
	}

	// Some browsers do not send Sec-Fetch-Site, and none does without TLS; all send Referer within
	// a site.
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
		return carrying()
	}
	return CSP
}
