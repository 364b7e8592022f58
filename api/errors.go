package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	nodecall "github.com/shoalsearch/shoal/node/call"
)

// Error codes of the API, as in the specification.
const (
	codeUnexpected       = "UNEXPECTED_ERROR"
	codeInvalidBody      = "INVALID_REQUEST_BODY"
	codeInvalidParams    = "INVALID_QUERY_PARAMS"
	codeMissingParam     = "MISSING_REQUIRED_QUERY_PARAMETER"
	codeNotAuthenticated = "NOT_AUTHENTICATED"
	codeForbidden        = "INSUFFICIENT_PERMISSIONS"
	codeNotFound         = "NOT_FOUND"
	codeRepoNotFound     = "REPOSITORY_NOT_FOUND"
	codeFileNotFound     = "FILE_NOT_FOUND"
	codeContextNotFound  = "SEARCH_CONTEXT_NOT_FOUND"
	codeQuery            = "FAILED_TO_PARSE_QUERY"
	codeRef              = "INVALID_GIT_REF"
	codeExists           = "ALREADY_EXISTS"
	codeWrongHost        = "MISDIRECTED_REQUEST"
	codeMethod           = "METHOD_NOT_ALLOWED"
	codeTooLarge         = "REQUEST_BODY_TOO_LARGE"
	codeHeaderTooLarge   = "REQUEST_HEADER_TOO_LARGE"
	codeMalformed        = "MALFORMED_REQUEST"
	codeMediaType        = "UNSUPPORTED_MEDIA_TYPE"
	codeRequestTimeout   = "REQUEST_TIMEOUT"
	codeRateLimited      = "RATE_LIMITED"
	codeNoLeader         = "NO_LEADER"
	codeIncomplete       = "INCOMPLETE_RESULTS"
	codeUnavailable      = "UNAVAILABLE"
	codeTimeout          = "TIMEOUT"
	codeAnswerTooLarge   = "RESPONSE_TOO_LARGE"
	codeRange            = "RANGE_NOT_SATISFIABLE"
	codeClientGone       = "CLIENT_CLOSED_REQUEST"
	codeShuttingDown     = "SHUTTING_DOWN"
	codeNotReady         = "NOT_READY"
)

// statusClientGone is the status, in logs and metrics only, of a request whose client has left.
const statusClientGone = 499

// failure is an answer with an error: the members that every error has, those for a mistake in a
// query and for a missing path, and headers.
type failure struct {
	Status  int    `json:"statusCode"`
	Code    string `json:"errorCode"`
	Message string `json:"message"`
	*queryMistake
	*seenBefore
	RetryAfter time.Duration `json:"-"` // 0: do not send the header
	Allow      string        `json:"-"` // methods; "": do not send the header
	cause      error         // for the log, never shown
}

// queryMistake is the position of a mistake in a query, and what could stand there.
type queryMistake struct {
	Offset     int      `json:"offset"`
	Length     int      `json:"length"`
	Expected   []string `json:"expected"`
	Suggestion string   `json:"suggestion,omitempty"`
}

// Error returns the message.
func (f *failure) Error() string { return f.Message }

// body returns the failure as JSON.
func (f *failure) body() []byte {
	b, err := json.Marshal(f)
	if err != nil {
		return []byte(`{"statusCode":500,"errorCode":"UNEXPECTED_ERROR","message":"Unexpected error"}`)
	}
	return b
}

// retryAfter returns the value of the header Retry-After: whole seconds, at least one.
func (f *failure) retryAfter() string {
	return strconv.Itoa(max(1, int(math.Ceil(f.RetryAfter.Seconds()))))
}

func invalidBody(format string, args ...any) *failure {
	return &failure{Status: 400, Code: codeInvalidBody, Message: "Schema validation failed with: " + fmt.Sprintf(format, args...)}
}

func invalidParams(format string, args ...any) *failure {
	return &failure{Status: 400, Code: codeInvalidParams, Message: "Query params validation failed with: " + fmt.Sprintf(format, args...)}
}

