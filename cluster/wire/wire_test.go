package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute // for what takes no time on an idle machine

var errBusy = errors.New("too busy")

// start runs a port until the test ends. set may change its options.
func start(t testing.TB, key Key, cluster, node string, set ...func(*Options)) *Port {
	t.Helper()
	o := Options{
		Listen: "127.0.0.1:0", Self: Peer{Cluster: cluster, Node: node, Epoch: 1}, Keys: Keys{key},
		Errors: []Kind{{"busy", errBusy}}, HandshakeTimeout: patience,
	}
	for _, f := range set {
		f(&o)
	}
	p, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return p
}

func (p *Port) target() Target { return Target{Node: p.ring.me().Node, Addr: p.Addr()} }

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func echo(_ context.Context, from Peer, in []byte) ([]byte, error) {
	return append([]byte(from.Node+":"), in...), nil
}

func TestCall_returnsTheAnswerOverOneConnection(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	b.Handle("echo", echo)
	for _, size := range []int{0, 1, 1000, 100_000, MaxRequest} {
		in := bytes.Repeat([]byte{'x'}, size)
		out, err := a.Call(within(t), b.target(), "echo", in)
		if err != nil || !bytes.Equal(out, append([]byte("a:"), in...)) {
			t.Fatalf("echo of %d bytes: %d bytes, %v", size, len(out), err)
		}
	}
	if _, err := a.Call(within(t), b.target(), "echo", make([]byte, MaxRequest+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a request that is too large: %v", err)
	}
	if _, err := a.Call(within(t), b.target(), "none", nil); !errors.Is(err, ErrNoMethod) {
		t.Errorf("an unknown method: %v", err)
	}
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	if n := len(a.pool.nodes[poolKey{Target: b.target(), proto: Call}].idle); n != 1 {
		t.Errorf("%d connections for calls one after the other, want 1", n)
	}
}

// All kept connections have broken unnoticed. A call on one of them fails, and a second call may
// get another broken one. CallAnew opens a new connection.
func TestCallAnew_opensANewConnection(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	b.Handle("echo", echo)
	k := poolKey{Target: b.target(), proto: Call}
	for range 3 {
		if err := a.pool.acquireSlot(within(t), k); err != nil {
			t.Fatal(err)
		}
		l, err := a.dial(within(t), k.Target, k.proto)
		if err != nil {
			t.Fatal(err)
		}
		a.pool.putBack(&caller{l: l, key: k}) // nobody reads from it
		a.pool.releaseSlot(k)
		l.NetConn().Close()
		t.Cleanup(func() { l.Close() })
	}

	if _, err := a.Call(within(t), b.target(), "echo", nil); !errors.Is(err, ErrBroken) {
		t.Errorf("a call on a connection that was kept: %v", err)
	}
	out, err := a.CallAnew(within(t), b.target(), "echo", []byte("x"))
	if err != nil || string(out) != "a:x" {
		t.Errorf("a call anew: %q, %v", out, err)
	}
}

func TestRemoteErrors_haveTheSameKindAtTheCaller(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	kinds := map[string]error{
		"exist": fs.ErrNotExist, "permission": fs.ErrPermission, "invalid": fs.ErrInvalid,
		"deadline": context.DeadlineExceeded, "canceled": context.Canceled, "busy": errBusy, "other": nil,
	}
	b.Handle("fail", func(_ context.Context, _ Peer, in []byte) ([]byte, error) {
		if string(in) == "panic" {
			panic("a handler's mistake")
		}
		if kind := kinds[string(in)]; kind != nil {
			return nil, fmt.Errorf("read shard: %w", kind)
		}
		return nil, errors.New("no kind")
	})
	for in, kind := range kinds {
		_, err := a.Call(within(t), b.target(), "fail", []byte(in))
		var remote *RemoteError
		if !errors.As(err, &remote) || remote.Node != "b" || kind != nil && !errors.Is(err, kind) {
			t.Errorf("%s: %v", in, err)
		}
		if RetryAfter(err) != 0 {
			t.Errorf("%s: says to ask again after %v", in, RetryAfter(err))
		}
		if kind == nil && errors.Unwrap(remote) != nil {
			t.Errorf("%s: has the kind %v", in, errors.Unwrap(remote))
		}
	}
	if _, err := a.Call(within(t), b.target(), "fail", []byte("panic")); err == nil || !strings.Contains(err.Error(), "handler of fail failed") {
		t.Errorf("a panic: %v", err)
	}
	if _, err := a.Call(within(t), b.target(), "fail", []byte("other")); err == nil || !strings.Contains(err.Error(), "call fail on node b: node b: no kind") {
		t.Errorf("after a panic: %v", err)
	}
}

// again is an error type of another package.
type again struct{ after time.Duration }

func (again) Error() string             { return "busy for a while" }
func (again) Unwrap() error             { return errBusy }
func (e again) TryAgain() time.Duration { return e.after }

// overloaded is an error of kind ErrOverloaded with a text and a time.
type overloaded struct {
	text  string
	after time.Duration
}

func (e *overloaded) Error() string           { return e.text }
func (e *overloaded) Unwrap() error           { return ErrOverloaded }
func (e *overloaded) TryAgain() time.Duration { return e.after }

func TestRemoteErrors_keepTheirRetryAfter(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	errs := map[string]error{
		"overloaded": &overloaded{"7 searches wait", 1500 * time.Millisecond},
		"wrapped":    fmt.Errorf("search: %w", &overloaded{"7 searches wait", 2 * time.Second}),
		"no time":    fmt.Errorf("%w: ask again some time", ErrOverloaded),
		"other type": fmt.Errorf("read: %w", again{3 * time.Second}),
		"no kind":    fmt.Errorf("read: %w", &overloaded{text: "never", after: -time.Second}),
		"for ever":   &overloaded{"full", 1000 * time.Hour},
	}
	want := map[string]struct {
		kind error
		wait time.Duration
		text string
	}{
		"overloaded": {ErrOverloaded, 1500 * time.Millisecond, "7 searches wait"},
		"wrapped":    {ErrOverloaded, 2 * time.Second, "search: 7 searches wait"},
		"no time":    {ErrOverloaded, 0, "overloaded: ask again some time"},
		"other type": {errBusy, 3 * time.Second, "read: busy for a while"},
		"no kind":    {ErrOverloaded, 0, "read: never"},
		"for ever":   {ErrOverloaded, maxWait, "full"},
	}
	b.Handle("fail", func(_ context.Context, _ Peer, in []byte) ([]byte, error) { return nil, errs[string(in)] })
	b.HandleStream("fail", func(_ context.Context, _ Peer, in []byte, _ io.Writer) error { return errs[string(in)] })

	for in, w := range want {
		_, called := a.Call(within(t), b.target(), "fail", []byte(in))
		r, err := a.Stream(within(t), b.target(), "fail", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		_, streamed := io.ReadAll(r)
		r.Close()

		for _, err := range []error{called, streamed} {
			var remote *RemoteError
			if !errors.As(err, &remote) || remote.Text != w.text || !errors.Is(err, w.kind) || RetryAfter(err) != w.wait {
				t.Errorf("%s: %v, again after %v, want %q of kind %v after %v", in, err, RetryAfter(err), w.text, w.kind, w.wait)
			}
		}
	}
}

func TestListen_refusesAnInvalidTableOfKinds(t *testing.T) {
	t.Parallel()
	for _, bad := range [][]Kind{
		{{"busy", errBusy}, {"busy", io.EOF}},
		{{"overloaded", errBusy}},
		{{"", errBusy}},
		{{"too busy", errBusy}},
		{{strings.Repeat("x", maxKindName+1), errBusy}},
		{{"nothing", nil}},
	} {
		o := Options{Listen: "127.0.0.1:0", Self: Peer{Node: "a"}, Keys: Keys{NewKey()}, Errors: bad}
		if p, err := Listen(o); err == nil {
			p.Close()
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestCall_cancelReachesTheHandler(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	began, ended := make(chan bool, 100), make(chan error, 100)
	b.Handle("wait", func(ctx context.Context, _ Peer, _ []byte) ([]byte, error) {
		_, deadline := ctx.Deadline()
		began <- deadline
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	b.Handle("echo", echo)
	ctx, cancel := context.WithCancel(within(t))
	failed := make(chan error, 1)
	go func() {
		_, err := a.Call(ctx, b.target(), "wait", nil)
		failed <- err
	}()
	if !<-began {
		t.Error("the handler has no deadline")
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler: %v", err)
	}
	// The handler has the caller's deadline. On a slow machine the call may take longer to arrive.
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		go func() {
			_, err := a.Call(ctx, b.target(), "wait", nil)
			failed <- err
		}()
		arrived := false
		var err error
		select {
		case <-began:
			arrived = true
			<-ended
			err = <-failed
		case err = <-failed:
		}
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller: %v", err)
		}
		if arrived || wait > patience {
			break
		}
	}
	if _, err := a.Call(within(t), b.target(), "echo", nil); err != nil {
		t.Errorf("a call after those: %v", err)
	}
}

func TestCall_theHandlerEndsWhenTheCallerDies(t *testing.T) {
	t.Parallel()
	key := NewKey()
	b := start(t, key, "c1", "b")
	began, ended := make(chan struct{}), make(chan struct{})
	b.Handle("wait", func(ctx context.Context, _ Peer, _ []byte) ([]byte, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	a, err := Listen(Options{Listen: "127.0.0.1:0", Self: Peer{Cluster: "c1", Node: "a"}, Keys: Keys{key}})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := a.Call(within(t), b.target(), "wait", nil)
		failed <- err
	}()
	<-began
	a.Close()
	<-ended
	if err := <-failed; !errors.Is(err, ErrBroken) {
		t.Errorf("the caller: %v", err)
	}
	if _, err := a.Call(within(t), b.target(), "wait", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a call on a closed port: %v", err)
	}
}

// If a stopping node cancels a handler, the handler's error is no answer: the caller sees a broken
// connection, and asks another node.
func TestClose_breaksRunningCalls(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	began := make(chan struct{}, 2)
	wait := func(ctx context.Context) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	b.Handle("wait", func(ctx context.Context, _ Peer, _ []byte) ([]byte, error) { return nil, wait(ctx) })
	b.HandleStream("wait", func(ctx context.Context, _ Peer, _ []byte, _ io.Writer) error { return wait(ctx) })

	failed := make(chan error, 2)
	go func() {
		_, err := a.Call(within(t), b.target(), "wait", nil)
		failed <- err
	}()
	go func() {
		r, err := a.Stream(within(t), b.target(), "wait", nil)
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		failed <- err
	}()

	// The handlers end while the connections still exist.
	<-began
	<-began
	b.cancel()
	for range 2 {
		if err := <-failed; !errors.Is(err, ErrBroken) {
			t.Errorf("the caller: %v", err)
		}
	}
}

func TestStream_copiesBothWaysAndEndsOnErrors(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	beating := start(t, key, "c1", "beating", func(o *Options) { o.StallTimeout = 300 * time.Millisecond })
	const size = 5 << 20
	b.HandleStream("copy", func(_ context.Context, from Peer, in []byte, out io.Writer) error {
		_, err := io.Copy(out, io.LimitReader(counter{}, size))
		return errors.Join(err, nil)
	})
	b.HandleStream("half", func(_ context.Context, _ Peer, _ []byte, out io.Writer) error {
		out.Write([]byte("half"))
		return fmt.Errorf("shard: %w", fs.ErrNotExist)
	})
	// Stay silent for longer than the stall time.
	release := make(chan struct{})
	beating.HandleStream("slow", func(ctx context.Context, _ Peer, _ []byte, out io.Writer) error {
		select {
		case <-release:
		case <-ctx.Done():
		}
		_, err := out.Write([]byte("done"))
		return err
	})
	ended := make(chan error, 1)
	b.HandleStream("endless", func(ctx context.Context, _ Peer, _ []byte, out io.Writer) error {
		_, err := io.Copy(out, counter{})
		<-ctx.Done()
		ended <- err
		return err
	})

	s, err := a.Stream(within(t), b.target(), "copy", nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, s)
	if err != nil || n != size {
		t.Errorf("copy: %d bytes, %v", n, err)
	}
	s.Close()

	for method, want := range map[string]error{"half": fs.ErrNotExist, "none": ErrNoMethod} {
		s, err = a.Stream(within(t), b.target(), method, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s)
		if !errors.Is(err, want) || method == "half" && string(got) != "half" {
			t.Errorf("%s: %q, %v", method, got, err)
		}
		s.Close()
	}

	s, err = a.Stream(within(t), beating.target(), "slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Second, func() { close(release) })
	if got, err := io.ReadAll(s); err != nil || string(got) != "done" {
		t.Errorf("slow: %q, %v", got, err)
	}
	s.Close()

	s, err = a.Stream(within(t), b.target(), "endless", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(s, make([]byte, 1000)); err != nil {
		t.Errorf("endless: %v", err)
	}
	s.Close()
	if err := <-ended; err == nil {
		t.Error("the handler wrote to a closed stream")
	}

	ctx, cancel := context.WithCancel(within(t))
	s, err = a.Stream(ctx, b.target(), "slow2", nil)
	if err == nil {
		cancel()
		_, err = io.ReadAll(s)
		s.Close()
	}
	cancel()
	if err == nil {
		t.Error("a cancelled stream ended well")
	}
}

type counter struct{}

func (counter) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i)
	}
	return len(b), nil
}

func TestRaftConnections_areAcceptedUntilClose(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	go func() {
		c, err := b.Raft().Accept()
		if err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := a.DialRaft(within(t), b.target())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "ping" {
		t.Errorf("%q, %v", got, err)
	}
	b.Raft().Close()
	if _, err := b.Raft().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
}

func TestRaftConnection_hasNoDeadline(t *testing.T) {
	t.Parallel()
	const stall = 100 * time.Millisecond
	key := NewKey()
	short := func(o *Options) { o.StallTimeout = stall }
	a, b := start(t, key, "c1", "a", short), start(t, key, "c1", "b", short)
	go func() {
		if c, err := b.Raft().Accept(); err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	c, err := a.DialRaft(within(t), b.target())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tick := time.NewTicker(stall / 4)
	defer tick.Stop()
	for start := time.Now(); time.Since(start) < 3*stall; <-tick.C {
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatalf("write: %v", err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatalf("read: %v", err)
		}
	}
}

func TestHandshake_admitsOnlyMembersOfTheCluster(t *testing.T) {
	t.Parallel()
	key, other := NewKey(), NewKey()
	b := start(t, key, "c1", "b", func(o *Options) {
		o.Admit = func(from Peer, p Protocol) error {
			if from.Node == "gone" {
				return errors.New("node gone was removed from the cluster")
			}
			return nil
		}
	})
	b.Handle("echo", echo)
	b.HandleJoin("hello", echo)
	fresh := start(t, key, "", "fresh")
	fresh.HandleJoin("hello", echo)
	for _, tt := range []struct {
		name, cluster, node string
		key                 Key
		to                  Target
		join                bool
		is                  error
		text                string
	}{
		{"a member", "c1", "a", key, b.target(), false, nil, ""},
		{"a member, joining", "c1", "a", key, b.target(), true, nil, ""},
		{"a newcomer, joining", "", "n", key, b.target(), true, nil, ""},
		{"two newcomers", "", "n", key, fresh.target(), true, nil, ""},
		{"a member, to a newcomer", "c1", "a", key, fresh.target(), true, nil, ""},
		{"a newcomer, calling", "", "n", key, b.target(), false, ErrRefused, "belongs to cluster c1"},
		{"a member, calling a newcomer", "c1", "a", key, fresh.target(), false, ErrRefused, "has not joined cluster c1"},
		{"another cluster", "c2", "a", key, b.target(), false, ErrRefused, "node b belongs to cluster c1, not to c2"},
		{"another cluster, joining", "c2", "a", key, b.target(), true, ErrRefused, "node a belongs to cluster c2, not to c1"},
		{"a removed node", "c1", "gone", key, b.target(), false, ErrRefused, "node gone was removed"},
		{"another key", "c1", "a", other, b.target(), false, ErrUnreachable, "another cluster key"},
		{"another node than expected", "c1", "a", key, Target{"x", b.Addr()}, false, ErrRefused, "node b answers where x is expected"},
		{"nobody there", "c1", "a", key, Target{"x", "127.0.0.1:1"}, false, ErrUnreachable, "connection refused"},
		{"a clone", "c1", "b", key, Target{"", b.Addr()}, false, ErrRefused, "node b runs twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, tt.key, tt.cluster, tt.node)
			call, method := p.Call, "echo"
			if tt.join {
				call, method = p.CallJoin, "hello"
			}
			_, err := call(within(t), tt.to, method, nil)
			if !errors.Is(err, tt.is) || tt.text != "" && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %v, ...%s...", err, tt.is, tt.text)
			}
		})
	}
	if _, err := b.Call(within(t), Target{"", b.Addr()}, "echo", nil); !errors.Is(err, ErrSelf) {
		t.Errorf("a call to itself: %v", err)
	}
	if _, err := b.CallJoin(within(t), b.target(), "hello", nil); !errors.Is(err, ErrSelf) {
		t.Errorf("a call to itself: %v", err)
	}
}

// A node that only speaks a later protocol version counts as unreachable, so another node is asked.
// Nodes with several versions use a common one.
func TestProtocolVersion_ofALaterReleaseMakesANodeUnreachable(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	b.Handle("echo", echo)
	for name, c := range map[string]struct {
		protocols []Protocol
		want      Protocol
	}{
		"a later form":           {[]Protocol{"shoal-call/2"}, ""},
		"a later form, and this": {[]Protocol{"shoal-call/2", Call}, Call},
	} {
		conn, err := tls.Dial("tcp", b.Addr(), a.ring.tlsConfig(c.protocols...))
		if err == nil {
			if got := Protocol(conn.ConnectionState().NegotiatedProtocol); got != c.want {
				t.Errorf("%s: they speak %q", name, got)
			}
			conn.Close()
		} else if c.want != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.dial(within(t), b.target(), "shoal-call/2"); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a call in a later form: %v", err)
	}
	if out, err := a.Call(within(t), b.target(), "echo", []byte("in")); err != nil || string(out) != "a:in" {
		t.Errorf("then a call in this form: %q, %v", out, err)
	}
}

func TestHandshake_plainTCPGetsNothing(t *testing.T) {
	t.Parallel()
	p := start(t, NewKey(), "c1", "a")
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	c.SetDeadline(time.Now().Add(patience))
	got, _ := io.ReadAll(c)
	if bytes.Contains(got, []byte("HTTP")) || len(got) > 100 {
		t.Errorf("it says %q", got)
	}
}

func TestWireKeys_rotateAndRefuseTheOldKey(t *testing.T) {
	t.Parallel()
	old, key := NewKey(), NewKey()
	a, b := start(t, old, "c1", "a"), start(t, old, "c1", "b")
	a.Handle("echo", echo)
	b.Handle("echo", echo)
	both := func(step string) {
		t.Helper()
		for _, pair := range [][2]*Port{{a, b}, {b, a}} {
			if _, err := pair[0].Call(within(t), pair[1].target(), "echo", nil); err != nil {
				t.Errorf("%s: %v", step, err)
			}
		}
	}
	both("one key")
	for _, step := range []struct {
		name string
		keys Keys
	}{{"accept the new key", Keys{old, key}}, {"use it", Keys{key, old}}, {"forget the old one", Keys{key}}} {
		for _, p := range []*Port{a, b} {
			if err := p.SetKeys(step.keys); err != nil {
				t.Fatal(err)
			}
			a.pool.closeIdle()
			b.pool.closeIdle()
			both(step.name)
		}
	}
	c := start(t, old, "c1", "c")
	if _, err := c.Call(within(t), b.target(), "echo", nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("with the old key: %v", err)
	}
	if err := a.SetKeys(nil); err == nil {
		t.Error("no key is accepted")
	}
}

func TestWireKeys_retiredKeyClosesItsConnections(t *testing.T) {
	t.Parallel()
	old, key := NewKey(), NewKey()
	a, b := start(t, old, "c1", "a"), start(t, old, "c1", "b")
	began := make(chan struct{})
	b.Handle("wait", func(ctx context.Context, _ Peer, _ []byte) ([]byte, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	failed := make(chan error, 1)
	go func() {
		_, err := a.Call(within(t), b.target(), "wait", nil)
		failed <- err
	}()
	<-began
	if err := b.SetKeys(Keys{key}); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, ErrBroken) {
		t.Errorf("the call: %v", err)
	}
}

func TestCertificates_areRenewedBeforeTheyExpire(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC).Unix())
	clock := func() time.Time { return time.Unix(now.Load(), 0) }
	key := NewKey()
	r, err := newRing(Peer{Cluster: "c", Node: "n", Epoch: 3}, Keys{key}, clock)
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.certificate()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		hours int64
		fresh bool
	}{{1, false}, {22, false}, {2, true}, {24 * 365, true}, {-24 * 365, true}} {
		now.Add(step.hours * 3600)
		c, err := r.certificate()
		if err != nil || (c != first) != step.fresh {
			t.Errorf("after %d hours: a new one %t, %v", step.hours, c != first, err)
		}
		first = c
	}
	a, b := start(t, key, "c1", "a", func(o *Options) { o.Now = clock }), start(t, key, "c1", "b")
	_, err = a.Call(within(t), b.target(), "echo", nil)
	if diff := time.Since(clock()); (diff > 48*time.Hour || diff < -48*time.Hour) && (err == nil || !strings.Contains(err.Error(), "clocks")) {
		t.Errorf("clocks that are %v apart: %v", diff, err)
	}
}

func TestCall_manyConcurrentCallsGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	var now, most atomic.Int32
	b.Handle("work", func(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		return in, nil
	})
	errs := make(chan error)
	const calls = 300
	for i := range calls {
		go func() {
			in := fmt.Sprint(i)
			out, err := a.Call(within(t), b.target(), "work", []byte(in))
			if err == nil && string(out) != in {
				err = fmt.Errorf("answer %q to %q", out, in)
			}
			errs <- err
		}()
	}
	for range calls {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if m := most.Load(); m > MaxCallsToNode {
		t.Errorf("%d calls at a time", m)
	}
}
