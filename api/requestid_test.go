package api

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
)

func TestRequestID_replacesInvalidIDsOfClients(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "7f3e-11", "Root=1-67891233-abcdef012345678912345678", strings.Repeat("x", maxRequestID)} {
		if got := requestID(good); got != good {
			t.Errorf("%q became %q", good, got)
		}
	}
	for _, bad := range []string{"", "a b", "a\nlevel=ERROR", `a"b`, "<script>", "ö", strings.Repeat("x", maxRequestID+1)} {
		got := requestID(bad)
		if got == bad || len(got) != 16 || got == requestID(bad) {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

// withID sends a request with an id of the client.
func withID(t *testing.T, s *Server, id, method, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+s.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(headerRequest, id)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// Every answer, also an error, has the request's id, so that a client finds it in the log.
func TestRequestID_isInEveryAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{guests: true})
	for _, path := range []string{"/api/version", "/api/repos", "/api/nowhere", "/nowhere", "/static/nothing", "/livez", "/api/source"} {
		for _, sent := range []string{"trace-1", ""} {
			if got := withID(t, s, sent, http.MethodGet, path, "").Header.Get(headerRequest); got == "" || sent != "" && got != sent {
				t.Errorf("%s with id %q: the answer has %q", path, sent, got)
			}
		}
	}
}

func TestSlowReads_areLogged(t *testing.T) {
	t.Parallel()
	var took atomic.Int64
	var log strings.Builder
	s := start(t, &fake{guests: true, search: func(_ context.Context, _ catalog.Viewer, req search.Request) (*search.Response, error) {
		if req.Query == "slow" {
			took.Add(int64(600 * time.Millisecond))
		}
		return &search.Response{}, nil
	}}, func(o *Options) {
		o.Slow, o.Log = 500*time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
		o.Now = func() time.Time { return time.Unix(1, took.Load()) }
	})
	for _, query := range []string{"fast", "slow"} {
		withID(t, s, "of-"+query, http.MethodPost, "/api/search", `{"query": "`+query+`", "matches": 1}`)
	}
	withID(t, s, "not-a-read", http.MethodGet, "/api/version", "")
	if got := log.String(); !strings.Contains(got, `msg="slow request" request=of-slow action=code.searched target="" query=slow status=200 took=600ms`) || strings.Count(got, "slow request") != 1 {
		t.Errorf("the log has\n%s", got)
	}
}

func TestProfileRoutes_answerOnlyOwners(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{})
	for path, want := range map[string]int{
		"heap": 200, "goroutine": 200, "profile?seconds=1": 200, "trace?seconds=1": 200, "cmdline": 404, "profile?seconds=61": 400, "profile?seconds=x": 400,
	} {
		res, body := askAs(t, s, ownerKey, http.MethodGet, "/debug/pprof/"+path, "")
		if res.StatusCode != want || want == 200 && len(body) < 100 {
			t.Errorf("%s: status %d with %d bytes, want %d", path, res.StatusCode, len(body), want)
		}
	}
	for _, key := range []string{memberKey, ""} {
		if res, _ := askAs(t, s, key, http.MethodGet, "/debug/pprof/heap", ""); res.StatusCode != 401 && res.StatusCode != 403 {
			t.Errorf("somebody who is no owner got status %d", res.StatusCode)
		}
	}
}
