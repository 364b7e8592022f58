package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// gopls is a running language server of Go, asked over its standard input and
// output.
type gopls struct {
	tree string
	cmd  *exec.Cmd
	said bytes.Buffer // on standard error; read when it has ended
	in   io.WriteCloser
	out  *bufio.Reader
	last int // id of a request
}

// startGopls starts the server for the module in tree.
func startGopls(ctx context.Context, tree string) (*gopls, error) {
	g := &gopls{tree: tree, cmd: exec.CommandContext(ctx, "gopls", "serve")}
	g.cmd.Dir = tree

	// Without the flags of whoever runs this, which are meant for another module.
	g.cmd.Env = append(os.Environ(), "GOFLAGS=")
	g.cmd.Stderr = &g.said

	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if g.in, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}

	g.out = bufio.NewReader(out)
	if err := g.cmd.Start(); err != nil {
		return nil, err
	}

	// The protocol wants an answer to this before anything else is asked.
	root := "file://" + tree
	if err := g.call("initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": root, "capabilities": map[string]any{},
		"workspaceFolders": []any{map[string]any{"uri": root, "name": "tree"}},
	}, nil); err != nil {
		g.stop()
		return nil, err
	}
	return g, g.send(map[string]any{"jsonrpc": "2.0", "method": "initialized", "params": map[string]any{}})
}

func (g *gopls) stop() {
	_ = g.in.Close() // it ends with its input
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
}

func (g *gopls) send(message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(g.in, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// call sends a request and waits for its answer. What the server asks
// meanwhile is answered with nothing.
func (g *gopls) call(method string, params, result any) error {
	g.last++
	if err := g.send(map[string]any{"jsonrpc": "2.0", "id": g.last, "method": method, "params": params}); err != nil {
		return err
	}

	// Notifications and questions of the server come between.
	for {
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Error  *struct{ Message string }
		}

		if err := g.receive(&m); err != nil {
			g.stop()
			return fmt.Errorf("gopls %s: %w: %.2000s", method, err, g.said.Bytes())
		}

		// A question of the server: without an answer it would wait, and so would this.
		switch {
		case m.Method != "" && m.ID != nil:
			var nothing any
			if m.Method == "workspace/configuration" {
				nothing = []any{nil}
			}
			if err := g.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": nothing}); err != nil {
				return err
			}

		case m.Method != "" || string(m.ID) != strconv.Itoa(g.last):
		case m.Error != nil:
			return fmt.Errorf("gopls %s: %s", method, m.Error.Message)
		case result == nil:
			return nil
		default:
			return json.Unmarshal(m.Result, result)
		}
	}
}

// receive reads one message.
func (g *gopls) receive(m any) error {
	// As HTTP: head lines, of which the length alone counts, an empty one, the body.
	length := 0

	for {
		line, err := g.out.ReadString('\n')
		if err != nil {
			return err
		}

		if line = strings.TrimSpace(line); line == "" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(value); err != nil {
				return err
			}
		}
	}

	body := make([]byte, length)
	if _, err := io.ReadFull(g.out, body); err != nil {
		return err
	}
	return json.Unmarshal(body, m)
}

// references adds the lines where what is declared at a place is used.
func (g *gopls) references(d declaration, to places) error {
	var found []struct {
		URI   string
		Range struct{ Start struct{ Line int } }
	}

	// The protocol counts lines and columns from 0, the parser of Go from 1.
	err := g.call("textDocument/references", map[string]any{
		"textDocument": map[string]any{"uri": "file://" + filepath.Join(g.tree, d.file)},
		"position":     map[string]any{"line": d.line - 1, "character": d.column - 1},
		"context":      map[string]any{"includeDeclaration": false},
	}, &found)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", d.file, d.line, err)
	}

	for _, f := range found {
		file, err := filepath.Rel(g.tree, strings.TrimPrefix(f.URI, "file://"))
		if err != nil {
			return err
		}
		to[place{file, f.Range.Start.Line + 1}] = true
	}
	return nil
}
