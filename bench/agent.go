package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// toolCall is one call of a tool of the tool server.
type toolCall struct {
	tool string
	args map[string]any
}

// tool calls a tool as an agent does and returns the text that it reads.
func (s *server) tool(ctx context.Context, c toolCall) (text string, err error) {
	// One message without a handshake: the tool server keeps no sessions.
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": c.tool, "arguments": c.args},
	})
	if err != nil {
		return "", err
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/api/mcp", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")

	data, err := s.read(req)
	if err != nil {
		return "", fmt.Errorf("%s %v: %w", c.tool, c.args, err)
	}

	// A refusal keeps its kind: an agent reads it as it reads an answer.
	text, err = toolText(data)
	if err != nil {
		err = fmt.Errorf("%s %v: %w", c.tool, c.args, err)
	}
	return text, err
}

// refusal is what a tool says that does not do what it was asked: an agent reads
// it.
type refusal string

func (r refusal) Error() string { return string(r) }

// toolText takes the text out of an answer, which is JSON or an event stream
// that ends with it.
func toolText(data []byte) (string, error) {
	// Of a stream the last message is the answer; those before it tell of progress.
	for line := range bytes.Lines(data) {
		if part, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: ")); ok {
			data = part
		}
	}

	var m struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return "", fmt.Errorf("%.200s: %w", data, err)
	}

	// Errors of the protocol are those of this program; those of a tool are for the agent.
	switch {
	case m.Error != nil:
		return "", errors.New(m.Error.Message)
	case len(m.Result.Content) != 1:
		return "", fmt.Errorf("%d contents", len(m.Result.Content))
	case m.Result.IsError:
		return "", refusal(m.Result.Content[0].Text)
	}
	return m.Result.Content[0].Text, nil
}

// estimateTokens guesses how many tokens a text has for a model: short words
// are one, longer ones one for every five letters, numbers one for every
// three digits, every other byte that is not a space one.
func estimateTokens(text string) int {
	// A guess that is the same for both sides: their ratio counts, not the number.
	n, letters, digits := 0, 0, 0
	flush := func() {
		n += (letters + 4) / 5
		n += (digits + 2) / 3
		letters, digits = 0, 0
	}

	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if digits > 0 {
				flush()
			}
			letters++

		case c >= '0' && c <= '9':
			if letters > 0 {
				flush()
			}
			digits++

		// A sign is a token of its own, but blanks, which go with the word behind them.
		default:
			flush()
			if !strings.ContainsRune(" \t", rune(c)) {
				n++
			}
		}
	}

	flush()
	return n
}
