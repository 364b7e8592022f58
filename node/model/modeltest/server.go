package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Turn is what the model says in one step.
type Turn struct {
	Reasoning string // comes back signed, where the wire has that
	Text      string
	Calls     []Call
	Length    bool // the limit of output was reached
	Fault     func(w http.ResponseWriter, stream []byte)
}

// Call is a call of a tool.
type Call struct{ ID, Name, Arguments string }

// Request is what came for one step.
type Request struct {
	Step   int    // from 0
	Wire   string // chat, responses, messages, gemini, converse
	Path   string // with the query
	Header http.Header
	Raw    string         // the body
	Body   map[string]any // the body, decoded
}

// Server is a scripted model.
type Server struct {
	URL string

	mu       sync.Mutex
	policy   func(*Request) Turn
	requests []*Request
	opaque   map[string]string // by a call's id: what has to come back with its result
	refused  []string
}

// Start plays turns in their order; behind the last one it repeats it.
func Start(t testing.TB, turns ...Turn) *Server {
	return Play(t, func(r *Request) Turn { return turns[min(r.Step, len(turns)-1)] })
}

// Play asks a policy for each turn. It may be called from several goroutines.
func Play(t testing.TB, policy func(*Request) Turn) *Server {
	t.Helper()
	s := &Server{policy: policy, opaque: map[string]string{}}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// Requests returns the received requests, except questions about models.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.requests...)
}

// Refused returns the reasons why requests were refused.
func (s *Server) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.refused...)
}

// wires are found by how a path ends.
var wires = []struct {
	name, ending, mime string
	check              func(*Server, *Request) string
	stream             func(*Server, *Request, Turn) []byte
}{
	{"chat", "/chat/completions", "text/event-stream", checkChat, streamChat},
	{"responses", "/responses", "text/event-stream", checkResponses, streamResponses},
	{"messages", "/messages", "text/event-stream", checkMessages, streamMessages},
	{"messages", ":streamRawPredict", "text/event-stream", checkMessages, streamMessages},
	{"gemini", ":streamGenerateContent", "text/event-stream", checkGemini, streamGemini},
	{"converse", "/converse-stream", "application/vnd.amazon.eventstream", checkConverse, streamConverse},
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Answer the question about capabilities that the client of Messages asks first: this model
	// thinks with a budget.
	if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/models/") {
		fmt.Fprint(w, `{"id":"m","type":"model","capabilities":{"thinking":{"supported":true,"types":{"enabled":{"supported":true},"adaptive":{"supported":false}}}}}`)
		return
	}
	for _, wire := range wires {
		if !strings.HasSuffix(r.URL.Path, wire.ending) {
			continue
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		req := &Request{Wire: wire.name, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Raw: string(body)}
		// Not counted as a request: a script counts steps.
		if json.Unmarshal(body, &req.Body) != nil {
			refuse(w, "the body is not a JSON object")
			return
		}
		s.mu.Lock()
		// Number and check under one lock: several conversations may be asked at once.
		req.Step = len(s.requests)
		s.requests = append(s.requests, req)
		complaint := wire.check(s, req)
		// Kept too: a client may mend its request and ask again, and the test would not see why.
		if complaint != "" {
			s.refused = append(s.refused, complaint)
		}
		s.mu.Unlock()
		if complaint != "" {
			refuse(w, complaint)
			return
		}

		// Without the lock: a policy may wait, or ask for the requests.
		turn := s.policy(req)
		stream := wire.stream(s, req, turn)
		if turn.Fault != nil {
			w.Header().Set("Content-Type", wire.mime)
			turn.Fault(w, stream)
			return
		}
		w.Header().Set("Content-Type", wire.mime)
		_, _ = w.Write(stream) // a client that has gone misses nothing
		return
	}
	http.Error(w, `{"error":{"message":"no such path","type":"not_found_error"}}`, http.StatusNotFound)
}

// refuse answers 400 in the form that all wires read.
func refuse(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"message": message, "error": map[string]any{"type": "invalid_request_error", "message": message}})
}

// Status simulates a failure: an answer with another status, body and headers, given as name,
// value, ...
func Status(status int, body string, headers ...string) func(http.ResponseWriter, []byte) {
	return func(w http.ResponseWriter, _ []byte) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// CutAfter simulates a failure: the connection ends after n bytes of the answer.
func CutAfter(n int) func(http.ResponseWriter, []byte) {
	return func(w http.ResponseWriter, stream []byte) {
		_, _ = w.Write(stream[:min(n, len(stream))])
	}
}

// keep returns the signature of a turn's reasoning, and remembers that the client must send it back
// with the result of each call of the turn.
func (s *Server) keep(t Turn) string {
	if t.Reasoning == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token := fmt.Sprintf("c2lnbmF0dXJl%d", len(s.opaque)) // base64, as signatures are
	token += strings.Repeat("A", (4-len(token)%4)%4)
	for _, c := range t.Calls {
		// By call: its result shows whether the reasoning came back with it.
		s.opaque[c.ID] = token
	}
	return token
}

// missing returns the id of a call whose signature did not come back with its result; "" if there
// is none.
func (s *Server) missing(r *Request, ids []string) string {
	for _, id := range ids {
		if token := s.opaque[id]; token != "" && !strings.Contains(r.Raw, token) {
			return id
		}
	}
	return ""
}

// JSON access for checks: what is not there is zero.

func list(v any) []any { l, _ := v.([]any); return l }

func text(v any) string { s, _ := v.(string); return s }

// get returns the value at a path of names in decoded JSON, or nil.
func get(v any, names ...string) any {
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}
