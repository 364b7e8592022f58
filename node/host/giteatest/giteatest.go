// Package giteatest runs a real Gitea in a test, with its own port and directory, to test code
// against a real host.
//
//	s := giteatest.Start(t) // skips the test without a Gitea program
//	s.Org("acme")
//	s.Repo("acme", "app", giteatest.Options{Private: true})
//	s.Push("acme/app", map[string]string{"main.go": "package main"})
//
// `make test-hosts` builds the server once, into a cache outside the repository, and puts its path
// into SHOAL_TEST_GITEA.
package giteatest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Variable is the environment variable with the path of the program.
const Variable = "SHOAL_TEST_GITEA"

// timeout is the time limit for anything that the server does.
const timeout = time.Minute

// Server is a running Gitea. Its methods fail the test if the server fails. All goroutines of a
// test may call them.
type Server struct {
	URL   string // without a trailing slash
	Token string // of an administrator, with all rights

	t       testing.TB
	program string
	dir     string
	cmd     *exec.Cmd
}

// Start starts an empty server that stops at the end of the test. The settings are lines appended
// to its configuration. Without a program, Start skips the test.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	program := os.Getenv(Variable)
	if program == "" {
		t.Skipf("%s names no Gitea: make test-hosts builds one and runs this test", Variable)
	}

	// Create the database and the administrator before the server runs, so that it shows no set-up
	// page.
	s := &Server{t: t, program: program, dir: t.TempDir()}
	s.configure(freePort(t), settings)
	s.run("migrate")

	said := s.run("admin", "user", "create", "--admin", "--username", "boss", "--password", "not-a-secret-1", "--email", "boss@example.com",
		"--must-change-password=false", "--access-token", "--access-token-name", "all", "--access-token-scopes", "all")
	if s.Token = hex40.FindString(said); s.Token == "" {
		t.Fatalf("gitea made no token: %s", said)
	}

	s.Launch()
	t.Cleanup(s.Stop)
	return s
}

var hex40 = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// freePort returns a port that is free now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// configure writes Gitea's settings: what the tests need, and no background jobs.
func (s *Server) configure(port string, settings []string) {
	s.t.Helper()

	// Set the address before the server runs, because its answers contain it.
	s.URL = "http://127.0.0.1:" + port
	text := strings.NewReplacer("{dir}", s.dir, "{port}", port, "{files}", s.program+".files").Replace(`
RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = {dir}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = http://127.0.0.1:{port}/
STATIC_ROOT_PATH = {files}
APP_DATA_PATH = {dir}/data
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {dir}/gitea.db
[repository]
ROOT = {dir}/repositories
[security]
INSTALL_LOCK = true
SECRET_KEY = of-a-test
INTERNAL_TOKEN = of-a-test
[webhook]
ALLOWED_HOST_LIST = *
[cron]
ENABLED = false
[oauth2]
ENABLED = true
[indexer]
ISSUE_INDEXER_TYPE = db
[log]
MODE = console
LEVEL = warn
`) + strings.Join(settings, "\n")
	if err := os.WriteFile(s.file(), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) file() string { return filepath.Join(s.dir, "app.ini") }

// run runs the program to its end and returns its output.
func (s *Server) run(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.program, append([]string{"--config", s.file()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("gitea %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// Launch starts a stopped server again, with the same data and port.
func (s *Server) Launch() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "web.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(s.program, "--config", s.file(), "web")
	s.cmd.Stdout, s.cmd.Stderr = log, log

	// The server must end when the test process is killed.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}

	s.Until(s.answers, func() string {
		text, _ := os.ReadFile(log.Name())
		return "gitea does not answer:\n" + string(text)
	})
}

// Until waits until holds returns true. After a timeout it fails the test with the text of
// otherwise.
func (s *Server) Until(holds func() bool, otherwise func() string) {
	s.t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			s.t.Fatalf("after %v: %s", timeout, otherwise())
		}
	}
}

func (s *Server) answers() bool {
	res, err := http.Get(s.URL + "/api/v1/version")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// Stop stops the server. Its data stay until the test ends.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s.cmd = nil
}

// Do calls the API as the administrator and decodes the answer into a value, unless that is nil.
func (s *Server) Do(method, path string, body, into any) {
	s.t.Helper()
	if status, text := s.call(method, path, body); status/100 != 2 {
		s.t.Fatalf("gitea: %s %s: %d %s", method, path, status, text)
	} else if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			s.t.Fatalf("gitea: %s %s: %v", method, path, err)
		}
	}
}

