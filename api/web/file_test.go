package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// oneFile is a repository with one file.
type oneFile struct {
	browse.Reader
	text []byte
	sent chan struct{} // closed by the first part
}

var errNone = errors.New("there is none")

func (f oneFile) Source(context.Context, catalog.Viewer, browse.SourceRequest) (*browse.SourceResponse, error) {
	return &browse.SourceResponse{Content: f.text, Language: "Go", Total: bytes.Count(f.text, []byte{'\n'}), Size: int64(len(f.text))}, nil
}

func (f oneFile) Tree(context.Context, catalog.Viewer, browse.TreeRequest) (*browse.TreeResponse, error) {
	return nil, errNone
}

// Outline answers when the first lines are sent, if the test waits for that.
func (f oneFile) Outline(ctx context.Context, _ catalog.Viewer, _ browse.OutlineRequest) (*browse.OutlineResponse, error) {
	select {
	case <-f.sent:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &browse.OutlineResponse{Files: []browse.OutlineFile{{Symbols: []browse.OutlineSymbol{{Name: "whale", Kind: "function", First: 7}}}}}, nil
}

// parts records what is sent, part by part, and signals the first.
type parts struct {
	all  [][]byte
	told chan struct{}
}

func (p *parts) Write(b []byte) (int, error) {
	if p.all = append(p.all, bytes.Clone(b)); len(p.all) == 1 && p.told != nil {
		close(p.told)
	}
	return len(b), nil
}

// The page of a symbolic link says so, and links to its target.
func TestFilePage_ofASymbolicLinkLinksToItsTarget(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"re.txt":      `<a href="/browse/r@v1/-/blob/src/re.txt">Go there</a>`,
		"../a b":      `<a href="/browse/r@v1/-/blob/a%20b">Go there</a>`,
		"../../out":   "That is outside of the repository.",
		"/etc/passwd": "That is outside of the repository.",
	} {
		src := &browse.SourceResponse{Content: []byte(target), Path: "src/link", Link: true}
		page := newFilePage(place{Repo: "r", Rev: "v1", Kind: "blob", Path: "src/link"}, src)
		v := &layout.Visit{Method: "GET"}
		if err := v.Show(layout.Head{Title: "link"}, fileTemplate, page); err != nil {
			t.Fatal(err)
		}
		if text := string(v.Body); !strings.Contains(text, "A symbolic link") || !strings.Contains(text, want) {
			t.Errorf("%s: %s wanted in\n%s", target, want, text)
		}
		src.Link = false
		if page := newFilePage(place{Repo: "r", Path: "src/link"}, src); page.Link || page.LinkURL != "" {
			t.Errorf("%s: a file is a link to %q", target, page.LinkURL)
		}
	}
}

// The first lines of a large file are sent before the rest is rendered. Together they equal the
// page rendered at once.
func TestFilePage_largeFileIsSentInParts(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("x := \"one\" // two\n", 50_000))
	now := time.Unix(0, 0)
	f := oneFile{text: text, sent: make(chan struct{})}
	p := New(Deps{Browse: f, Now: func() time.Time { return now }})
	visit := func() *layout.Visit {
		v := &layout.Visit{Method: "GET"}
		if err := p.reading.sources.file(t.Context(), v, place{Repo: "r", Path: "a.go", Kind: "blob"}); err != nil {
			t.Fatal(err)
		}
		if v.Stream == nil || v.Body != nil {
			t.Fatal("the page is not sent in parts")
		}
		return v
	}

	sent := parts{told: f.sent}
	w := bufio.NewWriterSize(&sent, 1<<20)
	if err := visit().Stream(w); err != nil {
		t.Fatal(err)
	}
	if first := string(sent.all[0]); !strings.HasPrefix(first, "<!doctype html>") || strings.Count(first, `class="block`) != 1 {
		t.Errorf("the first part ends with %.200q", first[max(0, len(first)-200):])
	}
	whole := string(bytes.Join(sent.all, nil))
	if code := string(appendBlocks(nil, text, "Go")); strings.Count(whole, code) != 1 || strings.Contains(whole, "\x00") || !strings.HasSuffix(strings.TrimSpace(whole), "</html>") {
		t.Error("the page does not hold the file, or does not end")
	}
	if at := strings.Index(whole, `<a href="#L7"`); at < strings.LastIndex(whole, `class="block`) {
		t.Error("the outline does not come behind the file")
	}

	v := visit()
	now = now.Add(mostStreaming + time.Second)
	if err := v.Stream(bufio.NewWriter(&parts{})); !errors.Is(err, errSlowReader) {
		t.Errorf("a reader of %v is told %v", mostStreaming, err)
	}
}
