package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// link is a connection whose peer has been verified.
type link struct {
	*tls.Conn
	peer  Peer
	proto Protocol
	key   Key // key of the peer's certificate
	stall time.Duration

	out  sync.Mutex // held while a frame is written, so that frames do not mix
	once sync.Once
	drop func() // removes the link from Port.links; set by Port.registerLink
}

// Close closes the connection at once. It skips the closing message of TLS, which would wait for a
// peer that no longer reads.
func (l *link) Close() error {
	l.once.Do(func() {
		l.drop()
		l.NetConn().Close()
	})
	return nil
}

// send writes a frame whose body is the concatenation of the parts. The peer must take each piece
// within the stall time. After an error the connection is unusable.
func (l *link) send(kind frameKind, call uint32, parts ...[]byte) error {
	l.out.Lock()
	defer l.out.Unlock()

	n := 0
	for _, p := range parts {
		n += len(p)
	}

	// A small frame is one write, and so one TLS record.
	const small = 16 << 10
	if n <= small {
		return l.write(appendFrame(make([]byte, 0, headerLen+n), kind, call, parts...))
	}

	// Do not copy a large body: write the frame's header, then the parts of the body.
	b := appendFrame(make([]byte, 0, headerLen), kind, call)
	binary.LittleEndian.PutUint32(b, uint32(n))
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

// write writes bytes within the stall time.
func (l *link) write(b []byte) error {
	if err := l.SetWriteDeadline(clock.In(l.stall)); err != nil {
		return err
	}
	_, err := l.Write(b)
	return err
}

// timed reads from a connection. Each read may take up to wait; 0: no limit.
type timed struct {
	c    net.Conn
	wait time.Duration
}

func (t *timed) Read(b []byte) (int, error) {
	deadline := time.Time{}
	if t.wait > 0 {
		deadline = clock.In(t.wait)
	}
	if err := t.c.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	return t.c.Read(b)
}

// registerLink registers an open connection, or closes it if the port is closed.
func (p *Port) registerLink(l *link) error {
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

	// The port was closed during the handshake, so close the new connection here.
	p.mu.Unlock()
	l.Close()
	return ErrClosed
}

// serveConnection authenticates an incoming connection and serves it to its end.
func (p *Port) serveConnection(raw net.Conn) {
	leave := p.shakes.Enter(raw)
	l, proto, err := p.handshakeAsServer(raw)
	leave()
	if err != nil {
		raw.Close()
		p.o.Log.Debug("connection from another node", "addr", raw.RemoteAddr().String(), "err", err)
		return
	}

	// Raft keeps its connection. The other protocols end here.
	if proto == Raft {
		p.raft.handOver(l)
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

// handshakeAsServer performs the handshake of an incoming connection:
//
//	TLS handshake, both certificates checked against the cluster keys
//	the peer's node and cluster compared with ours, Admit called
//	◀── an empty response frame, or an error frame with the reason
func (p *Port) handshakeAsServer(raw net.Conn) (*link, Protocol, error) {
	ctx, cancel := context.WithTimeout(p.base, p.o.HandshakeTimeout)
	defer cancel()

	c := tls.Server(raw, p.ring.tlsConfig(Raft, Call, Bulk, Join))
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
	err = p.checkProtocol(peer, proto)
	if err == nil {
		err = p.registerLink(l)
	}
	if err == nil {
		if err = l.send(responseFrame, 0); err != nil {
			l.Close()
		}
		return l, proto, err
	}

	// Send the reason to the peer, with a shorter time limit than for a call.
	l.stall = p.o.HandshakeTimeout
	kind := cmp.Or(p.kinds.nameOf(err), "refused")
	l.send(errorFrame, 0, errorBody(failure{kind: kind, text: err.Error()}))

	c.CloseWrite()
	return nil, "", fmt.Errorf("%s of node %s: %w", proto, shortID(peer.Node), err)
}

// checkProtocol returns an error if a peer may not use a protocol.
func (p *Port) checkProtocol(peer Peer, proto Protocol) error {
	me := p.ring.me()
	switch {
	case peer.Node == me.Node:
		return twinError(peer, me)
	case proto == "":
		return errors.New("the connection does not say what it is for")

	// A node without a cluster may join ours, and we may join another's.
	case proto == Join && (peer.Cluster == "" || me.Cluster == "" || peer.Cluster == me.Cluster):
	case me.Cluster == "":
		return fmt.Errorf("node %s is in no cluster yet", shortID(me.Node))
	case peer.Cluster != me.Cluster:
		return otherClusterError(peer, me)
	}
	return p.o.Admit(peer, proto)
}

// twinError returns the error for a peer with this node's id.
func twinError(peer, me Peer) error {
	if peer.Boot == me.Boot {
		return ErrSelf
	}
	return fmt.Errorf("%w: node %s runs twice: two machines have copies of one data directory; stop one of them, and move its directory away", ErrTwin, shortID(me.Node))
}

// otherClusterError returns the error for a peer of another cluster, or of none.
func otherClusterError(peer, me Peer) error {
	if peer.Cluster == "" {
		return fmt.Errorf("node %s has not joined cluster %s", shortID(peer.Node), shortID(me.Cluster))
	}
	return fmt.Errorf("node %s belongs to cluster %s, not to %s", shortID(peer.Node), shortID(peer.Cluster), shortID(me.Cluster))
}

// dial connects to a node and performs the handshake. It stops when the port ends.
func (p *Port) dial(ctx context.Context, t Target, proto Protocol) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.HandshakeTimeout)
	defer cancel()
	defer context.AfterFunc(p.base, cancel)()

	// If the port has ended, the other node is not to blame.
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

	l, err := p.handshakeAsClient(ctx, raw, t, proto)
	if err != nil {
		raw.Close()
		return nil, fail(err)
	}
	return l, nil
}

// handshakeAsClient performs the handshake over a raw connection: see handshakeAsServer for the other side.
func (p *Port) handshakeAsClient(ctx context.Context, raw net.Conn, t Target, proto Protocol) (*link, error) {
	c := tls.Client(raw, p.ring.tlsConfig(proto))
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}

	peer, key, err := p.ring.verify(c.ConnectionState().PeerCertificates)
	if err != nil {
		return nil, err
	}

	if err := p.checkIdentity(peer, t, proto); err != nil {
		return nil, err
	}

	// The other side may still refuse: send nothing before its welcome.
	l := &link{Conn: c, peer: peer, proto: proto, key: key, stall: p.o.StallTimeout}
	if err := p.awaitWelcome(ctx, l); err != nil {
		return nil, err
	}
	return l, p.registerLink(l)
}

