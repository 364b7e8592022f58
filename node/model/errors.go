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

// Kinds of failures.
const (
	TooLong     Kind = "too long"    // the conversation does not fit into the model's window
	NoCredit    Kind = "no credit"   // the account at the provider has nothing left
	BadKey      Kind = "bad key"     // the credential is missing, wrong or not allowed to do this
	NoKey       Kind = "no key"      // this node lacks a credential or property; no request was made
	NoModel     Kind = "no model"    // the provider does not know the model
	Limited     Kind = "limited"     // too many requests or tokens for now
	Overloaded  Kind = "overloaded"  // the provider has problems
	Filtered    Kind = "filtered"    // a filter of the provider refused the text
	Refused     Kind = "refused"     // the provider rejects the request
	Unreachable Kind = "unreachable" // no connection
	Silent      Kind = "silent"      // no data for too long
	Broken      Kind = "broken"      // the answer was cut off or is not valid
)

// Error is the failure of a call of a model. It contains no secrets.
type Error struct {
	Kind       Kind
	Provider   string
	Status     int // HTTP status; 0 without a response
	Message    string
	RetryAfter time.Duration // as the provider demands; 0 if it does not
	Tries      int           // number of attempts
}

// errorRow describes how to recognize a kind of failure, and what to do about it.
type errorRow struct {
	kind      Kind
	statuses  []int
	codes     []string // error codes, types and names of exceptions
	phrases   []string // parts of messages, in lower case
	temporary bool     // the same request may succeed later
	sentence  string   // for people; %s is the provider
}

// errorRows lists all kinds of failures. The first row that matches decides, since providers
// share no codes for most of them.
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

// rowOf returns the row of a kind of errors, or the last row if the kind is unknown.
func rowOf(kind Kind) *errorRow {
	for i := range errorRows {
		if errorRows[i].kind == kind {
			return &errorRows[i]
		}
	}
	return &errorRows[len(errorRows)-1]
}

// Error returns a sentence for people.
func (e *Error) Error() string {
	text := fmt.Sprintf(rowOf(e.Kind).sentence, e.Provider)
	// Mention the retries, so that nobody retries at once.
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

// isTemporary reports whether the same request may succeed later.
func (e *Error) isTemporary() bool { return rowOf(e.Kind).temporary }

// kindFor returns the kind of a failure from its HTTP status (0 for none), codes and message.
func kindFor(status int, codes []string, message string) Kind {
	message = strings.ToLower(message)
	matches := func(r *errorRow) bool {
		for _, c := range codes {
			if slices.Contains(r.codes, strings.ToLower(c)) {
				return true
			}
		}
		return slices.ContainsFunc(r.phrases, func(p string) bool { return strings.Contains(message, p) })
	}

	// Codes and phrases come first: the statuses 400 and 429 have several meanings.
	for i := range errorRows {
		if matches(&errorRows[i]) {
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

// maxErrorBody limits the bytes read of an error response, maxErrorText those kept of its
// message.
const (
	maxErrorBody = 64 << 10
	maxErrorText = 600
)

// errorFromResponse makes an Error of an error response.
func errorFromResponse(resp *http.Response) *Error {
	// Limit the body, because it may come from a proxy.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err != nil {
		body = nil // the status says enough
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return &Error{Kind: Refused, Status: resp.StatusCode, Message: "a redirect, which is not followed: set baseUrl to where the service is"}
	}

	codes, message := readErrorBody(body)
	// Bedrock puts the name of the exception into a header.
	if name := resp.Header.Get("X-Amzn-Errortype"); name != "" {
		name, _, _ = strings.Cut(name, ":")
		codes = append(codes, name)
	}
	e := &Error{Kind: kindFor(resp.StatusCode, codes, message), Status: resp.StatusCode, Message: message}
	e.RetryAfter = retryAfter(resp.Header, body)
	return e
}

// errorBody has the fields of error responses of all providers.
type errorBody struct {
	Error   json.RawMessage `json:"error"` // an object or a string
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  string          `json:"status"`
	Param   string          `json:"param"`
	Message json.RawMessage `json:"message"` // a string; Mistral nests an object
	Detail  json.RawMessage `json:"detail"`
	Meta    struct {
		Raw json.RawMessage `json:"raw"`
	} `json:"metadata"`
	Details []struct {
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
}

// readErrorBody extracts codes and message from an error response in any format.
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
		return nil, oneLine(string(body))
	}

	if len(b.Error) > 0 && b.Error[0] == '{' {
		// Most services nest the error once. The JSON limits the depth.
		codes, message = readErrorBody(b.Error)
	} else {
		message = textOf(b.Error)
	}

	// Messages gives every error the type "error", which says nothing.
	for _, c := range []string{textOf(b.Code), b.Type, b.Status} {
		if c != "" && c != "error" {
			codes = append(codes, c)
		}
	}
	for _, m := range []string{textOf(b.Message), textOf(b.Detail), b.Param, textOf(b.Meta.Raw)} {
		// Gateways repeat the message of the service behind them.
		if m != "" && !strings.Contains(message, m) {
			message = strings.TrimSpace(message + " " + m)
		}
	}
	return codes, oneLine(message)
}

// textOf returns the text of a JSON string, or other JSON unchanged.
func textOf(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &s) == nil:
		return s
	}
	return string(raw)
}

// oneLine puts a text on one line and cuts it to maxErrorText.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) > maxErrorText {
		return strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

// retryAfter returns the pause that a provider demands; 0 if it demands none.
func retryAfter(h http.Header, body []byte) time.Duration {
	// Prefer milliseconds if a service sends both.
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil && s > 0 {
		return time.Duration(s * float64(time.Second))
	}

	// Google puts the pause into the body.
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

// toError turns the failure of a wire into an *Error.
func toError(ctx context.Context, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if cause := context.Cause(ctx); cause != nil && errors.As(cause, &e) {
		return e
	}

	// The text of a url.Error contains the address, which may contain a secret.
	var u *url.Error
	if errors.As(err, &u) {
		return &Error{Kind: Unreachable, Message: oneLine(u.Err.Error())}
	}
	return &Error{Kind: Broken, Message: oneLine(err.Error())}
}
