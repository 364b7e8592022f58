package call

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// Kinds of failures of operations. Callers distinguish them by errors.Is; the message of the
// surrounding [Error] is for people.
var (
	// ErrInvalid: the request breaks a rule that its message names.
	ErrInvalid = errors.New("invalid request")
	// ErrQuery: the query text cannot be understood; Error.Offset says where.
	ErrQuery = errors.New("query cannot be parsed")
	// ErrRef: no branch, tag or commit has that name, or the name is malformed.
	ErrRef = errors.New("unknown git reference")
	// ErrUnauthenticated: there is no credential, or it is not valid (any more).
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrForbidden: the viewer's role does not allow the operation.
	ErrForbidden = errors.New("not allowed")
	// ErrRepoNotFound: no repository of that name exists for the viewer.
	ErrRepoNotFound = errors.New("repository not found")
	// ErrFileNotFound: the revision has no such path.
	ErrFileNotFound = errors.New("file not found")
	// ErrContextNotFound: no search context has that name.
	ErrContextNotFound = errors.New("search context not found")
	// ErrNotFound: something else that the request names does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists: something of that name exists already.
	ErrExists = errors.New("already exists")
	// ErrHeld: the operation would remove much. Repeat the request with the confirmation.
	ErrHeld = errors.New("not confirmed")
	// ErrUnable: the state of the cluster does not allow the operation; the message says what to do.
	ErrUnable = errors.New("not possible now")
	// ErrChanged: a paged operation cannot continue, because its subject has changed.
	ErrChanged = errors.New("changed meanwhile")
	// ErrOverloaded: too much work is running; Error.RetryAfter says when to retry.
	ErrOverloaded = wire.ErrOverloaded
	// ErrIncomplete: the caller asked for a complete answer or none, and some shards did not answer.
	ErrIncomplete = errors.New("answer incomplete")
	// ErrNoLeader: a write found no quorum within the hold time.
	ErrNoLeader = errors.New("no leader")
	// ErrStale: the catalog of this node is too old to decide about permissions.
	ErrStale = errors.New("catalog too old")
	// ErrUnavailable: no live node holds what the request needs.
	ErrUnavailable = errors.New("not available now")
	// ErrTimeout: the deadline passed before there was an answer.
	ErrTimeout = errors.New("deadline exceeded")
	// ErrTooLarge: the answer would pass a bound that the message names.
	ErrTooLarge = errors.New("too large")
)

// Kind is one kind of failure with its representations.
type Kind struct {
	Err        error         // for errors.Is
	Wire       string        // name between nodes, which never changes; "" if package wire knows the error
	Status     int           // HTTP status
	Code       string        // errorCode of the body
	Hint       string        // what a model should do next; "" if that depends on the tool
	RetryAfter time.Duration // default for errors that do not set it
	Elsewhere  bool          // caused by the node that was asked, so another one may succeed
}

const (
	retrySoon = "Try again in a few seconds."
	narrow    = "Narrow it with repo, path or include, or use a longer literal in the pattern."
)

// Kinds is the table of all kinds. If an error matches several rows, the first one counts.
var Kinds = []Kind{
	{Err: ErrQuery, Wire: "query", Status: 400, Code: "FAILED_TO_PARSE_QUERY"},
	{Err: ErrRef, Wire: "ref", Status: 400, Code: "INVALID_GIT_REF"},
	{Err: ErrInvalid, Wire: "bad-request", Status: 400, Code: "INVALID_REQUEST_BODY"},
	{Err: ErrUnauthenticated, Wire: "unauthenticated", Status: 401, Code: "NOT_AUTHENTICATED"},
	{Err: ErrForbidden, Wire: "forbidden", Status: 403, Code: "INSUFFICIENT_PERMISSIONS"},
	{Err: ErrRepoNotFound, Wire: "no-repository", Status: 404, Code: "REPOSITORY_NOT_FOUND"},
	{Err: ErrFileNotFound, Wire: "no-file", Status: 404, Code: "FILE_NOT_FOUND"},
	{Err: ErrContextNotFound, Wire: "no-context", Status: 404, Code: "SEARCH_CONTEXT_NOT_FOUND"},
	{Err: ErrNotFound, Wire: "not-found", Status: 404, Code: "NOT_FOUND"},
	{Err: ErrExists, Wire: "already-exists", Status: 400, Code: "ALREADY_EXISTS"},
	{Err: ErrHeld, Wire: "held", Status: 409, Code: "CONFIRMATION_REQUIRED"},
	{Err: ErrUnable, Wire: "unable", Status: 409, Code: "NOT_POSSIBLE_NOW"},
	{Err: ErrChanged, Wire: "changed", Status: 409, Code: "INDEX_CHANGED"},
	{
		Err:    ErrTooLarge,
		Wire:   "answer-too-large",
		Status: 413,
		Code:   "RESPONSE_TOO_LARGE",
		Hint:   "Ask for less: narrow with path.",
	},
	{Err: ErrOverloaded, Status: 429, Code: "RATE_LIMITED", Hint: retrySoon, RetryAfter: time.Second, Elsewhere: true},
	{Err: ErrNoLeader, Wire: "no-quorum", Status: 503, Code: "NO_LEADER"},
	{
		Err:        ErrStale,
		Wire:       "stale",
		Status:     503,
		Code:       "CATALOG_STALE",
		Hint:       retrySoon,
		RetryAfter: 5 * time.Second,
		Elsewhere:  true,
	},
	{Err: ErrIncomplete, Wire: "incomplete", Status: 503, Code: "INCOMPLETE_RESULTS", Hint: retrySoon},
	{Err: ErrUnavailable, Wire: "unavailable", Status: 503, Code: "UNAVAILABLE", Hint: retrySoon, Elsewhere: true},
	{Err: ErrTimeout, Wire: "timeout", Status: 504, Code: "TIMEOUT", Hint: narrow},
	{Err: context.DeadlineExceeded, Status: 504, Code: "TIMEOUT", Hint: narrow},
}

