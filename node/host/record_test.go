package host

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/host/hosttest"
)

// A replayed recording gives the same listing with the same calls.
func TestRecording_replaysTheSameListing(t *testing.T) {
	t.Parallel()
	for _, st := range deploymentTests() {
		t.Run(st.host.Name, func(t *testing.T) {
			t.Parallel()
			tr := st.start(t, world()...)
			dir := filepath.Join(t.TempDir(), "record")
			tr.tools.Transport = &recording{dir: dir, next: tr.s.Transport()}
			all := wanted{owners: []string{"acme", "other"}}
			first, err := tr.list(all)
			if err != nil || len(first.repos) == 0 {
				t.Fatalf("%d repositories, %v", len(first.repos), err)
			}

			tr.tools.Transport = hosttest.Replay(t, dir)
			again, err := tr.list(all)
			if err != nil || ids(again) != ids(first) || again.problems() != first.problems() {
				t.Errorf("replayed: %s, %v; it was %s", ids(again), err, ids(first))
			}

			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				info, err := f.Info()
				text, other := os.ReadFile(filepath.Join(dir, f.Name()))
				if err != nil || other != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), hosttest.Token) {
					t.Errorf("%s, %v, %v, %v: %s", f.Name(), info.Mode(), err, other, text)
				}
			}
		})
	}
}

// Recordings contain no secrets and no e-mail addresses.
func TestRecording_containsNoSecrets(t *testing.T) {
	t.Parallel()
	const made = "ghs_made-for-an-hour"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "session="+made)
		w.Header().Set("X-Ausername", "ann")
		w.Header().Set("Link", `<http://x/?page=2&said=`+password+`>; rel="next"`)
		fmt.Fprintf(w, `{"token": "%s", "temp_clone_token":"%[1]s", "runners_token" : "a\"%[1]s", "client_secret":"%[1]s", "note":"you sent %s, %s", "owner":{"email":"ann.b@example.org"},"tokens":3}`,
			made, password, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)

	dir := t.TempDir()
	r := &recording{dir: dir, next: http.DefaultTransport.(*http.Transport).Clone()}
	req, err := http.NewRequest(http.MethodGet, s.URL+"/x?private_token="+made+"&page=2", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("ann@example.org", "p+ssword")
	res, err := (&http.Client{Transport: r, Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}

	// A body that nobody read is not recorded.
	res, err = (&http.Client{Transport: r, Timeout: time.Minute}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	readAll(t, res)
	if _, err := os.Stat(filepath.Join(dir, "000001.json")); !os.IsNotExist(err) {
		t.Errorf("a body that was not read: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "000002.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{made, "p+ssword", "p%2Bssword", "ann", "example.org", "session"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is written down:\n%s", secret, text)
		}
	}
	if !strings.Contains(string(text), `\"tokens\":3`) || !strings.Contains(string(text), "page=2") {
		t.Errorf("what is no secret is missing:\n%s", text)
	}
}

// Recording is off by default, and limited.
func TestRecording_isOffByDefaultAndStopsAtItsLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ts := tools(t)
	ts.Record("")
	if _, is := ts.Transport.(*recording); is {
		t.Error("answers are recorded though no directory is named")
	}
	ts.Record(dir)
	r, is := ts.Transport.(*recording)
	if !is || r.dir != dir {
		t.Fatal("answers are not recorded")
	}

	r.next = roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}}, nil
	})
	r.n = maxRecorded - 1
	req := httptest.NewRequest(http.MethodGet, "http://x/", nil)
	for range 3 {
		res, err := r.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, res)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%d files, %v; want the last that has room", len(files), err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// readAll reads an answer to its end.
func readAll(t *testing.T, res *http.Response) {
	t.Helper()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
}