// checkIdentity returns an error if the node that answers is not the intended one.
func (p *Port) checkIdentity(peer Peer, t Target, proto Protocol) error {
	me := p.ring.me()
	switch {
	case peer.Node == me.Node:
		err := twinError(peer, me)
		if errors.Is(err, ErrSelf) {
			return err
		}
		return fmt.Errorf("%w: %w", ErrRefused, err)

	// The address may meanwhile belong to another node.
	case t.Node != "" && peer.Node != t.Node:
		return fmt.Errorf("%w: node %s answers where %s is expected", ErrRefused, shortID(peer.Node), shortID(t.Node))

	// Only a joining node may not know the cluster yet.
	case proto != Join && peer.Cluster != me.Cluster:
		return fmt.Errorf("%w: %w", ErrRefused, otherClusterError(peer, me))
	}

	if err := p.o.Admit(peer, proto); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// awaitWelcome reads the frame by which the other side accepts or refuses.
func (p *Port) awaitWelcome(ctx context.Context, l *link) error {
	// Both the deadline and the end of ctx stop the read.
	deadline, _ := ctx.Deadline()
	if err := l.SetReadDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { l.SetReadDeadline(time.Unix(1, 0)) })
	f, err := readFrame(l.Conn, maxText+512)
	if !stop() {
		return ctx.Err()
	}

	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the node closed the connection")
	case isAlert(err):
		return fmt.Errorf("%w, and refuses the certificate of this one: %w", ErrOtherKey, err)
	case err != nil:
		return err
	case f.kind == errorFrame:
		return p.refusal(l.peer, f.body)
	}
	return l.SetReadDeadline(time.Time{})
}

// isAlert reports whether the other side ended the handshake. It does so if it does not accept this
// node's certificate.
func isAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// refusal returns the error in a refusing frame.
func (p *Port) refusal(peer Peer, body []byte) error {
	err := p.kinds.decodeError(peer, body)
	switch {
	case errors.Is(err, ErrSelf):
		return ErrSelf
	case errors.Is(err, ErrRefused):
		return err
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}
