package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node"
)

// run runs a command against a server that stands in for a node.
func run(t *testing.T, node http.Handler, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	server := httptest.NewServer(node)
	defer server.Close()
	cmd := newRoot(func(string) string { return "" })
	var out, diag bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&diag)
	cmd.SetArgs(append(args, "--url", server.URL, "--key", "shoal_x"))
	err = cmd.ExecuteContext(t.Context())
	return out.String(), diag.String(), err
}

// A program at the node's port gets no credential from a command on the node's host. Operator
// rights need access to the socket in the data directory.
func TestLocalCommand_sendsNoCredentialToAPort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.key"), []byte(wire.NewKey().Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{} // requests by server; a command sends them one after the other
	listen := func(who string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked[who]++
			if r.Header.Get("Authorization") != "" || r.Header.Get("X-Sourcebot-Api-Key") != "" {
				t.Errorf("%s was told a credential", who)
			}
			_, _ = w.Write([]byte("[]"))
		})
	}
	port := httptest.NewServer(listen("port"))
	defer port.Close()
	ln, err := auth.ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	socket := &http.Server{Handler: listen("socket")}
	defer socket.Close()
	go func() { _ = socket.Serve(ln) }() // ends with Close

	for who, args := range map[string][]string{
		"port":   {"key", "list", "--data-dir", dir, "--url", port.URL},
		"socket": {"key", "list", "--data-dir", dir},
	} {
		cmd := newRoot(func(string) string { return "" })
		cmd.SetOut(io.Discard)
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); err != nil || asked[who] != 1 {
			t.Errorf("%s: %v, asked %v", who, err, asked)
		}
	}
}

// A key over plain HTTP in a network causes a warning.
func TestAPIKey_sentOverPlainHTTPCausesAWarning(t *testing.T) {
	t.Parallel()
	for url, warned := range map[string]bool{"http://10.0.0.1:7700": true, "https://10.0.0.1:7700": false, "http://127.0.0.1:7700": false} {
		var diag bytes.Buffer
		f := clientFlags{}
		cmd := &cobra.Command{}
		f.add(cmd, func(string) string { return "" })
		cmd.SetErr(&diag)
		f.url, f.key = url, "shoal_x"
		if _, err := f.client(); err != nil || strings.Contains(diag.String(), "in clear") != warned {
			t.Errorf("%s: %v, %q", url, err, diag.String())
		}
	}
}

// Without a socket and a key, the error names the directories of the search.
func TestMissingSocket_errorNamesTheSearchedDirectories(t *testing.T) {
	t.Parallel()
	f := clientFlags{dataDir: t.TempDir()}
	c, err := f.client()
	if err != nil || c.base != usualURL || !strings.Contains(c.hint, f.dataDir) {
		t.Errorf("%+v, %v", c, err)
	}
}

// Counts cover everything; the limit only limits what is shown.
func TestSearchCommand_countsHaveNoLimit(t *testing.T) {
	t.Parallel()
	var asked struct {
		Query   string
		Matches int
	}
	node := http.NewServeMux()
	node.HandleFunc("POST /api/search", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		_, _ = w.Write([]byte(`{"stats":{"totalMatchCount":70000,"fileCount":600,"shardsRequired":2,"shardsAnswered":2},"files":[{"fileName":{"text":"a"}}]}`))
	})
	stdout, stderr, err := run(t, node, "search", "-c", "foo")
	if err != nil || stdout != "70000 matches in 600 files\n" || stderr != "" {
		t.Errorf("got %q, %q, %v", stdout, stderr, err)
	}
	if asked.Query != "foo count:all" || asked.Matches != 1 {
		t.Errorf("asked %+v", asked)
	}
}

