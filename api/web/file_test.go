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

// oneFile has one file and nothing beside it.
type oneFile struct {
	Files
	Trees
	text []byte
}

var errNone = errors.New("there is none")

func (f oneFile) Source(context.Context, catalog.Viewer, browse.SourceRequest) (*browse.SourceResponse, error) {
	return &browse.SourceResponse{Content: f.text, Language: "Go", Total: bytes.Count(f.text, []byte{'\n'}), Size: int64(len(f.text))}, nil
}

func (f oneFile) Tree(context.Context, catalog.Viewer, browse.TreeRequest) (*browse.TreeResponse, error) {
	return nil, errNone
}

func (f oneFile) Outline(context.Context, catalog.Viewer, browse.OutlineRequest) (*browse.OutlineResponse, error) {
	return nil, errNone
}

// parts keeps what is sent, each part apart.
type parts [][]byte

func (p *parts) Write(b []byte) (int, error) {
	*p = append(*p, bytes.Clone(b))
	return len(b), nil
}

// The first lines of a large file are sent before the others are drawn, and all of
// it is the page that is drawn at once.
func TestALargeFileIsSentFromItsBeginning(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("x := \"one\" // two\n", 50_000))
	now := time.Unix(0, 0)
	f := oneFile{text: text}
	p := New(Deps{Files: f, Trees: f, Now: func() time.Time { return now }})
	visit := func() *layout.Visit {
		v := &layout.Visit{Method: "GET"}
		if err := p.file(t.Context(), v, place{Repo: "r", Path: "a.go", Kind: "blob"}); err != nil {
			t.Fatal(err)
		}
		if v.Stream == nil || v.Body != nil {
			t.Fatal("the page is not sent in parts")
		}
		return v
	}

	var sent parts
	w := bufio.NewWriterSize(&sent, 1<<20)
	if err := visit().Stream(w); err != nil {
		t.Fatal(err)
	}
	if first := string(sent[0]); !strings.HasPrefix(first, "<!doctype html>") || strings.Count(first, `class="block`) != 1 {
		t.Errorf("the first part ends with %.200q", first[max(0, len(first)-200):])
	}
	whole := string(bytes.Join(sent, nil))
	if code := string(appendBlocks(nil, text, "Go")); strings.Count(whole, code) != 1 || strings.Contains(whole, codeMark) || !strings.HasSuffix(strings.TrimSpace(whole), "</html>") {
		t.Error("the page does not hold the file, or does not end")
	}

	v := visit()
	now = now.Add(mostStreaming + time.Second)
	if err := v.Stream(bufio.NewWriter(&parts{})); !errors.Is(err, errSlowReader) {
		t.Errorf("a reader of %v is told %v", mostStreaming, err)
	}
}
