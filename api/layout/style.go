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

// The styles: of every page, and of pages that one reads. readLess is the pages that do
// without the second.
const (
	siteStyle = "css/site.css"
	readStyle = "css/read.css"
)

var readLess = []string{"home", "search", "repos", "error", "settings", "login", "join", "consent"}

// stylesOf is the names of the styles of a page.
func stylesOf(page string) []string {
	if slices.Contains(readLess, page) {
		return []string{siteStyle}
	}
	return []string{siteStyle, readStyle}
}

// carried is a style for readers who do not have it yet. One who comes from another site
// would wait for it once more after the page has come.
func carried(name string) template.CSS {
	files, _ := assets()
	return template.CSS(files[name].Body)
}

// carrying is CSP that allows these styles within a page and no other.
var carrying = sync.OnceValue(func() string {
	allowed := "style-src 'self'"
	for _, name := range []string{siteStyle, readStyle} {
		sum := sha256.Sum256([]byte(carried(name)))
		allowed += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.Replace(CSP, "style-src 'self'", allowed, 1)
})

// Arrives reports by the headers of a request for a page whether its reader comes from
// elsewhere. Within the site the style is asked for by its address, and kept.
func Arrives(sent func(name string) string) bool {
	// A part of a page is put into one that has its style.
	if sent("X-Shoal-Part") != "" {
		return false
	}

	// Not every browser tells the site, nor does any without TLS; the page before is
	// named by all of them within one site.
	if site := sent("Sec-Fetch-Site"); site != "" {
		return site != "same-origin"
	}
	from, err := url.Parse(sent("Referer"))
	return err != nil || from.Host == "" || !strings.EqualFold(from.Host, sent("Host"))
}

// Policy is the Content-Security-Policy of the page: CSP, and for who arrives the
// styles that it carries.
func (v *Visit) Policy() string {
	if v.Arrives {
		return carrying()
	}
	return CSP
}
