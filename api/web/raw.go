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

// rawPolicy is the Content-Security-Policy of a raw file: nothing in it may run or load.
const rawPolicy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

// imageTypes has the types of images that browsers may show unchanged.
var imageTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".ico": "image/x-icon", ".svg": "image/svg+xml",
}

// RawHeader returns the headers of an answer with the bytes of a file: nothing in them may run, no
// shared cache may keep them, and their tag is the file's.
func RawHeader(src *browse.SourceResponse) [][2]string {
	all := [][2]string{
		{"Content-Security-Policy", rawPolicy},

		// A shared cache does not know viewers. A browser's cache must ask again, because permissions
		// change.
		{"Cache-Control", "private, no-cache"},
	}
	if tag := RawTag(src); tag != "" {
		all = append(all, [2]string{"ETag", tag})
	}
	return all
}

// RawTag returns the ETag of a file: the hash of its blob; "" if that is unknown.
func RawTag(src *browse.SourceResponse) string {
	if src.OID == "" {
		return ""
	}
	return `"` + src.OID + `"`
}

// RawType returns the content type of a file's bytes: text, whatever the name or content says, so that
// HTML does not run; or for a binary file bytes, which browsers should save: then isDownload is true.
func RawType(src *browse.SourceResponse) (mime string, isDownload bool) {
	switch {
	case src.Binary:
		return "application/octet-stream", true
	case src.Encoding != "":
		return "text/plain; charset=" + src.Encoding, false
	case !utf8.Valid(src.Content):
		return "text/plain", false // the browser guesses the unknown encoding
	}
	return "text/plain; charset=utf-8", false
}

// Unchanged reports whether the header If-None-Match contains the tag: then the client has the bytes.
func Unchanged(tag, ifNoneMatch string) bool {
	if tag == "" {
		return false
	}

	// Compare weak tags too: a proxy that compresses the file makes its tag weak.
	for known := range strings.SplitSeq(ifNoneMatch, ",") {
		if known = strings.TrimSpace(known); known == "*" || strings.TrimPrefix(known, "W/") == tag {
			return true
		}
	}
	return false
}

// raw sends the bytes of a file. Browsers show images and text, and save all other files, so that
// nothing from a repository runs as a part of this site.
func (p *sources) raw(ctx context.Context, v *layout.Visit, l place) error {
	src, err := p.reader.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev, Raw: true})
	if err != nil {
		return err
	}

	v.Header = append(v.Header, RawHeader(src)...)
	if Unchanged(RawTag(src), v.Sent("If-None-Match")) {
		v.Status = http.StatusNotModified
		return nil
	}

	// Pages embed images, whose type is that of their name.
	mime, isDownload := RawType(src)
	if image := imageTypes[strings.ToLower(path.Ext(l.Path))]; image != "" {
		mime, isDownload = image, false
	}
	if isDownload {
		v.Set("Content-Disposition", "attachment")
	}
	v.Body, v.Mime = src.Content, mime
	return nil
}
