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

// toolCall is a call of the MCP server.
type toolCall struct {
	tool string
	args map[string]any
}

// tool calls a tool as an agent does and returns the text that the agent reads.
func (s *server) tool(ctx context.Context, c toolCall) (text string, err error) {
	// Send no handshake, because the MCP server keeps no sessions.
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

	// Wrap a refusal so that errors.As finds it: the caller counts it as an answer.
	text, err = toolText(data)
	if err != nil {
		err = fmt.Errorf("%s %v: %w", c.tool, c.args, err)
	}
	return text, err
}

// refusal is an error message of a tool for the agent.
type refusal string

func (r refusal) Error() string { return string(r) }

// toolText returns the text of a tool's answer, which is JSON, or the last event of a stream. It returns
// a refusal if the tool reports an error.
func toolText(data []byte) (string, error) {
	// In a stream the last message is the answer. Earlier ones report progress.
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

	// An error of the protocol is a defect of this package. An error of a tool is text for the agent.
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

// estimateTokens estimates the tokens of a text for a model: one for five letters, one for three
// digits, and one for any other byte but spaces.
func estimateTokens(text string) int {
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

		// A sign is a token. Spaces belong to the next word.
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