// After --wait a search works: a restarted node knows what is indexed before it accepts searches.
func TestWaitFlag_endsOnceTheNodeAcceptsSearches(t *testing.T) {
	t.Parallel()
	asked := 0
	node := http.NewServeMux()
	node.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"node":"n","leader":"n","repos":{"total":1,"indexed":1},"connections":[{"state":"synced"}],"members":[{"id":"n"}]}`))
	})
	node.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	_, stderr, err := run(t, node, "status", "--wait-indexed")
	if err != nil || asked != 3 || !strings.Contains(stderr, "1 of 1 repository indexed") {
		t.Errorf("asked %d times: %q, %v", asked, stderr, err)
	}
}

// The last line has the size if the catalog knows it. If the cause of a failure is only for
// owners, the message says so.
func TestWaitFlag_lastLineSaysSizeOrCause(t *testing.T) {
	t.Parallel()
	const head = `{"node":"n","leader":"n","connections":[{"state":"synced"}],`
	for answer, want := range map[string]string{
		`"repos":{"total":2,"indexed":2},"members":[{"id":"n","bytes":2500000},{"id":"m","bytes":7}]}`: "2 of 2 repositories indexed, 2.5 MB of index on this node\n",
		`"repos":{"total":1,"indexed":1},"members":[{"id":"n"}]}`:                                      "1 of 1 repository indexed\n",

		`"repos":{"total":1,"failed":1},"members":[{"id":"n"}],"failed":[{"kind":"index","subject":"a/b","error":""}]}`: "index a/b: why is told to owners\n0 of 1 repository indexed\n",
	} {
		node := http.NewServeMux()
		node.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(head + answer)) })
		node.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
		_, stderr, err := run(t, node, "status", "--wait-indexed")
		if !strings.HasSuffix(stderr, "\n"+want) {
			t.Errorf("%s:\ngot  %q, %v\nwant %q", answer, stderr, err, want)
		}
	}
}

func TestRefusalWithoutAKey_saysHowToMakeOne(t *testing.T) {
	t.Parallel()
	for _, message := range []string{"Not authenticated", "Not authenticated."} {
		e := &apiError{Code: "NOT_AUTHENTICATED", Message: message}
		if got := e.Error(); !strings.HasPrefix(got, "Not authenticated. Make an API key with") {
			t.Errorf("got %q", got)
		}
	}
}

// A query for repositories prints their names.
func TestSearchCommand_printsRepositoryNames(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"repositoryInfo":[{"name":"a/b"},{"name":"c/d"}],"isSearchExhaustive":true}`: "a/b\nc/d\n",
		`{"repositoryInfo":[],"isSearchExhaustive":true}`:                              "",
	} {
		node := http.NewServeMux()
		node.HandleFunc("POST /api/search", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
		out, _, err := run(t, node, "search", "type:repo needle")
		if out != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", answer, out, err)
		}
	}

	node := http.NewServeMux()
	node.HandleFunc("POST /api/search", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"stats":{"totalMatchCount":2,"fileCount":2},"repositoryInfo":[{"name":"a/b"}],"isSearchExhaustive":true}`))
	})
	if out, _, err := run(t, node, "search", "-c", "type:repo needle"); out != "2 repositories\n" || err != nil {
		t.Errorf("counted: %q, %v", out, err)
	}
}

// A file name never breaks a result line in two.
func TestSearchCommand_fileNamesNeverBreakALine(t *testing.T) {
	t.Parallel()
	const answer = `{"files":[{"repository":"a/b","fileName":{"text":"new\nline\u001b[2J.txt"},"chunks":[{"content":"x\n","contentStart":{"lineNumber":1},"matchRanges":[{"start":{"byteOffset":0},"end":{"byteOffset":1}}]}]},
		{"repository":"a/b","fileName":{"text":"größe \"1\".txt"},"chunks":[]}],"isSearchExhaustive":true}`
	node := http.NewServeMux()
	node.HandleFunc("POST /api/search", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
	want := `a/b:"new\nline\x1b[2J.txt":1:x` + "\n" + `a/b:größe "1".txt` + "\n"
	if out, _, err := run(t, node, "search", "x"); err != nil || out != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}

// A truncated line is marked.
func TestSearchCommand_marksTruncatedLines(t *testing.T) {
	t.Parallel()
	const answer = `{"files":[{"repository":"a/b","fileName":{"text":"f"},"chunks":[{"content":"tail x\nwhole\nx head","cut":{"before":9000,"after":7},
		"contentStart":{"byteOffset":9000,"lineNumber":1},"matchRanges":[{"start":{"byteOffset":9005},"end":{"byteOffset":9006}},{"start":{"byteOffset":9013},"end":{"byteOffset":9014}}]}]}],"isSearchExhaustive":true}`
	node := http.NewServeMux()
	node.HandleFunc("POST /api/search", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
	want := "a/b:f:1:…tail x\na/b:f:3:x head…\n"
	if out, _, err := run(t, node, "search", "x"); err != nil || out != want {
		t.Errorf("got %q, %v; want %q", out, err, want)
	}
}

// An unknown revision is reported.
func TestSearchCommand_reportsAnUnknownRevision(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("POST /api/search", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"stats":{"unknownRevision":"nope"},"files":[],"isSearchExhaustive":true}`))
	})
	if _, said, err := run(t, node, "search", "rev:nope x"); err == nil || !strings.Contains(said, `has the revision "nope"`) {
		t.Errorf("said %q, %v", said, err)
	}
}

