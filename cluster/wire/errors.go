package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// The errors of a port.
var (
	// ErrUnreachable is wrapped if a node could not be called: the call has not begun.
	ErrUnreachable = errors.New("node cannot be reached")
	// ErrBroken is wrapped if the connection broke during a call: the call may or may not have
	// taken effect.
	ErrBroken = errors.New("connection broke during the call")
	// ErrRefused is wrapped if one side does not accept the other: it has another cluster, has
	// another id than expected, or was removed.
	ErrRefused = errors.New("refused")
	// ErrSelf is wrapped if a node has reached itself.
	ErrSelf = errors.New("that is this node itself")
	// ErrTwin is wrapped if a node has reached another process with its own id: one of them runs on
	// a copied data directory.
	ErrTwin = errors.New("two nodes have one identity")
	// ErrOtherKey is wrapped if a node runs at the address, and it or this node does not accept the
	// cluster key of the other.
	ErrOtherKey = errors.New("the other node has another cluster key")
	// ErrNoMethod is wrapped if no handler exists for the method: the node runs another version.
	ErrNoMethod = errors.New("no such method")
	// ErrTooLarge is wrapped if a message exceeds its limit.
	ErrTooLarge = errors.New("message too large")
	// ErrOverloaded is wrapped if a node has too much to do. All layers share this kind: see
	// RetryAfter.
	ErrOverloaded = errors.New("overloaded")
	// ErrClosed is returned after Run has ended.
	ErrClosed = errors.New("port closed")
)

// RemoteError is an error that a handler on another node returned. It wraps the kind of that error,
// if both sides have a row for it.
type RemoteError struct {
	Node string        // the node of the handler
	Text string        // text of the handler's error
	Kind error         // Err of a row of the table of kinds, or nil
	Wait time.Duration // when to try again; 0: unknown
}

func (e *RemoteError) Error() string { return fmt.Sprintf("node %s: %s", shortID(e.Node), e.Text) }

// Unwrap returns the kind.
func (e *RemoteError) Unwrap() error { return e.Kind }

// TryAgain returns Wait: see RetryAfter.
func (e *RemoteError) TryAgain() time.Duration { return e.Wait }

// shortID shortens an id for messages.
func shortID(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

// Kind is a row of the table of error kinds. A handler's error keeps its kind on the way to the
// caller: if errors.Is(err, Err) holds on one node, it holds on the other, too.
//
// The table is set as Options.Errors. To add a kind, add a row:
//
//	var ErrNoSuchBranch = errors.New("no such branch")
//	wire.Kind{Name: "no-such-branch", Err: ErrNoSuchBranch}
//
// The caller checks it as if the error were local:
//
//	out, err := port.Call(ctx, target, "branch", in)
//	switch remote := (*wire.RemoteError)(nil); {
//	case errors.Is(err, ErrNoSuchBranch): // local or remote
//	case errors.Is(err, wire.ErrOverloaded): // again in wire.RetryAfter(err)
//	case errors.As(err, &remote): // remote.Text is the handler's sentence alone
//	}
//
// A node without a row of that name, as an older version, gets the text without a kind.
type Kind struct {
	Name string // its name in messages: lower-case letters, digits, "-"; never reused for another kind
	Err  error
}

// RetryAfter returns when to try again after an error, on this node or another; 0: unknown. An
// error type tells it by the method TryAgain() time.Duration. It travels in milliseconds.
func RetryAfter(err error) time.Duration {
	var e interface {
		error
		TryAgain() time.Duration
	}
	if errors.As(err, &e) {
		return e.TryAgain()
	}
	return 0
}

// ownKinds are the rows of every port.
var ownKinds = []Kind{
	{"not-exist", fs.ErrNotExist},
	{"exist", fs.ErrExist},
	{"permission", fs.ErrPermission},
	{"invalid", fs.ErrInvalid},
	{"deadline", context.DeadlineExceeded},
	{"canceled", context.Canceled},
	{"no-method", ErrNoMethod},
	{"too-large", ErrTooLarge},
	{"refused", ErrRefused},
	{"self", ErrSelf},
	{"twin", ErrTwin},
	{"overloaded", ErrOverloaded},
}

// kinds is the table of a port.
type kinds []Kind

// newKinds puts the rows of the layers above before those of the port. An error of several kinds
// travels as the first of them.
func newKinds(more []Kind) (kinds, error) {
	table := append(append(kinds{}, more...), ownKinds...)

	// Check at the start: otherwise a bad name would only show up with the first error.
	seen := map[string]bool{}
	for _, k := range table {
		if k.Err == nil || k.Name == "" || len(k.Name) > maxKindName || strings.Trim(k.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return nil, fmt.Errorf("kind of errors %q: it needs an error and a name of lower-case letters, digits and -", k.Name)
		}
		if seen[k.Name] {
			return nil, fmt.Errorf("kind of errors %q: there are two of that name", k.Name)
		}
		seen[k.Name] = true
	}
	return table, nil
}

// nameOf returns the name of err's kind, or "".
func (ks kinds) nameOf(err error) string {
	for _, k := range ks {
		if errors.Is(err, k.Err) {
			return k.Name
		}
	}
	return ""
}

// errorOf returns the error of a kind by its name, or nil.
func (ks kinds) errorOf(name string) error {
	for _, k := range ks {
		if k.Name == name {
			return k.Err
		}
	}
	return nil
}

// encodeError encodes the error of a handler for an errorFrame.
func (ks kinds) encodeError(err error) []byte {
	return errorBody(failure{kind: ks.nameOf(err), text: err.Error(), wait: RetryAfter(err)})
}

// decodeError decodes the body of an errorFrame from a peer.
func (ks kinds) decodeError(peer Peer, body []byte) error {
	f, err := parseError(body)
	if err != nil {
		return err
	}
	return &RemoteError{Node: peer.Node, Text: f.text, Kind: ks.errorOf(f.kind), Wait: f.wait}
}