// KindOf returns the row of an error. nil means that the error has no kind, which is a defect
// where it was made.
func KindOf(err error) *Kind {
	for i := range Kinds {
		if errors.Is(err, Kinds[i].Err) {
			return &Kinds[i]
		}
	}
	return nil
}

// WireKinds returns the rows that package wire must know.
func WireKinds() []cluster.Kind {
	var rows []cluster.Kind
	for _, k := range Kinds {
		if k.Wire != "" {
			rows = append(rows, cluster.Kind{Name: k.Wire, Err: k.Err})
		}
	}
	return rows
}

// Error is the failure of an operation. Kind is one of the errors above (or a standard error),
// Message a sentence for the user.
type Error struct {
	Kind       error
	Message    string
	Offset     int           // byte offset in the query, with ErrQuery
	Expected   string        // what could stand there, with ErrQuery
	RetryAfter time.Duration // with ErrOverloaded
	Length     int           // length of the wrong part in bytes, with Expected; 0 if something is missing
	Choices    []string      // all texts that could stand there, with Expected; nil if not limited
	Suggestion string        // a query that may be meant, with Expected; "" for none
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// TryAgain returns RetryAfter; see wire.RetryAfter.
func (e *Error) TryAgain() time.Duration { return e.RetryAfter }

// Fail makes an Error of a kind, with RetryAfter from the table.
func Fail(kind error, format string, args ...any) *Error {
	e := &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}

	if row := KindOf(kind); row != nil {
		e.RetryAfter = row.RetryAfter
	}
	return e
}

// WriteError gives an error of a catalog change its kind.
func WriteError(err error) error {
	var refusal *catalog.Refusal
	switch {
	case errors.As(err, &refusal):
		switch refusal.Code {
		case catalog.NotFound:
			return Fail(ErrNotFound, "%s", refusal.Reason)
		case catalog.Conflict, catalog.Stale:
			return Fail(ErrUnable, "%s", refusal.Reason)
		}
		return Fail(ErrInvalid, "%s", refusal.Reason)

	case errors.Is(err, cluster.ErrDisputed):
		return Fail(ErrNoLeader, "The catalogs of the nodes differ, and no majority of them has the same one: nothing is changed until one has. "+
			"Searches go on. Start the same version on all nodes; docs/upgrade.md says more.")

	// This is no refusal: the same change may succeed soon.
	case errors.Is(err, cluster.ErrNoLeader) && !errors.Is(err, cluster.ErrUnconfirmed):
		return Fail(ErrNoLeader, "%s", noLeader(err))

	// A change only waits for a quorum, and for this node to apply it.
	case errors.Is(err, cluster.ErrUnconfirmed), errors.Is(err, context.DeadlineExceeded):
		return Fail(ErrNoLeader, "The change was not confirmed in time, and may take effect: look before you try again.")
	}
	return err
}

// noLeader says what to do without a leader, and why there is none if known.
func noLeader(err error) string {
	why := err.Error()
	for range 2 { // it may be wrapped in itself
		why = strings.TrimPrefix(strings.TrimPrefix(why, cluster.ErrNoLeader.Error()), ": ")
	}
	if why != "" {
		why = " (" + why + ")"
	}
	return "The cluster has no leader now, so nothing was changed" + why + ". Searches go on. `shoal status` names the nodes that do not answer."
}
