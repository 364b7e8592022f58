package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/account"
)

// desk is a cluster with two valid keys, and a user with a directory for keys.
type desk struct {
	t     *testing.T
	home  string
	env   map[string]string
	good  map[string]bool
	asked []string // keys of the requests, "" for none
	url   string
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, home: t.TempDir(), good: map[string]bool{deskKey("a"): true, deskKey("b"): true}}
	d.env = map[string]string{"HOME": d.home}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		d.asked = append(d.asked, key)
		switch {
		case strings.Contains(r.URL.String(), account.KeyPrefix):
			t.Errorf("a key stands in the address: %s", r.URL)
		case !d.good[key]:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"statusCode":401,"errorCode":"NOT_AUTHENTICATED","message":"Not authenticated."}`))
		case r.Method == "DELETE" && r.URL.Path == "/api/keys/k1":
			delete(d.good, key)
			_, _ = w.Write([]byte(`{}`))
		case r.URL.Path == "/api/me":
			_, _ = w.Write([]byte(`{"name":"ann\u001b[2J","role":"member","keyId":"k1"}`))
		default:
			_, _ = w.Write([]byte(`[]`))
		}
	}))
	t.Cleanup(node.Close)
	d.url = node.URL
	return d
}

func deskKey(digit string) string { return account.KeyPrefix + strings.Repeat(digit, 64) }

// run runs a command with text on its standard input.
func (d *desk) run(stdin string, args ...string) (stdout, stderr string, err error) {
	cmd := newRoot(func(name string) string { return d.env[name] })
	var out, diag bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&diag)
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(d.t.Context())
	if text := out.String() + diag.String(); strings.Contains(text, account.KeyPrefix+"a") || strings.Contains(text, account.KeyPrefix+"b") || strings.Contains(text, "\x1b") {
		d.t.Errorf("%v prints a key or a control character: %q", args, text)
	}
	return out.String(), diag.String(), err
}

// must is run for commands that must succeed.
func (d *desk) must(stdin string, args ...string) (stdout, stderr string) {
	d.t.Helper()
	stdout, stderr, err := d.run(stdin, args...)
	if err != nil {
		d.t.Fatalf("%v: %v, %s", args, err, stderr)
	}
	return stdout, stderr
}

// lastKey returns the key of the last request.
func (d *desk) lastKey() string { return d.asked[len(d.asked)-1] }

func TestLogin_storesAWorkingKeyInAPrivateFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(d.home, ".config", "shoal", "contexts.json")

	if _, said := d.must(deskKey("a")+"\n", "login", d.url+"/", "--name", "prod", "--key-stdin"); !strings.Contains(said, "context prod is in use") {
		t.Error(said)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if all, err := os.ReadDir(filepath.Dir(file)); err != nil || len(all) != 1 {
		t.Errorf("beside the file there is %v, %v", all, err)
	}

	// Commands use the current context, and --url finds the key of its address.
	d.must(deskKey("b"), "login", d.url, "--name", "other", "--key-stdin")
	for _, c := range []struct {
		use  string
		args []string
		want string
	}{
		{"prod", []string{"key", "list"}, deskKey("a")},
		{"other", []string{"key", "list"}, deskKey("b")},
		{"other", []string{"key", "list", "--url", d.url}, deskKey("b")},
		{"prod", []string{"key", "list", "--url", d.url + "/"}, deskKey("a")},
		{"prod", []string{"key", "list", "--key", deskKey("b")}, deskKey("b")},
	} {
		d.must("", "context", "use", c.use)
		if d.must("", c.args...); d.lastKey() != c.want {
			t.Errorf("%s, %v: asked with %q", c.use, c.args, d.lastKey())
		}
	}
	if list, _ := d.must("", "context", "list"); !strings.Contains(list, "*  prod") || !strings.Contains(list, "other") {
		t.Errorf("the list is %q", list)
	}

	// --data-dir means the node on this host.
	before := len(d.asked)
	if _, _, err := d.run("", "key", "list", "--data-dir", t.TempDir()); err == nil || len(d.asked) != before {
		t.Errorf("with a data directory the cluster was asked: %v", err)
	}
}

func TestLogout_revokesTheKeyAndRemovesIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, digit := range []string{"a", "b"} {
		d.must(deskKey(digit), "login", d.url, "--name", digit, "--key-stdin")
	}

	d.must("", "logout")
	if d.good[deskKey("b")] || !d.good[deskKey("a")] {
		t.Errorf("good after a logout: %v", d.good)
	}
	if _, _, err := d.run("", "logout"); err == nil {
		t.Error("without a context in use it signs out of something")
	}

	// A key revoked elsewhere is forgotten. A key that could not be revoked is kept.
	d.must(deskKey("a"), "login", d.url, "--name", "c", "--key-stdin")
	d.good = nil
	d.must("", "logout", "c")
	d.must("", "context", "use", "a")
	text, err := os.ReadFile(filepath.Join(d.home, ".config", "shoal", "contexts.json"))
	if err != nil || strings.Contains(string(text), deskKey("b")) || !strings.Contains(string(text), deskKey("a")) {
		t.Errorf("the file has %s, %v", text, err)
	}
	gone := strings.ReplaceAll(string(text), d.url, "http://127.0.0.1:1")
	if err := os.WriteFile(filepath.Join(d.home, ".config", "shoal", "contexts.json"), []byte(gone), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.run("", "logout"); err == nil || !strings.Contains(err.Error(), "--local") {
		t.Errorf("a key that could not be revoked: %v", err)
	}
	d.must("", "logout", "--local")
	if list, _ := d.must("", "context", "list"); strings.Contains(list, "127.0.0.1") {
		t.Errorf("forgotten, and listed: %q", list)
	}
}

// A refused login writes no file, and only sends API keys.
func TestLogin_refusalWritesNoFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	withUser := strings.Replace(d.url, "http://", "http://me:pw@", 1)
	for _, c := range []struct {
		stdin, says string
		args        []string
		asked       bool
	}{
		{deskKey("c"), "Not authenticated", []string{"login", d.url, "--key-stdin"}, true},
		{"hunter2", "no API key", []string{"login", d.url, "--key-stdin"}, false},
		{"", "no API key", []string{"login", d.url, "--key-stdin"}, false},
		{deskKey("a"), "--key-stdin", []string{"login", d.url}, false},
		{deskKey("a"), "want the address", []string{"login", withUser, "--key-stdin"}, false},
		{deskKey("a"), "want the address", []string{"login", "shoal.example.com", "--key-stdin"}, false},
		{deskKey("a"), "want the address", []string{"login", d.url + "/?key=x", "--key-stdin"}, false},
		{"", "no context", []string{"context", "use", "prod"}, false},
	} {
		d.asked = nil
		if _, _, err := d.run(c.stdin, c.args...); err == nil || !strings.Contains(err.Error(), c.says) || (len(d.asked) > 0) != c.asked {
			t.Errorf("%v: %v, asked %v; want %q", c.args, err, d.asked, c.says)
		}
		if _, err := os.Stat(filepath.Join(d.home, ".config", "shoal", "contexts.json")); err == nil {
			t.Errorf("%v left a file", c.args)
		}
	}

	// A file that others can read, or that is damaged, is not used.
	file := filepath.Join(d.home, ".config", "shoal", "contexts.json")
	for _, c := range []struct {
		text, says string
		mode       os.FileMode
	}{{`{}`, "chmod 600", 0o644}, {`{`, "contexts.json", 0o600}, {`{"contexts": null}`, "no contexts", 0o600}, {`{"current": "x"}`, "no context", 0o600}} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.run("", "key", "list"); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s of mode %o: %v", c.text, c.mode, err)
		}
	}

	// Without a home directory no key is stored, and commands work without.
	d.env = nil
	if _, _, err := d.run(deskKey("a"), "login", d.url, "--key-stdin"); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Error(err)
	}
}
