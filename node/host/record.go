package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

const (
	maxRecorded   = 2000    // answers of a process that are written
	maxRecordBody = 4 << 20 // bytes of one
)

// Recorded is an answer of a host as it is written down: what was asked for, and
// what came, without secrets. A file has one, as JSON; its name counts up.
type Recorded struct {
	Method string      `json:"method"`
	URL    string      `json:"url"`
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

// Record has each answer of a host written into a directory from now on, where one is
// named.
func (t *Tools) Record(dir string) {
	if dir != "" {
		t.Transport = &recording{dir: dir, next: t.Transport}
	}
}

// recording passes calls on and writes the answers down, so that what a host says
// can be shown to others, and be replayed. It may be used from any goroutine.
type recording struct {
	dir  string
	next http.RoundTripper

	mu sync.Mutex // guards the field below
	n  int        // answers so far
}

// RoundTrip makes a call. An answer that cannot be written down is an answer all
// the same.
func (r *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}

	r.mu.Lock()
	r.n++
	n := r.n
	r.mu.Unlock()
	if n > maxRecorded {
		return res, nil
	}

	// It is written when the caller has read it: nothing is read on its behalf.
	if res.ContentLength == 0 || res.Body == http.NoBody {
		r.write(n, req, res, nil)
		return res, nil
	}
	res.Body = &heardBody{ReadCloser: res.Body, done: func(body []byte) { r.write(n, req, res, body) }}
	return res, nil
}

// write writes an answer into a file of its own.
func (r *recording) write(n int, req *http.Request, res *http.Response, body []byte) {
	sent := sentSecrets(req)
	x := Recorded{Method: req.Method, URL: cutURL(req.URL, sent), Status: res.StatusCode, Header: cutHeader(res.Header, sent), Body: cutText(string(body), sent)}
	text, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return
	}
	if os.MkdirAll(r.dir, 0o700) == nil {
		_ = os.WriteFile(filepath.Join(r.dir, fmt.Sprintf("%06d.json", n)), text, 0o600)
	}
}

// heardBody tells what was read of a body when it ends. One that is cut off in the
// middle would be no answer of the host.
type heardBody struct {
	io.ReadCloser
	heard bytes.Buffer
	over  bool              // more came than is written, or it was told
	done  func(body []byte) // is told
}

// Read reads on.
func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.over = b.over || b.heard.Len()+n > maxRecordBody; !b.over {
		b.heard.Write(p[:n])
	}
	if errors.Is(err, io.EOF) && !b.over {
		b.over = true
		b.done(b.heard.Bytes())
	}
	return n, err
}

// cut stands where a secret stood.
const cut = "CUT"

var (
	// Fields of JSON that hold secrets, as temp_clone_token of GitHub and
	// runners_token of GitLab.
	secretField = regexp.MustCompile(`("[^"]*(?i:token|secret|password|private_key)[^"]*"\s*:\s*)"(?:[^"\\]|\\.)*"`)
	secretQuery = regexp.MustCompile(`(?i)token|secret|password|key|signature`)
	email       = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`)
)

// toldHeaders are those that are about an answer, not about who asked.
var toldHeaders = []string{
	"Content-Type", "Date", "Etag", "Last-Modified", "Link", "Location", "Retry-After", "Server", "X-Total", "X-Total-Pages", "X-Total-Count", "X-Next-Page",
	"X-Ms-Continuationtoken", "X-Github-Sso", "X-Github-Api-Version-Selected", "X-Oauth-Scopes", "X-Accepted-Github-Permissions",
	"Github-Authentication-Token-Expiration", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Resource", "X-Ratelimit-Used",
	"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
}

// sentSecrets are what a call proved who asks with, in all forms that an answer may
// repeat it in.
func sentSecrets(req *http.Request) (secrets []string) {
	add := func(s string) {
		if len(s) > 3 {
			secrets = append(secrets, s, url.QueryEscape(s))
		}
	}

	// Without the word for its form: an answer may repeat the secret alone.
	_, value, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	add(value)
	if user, password, ok := req.BasicAuth(); ok {
		add(password)
		add(user)
	}
	return secrets
}

// cutURL is an address without a user and without values that prove something.
func cutURL(u *url.URL, sent []string) string {
	bare := *u
	bare.User = nil
	q := bare.Query()
	for name := range q {
		if secretQuery.MatchString(name) && !strings.HasPrefix(name, "continuation") && name != "projectkey" {
			q.Set(name, cut)
			bare.RawQuery = q.Encode()
		}
	}
	return cutText(bare.String(), sent)
}

func cutHeader(head http.Header, sent []string) http.Header {
	out := onlyOf(head, toldHeaders)
	for _, values := range out {
		for i := range values {
			values[i] = cutText(values[i], sent)
		}
	}
	return out
}

// cutText is a text without secrets and addresses of people.
func cutText(text string, sent []string) string {
	for _, s := range sent {
		text = strings.ReplaceAll(text, s, cut)
	}
	text = secretField.ReplaceAllString(text, `$1"`+cut+`"`)
	return email.ReplaceAllString(text, "someone@example.com")
}
