package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"unicode"

	"github.com/spf13/cobra"
)

func newMCP(getenv func(string) string) *cobra.Command {
	return clientCommand(getenv, naming{}, &cobra.Command{
		Use:   "mcp",
		Short: "Stdio bridge to a cluster for agents without HTTP",
		Long: `Speaks the Model Context Protocol on standard input and output and passes each
message to the tool server of a node. For agent clients that start a program:

  {"mcpServers": {"shoal": {"command": "shoal", "args": ["mcp", "--url", "http://127.0.0.1:7700"]}}}`,
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, c *client, _ []string) error {
		c.http.Timeout = 0 // the agent decides how long it waits
		b := &stdio{client: c, out: cmd.OutOrStdout(), running: map[string]context.CancelFunc{}}
		return b.run(cmd.Context(), cmd.InOrStdin())
	})
}

// maxMessage limits a message of the agent, in bytes. The tool server has the same limit.
const maxMessage = 1 << 20

// maxRunning limits the messages that wait for their answer, and maxWaiting those that wait to be sent.
const (
	maxRunning = 32
	maxWaiting = 32
)

// stdio passes messages between an agent on standard input and output and a tool server. Each
// message is a request of its own; answers are written as they arrive.
type stdio struct {
	client *client

	writing sync.Mutex // serializes writes to out
	out     io.Writer

	mu      sync.Mutex // guards the fields below
	version string     // protocol version from initialize
	running map[string]context.CancelFunc
}

// message has the parts of a JSON-RPC message that the bridge reads.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		TaskID    string          `json:"taskId"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
	Result struct {
		Version string `json:"protocolVersion"`
	} `json:"result"`
}

// run passes messages until the input ends, and then waits for the remaining answers. If ctx ends, it
// cancels the running messages and returns.
func (b *stdio) run(ctx context.Context, in io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	lines, failed := make(chan []byte), make(chan error, 1)
	go func() { // reading standard input cannot be interrupted, so nothing waits for this goroutine
		defer close(lines)
		failed <- readLines(ctx, in, lines)
	}()

	// Write all answers even after the input has ended, because an agent may close it early.
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxRunning)

	var waiting []func() // the oldest first
	for next := lines; next != nil || len(waiting) > 0; {
		// Continue to read while messages wait for a slot, because a cancellation may free one. Stop
		// at maxWaiting.
		free, more := slots, next
		if len(waiting) == 0 {
			free = nil
		}
		if len(waiting) == maxWaiting {
			more = nil
		}

		select {
		case <-ctx.Done():
			return nil

		case free <- struct{}{}:
			pass := waiting[0]
			waiting = waiting[1:]
			wg.Go(func() {
				defer func() { <-slots }()
				pass()
			})

		case line, ok := <-more:
			if !ok {
				next = nil // the waiting messages are still sent
			} else if pass := b.parse(ctx, line); pass != nil {
				waiting = append(waiting, pass)
			}
		}
	}
	return <-failed
}

// readLines sends the lines of in to lines until in or ctx ends. It fails at a line that is too long.
func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	scan := bufio.NewScanner(in)

	scan.Buffer(make([]byte, 64<<10), maxMessage)
	for scan.Scan() {
		select {
		case lines <- bytes.Clone(bytes.TrimSpace(scan.Bytes())): // a copy, because the scanner reuses its memory
		case <-ctx.Done():
			return nil
		}
	}
	return scan.Err()
}

// parse parses a message, and returns a function that sends it and writes the answer; nil if there is
// nothing to send. A message that cancels a call does so at once, without a slot. The caller must call
// parse in the order of the messages, so that a cancellation finds its call.
func (b *stdio) parse(ctx context.Context, line []byte) (pass func()) {
	if len(line) == 0 {
		return nil
	}

	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		b.writeError(nil, -32700, "the message is not JSON: "+err.Error())
		return nil
	}

	// The server keeps no sessions: closing the request of a call cancels it.
	if m.Method == "notifications/cancelled" {
		b.cancelCall(string(m.Params.RequestID))
		return nil
	}

	ctx, cancel := context.WithCancel(ctx)
	id := string(m.ID)
	if id != "" {
		b.mu.Lock()
		b.running[id] = cancel
		b.mu.Unlock()
	}

	return func() {
		defer b.removeRunning(id, cancel)

		// Write no error for notifications and cancelled calls, which get no answer.
		err := b.post(ctx, line, &m)
		if err != nil && ctx.Err() == nil && id != "" {
			b.writeError(m.ID, -32000, err.Error())
		}
	}
}