// If many repositories lack a revision, the output says so and what to do.
func TestSearchCommand_reportsARevisionMissingInManyRepositories(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("POST /api/search", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"files":[],"isSearchExhaustive":false,"notSearched":[{"kind":"revision","count":9,"of":12,"revision":"v1"}]}`))
	})
	if _, said, _ := run(t, node, "search", "rev:v1 x"); !strings.Contains(said, `the revision "v1" is not indexed in 9 of 12 repositories; name at most 8 with repo:`) {
		t.Errorf("said %q", said)
	}
}

// A filter from another code search gets a hint about its replacement.
func TestSearchCommand_printsHintsAboutFiltersOfOtherTools(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("POST /api/search", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"files":[],"isSearchExhaustive":true,"hints":["public:yes is searched for as text: write another"]}`))
	})
	if _, said, err := run(t, node, "search", "public:yes"); err == nil || !strings.Contains(said, "shoal: public:yes is searched for as text: write another\n") {
		t.Errorf("said %q, %v", said, err)
	}
}

// Errors of a node are printed in words of the command line.
func TestNodeErrors_arePrintedInTermsOfFlags(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("POST /api/keys", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"statusCode":400,"errorCode":"INVALID_REQUEST_BODY","message":"Schema validation failed with: role: expected member or owner"}`))
	})
	if _, _, err := run(t, node, "key", "create", "a", "--role", "admin"); err == nil || err.Error() != "role: expected member or owner" {
		t.Error(err)
	}
	if _, _, err := run(t, node, "audit", "--limit", "0"); err == nil || !strings.Contains(err.Error(), "--limit 0: want a number from 1 to 100") {
		t.Error(err)
	}
}

func TestBackupCommand_writesToStandardOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	node := http.NewServeMux()
	node.HandleFunc("GET /api/snapshot", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("all there is")) })
	out, said, err := run(t, node, "snapshot", "save", "-")
	if err != nil || out != "all there is" || !strings.Contains(said, "saved") {
		t.Errorf("%q, %q, %v", out, said, err)
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("there is a file called -")
	}
}

// Only the owner may read a key file, and it is never replaced.
func TestClusterKeyFile_isPrivateAndNeverReplaced(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cluster.key")
	if err := writeKey(file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.ParseKeys(text); err != nil {
		t.Error(err)
	}
	if err := writeKey(file); err == nil {
		t.Error("a key is replaced")
	}
}

// During an upgrade the status shows which nodes are done.
func TestStatusCommand_showsTheVersionOfEachNode(t *testing.T) {
	t.Parallel()
	var s node.StatusResponse
	answer := `{"version":"1.1","node":"n1","leader":"n2","level":{"number":1,"next":2,"waitsFor":["n2"]},"members":[{"id":"n1","version":"1.1","level":2,"health":"alive","lag":3},{"id":"n2","version":"1.0","health":"alive"}]}`
	if err := json.Unmarshal([]byte(answer), &s); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printStatus(&out, &s)
	for _, want := range []string{`(?m)^node n1, .* of level 1, `, `level 2 of the catalog waits .*: n2`, `(?m)^NODE .* LAG +VERSION +LEVEL$`, `(?m)^n1 .* 3 +1\.1 +2$`, `(?m)^n2 .* 0 +1\.0 +unknown$`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line like %s in\n%s", want, out.String())
		}
	}
}

// With --ca-file, a certificate of the cluster's own authority is trusted.
func TestCAFileFlag_trustsThatAuthority(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) }))
	defer s.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "ca.pem")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	write(t, filepath.Join(dir, "none.pem"), "nothing")
	for _, c := range []struct{ url, file, says string }{
		{s.URL, file, ""},
		{s.URL, "", "name the authority of its certificate by --ca-file"},
		{s.URL, filepath.Join(dir, "none.pem"), "want certificates in PEM"},
		{s.URL, filepath.Join(dir, "gone.pem"), "--ca-file: open "},
	} {
		cmd := newRoot(func(string) string { return "" })
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		cmd.SetArgs([]string{"key", "list", "--json", "--url", c.url, "--key", "shoal_x", "--ca-file", c.file})
		if err := cmd.ExecuteContext(t.Context()); c.says == "" && (err != nil || out.String() != "[]\n") || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %q, %v, want %q", c.file, out.String(), err, c.says)
		}
	}
}
