package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// withFaults answers every refusal in the protocol's format. The SDK answers requests that it cannot
// begin to serve with a line of plain text, which clients cannot read.
//
//	HTTP 400 text/plain "..."   ->   HTTP 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"..."}}
func withFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
		if err != nil {
			body = nil // the SDK gets the same error and reports it
		}
		// Check requests about tasks first, because the SDK accepts what the protocol forbids.
		if fault := checkTaskRequest(r.Header, body); fault != nil {
			writeFault(w, http.StatusBadRequest, idOf(body), fault)
			return
		}

		// Put the body back for the SDK, with its unread rest, so that the SDK sees the true size.
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), r.Body))

		f := &faultWriter{ResponseWriter: w}
		next.ServeHTTP(f, r)
		if f.isPlain {
			id, fault := faultOf(f.status, body, strings.TrimSpace(f.text.String()))
			writeFault(w, f.status, id, fault)
		}
	})
}

// faultWriter passes an answer on, unless it is a refusal in plain text, which it buffers.
type faultWriter struct {
	http.ResponseWriter
	status  int
	isPlain bool         // the answer is a refusal in plain text
	text    bytes.Buffer // of the refusal
}

// WriteHeader implements [http.ResponseWriter].
func (f *faultWriter) WriteHeader(status int) {
	f.status = status
	f.isPlain = status >= 400 && strings.HasPrefix(f.Header().Get("Content-Type"), "text/plain")
	if !f.isPlain {
		f.ResponseWriter.WriteHeader(status)
	}
}

// Write implements [http.ResponseWriter].
func (f *faultWriter) Write(b []byte) (int, error) {
	if f.isPlain {
		return f.text.Write(b)
	}
	return f.ResponseWriter.Write(b)
}

// Flush implements [http.Flusher]. A refusal is sent whole.
func (f *faultWriter) Flush() {
	if flusher, ok := f.ResponseWriter.(http.Flusher); ok && !f.isPlain {
		flusher.Flush()
	}
}

// Unwrap serves [http.ResponseController].
func (f *faultWriter) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// faultOf returns the JSON-RPC error for a plain-text refusal, and the id of the refused request.
func faultOf(status int, request []byte, message string) (id json.RawMessage, fault *jsonrpc.Error) {
	var req struct {
		Method string `json:"method"`
	}
	// The SDK's refusals have no code, so derive it from the request.
	code := int64(jsonrpc.CodeInvalidRequest)
	switch err := json.Unmarshal(request, &req); {
	case !json.Valid(request) && status == http.StatusBadRequest:
		code, message = jsonrpc.CodeParseError, "the request is not JSON: "+message
	case err == nil && req.Method != "" && strings.HasSuffix(message, "unsupported"):
		code = jsonrpc.CodeMethodNotFound
	}
	return idOf(request), &jsonrpc.Error{Code: code, Message: message}
}

// writeFault answers a request with a JSON-RPC error.
func writeFault(w http.ResponseWriter, status int, id json.RawMessage, fault *jsonrpc.Error) {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": fault})
	if err != nil {
		http.Error(w, fault.Message, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Del("Content-Length") // it was the length of the text
	w.WriteHeader(status)
	_, _ = w.Write(b) // nobody reads it if the client has gone
}

// idOf returns the id of a request; null if it has none.
func idOf(request []byte) json.RawMessage {
	var req struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(request, &req) != nil || !isID(req.ID) {
		return json.RawMessage("null")
	}
	return req.ID
}

// isID reports whether JSON is a valid request id: a string or a number.
func isID(raw json.RawMessage) bool {
	var id any
	if json.Unmarshal(raw, &id) != nil {
		return false
	}
	switch id.(type) {
	case string, float64:
		return true
	}
	return false
}
