package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
)

// The errors of a port itself.
var (
	// ErrUnreachable is wrapped where a node could not be asked: the call
	// has not begun.
	ErrUnreachable = errors.New("node cannot be reached")
	// ErrBroken is wrapped where the connection broke under a call: it is
	// not known whether the call has taken effect.
	ErrBroken = errors.New("connection broke during the call")
	// ErrRefused is wrapped where one side does not want the other: another
	// cluster, another node than expected, a node that was removed.
	ErrRefused = errors.New("refused")
	// ErrSelf is wrapped where a node has reached itself.
	ErrSelf = errors.New("that is this node itself")
	// ErrNoMethod is wrapped where nobody answers calls of the method: the
	// node runs another version.
	ErrNoMethod = errors.New("no such method")
	// ErrTooLarge is wrapped where a message is over its bound.
	ErrTooLarge = errors.New("message too large")
	// ErrClosed is returned after Run has ended.
	ErrClosed = errors.New("port closed")
)

// RemoteError is an error that the handler on another node returned. It
// wraps the kind of that error, if it has one that is known on both sides.
type RemoteError struct {
	Node string // who returned it
	Text string // what it said
	Kind error  // fs.ErrNotExist, context.DeadlineExceeded, ...; nil for others
}

func (e *RemoteError) Error() string { return fmt.Sprintf("node %s: %s", short(e.Node), e.Text) }

// Unwrap returns the kind.
func (e *RemoteError) Unwrap() error { return e.Kind }

// short is an id as messages show it.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

// kinds maps errors to the names under which they travel.
type kinds map[string]error

func newKinds(more map[string]error) kinds {
	k := kinds{
		"not-exist":  fs.ErrNotExist,
		"exist":      fs.ErrExist,
		"permission": fs.ErrPermission,
		"invalid":    fs.ErrInvalid,
		"deadline":   context.DeadlineExceeded,
		"canceled":   context.Canceled,
		"no-method":  ErrNoMethod,
		"too-large":  ErrTooLarge,
		"refused":    ErrRefused,
		"self":       ErrSelf,
	}
	maps.Copy(k, more)
	return k
}

// name returns the name of err's kind. An error of several kinds gets the
// first name by the alphabet, on every node the same.
func (k kinds) name(err error) string {
	best := ""
	for name, kind := range k {
		if errors.Is(err, kind) && (best == "" || name < best) {
			best = name
		}
	}
	return best
}
