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

// raw is GET /api/raw: the bytes of a file as they are.
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

	// A reader who has the file is asked first: a range is for those who have not.
	tag := web.RawTag(r)
	if web.Unchanged(tag, c.requestHeader("If-None-Match")) {
		c.header, c.status = append(c.header, web.RawHeader(r)...), fasthttp.StatusNotModified
		return nil
	}
	part, err := c.part(r.Content, tag)
	if err != nil {
		return err
	}

	c.header = append(c.header, web.RawHeader(r)...)
	c.setHeader("Accept-Ranges", "bytes")
	kind, save := web.RawType(r)
	if save {
		c.setHeader("Content-Disposition", saveAs(r.Path))
	}
	c.mime, c.body = kind, part
	return nil
}

// part is the bytes of a text that the header Range asks for, all of it without one.
// Several ranges are none: whoever asks for them takes the whole, too.
func (c *call) part(text []byte, tag string) ([]byte, error) {
	header := c.requestHeader("Range")
	if c.method != fasthttp.MethodGet || header == "" {
		return text, nil
	}

	// The rest of another version would be no part of this one.
	if known := c.requestHeader("If-Range"); known != "" && known != tag {
		return text, nil
	}

	start, end, asked := byteRange(header, len(text))
	if !asked {
		return text, nil
	}
	if start >= end {
		c.setHeader("Content-Range", fmt.Sprintf("bytes */%d", len(text)))
		return nil, &failure{Status: fasthttp.StatusRequestedRangeNotSatisfiable, Code: codeRange, Message: fmt.Sprintf("The file has %d bytes, and none of them in the range %.100q.", len(text), header)}
	}
	c.status = fasthttp.StatusPartialContent
	c.setHeader("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, end-1, len(text)))

	// A copy, so that a few bytes do not keep a large file in memory while they are sent.
	return bytes.Clone(text[start:end]), nil
}

// byteRange reads the header Range for a text of size bytes. A range without a byte
// of the text has no start before its end. asked is false for a header that is to be
// taken as not there: of another unit, of several ranges, or of none.
func byteRange(header string, size int) (start, end int, asked bool) {
	one, ok := strings.CutPrefix(header, "bytes=")
	from, to, ranged := strings.Cut(strings.TrimSpace(one), "-")
	if !ok || !ranged {
		return 0, 0, false
	}
	first, good := position(from, size)
	last, well := position(to, size)

	switch {
	case from == "" && well: // the last bytes
		return size - last, size, true
	case to == "" && good:
		return first, size, true
	case good && well && !before(to, from):
		return first, min(last+1, size), true
	}
	return 0, 0, false
}

// position is a number of a range, size for any that is larger.
func position(text string, size int) (n int, ok bool) {
	long, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return int(min(long, uint64(size))), true
}

// before compares two numbers of any length as they are written.
func before(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// saveAs is the header Content-Disposition of a file that is to be saved. A sign that
// cannot be seen is left out of its name: some make a program read as a picture.
func saveAs(file string) string {
	name := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, path.Base(file))
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}
