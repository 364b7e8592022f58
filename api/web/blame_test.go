package web

import (
	"bufio"
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
)

// longFile is a file of one line, whose history git reads for a while.
type longFile struct {
	browse.Reader
	takes time.Duration
	err   error
}

func (f longFile) Source(context.Context, catalog.Viewer, browse.SourceRequest) (*browse.SourceResponse, error) {
	return &browse.SourceResponse{Content: []byte("walrus\n")}, nil
}

func (f longFile) Blame(ctx context.Context, _ catalog.Viewer, _ browse.BlameRequest) (*browse.BlameResponse, error) {
	select {
	case <-time.After(f.takes): // in the bubble's time
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &browse.BlameResponse{
		Ranges:  []browse.BlameRange{{Hash: "c0ffee", Path: "a", StartLine: 1, LineCount: 1}},
		Commits: map[string]browse.BlameCommit{"c0ffee": {Hash: "c0ffee", Message: "subject"}},
	}, f.err
}

// clocked records when something is written.
type clocked struct {
	bytes.Buffer
	began time.Time
	times []time.Duration
}

func (c *clocked) Write(b []byte) (int, error) {
	c.times = append(c.times, time.Since(c.began))
	return c.Buffer.Write(b)
}

// While git reads a long history, the frame of the page and its first lines are sent at once. The
// lines with their commits, or the reason why there are none, follow. A quick answer is sent as a whole.
func TestBlamePage_sendsItsFrameFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		takes time.Duration
		err   error
		want  string
	}{
		{time.Second, nil, "walrus"},
		{time.Second, call.Fail(call.ErrUnavailable, "git does not answer"), "git does not answer"},
		{0, nil, "walrus"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := New(Deps{Browse: longFile{takes: c.takes, err: c.err}, Now: time.Now})
			v := &layout.Visit{Method: "GET"}
			sent := clocked{began: time.Now()}
			if err := p.reading.revisions.blame(t.Context(), v, place{Repo: "r", Path: "a", Kind: "blame"}); err != nil {
				t.Fatal(err)
			}
			if c.takes == 0 {
				if v.Stream != nil || !strings.Contains(string(v.Body), c.want) || bytes.Contains(v.Body, []byte("doing")) {
					t.Errorf("a quick one is %s", v.Body)
				}
				return
			}

			if err := v.Stream(bufio.NewWriterSize(&sent, 1<<20)); err != nil {
				t.Fatal(err)
			}
			at, _, _ := strings.Cut(sent.String(), `<div data-ready="blame">`)
			frame, lines, ok := strings.Cut(at, `<div class="doing">`)
			rest := sent.String()[len(at):]
			if !ok || !strings.Contains(frame, "<html") || !strings.Contains(lines, "walrus") || !strings.Contains(rest, c.want) || !strings.HasSuffix(strings.TrimSpace(rest), "</html>") {
				t.Errorf("it is\n%s", sent.String())
			}
			if len(sent.times) != 2 || sent.times[0] != frameAfter || sent.times[1] != c.takes {
				t.Errorf("it was written at %v", sent.times)
			}
		})
	}
}

// When the reader disconnects, the request ends.
func TestBlamePage_endsWhenItsReaderDisconnects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(Deps{Browse: longFile{takes: time.Hour}, Now: time.Now})
		ctx, leave := context.WithCancel(t.Context())
		v := &layout.Visit{Method: "GET"}
		if err := p.reading.revisions.blame(ctx, v, place{Repo: "r", Path: "a", Kind: "blame"}); err != nil {
			t.Fatal(err)
		}

		leave()
		began := time.Now()
		if err := v.Stream(bufio.NewWriter(new(bytes.Buffer))); err != nil || time.Since(began) != 0 {
			t.Errorf("it ended after %v with %v", time.Since(began), err)
		}
	})
}

// A browser lays out only the blocks of a blame near its window: each has at most 200 lines, and
// only a full one reserves its height. A line has three elements, and more only where a run begins.
func TestBlamePage_drawsLinesInBlocks(t *testing.T) {
	t.Parallel()
	p := New(Deps{Now: time.Now})
	src := &browse.SourceResponse{Content: bytes.Repeat([]byte("a\n"), 450)}
	r := &browse.BlameResponse{
		Ranges:  []browse.BlameRange{{Hash: "c0ffee", StartLine: 1, LineCount: 250}, {Hash: "decaf", StartLine: 251, LineCount: 200}},
		Commits: map[string]browse.BlameCommit{"c0ffee": {Hash: "c0ffee"}, "decaf": {Hash: "decaf"}},
	}

	code, next := p.reading.revisions.drawBlame("r", src, r, 1)
	blocks := strings.Split(string(code), `<div class="stretch`)[1:]
	if len(blocks) != 3 || next != 0 {
		t.Fatalf("it has %d blocks, and goes on at %d", len(blocks), next)
	}
	for i, want := range []struct {
		full bool
		rows int
	}{{true, 200}, {true, 200}, {false, 50}} {
		b := blocks[i]
		if full, rows := strings.HasPrefix(b, " full"), strings.Count(b, `<div class="row`); full != want.full || rows != want.rows || !strings.HasSuffix(b, "</div>\n</div>\n") {
			t.Errorf("block %d: full is %t, it has %d rows, and ends with %q", i, full, rows, b[len(b)-20:])
		}
	}
	if n := strings.Count(string(code), `class="who"`); n != 2 {
		t.Errorf("%d lines have a commit beside them, want the 2 that begin a run", n)
	}

	if code, _ := p.reading.revisions.drawBlame("r", src, &browse.BlameResponse{}, 1); len(code) != 0 {
		t.Errorf("an empty file is %q", code)
	}
}
