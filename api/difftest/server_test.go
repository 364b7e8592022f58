package difftest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// server is a node with the zoo, behind its API.
type server struct {
	url  string
	http http.Client
}

// serve starts a node that has indexed the repositories below dir.
func serve(t testing.TB, dir string, repos int) *server {
	t.Helper()
	n := nodetest.Start(t, nodetest.Config{
		Env: map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
		File: fmt.Sprintf(`{"settings": {"maxFileSize": %d}, "connections": {"zoo": {"type": "git", "url": "file://%s/*", "revisions": {"branches": ["**"], "tags": ["**"]}}}}`,
			maxFileSize, dir),
		Edit: func(o *node.Options) { o.Ctags = "" },
	})
	n.WaitIndexed(repos)
	n.Wait("symbols", func() error {
		if s := n.Status(); s.Jobs.Pending+s.Jobs.Running > 0 {
			return fmt.Errorf("%+v", s.Jobs)
		}
		return nil
	})

	s, err := api.New(n.Node, api.Options{Listen: "127.0.0.1:0", Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return &server{url: "http://" + s.Addr().String(), http: http.Client{Timeout: time.Minute}}
}

// ask sends a request; a nil body means GET.
func (s *server) ask(path string, body any) (status int, answer []byte, err error) {
	method, text := "GET", []byte(nil)
	if body != nil {
		method = "POST"
		if text, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// get sends a GET with parameters.
func (s *server) get(path string, params map[string]any) (int, []byte, error) {
	q := url.Values{}
	for name, v := range params {
		q.Set(name, fmt.Sprint(v))
	}
	return s.ask(path+"?"+q.Encode(), nil)
}

// tool calls a tool, and reports whether it refused.
func (s *server) tool(name string, args map[string]any) (text string, refused bool, err error) {
	status, answer, err := s.ask("/api/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	if err != nil {
		return "", false, err
	}
	if _, data, ok := bytes.Cut(answer, []byte("data: ")); ok {
		answer = data
	}
	var got struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal(answer, &got); err != nil || got.Error != nil || len(got.Result.Content) != 1 {
		return "", false, fmt.Errorf("status %d: %v: %.300s", status, err, answer)
	}
	return got.Result.Content[0].Text, got.Result.IsError, nil
}

// zooDir returns the directory of the zoo.
func zooDir(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "zoo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
