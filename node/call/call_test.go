package call

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// far is a network of one node whose errors lose the same as on the wire.
type far map[string]cluster.Handler

func (f far) Self() string { return "self" }

func (far) Lacks(string) bool { return false }

func (f far) Handle(method string, h cluster.Handler) { f[method] = h }

func (f far) Call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	h := f[method]
	if h == nil {
		return nil, fmt.Errorf("call: %w", &wire.RemoteError{Node: node, Text: "?", Kind: wire.ErrNoMethod})
	}
	out, err := h(ctx, cluster.Peer{}, in)
	if err == nil {
		return out, nil
	}
	remote := &wire.RemoteError{Node: node, Text: err.Error(), Wait: wire.RetryAfter(err)}
	if row := KindOf(err); row != nil {
		remote.Kind = row.Err
	} else if errors.Is(err, wire.ErrNoMethod) {
		remote.Kind = wire.ErrNoMethod
	}
	return nil, fmt.Errorf("call: %w", remote)
}

type question struct{ Number int }

type reply struct{ Square int }

func TestErrorKinds_surviveACallBetweenNodes(t *testing.T) {
	t.Parallel()
	for i, k := range Kinds {
		if k.Err == nil || k.Status < 400 || k.Code == "" {
			t.Errorf("row %d is not complete: %+v", i, k)
		}
		net, method := far{}, To[question, reply]("square")
		method.Serve(net, func(context.Context, *question) (*reply, error) { return nil, Fail(k.Err, "no: %d", i) })
		_, err := method.Ask(t.Context(), net, "other", &question{})
		e := (*Error)(nil)
		if !errors.As(err, &e) || KindOf(err) != &Kinds[i] || e.Message != fmt.Sprintf("no: %d", i) || e.RetryAfter != k.RetryAfter {
			t.Errorf("%v became %#v", k.Err, err)
		}
		if Elsewhere(err) != k.Elsewhere {
			t.Errorf("%v: another node may do better: %v", k.Err, Elsewhere(err))
		}
	}
	if e := Fail(ErrOverloaded, "busy"); e.RetryAfter < time.Second {
		t.Errorf("an overload does not say when to ask again: %+v", e)
	}
}

func TestMethod_carriesRequestAndResponse(t *testing.T) {
	t.Parallel()
	net, method := far{}, To[question, reply]("square")
	if _, err := method.Ask(t.Context(), net, "other", &question{}); !errors.Is(err, wire.ErrNoMethod) || !Elsewhere(err) {
		t.Errorf("a node that does not know the method: %v", err)
	}
	method.Serve(net, func(_ context.Context, q *question) (*reply, error) { return &reply{q.Number * q.Number}, nil })
	if r, err := method.Ask(t.Context(), net, "other", &question{7}); err != nil || r.Square != 49 {
		t.Errorf("%+v, %v", r, err)
	}
	// A message of another version is refused as a whole, and a node of the same version may
	// answer it.
	if _, err := net.Call(t.Context(), "other", "square", []byte{version + 1, 1, 2}); err == nil || !Elsewhere(fromWire(err)) {
		t.Errorf("a message of another version: %v", err)
	}
}

func TestNetworkError_isTriedAtAnotherNode(t *testing.T) {
	t.Parallel()
	for _, err := range []error{wire.ErrUnreachable, wire.ErrBroken, fmt.Errorf("dial: %w", context.DeadlineExceeded)} {
		if !Elsewhere(err) {
			t.Errorf("%v: another node may do better", err)
		}
	}
	if Elsewhere(&wire.RemoteError{Text: "division by zero"}) {
		t.Error("what a handler failed with fails on other nodes too")
	}
}
