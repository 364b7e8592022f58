package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/shoalsearch/shoal/api/auth"
)

// server is a running `shoal serve`.
type server struct {
	dir    string // data directory
	url    string
	cmd    *exec.Cmd
	client *http.Client
	start  time.Time
	ready  time.Duration // from the start of the process until /readyz succeeded
	key    string        // an owner's API key
	route  string        // that exchange asks; "" for searches of files
}

// commitsRoute searches commits.
const commitsRoute = "/api/search_commits"

// connection is one entry of the configuration file.
type connection map[string]any

// writeConfig writes a configuration with these settings and connections. The node polls often, so that
// no measurement waits for it.
func writeConfig(path string, settings map[string]any, connections map[string]connection) error {
	all := map[string]any{"reindexRepoPollingIntervalMs": 50, "resyncConnectionPollingIntervalMs": 50}
	for k, v := range settings {
		all[k] = v
	}
	data, err := json.MarshalIndent(map[string]any{"settings": all, "connections": connections}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// serve starts a node on dir and waits until it is ready.
func serve(ctx context.Context, program, dir, config, ctags string, more ...string) (*server, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	args := []string{"--config", config, "--listen", ports[0], "--cluster-listen", ports[1], "--gossip-listen", ports[2], "--ctags", ctags}
	s, err := launch(program, dir, "http://"+ports[0], append(args, more...))
	if err != nil {
		return nil, err
	}
	return s, s.waitReady(ctx)
}

// launch starts a node with the data directory dir that serves at address. It does not wait.
func launch(program, dir, address string, args []string) (*server, error) {
	s := &server{dir: dir, url: address, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	s.cmd = exec.Command(program, append([]string{"serve", "--data-dir", dir}, args...)...)

	// Let searches need no key, because those of the other engines need none.
	s.cmd.Env = append(os.Environ(), "FORCE_ENABLE_ANONYMOUS_ACCESS=true")

	// Write the log beside the data directory, in which only the node may write.
	log, err := os.Create(dir + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log

	s.start = time.Now()
	return s, s.cmd.Start()
}

// waitReady waits until the node is ready, and then makes a key.
func (s *server) waitReady(ctx context.Context) error {
	err := poll(ctx, time.Minute, 5*time.Millisecond, "the node to be ready", func() bool {
		return s.get(ctx, "/readyz", nil) == nil
	})
	s.ready = time.Since(s.start)
	if err != nil {
		return fmt.Errorf("%w (log: %s.log)", err, s.dir)
	}
	return s.makeKey(ctx)
}

// makeKey makes an owner's key through the operator's socket.
func (s *server) makeKey(ctx context.Context) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return auth.DialSocket(ctx, s.dir) }
	operator := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	name := "bench " + filepath.Base(s.dir)

	var failed error
	err := poll(ctx, time.Minute, 20*time.Millisecond, "a key", func() bool {
		s.key, failed = replaceKey(ctx, operator, name)
		return failed == nil
	})
	return errors.Join(err, failed)
}

// replaceKey revokes the key with a name, if there is one, and makes a new one. A node never shows the
// key of an earlier run again.
func replaceKey(ctx context.Context, operator *http.Client, name string) (string, error) {
	const keys = "http://localhost/api/keys"
	revoke, err := http.NewRequestWithContext(ctx, http.MethodDelete, keys+"/"+url.PathEscape(name), nil)
	if err != nil {
		return "", err
	}
	revoked, err := operator.Do(revoke)
	if err != nil {
		return "", err
	}
	revoked.Body.Close() // whatever the status: there may be no such key

	body := fmt.Sprintf(`{"name": %q, "role": "owner"}`, name)
	resp, err := operator.Post(keys, "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()

	var made struct{ Key, Message string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil {
		return "", err
	}
	if made.Key == "" {
		return "", errors.New(made.Message)
	}
	return made.Key, nil
}

// kill kills the process without a warning.
func (s *server) kill() error {
	if err := s.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = s.cmd.Wait() // always an error, because the process was killed
	return nil
}

func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// get requests a path, and decodes the JSON of the answer into out unless out is nil.
func (s *server) get(ctx context.Context, path string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return err
	}
	return s.do(req, out)
}

func (s *server) post(ctx context.Context, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return s.do(req, out)
}

func (s *server) do(req *http.Request, out any) error {
	data, err := s.read(req)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// read sends a request with the key, and returns the body of the answer. An answer other than 2xx is an
// error with its body.
func (s *server) read(req *http.Request) ([]byte, error) {
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}

	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}

	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %s: %s", req.URL.Path, resp.Status, data)
	}
	return data, nil
}

// answer has the parts of a search's answer that this package uses.
type answer struct {
	Stats struct {
		TotalMatchCount  int
		FileCount        int
		ActualMatchCount int
	}
	Files []struct {
		FileName struct{ Text string }
	}
}

// search sends a search and decodes the answer. The returned time does not include decoding.
func (s *server) search(ctx context.Context, body []byte) (answer, time.Duration, error) {
	data, took, err := s.exchange(ctx, body)
	if err != nil {
		return answer{}, 0, err
	}
	var a answer
	return a, took, json.Unmarshal(data, &a)
}

// exchange sends a search and reads the whole answer. The returned time is that until its last byte.
func (s *server) exchange(ctx context.Context, body []byte) ([]byte, time.Duration, error) {
	start := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+cmp.Or(s.route, "/api/search"), bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}

	req.Header.Set("Content-Type", "application/json")
	data, err := s.read(req)
	if err != nil {
		return nil, 0, fmt.Errorf("search %s: %w", body, err)
	}
	return data, time.Since(start), nil
}

