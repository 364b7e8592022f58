package main

import (
	"bytes"
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

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/api/auth"
)

const usualURL = "http://127.0.0.1:7700"

// client talks to a node's HTTP API for the commands.
type client struct {
	base string // without a trailing slash
	key  string // "" for none
	http *http.Client
}

// clientFlags say where the node is and who asks.
type clientFlags struct{ url, key, dataDir, keyFile string }

func (f *clientFlags) add(cmd *cobra.Command, getenv func(string) string) {
	fs := cmd.Flags()
	fs.StringVar(&f.url, "url", first(getenv("SHOAL_URL"), usualURL), "address of any node [SHOAL_URL]")
	fs.StringVar(&f.key, "key", getenv("SHOAL_API_KEY"), "API key [SHOAL_API_KEY] (default: on a node's own host, the operator's)")
	fs.StringVar(&f.dataDir, "data-dir", first(getenv("SHOAL_DATA_DIR"), "./data"), "data directory of the node on this host [SHOAL_DATA_DIR]")
	fs.StringVar(&f.keyFile, "cluster-key-file", getenv("SHOAL_CLUSTER_KEY_FILE"), "cluster key, for the operator's credential (default <data-dir>/cluster.key) [SHOAL_CLUSTER_KEY_FILE]")
	// A key that stands in the environment must not be shown by --help.
	if flag := fs.Lookup("key"); flag.DefValue != "" {
		flag.DefValue = "from SHOAL_API_KEY"
	}
}

// client makes the client that the flags describe. Without a key, the
// operator's is used where it can be computed, but it is never sent to
// another host unless the file was named on purpose.
func (f *clientFlags) client() (*client, error) {
	u, err := url.Parse(f.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--url %q: want http://host:port", f.url)
	}
	c := &client{base: strings.TrimSuffix(f.url, "/"), key: f.key, http: &http.Client{Timeout: 10 * time.Minute}}
	if c.key != "" {
		return c, nil
	}
	if f.keyFile == "" && !isLoopback(u.Hostname()) {
		return c, nil
	}
	key, err := auth.OperatorKey(first(f.keyFile, filepath.Join(f.dataDir, "cluster.key")))
	switch {
	case err == nil:
		c.key = key
	case f.keyFile != "" && !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	return c, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func first(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// apiError is an error body of the API.
type apiError struct {
	Status  int    `json:"statusCode"`
	Code    string `json:"errorCode"`
	Message string `json:"message"`
}

func (e *apiError) Error() string {
	if e.Code == "NOT_AUTHENTICATED" {
		return strings.TrimSuffix(e.Message, ".") + ". Make an API key with `shoal key create` on a node's host and pass it with --key or SHOAL_API_KEY."
	}
	return e.Message
}

// call sends body (nil for none) and decodes the answer into out (nil to
// drop it).
func (c *client) call(ctx context.Context, method, path string, body, out any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("answer of %s%s: %w", c.base, path, err)
	}
	return nil
}

// send returns a good answer, whose body the caller closes, or an error.
func (c *client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, fmt.Errorf("no answer from %s: %w (is `shoal serve` running there?)", c.base, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	e := &apiError{}
	if json.Unmarshal(text, e) != nil || e.Message == "" {
		e = &apiError{Status: resp.StatusCode, Message: fmt.Sprintf("%s answered %s", c.base, resp.Status)}
	}
	return nil, e
}
