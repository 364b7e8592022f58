package web

import (
	"bytes"
	"context"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/web/markdown"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
)

var embedTemplate = layout.Parse(templates, "templates/embed.html")

// Limits of embedded files.
const (
	maxEmbedded   = 500        // lines
	embeddedBytes = 512 << 10  // of these lines
	embedUnder    = "/embed/"  // prefix of their addresses
	browseUnder   = "/browse/" // prefix of the same places on normal pages
)

// embedded is the data of the page with embedded lines.
type embedded struct {
	Repo, Revision, Path string
	URL, Shown           string // page of the file, and range of the lines
	Tab                  int
	Code                 template.HTML
	Cut                  bool
	Trouble              string // why there are no lines; "" if there are
}

// Embedded shows lines of a file for a frame in another site, without scripts, and with a single link:
// to the file's page. The viewer of the visit must be anonymous, because a visitor of the other site
// does not know what the frame shows.
func (p *Pages) Embedded(ctx context.Context, v *layout.Visit) error {
	l, err := p.reading.place(ctx, v, embedUnder)
	if err != nil {
		return err
	}
	if l.Kind != "blob" || l.Path == "" {
		return call.Fail(call.ErrNotFound, "Only a file can be embedded: /embed/REPOSITORY@REVISION/-/blob/PATH.")
	}

	data, err := p.reading.sources.embed(ctx, v, l)
	if err != nil {
		return asUnknownPage(err)
	}
	return showEmbedded(v, data)
}

// ShowTrouble shows a message instead of lines in the frame.
func ShowTrouble(v *layout.Visit, status int, message string) error {
	v.Status = status
	return showEmbedded(v, &embedded{Trouble: message})
}

func showEmbedded(v *layout.Visit, data *embedded) error {
	// Render into memory first, so that an error sends no half page.
	var b bytes.Buffer
	if err := embedTemplate.Execute(&b, data); err != nil {
		return err
	}
	v.Mime, v.Body = layout.MimeHTML, b.Bytes()
	return nil
}

// embed reads and draws the lines that the address names, for a page that other sites embed.
func (p *sources) embed(ctx context.Context, v *layout.Visit, l place) (*embedded, error) {
	first, last, err := parseLineRange(v.Query.Get("lines"))
	if err != nil {
		return nil, err
	}
	src, paint, err := p.readLines(ctx, v, l, first, last-first+1)
	if err != nil {
		return nil, err
	}

	if src.Binary {
		return nil, call.Fail(call.ErrNotFound, "This is a binary file: it has no lines.")
	}
	if first > max(src.Total, 1) {
		return nil, call.Fail(call.ErrNotFound, "The file has %s.", counted(src.Total, "line", "lines"))
	}

	out := &embedded{Repo: l.Repo, Path: l.Path, Revision: l.Revision(), URL: l.At("blob", l.Path), Tab: tabOf(src.Language)}
	if l.Rev == src.Commit {
		out.Revision = short(src.Commit)
	}

	// Very long lines are cut.
	text := src.Content
	if len(text) > embeddedBytes {
		text, out.Cut = text[:embeddedBytes], true
	}
	code := &blocks{text: text, number: first, paint: paint, anchors: true}
	var b []byte
	for len(code.text) > 0 {
		b = code.append(b)
	}
	out.Code = template.HTML(b)

	if markdown.Is(src.Language) { // only the source of a document has lines
		out.URL += plainQuery
	}
	switch end := code.number - 1; {
	case end < first:
		out.Shown = "an empty file"
	case end == first:
		out.Shown, out.URL = fmt.Sprintf("line %d of %s", first, grouping(src.Total)), fmt.Sprintf("%s#L%d", out.URL, first)
	default:
		out.Shown, out.URL = fmt.Sprintf("lines %d to %d of %s", first, end, grouping(src.Total)), fmt.Sprintf("%s#L%d-L%d", out.URL, first, end)
	}
	return out, nil
}

// parseLineRange parses a range of lines: "12", "10-20", or "" for the first maxEmbedded lines.
func parseLineRange(text string) (first, last int, err error) {
	if text == "" {
		return 1, maxEmbedded, nil
	}

	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	a, errA := strconv.ParseUint(from, 10, 30)
	b, errB := strconv.ParseUint(to, 10, 30)
	if errA != nil || errB != nil || a == 0 || b < a {
		return 0, 0, call.Fail(call.ErrInvalid, "lines: want a line, as 12, or the first and the last, as 10-20.")
	}

	// Refuse a range that is too long: if it were cut, the reader would not notice the missing lines.
	if b-a >= maxEmbedded {
		return 0, 0, call.Fail(call.ErrInvalid, "lines: at most %d can be embedded; these are %d.", maxEmbedded, b-a+1)
	}
	return int(a), int(b), nil
}

// embedAddress returns the address of an embeddable file of a commit.
func embedAddress(base, repo, commit, path string) string {
	return base + embedUnder + strings.TrimPrefix(address(repo, commit, "blob", path), browseUnder)
}

// readLines reads count lines of a file from line first on. The returned painter knows which comments
// and strings are open before them.
func (p *sources) readLines(ctx context.Context, v *layout.Visit, l place, first, count int) (src *browse.SourceResponse, paint *painter, err error) {
	src, err = p.reader.Source(ctx, v.Viewer, browse.SourceRequest{Repo: l.Repo, Path: l.Path, Ref: l.Rev, FirstLine: first, Lines: count})
	if err != nil {
		return nil, nil, err
	}
	return src, newPainter(src.Language, src.Open), nil
}
