package call

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// Network is how nodes reach each other; *cluster.Cluster is one. Its methods
// are safe for concurrent use, but Handle comes before the first call.
type Network interface {
	// Self is the id of this node.
	Self() string
	// Call asks a member, this node included.
	Call(ctx context.Context, node, method string, in []byte) ([]byte, error)
	// Handle sets who answers calls of a method.
	Handle(method string, h cluster.Handler)
	// Lacks reports whether the program of this node does not know a field of a question:
	// so a test makes it an earlier one.
	Lacks(field string) bool
}

// Method is one call between nodes. Its name and the meaning of its fields
// stay the same as long as nodes of two versions may meet; a field that the
// other side does not know is skipped, but see Whole.
type Method[Req, Resp any] struct {
	name               string
	whole              bool
	questions, answers *codec
}

// Nothing is a question that says no more than the name of its method.
type Nothing bool

// named is what Types returns.
var named sync.Map

// To names a method.
func To[Req, Resp any](name string) Method[Req, Resp] {
	named.Store(name, [2]reflect.Type{reflect.TypeFor[Req](), reflect.TypeFor[Resp]()})
	return Method[Req, Resp]{name: name, questions: codecOf[Req](), answers: codecOf[Resp]()}
}

// Types are the question and the answer of every method that was named so far, by its
// name: a test holds them to what other versions send.
func Types() map[string][2]reflect.Type {
	all := map[string][2]reflect.Type{}
	named.Range(func(name, types any) bool {
		all[name.(string)] = types.([2]reflect.Type)
		return true
	})
	return all
}

// Ask calls a method on a node and waits for its answer. What the other side
// fails with comes back as an [Error] of the same kind; that no answer came at
// all is an error of package wire, or that of ctx.
func (m Method[Req, Resp]) Ask(ctx context.Context, net Network, node string, req *Req) (*Resp, error) {
	in, err := m.questions.encode(m.message(ctx, req)...)
	if err != nil {
		return nil, err
	}

	out, err := net.Call(ctx, node, m.name, in)

	// The kind travels by its name, and is the same error here again.
	if err != nil {
		return nil, fromWire(err)
	}

	resp := new(Resp)
	if err := m.answers.decode(out, resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// message is a question and, where there is anything, what stands behind it.
func (m Method[Req, Resp]) message(ctx context.Context, req *Req) []any {
	behind, request := parts{}, RequestOf(ctx)
	if m.whole {
		behind = partsOf(req)
	} else if request == "" {
		return []any{req}
	}
	behind.Request = request
	return []any{req, behind}
}

// Serve sets what answers a method here. The context of run ends with the
// deadline of the caller, when the caller gives up, and when the connection
// breaks. It is of the request that the caller's is of.
func (m Method[Req, Resp]) Serve(net Network, run func(ctx context.Context, req *Req) (*Resp, error)) {
	knows := sync.OnceValue(func() map[string]bool { return fieldsOf(reflect.TypeFor[Req]()) })
	net.Handle(m.name, func(ctx context.Context, _ cluster.Peer, in []byte) ([]byte, error) {
		// Nothing may stand behind it.
		req, behind := new(Req), parts{}
		if err := m.questions.decode(in, req, &behind); err != nil {
			return nil, err
		}
		if err := behind.understood(func(field string) bool { return knows()[field] }, net.Lacks); err != nil {
			return nil, err
		}
		if behind.Request != "" {
			ctx = WithRequest(ctx, behind.Request)
		}

		resp, err := run(ctx, req)
		if err != nil {
			return nil, err
		}
		return m.answers.encode(resp)
	})
}

// Elsewhere reports whether a failed call may succeed on another node: this
// one could not be asked, is of another version, or cannot do it now.
func Elsewhere(err error) bool {
	if e := (*Error)(nil); errors.As(err, &e) {
		row := KindOf(e)
		return row != nil && row.Elsewhere
	}

	// What the other side failed with fails elsewhere, too, unless it does not know the method.
	remote := (*wire.RemoteError)(nil)
	return !errors.As(err, &remote) || errors.Is(err, wire.ErrNoMethod)
}

// fromWire gives an error that another node has returned its kind and its
// message as they were there.
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
