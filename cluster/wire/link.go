package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// link is a connection whose other side is known.
type link struct {
	*tls.Conn
	peer  Peer
	proto Protocol
	key   Key // under which the peer's certificate was made
	stall time.Duration

	out  sync.Mutex // held while a message is written
	once sync.Once
	drop func()
}

// Close ends the connection at once. A closing message of TLS is not waited
// for: who has given up on a peer must not hang on it.
func (l *link) Close() error {
	l.once.Do(func() {
		l.drop()
		l.NetConn().Close()
	})
	return nil
}

// send writes a frame. Between two pieces of it the peer may stall for the
// stall time. After an error the connection is of no use.
func (l *link) send(kind frameKind, call uint32, parts ...[]byte) error {
	l.out.Lock()
	defer l.out.Unlock()
	b := appendFrame(make([]byte, 0, headerLen+512), kind, call)
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	const small = 16 << 10
	if n <= small {
		return l.write(appendFrame(b[:0], kind, call, parts...))
	}
	b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	if err := l.write(b); err != nil {
		return err
	}
	for _, p := range parts {
		for len(p) > 0 {
			piece := p[:min(len(p), maxChunk)]
			if err := l.write(piece); err != nil {
				return err
			}
			p = p[len(piece):]
		}
	}
	return nil
}

func (l *link) write(b []byte) error {
	if err := l.SetWriteDeadline(time.Now().Add(l.stall)); err != nil {
		return err
	}
	_, err := l.Write(b)
	return err
}

// timed reads from a connection, each time for no longer than wait, where 0 is
// no bound.
type timed struct {
	c    net.Conn
	wait time.Duration
}

func (t *timed) Read(b []byte) (int, error) {
	deadline := time.Time{}
	if t.wait > 0 {
		deadline = time.Now().Add(t.wait)
	}
	if err := t.c.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	return t.c.Read(b)
}

// enter notes an open connection, or closes it when the port is closed.
func (p *Port) enter(l *link) error {
	p.mu.Lock()
	l.drop = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	}
	if !p.finished {
		p.links[l] = struct{}{}
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	l.Close()
	return ErrClosed
}

// welcome proves who has connected and serves the connection to its end.
func (p *Port) welcome(raw net.Conn) {
	select {
	case p.shakes <- struct{}{}:
	default:
		raw.Close()
		return
	}
	l, proto, err := p.greet(raw)
	<-p.shakes
	if err != nil {
		raw.Close()
		p.o.Log.Debug("connection from another node", "addr", raw.RemoteAddr().String(), "err", err)
		return
	}
	if proto == Raft {
		p.raft.hand(l)
		return
	}
	defer l.Close()
	switch proto {
	case Bulk:
		p.serveStream(l)
	case Join:
		p.serveCalls(l, p.joins)
	default:
		p.serveCalls(l, p.calls)
	}
}

// greet shakes hands as the side that was called.
func (p *Port) greet(raw net.Conn) (*link, Protocol, error) {
	ctx, cancel := context.WithTimeout(p.base, p.o.HandshakeTimeout)
	defer cancel()
	c := tls.Server(raw, p.ring.config(Raft, Call, Bulk, Join))
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, "", err
	}
	state := c.ConnectionState()
	peer, key, err := p.ring.verify(state.PeerCertificates)
	if err != nil {
		return nil, "", err
	}
	proto := Protocol(state.NegotiatedProtocol)
	l := &link{Conn: c, peer: peer, proto: proto, key: key, stall: p.o.StallTimeout}
	if err = p.receive(peer, proto); err == nil {
		if err = p.enter(l); err == nil {
			if err = l.send(responseFrame, 0); err != nil {
				l.Close()
			}
			return l, proto, err
		}
	}
	l.stall = p.o.HandshakeTimeout
	kind := p.kinds.name(err)
	if kind == "" {
		kind = "refused"
	}
	l.send(errorFrame, 0, errorBody(kind, err.Error()))
	c.CloseWrite()
	return nil, "", fmt.Errorf("%s of node %s: %w", proto, short(peer.Node), err)
}

