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

// Is reports whether a file of a language, by the name that go-enry gives it, is
// drawn by this package.
func Is(language string) bool { return language == "Markdown" }

// Named reports whether a path is, by its name, that of a document.
func Named(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".md", ".markdown", ".mkd", ".mdown":
		return true
	}
	return false
}

// trimmed is an address as a browser reads it: without what stands around it, and
// without the tabs and line breaks in it.
func trimmed(address string) string {
	address = strings.TrimFunc(address, func(r rune) bool { return r <= ' ' })
	for strings.HasPrefix(address, "%20") { // a blank, which the renderer has escaped
		address = address[len("%20"):]
	}
	return breaks.Replace(address)
}

var breaks = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// destination is where an address leads, and whether that is outside this site. It is ""
// where it leads nowhere.
//
//	https://example.com   itself
//	#install              #md-install
//	docs/a.md#install     /browse/repo/-/blob/docs/a.md#md-install
//	main.go#L10           /browse/repo/-/blob/main.go#L10
//	javascript:alert(1)   ""
func (d *drawing) destination(address string) (to string, outside bool) {
	address = trimmed(address)
	// As a browser reads it: another site, not a path.
	if strings.HasPrefix(address, "//") {
		address = "https:" + address
	}

	// The order counts: a fragment is of this document, and what has a scheme is no path.
	switch {
	case strings.HasPrefix(address, "#"):
		return "#" + url.PathEscape(d.anchor(unescaped(address[1:]))), false
	case scheme.MatchString(address):
		return elsewhere(address), true
	// An answer of a model is in no directory, so that a relative address says nothing.
	case d.File == nil:
		return "", false
	}

	address, fragment, _ := strings.Cut(address, "#")
	p, ok := d.path(address)
	switch {
	case !ok:
		return "", false
	// The page of a directory is another one than that of a file.
	case p == "" || directory(address):
		return d.Tree(p), false
	}

	to = d.File(p)
	switch {
	case fragment == "":
		return to, false
	// A file of code has lines, whose names are the same here.
	case !Named(p):
		return to + "#" + url.PathEscape(unescaped(fragment)), false
	// A document is shown without lines; its source has them.
	case line.MatchString(fragment):
		return to + "?plain=1#" + url.PathEscape(unescaped(fragment)), false
	}
	// The ids of a document have a prefix here, and are in lower letters.
	return to + "#" + url.PathEscape("md-"+strings.ToLower(unescaped(fragment))), false
}

// directory reports whether an address names a directory by its end.
func directory(address string) bool {
	address, _, _ = strings.Cut(address, "?")
	last := address[strings.LastIndexByte(address, '/')+1:]
	return last == "" || last == "." || last == ".."
}

// image is the address of an image of this repository; "" for every other one.
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

// path is the path in the repository that a relative address names. One that
// leads out of the repository names nothing.
func (d *drawing) path(address string) (string, bool) {
	// Cut before they are unescaped, so that a name may hold these signs.
	address, _, _ = strings.Cut(address, "#")
	address, _, _ = strings.Cut(address, "?")
	p := unescaped(address)
	// A control character is in no path that somebody has written by hand.
	if p == "" || strings.IndexFunc(p, func(r rune) bool { return r < ' ' }) >= 0 {
		return "", false
	}

	// Relative to the directory of the document; a slash at its beginning
	// means the root of the repository.
	if !strings.HasPrefix(p, "/") {
		p = d.Dir + "/" + p
	}

	// Cleaned without a slash before it, so that what leads out of the repository is seen.
	p = path.Clean(strings.TrimLeft(p, "/"))
	if p == ".." || strings.HasPrefix(p, "../") {
		return "", false
	}
	if p == "." {
		return "", true
	}
	return p, true
}

// elsewhere is an address of another site, "" where it is of no allowed scheme.
func elsewhere(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}

	// Only what a reader follows with a click and no harm; javascript: runs in this site, and data:
	// is a page of the attacker's.
	switch u.Scheme {
	case "http", "https":
		// An address without a host is read by browsers in their own ways.
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

// anchor is the id of a place in the document.
func (d *drawing) anchor(name string) string {
	return d.Prefix + "-" + strings.Map(func(r rune) rune {
		if r <= ' ' || strings.ContainsRune(`"'<>&`, r) {
			return '-'
		}
		return r
	}, strings.ToLower(name))
}

// slug is the name of a heading in addresses, as code hosts make it.
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