func (s *Server) call(method, path string, body any) (int, []byte) {
	s.t.Helper()

	// Without a body this sends null, which the server ignores.
	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}

	req, err := http.NewRequestWithContext(context.Background(), method, s.URL+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}

	req.Header.Set("Authorization", "token "+s.Token)
	req.Header.Set("Content-Type", "application/json")

	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("gitea: %s %s: %v", method, path, err)
	}
	defer res.Body.Close()

	answer, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("gitea: %s %s: %v", method, path, err)
	}
	return res.StatusCode, answer
}

// Org creates an organisation.
func (s *Server) Org(name string) {
	s.t.Helper()
	s.Do("POST", "/orgs", map[string]any{"username": name}, nil)
}

// User creates a user and returns a token with the scopes, or "" without scopes.
func (s *Server) User(name string, scopes ...string) (token string) {
	s.t.Helper()
	s.Do("POST", "/admin/users", map[string]any{"username": name, "password": "not-a-secret-1", "email": name + "@example.com", "must_change_password": false}, nil)
	if len(scopes) == 0 {
		return ""
	}
	said := s.run("admin", "user", "generate-access-token", "--username", name, "--token-name", "test", "--scopes", strings.Join(scopes, ","))
	return hex40.FindString(said)
}

// Application registers an OAuth application with a redirect address. It returns its id and secret.
func (s *Server) Application(name, redirect string) (id, secret string) {
	s.t.Helper()
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	s.Do("POST", "/user/applications/oauth2", map[string]any{"name": name, "redirect_uris": []string{redirect}, "confidential_client": true}, &made)
	return made.ID, made.Secret
}

// Options are properties of a new repository.
type Options struct {
	Private     bool
	Empty       bool // without a first commit
	Description string
}

// Repo creates a repository of an organisation or user. It returns the server's id.
func (s *Server) Repo(owner, name string, o Options) (id int64) {
	s.t.Helper()
	path := "/orgs/" + owner + "/repos"
	if status, _ := s.call("GET", "/orgs/"+owner, nil); status != http.StatusOK {
		path = "/admin/users/" + owner + "/repos"
	}
	var made struct{ ID int64 }
	s.Do("POST", path, map[string]any{"name": name, "private": o.Private, "auto_init": !o.Empty, "default_branch": "main", "description": o.Description}, &made)
	return made.ID
}

// Repos creates n empty repositories of an owner. The format makes their names of the numbers from
// 0.
func (s *Server) Repos(owner, format string, n int) {
	s.t.Helper()

	// Only a few at once, because the database allows one writer.
	var some sync.WaitGroup
	for i := range n {
		if some.Go(func() { s.Repo(owner, fmt.Sprintf(format, i), Options{Empty: true}) }); i%4 == 3 {
			some.Wait()
		}
	}
	some.Wait()
}

// Push commits files to the default branch in one commit.
func (s *Server) Push(repo string, files map[string]string) {
	s.t.Helper()
	var changes []map[string]any
	for name, text := range files {
		changes = append(changes, map[string]any{"operation": "create", "path": name, "content": base64.StdEncoding.EncodeToString([]byte(text))})
	}
	s.Do("POST", "/repos/"+repo+"/contents", map[string]any{"files": changes, "message": fmt.Sprintf("add %d files", len(files))}, nil)
}

// Edit changes properties of a repository, such as name, private or archived.
func (s *Server) Edit(repo string, change map[string]any) {
	s.t.Helper()
	s.Do("PATCH", "/repos/"+repo, change, nil)
}

// Delete deletes a repository.
func (s *Server) Delete(repo string) {
	s.t.Helper()
	s.Do("DELETE", "/repos/"+repo, nil, nil)
}

// Transfer moves a repository to another owner.
func (s *Server) Transfer(repo, owner string) {
	s.t.Helper()
	s.Do("POST", "/repos/"+repo+"/transfer", map[string]any{"new_owner": owner}, nil)
}
