package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is how a call of a model failed.
type Kind string

// The kinds.
const (
	TooLong     Kind = "too long"    // the conversation does not fit into the model's window
	NoCredit    Kind = "no credit"   // the account at the provider has nothing left
	BadKey      Kind = "bad key"     // the credential is missing, wrong or not allowed this
	NoKey       Kind = "no key"      // this node has not what calling the model needs; nobody was asked
	NoModel     Kind = "no model"    // the provider does not know the model
	Limited     Kind = "limited"     // too many requests or tokens in a while
	Overloaded  Kind = "overloaded"  // the provider has trouble of its own
	Filtered    Kind = "filtered"    // a filter of the provider refused the text
	Refused     Kind = "refused"     // the request is not to the provider's liking
	Unreachable Kind = "unreachable" // no connection
	Silent      Kind = "silent"      // nothing came for too long
	Broken      Kind = "broken"      // the answer was cut off or makes no sense
)

// Error is the failure of a call of a model. No secret is in it.
type Error struct {
	Kind       Kind
	Provider   string
	Status     int // of HTTP; 0 without an answer
	Message    string
	RetryAfter time.Duration // as the provider told; 0 where it did not
	Tries      int           // how often it was asked
}

// errorRow tells how a kind is recognised and what is done about it.
type errorRow struct {
	kind     Kind
	statuses []int
	codes    []string // error codes, types and names of exceptions
	phrases  []string // of messages, in small letters
	again    bool     // the same request may succeed later
	sentence string   // for people; %s is the provider
}

// errorRows is the one table of failures. The first row that fits decides:
// providers have no common code for most of them.
var errorRows = []errorRow{
	{TooLong, nil,
		[]string{"context_length_exceeded", "model_context_window_exceeded"},
		[]string{"prompt is too long", "maximum context length", "maximum number of tokens", "input is too long", "context window", "too many tokens in the prompt"},
		false, "The conversation is longer than the model of %s can read."},
	{NoCredit, []int{402},
		[]string{"insufficient_quota", "billing_error", "billing_not_active"},
		[]string{"credit balance", "insufficient balance", "exceeded your current quota, please check your plan"},
		false, "The instance's account at %s has no credit left. Tell its operator."},
	{Filtered, nil,
		[]string{"content_filter", "content_policy_violation", "responsibleaipolicyviolation"},
		[]string{"content management policy"},
		false, "A content filter of %s refused the text."},
	{BadKey, []int{401, 403},
		[]string{"authentication_error", "permission_error", "invalid_api_key", "unauthenticated", "permission_denied", "accessdeniedexception", "unrecognizedclientexception"},
		[]string{"api key not valid"},
		false, "The instance's key for %s was refused. Tell its operator; the other tools work."},
	{NoKey, nil, nil, nil, false, "This node lacks what calling %s needs. Tell the instance's operator; the other tools work."},
	{NoModel, []int{404},
		[]string{"model_not_found", "not_found_error", "resourcenotfoundexception", "deploymentnotfound"},
		nil, false, "%s does not know the configured model. Tell the operator."},
	{Limited, []int{429},
		[]string{"rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "throttlingexception", "too_many_requests"},
		[]string{"rate limit"},
		true, "%s takes no more requests for a while."},
	{Overloaded, []int{408, 409, 425, 500, 502, 503, 504, 520, 522, 524, 529},
		[]string{"overloaded_error", "api_error", "server_error", "unavailable", "internal", "insufficient_system_resource", "internalserverexception",
			"serviceunavailableexception", "modelnotreadyexception", "modeltimeoutexception", "modelstreamerrorexception", "deadline_exceeded"},
		[]string{"overloaded"},
		true, "%s is overloaded or has trouble of its own."},
	{Refused, []int{400, 405, 413, 415, 422}, nil, nil, false, "%s refused the request."},
	{Unreachable, nil, nil, nil, true, "%s cannot be reached from this node."},
	{Silent, nil, nil, nil, true, "%s said nothing for too long."},
	{Broken, nil, nil, nil, true, "The answer of %s was cut off or made no sense."},
}

func rowOf(kind Kind) *errorRow {
	for i := range errorRows {
		if errorRows[i].kind == kind {
			return &errorRows[i]
		}
	}
	return &errorRows[len(errorRows)-1]
}

// Error is a sentence for people.
func (e *Error) Error() string {
	text := fmt.Sprintf(rowOf(e.Kind).sentence, e.Provider)
	// Said to whoever reads it, so that nobody tries again at once.
	if e.Tries > 1 {
		text += fmt.Sprintf(" Tried %d times.", e.Tries)
	}

	if e.Status != 0 || e.Message != "" {
		// With no key we made no request, so the message is ours.
		if e.Kind != NoKey {
			text += " It said:"
		}
		if e.Status != 0 {
			text += " " + strconv.Itoa(e.Status)
		}
		if e.Message != "" {
			text += " " + e.Message
		}
	}

	return text
}

// again reports whether the same request may succeed later.
func (e *Error) again() bool { return rowOf(e.Kind).again }

// kindFor finds the kind of what a provider told: a status of HTTP or 0, the
// codes and types that it gave, its message.
func kindFor(status int, codes []string, message string) Kind {
	message = strings.ToLower(message)
	fits := func(r *errorRow) bool {
		for _, c := range codes {
			if slices.Contains(r.codes, strings.ToLower(c)) {
				return true
			}
		}
		return slices.ContainsFunc(r.phrases, func(p string) bool { return strings.Contains(message, p) })
	}

	// What was said in words decides before the status does: 400 and 429 mean
	// several things.
	for i := range errorRows {
		if fits(&errorRows[i]) {
			return errorRows[i].kind
		}
	}
	for i := range errorRows {
		if slices.Contains(errorRows[i].statuses, status) {
			return errorRows[i].kind
		}
	}

	switch {
	case status >= 500:
		return Overloaded
	case status >= 400:
		return Refused
	}
	return Broken
}

// maxErrorBody is how many bytes of a refusal are read, maxErrorText how many
// of its message are kept.
const (
	maxErrorBody = 64 << 10
	maxErrorText = 600
)

// fromResponse makes an Error of an answer that is none.
func fromResponse(resp *http.Response) *Error {
	// Bounded: the other side may be a proxy, or somebody else altogether.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		body = nil // the status says enough
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return &Error{Kind: Refused, Status: resp.StatusCode, Message: "a redirect, which is not followed: set baseUrl to where the service is"}
	}

	codes, message := readErrorBody(body)
	// Of Bedrock, whose bodies do not tell the name of the exception.
	if name := resp.Header.Get("X-Amzn-Errortype"); name != "" {
		name, _, _ = strings.Cut(name, ":")
		codes = append(codes, name)
	}
	e := &Error{Kind: kindFor(resp.StatusCode, codes, message), Status: resp.StatusCode, Message: message}
	e.RetryAfter = retryAfter(resp.Header, body)
	return e
}

