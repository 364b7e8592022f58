package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// demoQuery finds something in any Go code.
const demoQuery = "func main"

// prepareDemo turns the flags into those of a node that serves one checkout to this host only: a
// configuration with one connection, anonymous access, and loopback addresses, with other ports
// if the usual ones are taken.
func prepareDemo(f *serveFlags) error {
	root, err := checkoutRoot(f.demo)
	if err != nil {
		return err
	}

	// Create the data directory now, because the configuration goes into it.
	if err := os.MkdirAll(f.dataDir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}

	text, err := json.MarshalIndent(map[string]any{
		"connections": map[string]any{
			"demo": map[string]any{"type": "git", "url": "file://" + (&url.URL{Path: root}).EscapedPath()},
		},
	}, "", "  ")
	if err != nil {
		return err
	}

	f.config = filepath.Join(f.dataDir, "demo.json")
	if err := os.WriteFile(f.config, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the demo's configuration: %w", err)
	}

	// Access is anonymous, so listen on loopback only, whatever flags and environment say.
	for _, addr := range []*string{&f.listen, &f.clusterListen, &f.gossipListen} {
		*addr = freeLoopback(*addr)
	}
	f.baseURL = "http://" + f.listen

	f.anonymous = true
	if f.logLevel == "info" { // the progress bar replaces these messages
		f.logLevel = "warn"
	}
	return nil
}

// checkoutRoot returns the root of the git checkout that contains a directory.
func checkoutRoot(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}

	for {
		info, err := os.Stat(filepath.Join(at, ".git"))
		if err == nil && !info.IsDir() {
			// The file names a directory elsewhere, and a node reads nothing outside of the checkout.
			return "", fmt.Errorf("--demo %s: %s is a file, as in a linked work tree or a submodule. Name a checkout with a .git directory, such as a clone of it", dir, filepath.Join(at, ".git"))
		}
		if err == nil {
			return at, nil
		}

		// The root directory is its own parent.
		up := filepath.Dir(at)
		if up == at {
			return "", fmt.Errorf("--demo %s: no git repository there or above it", dir)
		}
		at = up
	}
}

// freeLoopback returns addr on the loopback interface, with another port if its own is taken.
func freeLoopback(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || !isLoopback(host) {
		host = "127.0.0.1"
	}

	// If another program takes the port before the node does, the node reports that.
	wanted := net.JoinHostPort(host, port)
	for _, candidate := range []string{wanted, net.JoinHostPort(host, "0")} {
		ln, err := net.Listen("tcp", candidate)
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	return wanted
}

// runDemo waits until a new node has indexed the checkout, and then prints what to try. If ctx ends
// before, it returns nil.
func runDemo(ctx context.Context, f *serveFlags, w io.Writer) error {
	c := &client{base: f.baseURL, http: &http.Client{Timeout: time.Minute}}
	began := time.Now()
	err := waitIndexed(ctx, c, 1, w)

	if ctx.Err() != nil { // Ctrl-C while indexing is no failure
		return nil
	}

	// After an exit code continue: waitIndexed has reported failed repositories, and the others can be
	// searched.
	var failed exitCode
	if err != nil && !errors.As(err, &failed) {
		return err
	}

	// Print commands that a user can paste, with the path of this program and the port of the node.
	binary := cmp.Or(os.Args[0], "shoal")
	urlFlag := ""
	if f.baseURL != usualURL {
		urlFlag = " --url " + f.baseURL
	}

	fmt.Fprintf(w, `
ready after %v. Try:

  browser   %s/search?query=%s
  curl      curl -s %s/api/search -H 'Content-Type: application/json' -d '{"query": "%s", "matches": 10}'
  terminal  %s search%s '%s'
  agents    %s/api/mcp

Ctrl-C stops it.
`, time.Since(began).Round(100*time.Millisecond),
		f.baseURL, url.QueryEscape(demoQuery),
		f.baseURL, demoQuery,
		binary, urlFlag, demoQuery, f.baseURL)
	return nil
}

// environment looks up a variable for the node. In a demo, anonymous access is on.
func (f *serveFlags) environment(name string) (string, bool) {
	if f.anonymous && name == "FORCE_ENABLE_ANONYMOUS_ACCESS" {
		return "true", true
	}
	return os.LookupEnv(name)
}

// warnOpen warns that anybody who reaches the address can read all code.
func warnOpen(w io.Writer, listen string) {
	line := strings.Repeat("!", 78)
	fmt.Fprintf(w, "%s\n! %-74s !\n! %-74s !\n! %-74s !\n%s\n", line,
		"ANONYMOUS ACCESS IS ON and the API listens on "+listen+":",
		"everybody who can reach this address can read all indexed code.",
		"Turn FORCE_ENABLE_ANONYMOUS_ACCESS off, or listen on 127.0.0.1.", line)
}
