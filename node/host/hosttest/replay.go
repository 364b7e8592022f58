package hosttest

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// recorded is a recorded answer, from the directory in SHOAL_HOST_RECORD.
type recorded struct {
	Method, URL, Body string
	Status            int
	Header            http.Header
}

// replay is a transport that answers from recordings.
type replay struct {
	t testing.TB

	mu     sync.Mutex // guards the field below
	unused map[string][]recorded
}

// Replay returns a transport that answers calls from a directory of recordings, each answer once
// and in order. A call that was not recorded fails the test.
func Replay(t testing.TB, dir string) http.RoundTripper {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is recorded in %s: %v", dir, err)
	}

	// By request. Files are in the order of answers.
	r := &replay{t: t, unused: map[string][]recorded{}}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var x recorded
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		r.unused[x.Method+" "+x.URL] = append(r.unused[x.Method+" "+x.URL], x)
	}
	return r
}

// RoundTrip implements http.RoundTripper.
func (r *replay) RoundTrip(req *http.Request) (*http.Response, error) {
	// Recordings have no user in URLs.
	u := *req.URL
	u.User = nil
	key := req.Method + " " + u.String()

	r.mu.Lock()
	defer r.mu.Unlock()
	unused := r.unused[key]
	if len(unused) == 0 {
		r.t.Errorf("%s was not recorded, or has been answered already", key)
		return responseOf(req, recorded{Status: http.StatusNotImplemented}), nil
	}
	r.unused[key] = unused[1:]
	return responseOf(req, unused[0]), nil
}

func responseOf(req *http.Request, x recorded) *http.Response {
	if x.Header == nil {
		x.Header = http.Header{}
	}
	return &http.Response{
		StatusCode: x.Status, Status: http.StatusText(x.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: x.Header, Body: io.NopCloser(strings.NewReader(x.Body)), ContentLength: int64(len(x.Body)), Request: req,
	}
}
