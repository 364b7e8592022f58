package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/node/browse"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// raw handles GET /api/raw: the unchanged bytes of a file.
func (a *fileRoutes) raw(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.SourceRequest{Repo: p.required("repo"), Path: p.required("path"), Ref: p.text("ref"), Raw: true}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.files.Source(ctx, c.viewer, req)
	if errors.Is(err, nodecall.ErrTooLarge) {
		return nodecall.Fail(nodecall.ErrTooLarge, "The file has more bytes than one answer may have (32 MiB): GET /api/source gives some of its lines.")
	}
	if err != nil {
		return err
	}

	// Check whether the client has the file already before looking at the range, as HTTP demands.
	tag := web.RawTag(r)
	if web.Unchanged(tag, c.requestHeader("If-None-Match")) {
		c.header, c.status = append(c.header, web.RawHeader(r)...), fasthttp.StatusNotModified
		return nil
	}
	part, err := c.requestedRange(r.Content, tag)
	if err != nil {
		return err
	}

	c.header = append(c.header, web.RawHeader(r)...)
	c.setHeader("Accept-Ranges", "bytes")
	kind, isDownload := web.RawType(r)
	if isDownload {
		c.setHeader("Content-Disposition", saveAs(r.Path))
	}
	c.mime, c.body = kind, part
	return nil
}

// requestedRange returns the bytes that the header Range requests, and sets the status and headers
// for them. Without a valid range it returns all bytes. So it does for several ranges, because
// clients must accept the whole file anyway.
func (c *call) requestedRange(text []byte, tag string) ([]byte, error) {
	header := c.requestHeader("Range")
	if c.method != fasthttp.MethodGet || header == "" {
		return text, nil
	}

	// The client has a part of another version, so send it the whole file.
	if known := c.requestHeader("If-Range"); known != "" && known != tag {
		return text, nil
	}

	start, end, ok := byteRange(header, len(text))
	if !ok {
		return text, nil
	}
	if start >= end {
		c.setHeader("Content-Range", fmt.Sprintf("bytes */%d", len(text)))
		return nil, &failure{Status: fasthttp.StatusRequestedRangeNotSatisfiable, Code: codeRange, Message: fmt.Sprintf("The file has %d bytes, and none of them in the range %.100q.", len(text), header)}
	}
	c.status = fasthttp.StatusPartialContent
	c.setHeader("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, end-1, len(text)))

	// Copy the bytes, so that a small range does not keep a large file in memory.
	return bytes.Clone(text[start:end]), nil
}

// byteRange parses the header Range for a file of size bytes. If no byte of the file is in the range,
// start is not before end. ok is false if the header must be ignored: another unit, several ranges,
// or no valid range.
func byteRange(header string, size int) (start, end int, ok bool) {
	text, isBytes := strings.CutPrefix(header, "bytes=")
	from, to, hasDash := strings.Cut(strings.TrimSpace(text), "-")
	if !isBytes || !hasDash {
		return 0, 0, false
	}
	first, firstOK := parsePosition(from, size)
	last, lastOK := parsePosition(to, size)
	switch {
	case from == "" && lastOK: // -N: the last N bytes
		return size - last, size, true
	case to == "" && firstOK: // N-: all bytes from N on
		return first, size, true
	case firstOK && lastOK && !lessDecimal(to, from):
		return first, min(last+1, size), true
	}
	return 0, 0, false
}

// parsePosition parses a number of a range. A number above size becomes size.
func parsePosition(text string, size int) (n int, ok bool) {
	long, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return int(min(long, uint64(size))), true
}

// lessDecimal reports whether a is less than b. Both are decimal numbers of any length.
func lessDecimal(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// saveAs returns the header Content-Disposition for saving a file. It replaces invisible
// characters in the name, some of which can make a program look like a picture.
func saveAs(file string) string {
	name := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, path.Base(file))
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}