// errPeerGone is the cancel cause of a request whose client closed its connection.
var errPeerGone = errors.New("client closed the connection")

// errStopping is the cancel cause of requests when the server stops.
var errStopping = errors.New("server is stopping")

// asFailure converts an error of a call with ctx into an answer. An error without a row in
// call.Kinds is a defect: its text goes to the log only.
func asFailure(ctx context.Context, err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}

	// If the client has left or the server stops, err is only a consequence. Report the cause.
	if ctx.Err() != nil {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errPeerGone):
			return &failure{Status: statusClientGone, Code: codeClientGone, Message: "The client closed the connection.", cause: err}
		case errors.Is(cause, errStopping):
			return stopping(err)
		}
	}

	if k := nodecall.KindOf(err); k != nil {
		return fromNode(k.Status, k.Code, err)
	}
	return &failure{Status: 500, Code: codeUnexpected, Message: "Unexpected error: the node's log has the details.", cause: err}
}

// stopping returns the answer of a node that stops.
func stopping(cause error) *failure {
	return &failure{Status: 503, Code: codeShuttingDown, Message: "This node is stopping; ask another one.", RetryAfter: time.Second, cause: cause}
}

// fromNode makes the answer for an error of package node, with the status and code of its kind.
func fromNode(status int, code string, err error) *failure {
	// An error that is no call.Error has no message for people: its text goes to the log only.
	f := &failure{Status: status, Code: code, cause: err}
	var e *nodecall.Error
	if !errors.As(err, &e) {
		f.Message = defaultMessage(status)
		return f
	}
	f.Message, f.RetryAfter = e.Message, e.RetryAfter
	if code == codeQuery {
		return queryFailure(f, e)
	}
	return f
}

// queryFailure adds to f the position of a mistake in a query, and what could stand there: as
// members, and in the message unless it already begins with the position.
func queryFailure(f *failure, e *nodecall.Error) *failure {
	f.queryMistake = queryMistakeOf(e)

	if strings.HasPrefix(e.Message, fmt.Sprintf("at byte %d:", e.Offset)) {
		return f
	}
	if e.Expected != "" {
		f.Message = fmt.Sprintf("%s (at byte %d, expected %s)", e.Message, e.Offset, e.Expected)
	} else {
		f.Message = fmt.Sprintf("%s (at byte %d)", e.Message, e.Offset)
	}
	return f
}

// queryMistakeOf returns the mistake in a query that e reports; nil if its position is unknown.
func queryMistakeOf(e *nodecall.Error) *queryMistake {
	// Without Expected the position is unknown, and Offset is 0.
	if e.Expected == "" {
		return nil
	}

	mistake := &queryMistake{Offset: e.Offset, Length: e.Length, Expected: e.Choices, Suggestion: e.Suggestion}
	if len(mistake.Expected) == 0 {
		mistake.Expected = []string{e.Expected}
	}
	return mistake
}

// defaultMessage returns the message of an answer whose error has none for people.
func defaultMessage(status int) string {
	if status == 504 {
		return "The deadline passed before there was an answer."
	}
	return "The request failed."
}

// seenBefore says where a missing path existed last. Only a failure for a missing path has it, and
// only if the request asked for it.
type seenBefore struct {
	LastSeen *lastSeenJSON `json:"lastSeen,omitzero"`   // nil: no commit that was read had the path
	IsWhole  bool          `json:"isHistoryExhaustive"` // the whole history was read
}

type lastSeenJSON struct {
	Path    string      `json:"path"`
	Type    string      `json:"type"`
	Commit  string      `json:"commit"`
	Removed removedJSON `json:"removedBy"`
	Renamed string      `json:"renamedTo,omitempty"`
}

type removedJSON struct {
	Hash    string `json:"hash"`
	Date    string `json:"date"`
	Message string `json:"message"`
}