// removeRunning cancels the context of a message after its answer, and removes it from b.running.
func (b *stdio) removeRunning(id string, cancel context.CancelFunc) {
	cancel()

	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, id)
}

// cancelCall cancels the running call with an id, if there is one.
func (b *stdio) cancelCall(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if stop, ok := b.running[id]; ok {
		stop()
	}
}

// post sends a message to the tool server and writes each message of the answer.
func (b *stdio) post(ctx context.Context, line []byte, m *message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.client.base+"/api/mcp", bytes.NewReader(line))
	if err != nil {
		return err
	}
	b.setHeaders(req.Header, m)

	resp, err := b.client.http.Do(req)
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", b.client.base, err)
	}
	defer resp.Body.Close()

	// The server streams if it reports progress. A notification gets 202 without a body.
	kind := resp.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		return b.passEvents(resp.Body)
	case resp.StatusCode == http.StatusAccepted:
		return nil
	}

	// No answer of a tool is nearly as large as this limit. That of a proxy might be.
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("answer of %s: %w", b.client.base, err)
	}

	// Pass on a message of the protocol. Return the error that the API or a proxy has answered.
	var answered struct {
		Version string `json:"jsonrpc"`
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &answered) == nil && answered.Version == "2.0" {
		return b.writeMessage(text)
	}
	if answered.Message != "" {
		return errors.New(answered.Message)
	}

	return fmt.Errorf("%s answered %s: %.200s", b.client.base, resp.Status, text)
}

// setHeaders sets the headers of a request with the message m. In newer versions of the protocol they
// repeat parts of the message, so that proxies need not read the body.
func (b *stdio) setHeaders(h http.Header, m *message) {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if b.client.key != "" {
		h.Set("Authorization", "Bearer "+b.client.key)
	}

	// In the newest protocol each message has the version, in older ones only the answer to initialize.
	b.mu.Lock()
	version := cmp.Or(m.Params.Meta.Version, b.version)
	b.mu.Unlock()

	if version != "" && m.Method != "initialize" {
		h.Set("Mcp-Protocol-Version", version)
	}
	if m.Method != "" {
		h.Set("Mcp-Method", m.Method)
	}

	name := m.Params.Name
	switch {
	case m.Method == "resources/read":
		name = m.Params.URI
	case strings.HasPrefix(m.Method, "tasks/"):
		name = m.Params.TaskID
	}
	if name = headerText(name); name != "" {
		h.Set("Mcp-Name", name)
	}
}

// headerText returns s if a header can contain it, otherwise "". It never changes s, because the server
// compares the header with the message.
func headerText(s string) string {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return ""
	}
	return s
}

// passEvents writes the messages of an event stream.
func (b *stdio) passEvents(r io.Reader) error {
	in := bufio.NewReader(r)
	var data []byte
	for {
		line, err := in.ReadBytes('\n')
		line = bytes.TrimRight(line, "\r\n")
		if part, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(part, []byte(" "))...)
		}

		// An empty line ends a message, which may have several data lines.
		if len(line) == 0 && len(data) > 0 {
			if err := b.writeMessage(data); err != nil {
				return err
			}
			data = nil
		}

		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("answer of %s: %w", b.client.base, err)
		}
	}
}

// writeMessage sends a message to the agent on one line. It stores the protocol version in the answer to
// initialize.
func (b *stdio) writeMessage(text []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return fmt.Errorf("answer of %s: %w", b.client.base, err)
	}

	var m message
	if json.Unmarshal(text, &m) == nil && m.Result.Version != "" {
		b.mu.Lock()
		b.version = m.Result.Version
		b.mu.Unlock()
	}

	line.WriteByte('\n')
	b.writing.Lock()
	defer b.writing.Unlock()
	_, err := b.out.Write(line.Bytes())
	return err
}

// writeError answers a message with a JSON-RPC error.
func (b *stdio) writeError(id json.RawMessage, code int, text string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
	if err == nil {
		_ = b.writeMessage(answer) // the agent may have gone
	}
}