// errorBody is the union of what providers put into a refusal.
type errorBody struct {
	Error   json.RawMessage `json:"error"` // an object, or a text
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  string          `json:"status"`
	Param   string          `json:"param"`
	Message json.RawMessage `json:"message"` // a text; Mistral nests
	Detail  json.RawMessage `json:"detail"`
	Meta    struct {
		Raw json.RawMessage `json:"raw"`
	} `json:"metadata"`
	Details []struct {
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
}

// readErrorBody finds codes and message in a refusal, whatever its form.
func readErrorBody(body []byte) (codes []string, message string) {
	body = []byte(strings.TrimSpace(string(body)))
	if len(body) > 0 && body[0] == '[' { // Gemini sends a list of one
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			body = list[0]
		}
	}

	var b errorBody
	if json.Unmarshal(body, &b) != nil {
		return nil, clip(string(body))
	}

	if len(b.Error) > 0 && b.Error[0] == '{' {
		// Most nest it once. The depth is bounded by that of the JSON.
		codes, message = readErrorBody(b.Error)
	} else {
		message = plain(b.Error)
	}

	// Messages wraps every failure in the type error, which tells nothing.
	for _, c := range []string{plain(b.Code), b.Type, b.Status} {
		if c != "" && c != "error" {
			codes = append(codes, c)
		}
	}
	for _, m := range []string{plain(b.Message), plain(b.Detail), b.Param, plain(b.Meta.Raw)} {
		// Gateways repeat the message of the service that they stand before.
		if m != "" && !strings.Contains(message, m) {
			message = strings.TrimSpace(message + " " + m)
		}
	}
	return codes, clip(message)
}

// plain is a JSON text without its quotes, or the JSON itself.
func plain(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	}
	return string(raw)
}

func clip(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) > maxErrorText {
		return strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// retryAfter is when a provider wants to be asked again; 0 where it does not
// say so.
func retryAfter(h http.Header, body []byte) time.Duration {
	// The finer one first, where a service sends both.
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil && s > 0 {
		return time.Duration(s * float64(time.Second))
	}

	// Google says it in the body alone.
	var b struct {
		Error errorBody `json:"error"`
	}
	if json.Unmarshal(body, &b) == nil {
		for _, d := range b.Error.Details {
			if delay, err := time.ParseDuration(d.RetryDelay); err == nil {
				return delay
			}
		}
	}
	return 0
}

// toError gives the failure of a wire its kind.
func toError(ctx context.Context, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if cause := context.Cause(ctx); cause != nil && errors.As(cause, &e) {
		return e
	}

	// The text of a url.Error has the address, which may have a secret in it.
	var u *url.Error
	if errors.As(err, &u) {
		return &Error{Kind: Unreachable, Message: clip(u.Err.Error())}
	}
	return &Error{Kind: Broken, Message: clip(err.Error())}
}
