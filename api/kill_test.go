package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// answering has three nodes with HTTP servers, and a model that answers slowly in some steps.
type answering struct {
	f    *nodetest.Fleet
	urls []string
	key  string
}

func startAnswering(t *testing.T) *answering {
	t.Helper()
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		slowly := func(w http.ResponseWriter, stream []byte) {
			for _, piece := range strings.SplitAfter(string(stream), "\n\n") {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				nodetest.Moment(5 * time.Millisecond)
			}
		}
		done := strings.Count(r.Raw, `"role":"assistant"`)
		if done < 4 {
			return modeltest.Turn{Fault: slowly, Calls: []modeltest.Call{{ID: fmt.Sprint("a", done), Name: "read_file", Arguments: fmt.Sprintf(`{"repo":"local/app","path":"a.go","limit":%d}`, done+1)}}}
		}
		return modeltest.Turn{Fault: slowly, Text: "It is seven @file:{local/app::a.go:3}."}
	})

	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nconst seven = 7\n"})
	a := &answering{f: nodetest.StartFleet(t, 3, nodetest.Config{File: fmt.Sprintf(
		`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}, "models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}]}`, dir, s.URL)})}
	for _, n := range a.f.Nodes {
		n.WaitIndexed(1)
		n.Wait("models, and three voters", func() error {
			if voters := n.LiveVoters(); !n.Ask.HasModel() || voters != 3 {
				return fmt.Errorf("model %v, %d voters", n.Ask.HasModel(), voters)
			}
			return nil
		})
		a.urls = append(a.urls, "http://"+start(t, partsOf(n.Node)).Addr().String())
	}

	made, err := a.f.Nodes[0].Keys.CreateKey(t.Context(), account.Operator(), account.CreateKeyRequest{Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	a.key = made.Key
	for i, n := range a.f.Nodes {
		n.Wait("the key", func() error {
			resp, err := a.do(t, i, "GET", "/api/models", "", nil)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s", resp.Status)
			}
			return nil
		})
	}
	return a
}

func (a *answering) do(t *testing.T, node int, method, path, body string, header map[string]string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, a.urls[node]+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.key)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	return http.DefaultClient.Do(req)
}

// sent is an event as a browser gets it.
type sent struct {
	id   int
	data string
}

// follow reads events as a browser does: after the last one in got, until they end, fn returns
// true, or the connection breaks. fn gets the number of events so far.
func (a *answering) follow(t *testing.T, node int, path string, got []sent, fn func(n int) bool) []sent {
	t.Helper()
	header, last := map[string]string{}, 0
	if len(got) > 0 {
		last = got[len(got)-1].id
		header["Last-Event-ID"] = fmt.Sprint(last)
	}
	resp, err := a.do(t, node, "GET", path, "", header)
	if err != nil {
		return got
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %s %s", path, resp.Status, b)
	}

	id := 0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		if after, ok := strings.CutPrefix(line, "id: "); ok {
			if id, err = strconv.Atoi(after); err != nil {
				t.Fatal(err)
			}
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if id <= last {
				t.Fatalf("event %d after %d", id, last)
			}
			last = id
			if got = append(got, sent{id, data}); fn(len(got)) {
				return got
			}
		}
	}
	return got
}

// It kills the node that serves the page and answers the question. The page's script asks another
// node: it keeps what it has shown and learns of the loss. A task on the killed node ends too.
func TestThreadPage_continuesAtAnotherNodeAfterACrash(t *testing.T) {
	t.Parallel()
	a := startAnswering(t)
	const victim, other = 2, 1

	resp, err := a.do(t, victim, "POST", "/api/chat", `{"query":"What is seven?"}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var started struct{ ID string }
	if err := json.NewDecoder(resp.Body).Decode(&started); err != nil || started.ID == "" {
		t.Fatalf("%s, %v", resp.Status, err)
	}
	resp.Body.Close()
	task := a.task(t, victim, "tools/call", `{"name":"ask_codebase","arguments":{"query":"And what is a.go?"}`, "ask_codebase")
	if task.Result.TaskID == "" {
		t.Fatalf("no task was begun: %+v", task)
	}

	// The page loses its node after some of its events.
	page, api := "/chat/"+started.ID+"/events", "/api/chat/"+started.ID+"/events"
	toTheEnd := func(int) bool { return false }
	before := a.follow(t, victim, page, nil, func(n int) bool { return n == 3 })
	a.f.Crash(victim)
	drawn := a.follow(t, other, page, before, toTheEnd)
	if tail := fmt.Sprint(drawn[len(before):]); !strings.Contains(tail, "was lost") {
		t.Errorf("after the crash: %s", tail)
	}

	// A later viewer sees the question and the loss, at any node.
	later := a.follow(t, 0, page, nil, toTheEnd)
	if text := fmt.Sprint(later); !strings.Contains(text, "What is seven?") || !strings.Contains(text, "was lost") {
		t.Errorf("later: %s", text)
	}
	if again := a.follow(t, other, page, nil, toTheEnd); !slices.Equal(again, later) {
		t.Errorf("node 0 draws\n%v\nnode %d draws\n%v", later, other, again)
	}
	events := a.follow(t, other, api, nil, toTheEnd)
	if end := events[len(events)-1].data; !strings.Contains(end, `"kind":"done","text":"failed"`) {
		t.Errorf("the last event is %s", end)
	}

	// A remaining node knows that the task has ended, and why.
	a.f.Nodes[0].Wait("the task", func() error {
		got := a.task(t, 0, "tasks/get", fmt.Sprintf(`{"taskId":%q`, task.Result.TaskID), task.Result.TaskID)
		if got.Result.Status != "completed" || !strings.Contains(got.Result.Result.Content[0].Text, "was lost") {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
}

// taskAnswer is an answer about a task.
type taskAnswer struct {
	Result struct {
		TaskID, Status string
		Result         struct{ Content []struct{ Text string } }
	}
	Error any
}

func (a *answering) task(t *testing.T, node int, method, params, name string) (out taskAnswer) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"` + mcp.TasksExtension + `":{}}}}}}`
	resp, err := a.do(t, node, "POST", "/api/mcp", body, map[string]string{
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, data, ok := bytes.Cut(raw, []byte("data: ")); ok {
		raw, _, _ = bytes.Cut(data, []byte("\n"))
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v: %s", method, err, raw)
	}
	return out
}