// waitIndexed waits until the node has indexed a number of repositories. It fails if the node stops
// working before.
func (s *server) waitIndexed(ctx context.Context, repos int) error {
	every := 20 * time.Millisecond
	if repos > 100 {
		every = time.Second // each status costs the node time, because it reads all repositories
	}

	w := indexWait{repos: repos, busy: time.Now()}
	var failed error
	err := poll(ctx, 2*time.Hour, every, fmt.Sprintf("%d repositories to be indexed", repos), func() (done bool) {
		st, err := s.status(ctx)
		done, failed = w.check(time.Now(), st, err)
		return done
	})
	if failed != nil {
		err = fmt.Errorf("%w (log: %s.log)", failed, s.dir)
	}
	return err
}

// indexWait waits until repositories are indexed.
type indexWait struct {
	repos int
	busy  time.Time // when the node last had work
}

// check reports whether the wait is over, by a status that was read at now, or the error of reading it.
// It fails if the node was idle for long without having indexed all, as if it may not read a folder.
func (w *indexWait) check(now time.Time, st status, err error) (done bool, failed error) {
	if err != nil || st.Jobs.Running+st.Jobs.Pending > 0 {
		w.busy = now
	}

	switch {
	case err == nil && st.Repos.Indexed >= w.repos && st.Jobs.Running == 0:
		return true, nil
	case now.Sub(w.busy) > 5*quietTime:
		return true, fmt.Errorf("the node has nothing to do any more, and has indexed %d repositories of %d", st.Repos.Indexed, w.repos)
	}
	return false, nil
}

// waitIdle waits until the node was idle for quietTime. After indexing it still packs small repositories.
func (s *server) waitIdle(ctx context.Context) error {
	quiet := time.Now()
	return poll(ctx, 2*time.Hour, 50*time.Millisecond, "the node to have nothing to do", func() bool {
		status, err := s.status(ctx)
		if err != nil || status.Jobs.Running+status.Jobs.Pending > 0 {
			quiet = time.Now()
		}
		return time.Since(quiet) > quietTime
	})
}

// quietTime is longer than a node needs to notice new work.
const quietTime = 4 * time.Second

// status has the parts of a node's status that this package uses.
type status struct {
	Repos   struct{ Total, Indexed, Failed int }
	Jobs    struct{ Pending, Running, Failed int }
	Storage struct {
		Shards  int
		History struct {
			Repositories, Covered, Commits int
			Bytes                          int64
		}
	}
}

func (s *server) status(ctx context.Context) (status, error) {
	var st status
	err := s.get(ctx, "/api/status", &st)
	return st, err
}

// diskBytes adds up the sizes of the files in a folder of the data directory. It does not count blocks,
// which depend on the file system.
func (s *server) diskBytes(folder string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(filepath.Join(s.dir, folder), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}

		sum += info.Size()
		return nil
	})

	return sum, err
}

// poll waits up to limit until a condition holds, and checks it at once and then at intervals. what names
// the condition in the error.
func poll(ctx context.Context, limit, every time.Duration, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()

	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// freePorts returns n free loopback addresses.
func freePorts(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

// How long to wait for symbols, which a node indexes after the text.
const (
	symbolsTime      = 2 * time.Minute
	symbolsTimeLarge = 15 * time.Minute // of L, on a busy machine
)

// waitSymbols waits up to limit until a search finds a symbol whose name matches an expression.
func (s *server) waitSymbols(ctx context.Context, limit time.Duration, name string) error {
	var last error
	err := poll(ctx, limit, 200*time.Millisecond, fmt.Sprintf("%q to be a symbol", name), func() bool {
		a, _, err := s.search(ctx, Query{Text: "sym:^" + name + "$", Regexp: true}.body(10, countShown))
		last = err
		return err == nil && a.Stats.FileCount > 0
	})
	if err != nil {
		return fmt.Errorf("%w (%v; is universal-ctags on PATH? log: %s.log)", err, last, s.dir)
	}
	return nil
}