// receive decides whether a peer may use a protocol.
func (p *Port) receive(peer Peer, proto Protocol) error {
	me := p.ring.me()
	switch {
	case peer.Node == me.Node:
		return twin(peer, me)
	case proto == "":
		return errors.New("the connection does not say what it is for")
	case proto == Join && (peer.Cluster == "" || me.Cluster == "" || peer.Cluster == me.Cluster):
	case me.Cluster == "":
		return fmt.Errorf("node %s is in no cluster yet", short(me.Node))
	case peer.Cluster != me.Cluster:
		return otherCluster(peer, me)
	}
	return p.o.Admit(peer, proto)
}

// twin is the error of meeting a node with the id of this one.
func twin(peer, me Peer) error {
	if peer.Boot == me.Boot {
		return ErrSelf
	}
	return fmt.Errorf("node %s runs twice: two machines have copies of one data directory; remove the directory of one of them", short(me.Node))
}

func otherCluster(peer, me Peer) error {
	if peer.Cluster == "" {
		return fmt.Errorf("node %s has not joined cluster %s", short(peer.Node), short(me.Cluster))
	}
	return fmt.Errorf("node %s belongs to cluster %s, not to %s", short(peer.Node), short(peer.Cluster), short(me.Cluster))
}

// dial connects to a node and shakes hands as the side that calls.
func (p *Port) dial(ctx context.Context, t Target, proto Protocol) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.HandshakeTimeout)
	defer cancel()
	defer context.AfterFunc(p.base, cancel)()
	fail := func(err error) error {
		if p.base.Err() != nil {
			return ErrClosed
		}
		return fmt.Errorf("%w: %s: %w", ErrUnreachable, t.Addr, err)
	}
	raw, err := p.o.Dial(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, fail(err)
	}
	l, err := p.introduce(ctx, raw, t, proto)
	if err != nil {
		raw.Close()
		return nil, fail(err)
	}
	return l, nil
}

func (p *Port) introduce(ctx context.Context, raw net.Conn, t Target, proto Protocol) (*link, error) {
	c := tls.Client(raw, p.ring.config(proto))
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	peer, key, err := p.ring.verify(c.ConnectionState().PeerCertificates)
	if err != nil {
		return nil, err
	}
	me := p.ring.me()
	switch {
	case peer.Node == me.Node:
		if err := twin(peer, me); errors.Is(err, ErrSelf) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrRefused, twin(peer, me))
	case t.Node != "" && peer.Node != t.Node:
		return nil, fmt.Errorf("%w: node %s answers where %s is expected", ErrRefused, short(peer.Node), short(t.Node))
	case proto != Join && peer.Cluster != me.Cluster:
		return nil, fmt.Errorf("%w: %w", ErrRefused, otherCluster(peer, me))
	}
	if err := p.o.Admit(peer, proto); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	l := &link{Conn: c, peer: peer, proto: proto, key: key, stall: p.o.StallTimeout}
	deadline, _ := ctx.Deadline()
	if err := c.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })
	f, err := readFrame(c, maxText+512)
	if !stop() {
		return nil, ctx.Err()
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the node closed the connection")
	case err != nil:
		return nil, err
	case f.kind == errorFrame:
		return nil, p.refusal(peer, f.body)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return l, p.enter(l)
}

// refusal is why the other side does not want this node.
func (p *Port) refusal(peer Peer, body []byte) error {
	kind, text, err := parseError(body)
	if err != nil {
		return err
	}
	if kind == "self" {
		return ErrSelf
	}
	e := &RemoteError{Node: peer.Node, Text: text, Kind: p.kinds[kind]}
	if e.Kind == ErrRefused {
		return e
	}
	return fmt.Errorf("%w: %w", ErrRefused, e)
}
