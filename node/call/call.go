package call

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node/trace"
)

// Network connects nodes; *cluster.Cluster implements it. Its methods are safe for concurrent
// use, but Handle must come before the first call.
type Network interface {
	// Self returns the id of this node.
	Self() string
	// Call calls a method on a member, which may be this node.
	Call(ctx context.Context, node, method string, in []byte) ([]byte, error)
	// Handle sets the handler of a method.
	Handle(method string, h cluster.Handler)
	// Lacks reports whether this node shall behave as if its program did not know a field. Tests
	// use it to simulate an earlier release.
	Lacks(field string) bool
}

// Method is one call between nodes. Its name and the meaning of its fields must stay the same
// while nodes of two versions may meet. A field unknown to the other side is skipped, except with
// Whole.
type Method[Req, Resp any] struct {
	name               string
	whole              bool
	questions, answers *codec
}

// Nothing is the request of a method without parameters.
type Nothing bool

// methods has what Types returns.
var methods sync.Map

// To makes a method.
func To[Req, Resp any](name string) Method[Req, Resp] {
	methods.Store(name, [2]reflect.Type{reflect.TypeFor[Req](), reflect.TypeFor[Resp]()})
	return Method[Req, Resp]{name: name, questions: codecOf[Req](), answers: codecOf[Resp]()}
}

// Types returns the request and response types of every method by name. A test compares them with
// what other versions send.
func Types() map[string][2]reflect.Type {
	all := map[string][2]reflect.Type{}
	methods.Range(func(name, types any) bool {
		all[name.(string)] = types.([2]reflect.Type)
		return true
	})
	return all
}

// Ask calls a method on a node and waits for the answer. An error of the other node becomes an
// [Error] of the same kind. If there was no answer, the error is from package wire or from ctx.
func (m Method[Req, Resp]) Ask(ctx context.Context, net Network, node string, req *Req) (*Resp, error) {
	in, err := m.questions.encode(m.messageParts(ctx, req)...)
	if err != nil {
		return nil, err
	}

	out, err := net.Call(ctx, node, m.name, in)

	// The kind travels by name; fromWire restores it.
	if err != nil {
		return nil, fromWire(err)
	}

	resp := new(Resp)
	if err := m.answers.decode(out, resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// messageParts returns a request and, if needed, the parts that follow it.
func (m Method[Req, Resp]) messageParts(ctx context.Context, req *Req) []any {
	extra, request, parent := parts{}, RequestOf(ctx), trace.Parent(ctx)
	if m.whole {
		extra = partsOf(req)
	} else if request == "" && parent == "" {
		return []any{req}
	}
	extra.Request, extra.Trace = request, parent
	return []any{req, extra}
}

// Serve sets the handler of a method. The context of run carries the caller's request id. It ends
// at the caller's deadline, when the caller gives up, or when the connection breaks.
func (m Method[Req, Resp]) Serve(net Network, run func(ctx context.Context, req *Req) (*Resp, error)) {
	knows := sync.OnceValue(func() map[string]bool { return fieldsOf(reflect.TypeFor[Req]()) })
	net.Handle(m.name, func(ctx context.Context, _ cluster.Peer, in []byte) ([]byte, error) {
		// A caller may send no request id, trace or list of fields: extra stays empty then.
		req, extra := new(Req), parts{}
		if err := m.questions.decode(in, req, &extra); err != nil {
			return nil, err
		}
		if err := extra.checkFields(func(field string) bool { return knows()[field] }, net.Lacks); err != nil {
			return nil, err
		}
		if extra.Request != "" {
			ctx = WithRequest(ctx, extra.Request)
		}
		ctx = trace.Under(ctx, extra.Trace)

		resp, err := run(ctx, req)
		if err != nil {
			return nil, err
		}
		return m.answers.encode(resp)
	})
}

// Elsewhere reports whether a failed call may succeed on another node: because this node could
// not be reached, has another version, or cannot answer now.
func Elsewhere(err error) bool {
	if e := (*Error)(nil); errors.As(err, &e) {
		row := KindOf(e)
		return row != nil && row.Elsewhere
	}

	// An error without a kind would happen on other nodes too, unless this node does not know the
	// method.
	remote := (*wire.RemoteError)(nil)
	return !errors.As(err, &remote) || errors.Is(err, wire.ErrNoMethod)
}

// fromWire restores the kind and message of an error from another node.
func fromWire(err error) error {
	remote := (*wire.RemoteError)(nil)
	if !errors.As(err, &remote) || remote.Kind == nil {
		return err
	}
	if row := KindOf(remote.Kind); row != nil {
		return &Error{Kind: row.Err, Message: remote.Text, RetryAfter: cmp.Or(remote.Wait, row.RetryAfter)}
	}
	return err
}
