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
	maxRecorded   = 2000    // answers recorded per process
	maxRecordBody = 4 << 20 // bytes of a recorded answer
)

// Recorded is an answer of a host as recorded, without secrets. Each file has one, as JSON. File
// names count up.
type Recorded struct {
	Method string      `json:"method"`
	URL    string      `json:"url"`
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

// Record records each answer of hosts in a directory. It does nothing if dir is "".
func (t *Tools) Record(dir string) {
	if dir != "" {
		t.Transport = &recording{dir: dir, next: t.Transport}
	}
}

// recording is a transport that records answers, to be shown or replayed. It is safe for concurrent
// use.
type recording struct {
	dir  string
	next http.RoundTripper

	mu sync.Mutex // guards the field below
	n  int        // answers so far
}

// RoundTrip makes a call. Failures to record are ignored.
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

	// Record the body as the caller reads it, so that recording reads nothing itself.
	if res.ContentLength == 0 || res.Body == http.NoBody {
		r.writeAnswer(n, req, res, nil)
		return res, nil
	}
	res.Body = &recordedBody{ReadCloser: res.Body, done: func(body []byte) { r.writeAnswer(n, req, res, body) }}
	return res, nil
}

// writeAnswer writes an answer into its own file.
func (r *recording) writeAnswer(n int, req *http.Request, res *http.Response, body []byte) {
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

// recordedBody passes a body on, and calls done with its content at the end. Incomplete bodies are not
// recorded.
type recordedBody struct {
	io.ReadCloser
	heard bytes.Buffer
	over  bool              // too large to record, or done was called
	done  func(body []byte) // called once with the whole body
}

// Read implements io.Reader.
func (b *recordedBody) Read(p []byte) (int, error) {
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

// cut replaces secrets.
const cut = "CUT"

var (
	// Fields of JSON with secrets, such as temp_clone_token of GitHub and runners_token of GitLab.
	secretField = regexp.MustCompile(`("[^"]*(?i:token|secret|password|private_key)[^"]*"\s*:\s*)"(?:[^"\\]|\\.)*"`)
	secretQuery = regexp.MustCompile(`(?i)token|secret|password|key|signature`)
	email       = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`)
)

// recordedHeaders are headers about the answer and not about the caller.
var recordedHeaders = []string{
	"Content-Type", "Date", "Etag", "Last-Modified", "Link", "Location", "Retry-After", "Server", "X-Total", "X-Total-Pages", "X-Total-Count", "X-Next-Page",
	"X-Ms-Continuationtoken", "X-Github-Sso", "X-Github-Api-Version-Selected", "X-Oauth-Scopes", "X-Accepted-Github-Permissions",
	"Github-Authentication-Token-Expiration", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Resource", "X-Ratelimit-Used",
	"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
}

// sentSecrets returns the secrets of a request, in all forms that an answer may repeat.
func sentSecrets(req *http.Request) (secrets []string) {
	add := func(s string) {
		if len(s) > 3 {
			secrets = append(secrets, s, url.QueryEscape(s))
		}
	}

	// Drop the scheme, because an answer may repeat the secret alone.
	_, value, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	add(value)
	if user, password, ok := req.BasicAuth(); ok {
		add(password)
		add(user)
	}
	return secrets
}

// cutURL returns a URL without its user and without secret parameters.
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

// cutHeader returns the headers that are recorded, without the secrets that were sent.
func cutHeader(head http.Header, sent []string) http.Header {
	out := selectHeaders(head, recordedHeaders)
	for _, values := range out {
		for i := range values {
			values[i] = cutText(values[i], sent)
		}
	}
	return out
}

// cutText returns a text without secrets and e-mail addresses.
func cutText(text string, sent []string) string {
	for _, s := range sent {
		text = strings.ReplaceAll(text, s, cut)
	}
	text = secretField.ReplaceAllString(text, `$1"`+cut+`"`)
	return email.ReplaceAllString(text, "someone@example.com")
}
