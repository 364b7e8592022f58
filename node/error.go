package node

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of failure that a public operation reports. A caller tells them
// apart with errors.Is; the message of the [Error] around it is for people.
var (
	// ErrInvalid: the request breaks a rule that its message names.
	ErrInvalid = errors.New("invalid request")
	// ErrQuery: the query text cannot be understood; Error.Offset says where.
	ErrQuery = errors.New("query cannot be parsed")
	// ErrRef: no branch, tag or commit has that name, or the name is malformed.
	ErrRef = errors.New("unknown git reference")
	// ErrUnauthenticated: no credential, or one that is not valid (any more).
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrForbidden: the viewer's role does not allow the operation.
	ErrForbidden = errors.New("not allowed")
	// ErrRepoNotFound: no repository of that name exists for the viewer.
	ErrRepoNotFound = errors.New("repository not found")
	// ErrFileNotFound: the revision has no such path.
	ErrFileNotFound = errors.New("file not found")
	// ErrContextNotFound: no search context has that name.
	ErrContextNotFound = errors.New("search context not found")
	// ErrNotFound: anything else that was asked for by name and is not there.
	ErrNotFound = errors.New("not found")
	// ErrExists: a thing of that name is there already.
	ErrExists = errors.New("already exists")
	// ErrOverloaded: too much is under way; Error.RetryAfter says when to ask again.
	ErrOverloaded = errors.New("overloaded")
	// ErrIncomplete: the caller asked for a complete answer or none, and some shards did not answer.
	ErrIncomplete = errors.New("answer incomplete")
	// ErrNoLeader: a write found no quorum within the hold time.
	ErrNoLeader = errors.New("no leader")
	// ErrUnavailable: no live node holds what the request needs.
	ErrUnavailable = errors.New("not available now")
	// ErrTimeout: the deadline passed before there was an answer.
	ErrTimeout = errors.New("deadline exceeded")
	// ErrTooLarge: the answer would pass a bound that the message names.
	ErrTooLarge = errors.New("too large")
)

// Error is what a public operation fails with. Kind is one of the errors
// above (or a standard error), Message a sentence for the user.
type Error struct {
	Kind       error
	Message    string
	Offset     int           // byte offset in the query, with ErrQuery
	Expected   string        // what could stand there, with ErrQuery
	RetryAfter time.Duration // with ErrOverloaded
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// fail makes an Error of a kind.
func fail(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}
