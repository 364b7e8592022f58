package web

import (
	"context"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
)

// rawPolicy lets nothing in a raw file run or load.
const rawPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// imageTypes is what a browser may show of a repository as it is.
var imageTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".ico": "image/x-icon", ".svg": "image/svg+xml",
}

// RawHeader is what goes with the bytes of a file, so that nothing in them runs and
// nobody else is shown them.
func RawHeader(src *browse.SourceResponse) [][2]string {
	all := [][2]string{
		{"Content-Security-Policy", rawPolicy},

		// Private, since a shared cache knows no viewers; and asked for anew, since rights change.
		{"Cache-Control", "private, no-cache"},
	}
	if tag := RawTag(src); tag != "" {
		all = append(all, [2]string{"ETag", tag})
	}
	return all
}

// RawTag is the ETag of the bytes of a file: that of its blob, "" where it has none.
func RawTag(src *browse.SourceResponse) string {
	if src.OID == "" {
		return ""
	}
	return `"` + src.OID + `"`
}

// RawType is the type of the bytes of a file, never by its name or by what is in it:
// HTML of a repository is a text. What is no text a browser is to save.
func RawType(src *browse.SourceResponse) (mime string, save bool) {
	switch {
	case src.Binary:
		return "application/octet-stream", true
	case src.Encoding != "":
		return "text/plain; charset=" + src.Encoding, false
	case !utf8.Valid(src.Content):
		return "text/plain", false // the browser guesses better than UTF-8 would be
	}
	return "text/plain; charset=utf-8", false
}

// Unchanged reports whether the header If-None-Match names a tag, as that of
// somebody who has the bytes.
func Unchanged(tag, ifNoneMatch string) bool {
	if tag == "" {
		return false
	}

	// Weak tags count too: what has been compressed on the way is the same file.
	for one := range strings.SplitSeq(ifNoneMatch, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// raw is the bytes of a file: images and text are shown, everything else is
// handed over as a file, so that nothing of a repository runs in this site.
func (p *sources) raw(ctx context.Context, v *layout.Visit, l place) error {
	src, err := p.reader.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev, Raw: true})
	if err != nil {
		return err
	}

	// Before any answer, so that none goes without it.
	v.Header = append(v.Header, RawHeader(src)...)
	if Unchanged(RawTag(src), v.Sent("If-None-Match")) {
		v.Status = http.StatusNotModified
		return nil
	}

	// Pages show pictures, of which the type is that of the name.
	mime, save := RawType(src)
	if image := imageTypes[strings.ToLower(path.Ext(l.Path))]; image != "" {
		mime, save = image, false
	}
	if save {
		v.Set("Content-Disposition", "attachment")
	}
	v.Body, v.Mime = src.Content, mime
	return nil
}
