package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
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
	// ErrTwin is wrapped where a node has reached another process that has
	// its id: the data directory of one of them is a copy.
	ErrTwin = errors.New("two nodes have one identity")
	// ErrNoMethod is wrapped where nobody answers calls of the method: the
	// node runs another version.
	ErrNoMethod = errors.New("no such method")
	// ErrTooLarge is wrapped where a message is over its bound.
	ErrTooLarge = errors.New("message too large")
	// ErrOverloaded is wrapped where a node has too much to do. It is the one
	// kind that all layers share: see Overloaded and RetryAfter.
	ErrOverloaded = errors.New("overloaded")
	// ErrClosed is returned after Run has ended.
	ErrClosed = errors.New("port closed")
)

// RemoteError is an error that the handler on another node returned. It
// wraps the kind of that error, if both sides have a row for it.
type RemoteError struct {
	Node string        // who returned it
	Text string        // what it said, without the way that it took
	Kind error         // Err of a row of the table of kinds; nil for others
	Wait time.Duration // after which to ask again; 0 where the node did not say
}

func (e *RemoteError) Error() string { return fmt.Sprintf("node %s: %s", short(e.Node), e.Text) }

// Unwrap returns the kind.
func (e *RemoteError) Unwrap() error { return e.Kind }

// TryAgain returns Wait: see RetryAfter.
func (e *RemoteError) TryAgain() time.Duration { return e.Wait }

// short is an id as messages show it.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

// Kind is a row of the table of error kinds. A handler's error keeps its kind on
// the way to the caller: where errors.Is(err, Err) holds on the one node it holds on the
// other, whatever was wrapped around Err.
//
// The table is given once, as Options.Errors. To add a kind is to add a row:
//
//	var ErrNoSuchBranch = errors.New("no such branch")
//
//	wire.Kind{Name: "no-such-branch", Err: ErrNoSuchBranch}
//
// A caller reads it back without knowing that the answer came from elsewhere:
//
//	out, err := port.Call(ctx, target, "branch", in)
//	switch remote := (*wire.RemoteError)(nil); {
//	case errors.Is(err, ErrNoSuchBranch): // local or remote
//	case errors.Is(err, wire.ErrOverloaded): // again in wire.RetryAfter(err)
//	case errors.As(err, &remote): // remote.Text is the handler's sentence alone
//	}
//
// A node that has no row of a name, as one of an earlier version, sees the text
// without a kind.
type Kind struct {
	Name string // under which it travels: lower-case letters, digits, "-"; never given to another kind
	Err  error
}

// RetryAfter is when an error says that it is worth asking again, on this node
// or on another; 0 where it says nothing of it. Every error type with a method
// TryAgain() time.Duration says so, and its time travels in milliseconds.
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

// ownKinds are the rows that every port has.
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

// newKinds puts the rows of the layers above before those of the port. An
// error of several kinds travels as the first of them.
func newKinds(more []Kind) (kinds, error) {
	table := append(append(kinds{}, more...), ownKinds...)

	// Checked at the start: a name that nobody can send would show in the first error only.
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

// name returns the name of err's kind, "" for an error of none.
func (ks kinds) name(err error) string {
	for _, k := range ks {
		if errors.Is(err, k.Err) {
			return k.Name
		}
	}
	return ""
}

// named returns the kind of a name, nil where there is none.
func (ks kinds) named(name string) error {
	for _, k := range ks {
		if k.Name == name {
			return k.Err
		}
	}
	return nil
}

// body is the body of an errorFrame for an error of a handler.
func (ks kinds) body(err error) []byte {
	return errorBody(failure{kind: ks.name(err), text: err.Error(), wait: RetryAfter(err)})
}

// remote makes the error that the body of an errorFrame of a peer holds.
func (ks kinds) remote(peer Peer, body []byte) error {
	f, err := parseError(body)
	if err != nil {
		return err
	}
	return &RemoteError{Node: peer.Node, Text: f.text, Kind: ks.named(f.kind), Wait: f.wait}
}
