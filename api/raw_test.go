package api

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// fetched is an answer with its headers.
type fetched struct {
	status int
	header http.Header
	body   string
}

// fetch sends a request with headers, given as names and values.
func fetch(t *testing.T, s *Server, method, target string, header ...string) fetched {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+s.Addr().String()+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}

	// Do not follow redirects.
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return fetched{resp.StatusCode, resp.Header, string(text)}
}

// rawServer serves everybody a repository with one file of each kind that a browser might run.
func rawServer(t *testing.T) (s *Server, oid func(path string) string) {
	t.Helper()
	dir := t.TempDir()
	r := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{
		"page.html": "<script>alert(1)</script>\n", "pic.svg": "<svg onload='alert(1)'/>", "ten.txt": "0123456789", "latin.c": "caf\xe9\n", "wide.sql": "\xff\xfea\x00\n\x00",
		"a \"b\u202egpj.exe": "\x00MZ", "übung.bin": "\x00\x01",
	})
	if err := os.WriteFile(filepath.Join(r.Dir, "none.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.Git("add", "-A")
	r.Git("commit", "-q", "-m", "nothing")

	n := nodetest.Start(t, nodetest.Config{
		Edit: func(o *node.Options) { o.Ctags = "off" },
		File: `{"settings": {"enablePublicAccess": true}, "connections": {"local": {"type": "git", "url": "file://` + dir + `/*"}}}`,
	})
	n.WaitIndexed(1)
	return start(t, partsOf(n.Node)), func(path string) string { return strings.TrimSpace(r.Git("rev-parse", "HEAD:"+path)) }
}

// Repositories may be hostile: no file is sent as something that a browser runs, renders or
// guesses.
func TestRawFile_isSentSoThatBrowsersNeverRunIt(t *testing.T) {
	t.Parallel()
	s, oid := rawServer(t)
	const text, bytes = "text/plain; charset=utf-8", "application/octet-stream"
	for _, c := range []struct{ path, mime, save, want string }{
		{"page.html", text, "", "<script>alert(1)</script>\n"},
		{"pic.svg", text, "", "<svg onload='alert(1)'/>"},
		{"none.txt", text, "", ""},
		{"latin.c", "text/plain", "", "caf\xe9\n"},
		{"wide.sql", "text/plain; charset=utf-16le", "", "\xff\xfea\x00\n\x00"},
		{"a \"b\u202egpj.exe", bytes, `attachment; filename="a \"b_gpj.exe"`, "\x00MZ"},
		{"übung.bin", bytes, "attachment; filename*=utf-8''%C3%BCbung.bin", "\x00\x01"},
	} {
		got := fetch(t, s, "GET", "/api/raw?repo=local/app&path="+url.QueryEscape(c.path))
		if got.status != 200 || got.body != c.want {
			t.Errorf("%q: %d %q", c.path, got.status, got.body)
		}
		for name, want := range map[string]string{
			"Content-Type": c.mime, "Content-Disposition": c.save, "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "private, no-cache", "ETag": `"` + oid(c.path) + `"`, "Accept-Ranges": "bytes", "Content-Encoding": "",
		} {
			if have := got.header.Get(name); have != want {
				t.Errorf("%q: %s %q, want %q", c.path, name, have, want)
			}
		}
	}
}

// A client with a file or a part of it only gets the rest.
func TestRawFile_answersRangeRequests(t *testing.T) {
	t.Parallel()
	s, oid := rawServer(t)
	tag := `"` + oid("ten.txt") + `"`
	for _, c := range []struct {
		method, path string
		header       []string
		status       int
		body, ranged string
	}{
		{"GET", "ten.txt", nil, 200, "0123456789", ""},
		{"GET", "ten.txt", []string{"Range", "bytes=2-4"}, 206, "234", "bytes 2-4/10"},
		{"GET", "ten.txt", []string{"Range", "bytes=7-"}, 206, "789", "bytes 7-9/10"},
		{"GET", "ten.txt", []string{"Range", "bytes=-3"}, 206, "789", "bytes 7-9/10"},
		{"GET", "ten.txt", []string{"Range", "bytes=-99999999999999999999"}, 206, "0123456789", "bytes 0-9/10"},
		{"GET", "ten.txt", []string{"Range", "bytes=9-99999999999999999999"}, 206, "9", "bytes 9-9/10"},
		{"GET", "ten.txt", []string{"Range", "bytes=10-"}, 416, "", "bytes */10"},
		{"GET", "ten.txt", []string{"Range", "bytes=99999999999999999999-"}, 416, "", "bytes */10"},
		{"GET", "ten.txt", []string{"Range", "bytes=-0"}, 416, "", "bytes */10"},
		{"GET", "none.txt", []string{"Range", "bytes=0-"}, 416, "", "bytes */0"},
		{"GET", "ten.txt", []string{"Range", "bytes=0-1,3-4"}, 200, "0123456789", ""},
		{"GET", "ten.txt", []string{"Range", "bytes=4-2"}, 200, "0123456789", ""},
		{"GET", "ten.txt", []string{"Range", "bytes=99999999999999999999-30"}, 200, "0123456789", ""},
		{"GET", "ten.txt", []string{"Range", "bytes=-"}, 200, "0123456789", ""},
		{"GET", "ten.txt", []string{"Range", "lines=1-2"}, 200, "0123456789", ""},
		{"GET", "ten.txt", []string{"Range", "bytes=2-4", "If-Range", tag}, 206, "234", "bytes 2-4/10"},
		{"GET", "ten.txt", []string{"Range", "bytes=2-4", "If-Range", `"old"`}, 200, "0123456789", ""},
		{"HEAD", "ten.txt", []string{"Range", "bytes=2-4"}, 200, "", ""},
		{"GET", "ten.txt", []string{"If-None-Match", tag}, 304, "", ""},
		{"GET", "ten.txt", []string{"If-None-Match", `"old", W/` + tag}, 304, "", ""},
		{"GET", "ten.txt", []string{"If-None-Match", "*", "Range", "bytes=2-4"}, 304, "", ""},
		{"GET", "ten.txt", []string{"If-None-Match", `"old"`}, 200, "0123456789", ""},
	} {
		got := fetch(t, s, c.method, "/api/raw?repo=local/app&path="+c.path, c.header...)
		if got.status != c.status || got.status != 416 && got.body != c.body || got.header.Get("Content-Range") != c.ranged {
			t.Errorf("%s %s %q: %d %q, range %q; want %d %q, %q", c.method, c.path, c.header, got.status, got.body, got.header.Get("Content-Range"), c.status, c.body, c.ranged)
		}
		if got.status == 416 && failureOf(t, c.path, 416, []byte(got.body)) != codeRange {
			t.Errorf("%q: %s", c.header, got.body)
		}
		if got.status != 416 && c.path == "ten.txt" && got.header.Get("ETag") != tag {
			t.Errorf("%q: status %d with ETag %q", c.header, got.status, got.header.Get("ETag"))
		}
		if c.method == "HEAD" && got.header.Get("Content-Length") != "10" {
			t.Errorf("HEAD tells a size of %q", got.header.Get("Content-Length"))
		}
	}
}

// A conditional request does not reveal the tag of a hidden file.
func TestRawFile_conditionalRequestDoesNotRevealAHiddenFile(t *testing.T) {
	t.Parallel()
	large := start(t, &fake{guests: true, err: nodecall.Fail(nodecall.ErrTooLarge, "%q has %d bytes", "a", 40<<20)})
	got := fetch(t, large, "GET", "/api/raw?repo=r&path=a")
	if failureOf(t, "a large file", 413, []byte(got.body)) != codeAnswerTooLarge || !strings.Contains(got.body, "GET /api/source") {
		t.Errorf("%d %s", got.status, got.body)
	}

	s, oid := rawServer(t)
	got = fetch(t, s, "GET", "/api/raw?repo=local/none&path=ten.txt", "If-None-Match", `"`+oid("ten.txt")+`"`)
	if failureOf(t, "a hidden repository", 404, []byte(got.body)) != codeRepoNotFound || got.header.Get("ETag") != "" {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
	got = fetch(t, s, "GET", "/api/raw?repo=local/app&path=ten.txt", "Authorization", "Bearer "+account.KeyPrefix+strings.Repeat("0", 64), "Range", "bytes=0-1")
	if failureOf(t, "a wrong key", 401, []byte(got.body)) != codeNotAuthenticated {
		t.Errorf("%d %s", got.status, got.body)
	}
}
