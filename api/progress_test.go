package api

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
)

// A long search reports its progress before its first match, but not after its last part, and
// only on request.
func TestSearchStream_reportsProgressBeforeTheFirstMatch(t *testing.T) {
	t.Parallel()
	told := make(chan struct{})
	f := &fake{stream: func(ctx context.Context, _ catalog.Viewer, req search.Request, _ func(*search.Chunk) error) (*search.Response, error) {
		if req.Progress != nil {
			select {
			case <-told:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return searchResponse(), nil
	}}
	s := start(t, f.parts())

	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.Addr().String()+"/api/stream_search", strings.NewReader(`{"query":"a","progress":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+ownerKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	var types []string
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if types = append(types, data[:min(len(data), 18)]); len(types) == 1 {
			if want := `{"type":"progress","shardsAnswered":0,"shardsRequired":0,"filesDecided":0,"filesConsidered":0,"matchesFound":0,"bytesRead":0}`; data != want {
				t.Errorf("first %s, want %s", data, want)
			}
			close(told)
		}
	}
	if n := len(types); n < 3 || types[n-2] != `{"type":"final","a` || types[n-1] != "[DONE]" {
		t.Errorf("events %q", types)
	}

	if _, body := ask(t, s, "POST", "/api/stream_search", `{"query":"a"}`); strings.Contains(string(body), `"progress"`) {
		t.Errorf("nobody asked: %s", body)
	}
}

// The reporter stops on request, even if nobody reads.
func TestProgressReporter_stopsEvenIfNobodyReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := make(chan event)
		end := startProgress(t.Context(), &search.Progress{}, events)
		<-events
		<-events
		synctest.Wait()
		end()
		end()
	})
}
