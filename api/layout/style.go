package layout

import (
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/url"
	"strings"
	"sync"
)

// style is what every page looks like, as a part of the page itself.
type style struct {
	css    template.CSS
	policy string // CSP that allows this text and no other
}

// carried is the style for readers who do not have it yet. One who comes from
// another site would wait for it once more after the page has come.
var carried = sync.OnceValue(func() style {
	files, _ := assets()
	body := files["css/site.css"].Body
	sum := sha256.Sum256(body)
	allowed := "style-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	return style{template.CSS(body), strings.Replace(CSP, "style-src 'self'", allowed, 1)}
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

// Policy is the Content-Security-Policy of the page: CSP, and for who arrives the one
// style that it carries.
func (v *Visit) Policy() string {
	if v.Arrives {
		return carried().policy
	}
	return CSP
}
