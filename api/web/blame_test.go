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

// While git reads a long history, the frame of the page is sent at once. The lines, or the reason
// why there are none, follow. A quick answer is sent as a whole.
func TestBlamePage_frameComesFirst(t *testing.T) {
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
			frame, rest, ok := strings.Cut(sent.String(), `<p class="doing">`)
			if !ok || !strings.Contains(frame, "<html") || !strings.Contains(rest, c.want) || !strings.HasSuffix(strings.TrimSpace(rest), "</html>") {
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
