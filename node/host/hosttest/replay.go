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

// recorded is an answer as the product writes it down where SHOAL_HOST_RECORD names
// a directory.
type recorded struct {
	Method, URL, Body string
	Status            int
	Header            http.Header
}

// replay answers with what was written down.
type replay struct {
	t testing.TB

	mu   sync.Mutex // guards the field below
	left map[string][]recorded
}

// Replay answers calls with what was written into a directory, each answer once and
// in its order. A call that was not recorded fails the test.
func Replay(t testing.TB, dir string) http.RoundTripper {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is recorded in %s: %v", dir, err)
	}

	// By what was asked for; files are in the order of the answers.
	r := &replay{t: t, left: map[string][]recorded{}}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var x recorded
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		r.left[x.Method+" "+x.URL] = append(r.left[x.Method+" "+x.URL], x)
	}
	return r
}

// RoundTrip answers a call.
func (r *replay) RoundTrip(req *http.Request) (*http.Response, error) {
	// Records have no user in their addresses.
	u := *req.URL
	u.User = nil
	key := req.Method + " " + u.String()

	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.left[key]
	if len(left) == 0 {
		r.t.Errorf("%s was not recorded, or has been answered already", key)
		return answered(req, recorded{Status: http.StatusNotImplemented}), nil
	}
	r.left[key] = left[1:]
	return answered(req, left[0]), nil
}

func answered(req *http.Request, x recorded) *http.Response {
	if x.Header == nil {
		x.Header = http.Header{}
	}
	return &http.Response{
		StatusCode: x.Status, Status: http.StatusText(x.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: x.Header, Body: io.NopCloser(strings.NewReader(x.Body)), ContentLength: int64(len(x.Body)), Request: req,
	}
}
