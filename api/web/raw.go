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

// imageTypes has the types of images that browsers may show unchanged.
var imageTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".ico": "image/x-icon", ".svg": "image/svg+xml",
}

// RawHeader returns headers for the bytes of a file, so that nothing in them runs and no shared
// cache keeps them.
func RawHeader(src *browse.SourceResponse) [][2]string {
	all := [][2]string{
		{"Content-Security-Policy", rawPolicy},

		// Private, because a shared cache knows no viewers. Revalidated, because permissions
		// change.
		{"Cache-Control", "private, no-cache"},
	}
	if tag := RawTag(src); tag != "" {
		all = append(all, [2]string{"ETag", tag})
	}
	return all
}

// RawTag returns the ETag of a file: the hash of its blob, "" without one.
func RawTag(src *browse.SourceResponse) string {
	if src.OID == "" {
		return ""
	}
	return `"` + src.OID + `"`
}

// RawType returns the type of a file's bytes, not by its name or content: HTML is sent as text.
// Browsers save files that are not text.
func RawType(src *browse.SourceResponse) (mime string, save bool) {
	switch {
	case src.Binary:
		return "application/octet-stream", true
	case src.Encoding != "":
		return "text/plain; charset=" + src.Encoding, false
	case !utf8.Valid(src.Content):
		return "text/plain", false // without UTF-8, the browser guesses better
	}
	return "text/plain; charset=utf-8", false
}

// Unchanged reports whether If-None-Match contains the tag, so that the client has the bytes.
func Unchanged(tag, ifNoneMatch string) bool {
	if tag == "" {
		return false
	}

	// Weak tags count too, because a compressed file has the same content.
	for one := range strings.SplitSeq(ifNoneMatch, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
			return true
		}
	}
	return false
}

// raw sends the bytes of a file. Images and text are shown, everything else is saved, so that
// nothing of a repository runs in this site.
func (p *sources) raw(ctx context.Context, v *layout.Visit, l place) error {
	src, err := p.reader.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev, Raw: true})
	if err != nil {
		return err
	}

	// Set the headers first, so that every answer has them.
	v.Header = append(v.Header, RawHeader(src)...)
	if Unchanged(RawTag(src), v.Sent("If-None-Match")) {
		v.Status = http.StatusNotModified
		return nil
	}

	// Pages show images with the type of their name.
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
