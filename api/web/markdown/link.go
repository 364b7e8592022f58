package markdown

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
)

var (
	scheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
	line   = regexp.MustCompile(`^L[0-9]+`)
)

// Is reports whether this package renders files of a language, by its name in go-enry.
func Is(language string) bool { return language == "Markdown" }

// Named reports whether a path is a Markdown document, by its name.
func Named(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".md", ".markdown", ".mkd", ".mdown":
		return true
	}
	return false
}

// trimmed returns an address as a browser reads it: without surrounding blanks, tabs and line
// breaks.
func trimmed(address string) string {
	address = strings.TrimFunc(address, func(r rune) bool { return r <= ' ' })
	for strings.HasPrefix(address, "%20") { // a blank, which the renderer has escaped
		address = address[len("%20"):]
	}
	return breaks.Replace(address)
}

var breaks = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// destination returns where an address leads, and whether that is another site. It returns "" if
// the link must not lead anywhere.
//
//	https://example.com   itself
//	#install              #md-install
//	docs/a.md#install     /browse/repo/-/blob/docs/a.md#md-install
//	main.go#L10           /browse/repo/-/blob/main.go#L10
//	javascript:alert(1)   ""
func (d *drawing) destination(address string) (to string, outside bool) {
	address = trimmed(address)
	// Browsers read // as another site, not as a path.
	if strings.HasPrefix(address, "//") {
		address = "https:" + address
	}

	// Fragments come first, and an address with a scheme is never a path.
	switch {
	case strings.HasPrefix(address, "#"):
		return "#" + url.PathEscape(d.anchor(unescaped(address[1:]))), false
	case scheme.MatchString(address):
		return elsewhere(address), true
	// An answer of a model is not in a directory, so relative addresses mean nothing.
	case d.File == nil:
		return "", false
	}

	address, fragment, _ := strings.Cut(address, "#")
	p, ok := d.path(address)
	switch {
	case !ok:
		return "", false
	// A directory has another page than a file.
	case p == "" || directory(address):
		return d.Tree(p), false
	}

	to = d.File(p)
	switch {
	case fragment == "":
		return to, false
	// Lines of code have the same names here as on code hosts.
	case !Named(p):
		return to + "#" + url.PathEscape(unescaped(fragment)), false
	// A document is shown without line numbers; its source has them.
	case line.MatchString(fragment):
		return to + "?plain=1#" + url.PathEscape(unescaped(fragment)), false
	}
	// Ids in documents have a prefix and are in lower case.
	return to + "#" + url.PathEscape("md-"+strings.ToLower(unescaped(fragment))), false
}

// directory reports whether an address ends like a directory.
func directory(address string) bool {
	address, _, _ = strings.Cut(address, "?")
	last := address[strings.LastIndexByte(address, '/')+1:]
	return last == "" || last == "." || last == ".."
}

// image returns the address of an image in this repository; "" for others.
func (d *drawing) image(address string) string {
	address = trimmed(address)
	if d.Raw == nil || strings.HasPrefix(address, "//") || scheme.MatchString(address) {
		return ""
	}
	if p, ok := d.path(address); ok && p != "" {
		return d.Raw(p)
	}
	return ""
}

// path returns the path in the repository that a relative address names. ok is false if it leads
// outside.
func (d *drawing) path(address string) (string, bool) {
	// Cut before unescaping, because names may contain these characters.
	address, _, _ = strings.Cut(address, "#")
	address, _, _ = strings.Cut(address, "?")
	p := unescaped(address)
	// No path written by hand contains a control character.
	if p == "" || strings.IndexFunc(p, func(r rune) bool { return r < ' ' }) >= 0 {
		return "", false
	}

	// The address is relative to the document's directory. A leading slash means the root of the
	// repository.
	if !strings.HasPrefix(p, "/") {
		p = d.Dir + "/" + p
	}

	// Clean without a leading slash, so that a path outside the repository is detected.
	p = path.Clean(strings.TrimLeft(p, "/"))
	if p == ".." || strings.HasPrefix(p, "../") {
		return "", false
	}
	if p == "." {
		return "", true
	}
	return p, true
}

// elsewhere returns an address of another site; "" if its scheme is not allowed.
func elsewhere(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}

	// Allow only schemes that are harmless to follow: javascript: would run in this site, and data:
	// shows an attacker's page.
	switch u.Scheme {
	case "http", "https":
		// Browsers differ in how they read an address without a host.
		if u.Host == "" {
			return ""
		}
	case "mailto": // opens a program of the reader's
	default:
		return ""
	}
	return u.String()
}

func unescaped(s string) string {
	if p, err := url.PathUnescape(s); err == nil {
		return p
	}
	return s
}

// anchor returns the id of a place in the document.
func (d *drawing) anchor(name string) string {
	return d.Prefix + "-" + strings.Map(func(r rune) rune {
		if r <= ' ' || strings.ContainsRune(`"'<>&`, r) {
			return '-'
		}
		return r
	}, strings.ToLower(name))
}

// slug returns the id of a heading in addresses, as code hosts make it.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '\n':
			return '-'
		case r == '-' || r == '_' || unicode.In(r, unicode.L, unicode.N, unicode.M):
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimSpace(heading)))
}
