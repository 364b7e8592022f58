package gossip

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/origin"
)

// delegate implements memberlist's callbacks. They run in memberlist's own loops and must not
// block.
type delegate struct{ g *Gossip }

func (d *delegate) NodeMeta(limit int) []byte {
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	return d.g.meta[:min(len(d.g.meta), limit)]
}

func (d *delegate) NotifyMsg([]byte)                {}
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (d *delegate) LocalState(bool) []byte          { return nil }
func (d *delegate) MergeRemoteState([]byte, bool)   {}

func (d *delegate) NotifyJoin(n *memberlist.Node)   { d.g.recordStart(n, true) }
func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.g.recordStart(n, true) }
func (d *delegate) NotifyLeave(n *memberlist.Node)  { d.g.recordStart(n, false) }

// NotifyAlive implements memberlist.AliveDelegate. It refuses anything that is not one of our
// nodes.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	if _, _, ok := parseName(n.Name); !ok || len(n.Meta) > memberlist.MetaMaxSize {
		return errors.New("not the name of a node")
	}
	return nil
}

// NotifyConflict implements memberlist.ConflictDelegate. Two nodes have one name: one runs on a
// copied data directory, and both were started equally often.
func (d *delegate) NotifyConflict(existing, other *memberlist.Node) {
	d.g.o.Log.Error("two nodes have one identity: a data directory was copied", "name", existing.Name, "addr", existing.Address(), "other", other.Address())
}

// AckPayload implements memberlist.PingDelegate. It sends this node's clock in nanoseconds since
// 1970, big-endian.
func (d *delegate) AckPayload() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(d.g.o.Now().UnixNano()))
}

// slowAck is the longest round trip after which the time in an answer counts. The error is at most
// half of it.
const slowAck = time.Second

// NotifyPingComplete implements memberlist.PingDelegate. It stores the clock of the node that
// answered.
func (d *delegate) NotifyPingComplete(n *memberlist.Node, took time.Duration, payload []byte) {
	node, epoch, ok := parseName(n.Name)
	if !ok || len(payload) != 8 || took > slowAck {
		return
	}
	remoteTime := time.Unix(0, int64(binary.BigEndian.Uint64(payload))).Add(took / 2)

	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	if p, known := d.g.peers[start{node, epoch}]; known {
		p.remoteTime, p.heard = remoteTime, clock.Now()
		d.g.peers[start{node, epoch}] = p
	}
}

// transport is memberlist's transport with a limit on incoming connections, and with links that a
// test can cut.
type transport struct {
	*memberlist.NetTransport
	reach   func(network, addr string) bool
	streams chan net.Conn
	ended   chan struct{} // closed when no more connections are accepted
	once    sync.Once     // closes ended
}

// Limits of incoming connections. An exchange takes milliseconds, so the oldest connection is
// closed when there are too many.
const (
	maxStreams      = 64
	maxStreamsOfOne = 16 // per network
	streamPatience  = time.Second
)

func newTransport(t *memberlist.NetTransport, reach func(network, addr string) bool) *transport {
	x := &transport{NetTransport: t, reach: reach, streams: make(chan net.Conn), ended: make(chan struct{})}
	go x.accept()
	return x
}

// accept waits for the first byte of each incoming connection, in a goroutine of its own.
func (t *transport) accept() {
	open := origin.NewStrangers(maxStreams, maxStreamsOfOne)
	for {
		select {
		case <-t.ended:
			return
		case raw := <-t.NetTransport.StreamCh():
			s := &stream{Conn: raw, leave: open.Enter(raw)}
			go t.awaitFirstByte(s)
		}
	}
}

// awaitFirstByte waits for the first byte of a connection, so that silent connections cost nothing
// more.
func (t *transport) awaitFirstByte(s *stream) {
	first := make([]byte, 1)
	err := s.SetReadDeadline(clock.In(streamPatience))
	if err == nil {
		_, err = s.Conn.Read(first)
	}
	if err != nil {
		s.Close()
		return
	}

	s.first = first
	select {
	case t.streams <- s:
	case <-t.ended:
		s.Close()
	}
}

// StreamCh implements memberlist.Transport. It returns incoming connections.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown implements memberlist.Transport. It closes the port.
func (t *transport) Shutdown() error {
	// NetTransport.Shutdown waits until accept has taken the connections that arrived before. So
	// end accept afterwards.
	err := t.NetTransport.Shutdown()
	t.once.Do(func() { close(t.ended) })
	return err
}

// stream is an incoming connection. It counts against the limits until it is closed.
type stream struct {
	net.Conn
	leave func()
	first []byte // the first byte, until it is read
}

// Read returns the first byte again, and then the rest.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.first) > 0 && len(p) > 0 {
		n := copy(p, s.first)
		s.first = s.first[n:]
		return n, nil
	}
	return s.Conn.Read(p)
}

// Close closes the connection, which then no longer counts.
func (s *stream) Close() error {
	s.leave()
	return s.Conn.Close()
}

var errCut = errors.New("cut off by the test")

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress sends a packet. If a test has cut the link, the packet is lost.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if t.reach != nil && !t.reach("udp", a.Addr) {
		return clock.Now(), nil
	}
	return t.NetTransport.WriteToAddress(b, a)
}

func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if t.reach != nil && !t.reach("tcp", a.Addr) {
		return nil, errCut
	}
	return t.NetTransport.DialAddressTimeout(a, timeout)
}

// listenTCPAndUDP opens the port for TCP and UDP. For port 0 the system may choose one that is only free for
// TCP. Then another one is tried.
func listenTCPAndUDP(o Options) (*memberlist.NetTransport, int, error) {
	// The library accepts only port numbers.
	host, text, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, 0, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, 0, errors.New("listen " + o.Listen + ": the port is no number")
	}

	// The library accepts only IP addresses.
	if host == "" {
		host = "0.0.0.0"
	} else if net.ParseIP(host) == nil {
		ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
		defer cancel()
		ips, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return nil, 0, err
		}
		host = ips[0]
	}

	c := &memberlist.NetTransportConfig{BindAddrs: []string{host}, BindPort: port, Logger: newLogger(o.Log)}
	for tries := 1; ; tries++ {
		t, err := memberlist.NewNetTransport(c)
		if err == nil {
			return t, max(port, t.GetAutoBindPort()), nil
		}
		if port != 0 || tries == 10 {
			// The library returns the cause only as text.
			if strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
				err = fmt.Errorf("listen %s: %w", o.Listen, syscall.EADDRINUSE)
			}
			return nil, 0, err
		}
	}
}

// newLogger returns a logger that passes on memberlist's lines, which begin with a level.
func newLogger(l *slog.Logger) *log.Logger {
	return log.New(&logWriter{log: l, now: clock.Now, lastByText: map[string]*loggedLine{}}, "", 0)
}

// logWriter suppresses similar lines for a while: a node with another cluster key would cause one
// line per packet.
type logWriter struct {
	log *slog.Logger
	now func() time.Time

	mu         sync.Mutex             // guards the field below
	lastByText map[string]*loggedLine // by the line without its varying parts
}

// loggedLine records when a line was last written, and how many similar ones were left out since.
type loggedLine struct {
	at      time.Time
	leftOut int
}

const (
	logPause = 30 * time.Second // between two similar lines
	maxLines = 256              // remembered lines
)

// mayLog reports whether a line is to be written, and how many similar ones were left out. Lines are
// similar if they differ only in digits, and after "from=".
func (w *logWriter) mayLog(text string) (leftOut int, yes bool) {
	key, _, _ := strings.Cut(text, "from=")
	key = strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, key)

	// The next written line tells how many were left out.
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if l := w.lastByText[key]; l != nil {
		if now.Sub(l.at) < logPause {
			l.leftOut++
			return 0, false
		}
		leftOut = l.leftOut
	} else if len(w.lastByText) >= maxLines {
		clear(w.lastByText)
	}

	w.lastByText[key] = &loggedLine{at: now}
	return leftOut, true
}

// levels maps memberlist's levels to ours. Its warnings are about single packets, and its
// information is useless for operators.
var levels = [...]struct {
	prefix string
	level  slog.Level
}{
	{"[ERR]", slog.LevelWarn},
	{"[WARN]", slog.LevelInfo},
	{"[INFO]", slog.LevelDebug},
	{"[DEBUG]", slog.LevelDebug},
}

// otherKey is memberlist's text for a message sealed with a key that this node does not have.
const otherKey = "no installed keys could decrypt the message"

// withExplanation adds an explanation for operators to a line of memberlist.
func withExplanation(text string) string {
	if strings.Contains(strings.ToLower(text), otherKey) {
		return "a message under another cluster key was refused: the key of this node or of the sender is out of date, or something else talks to this port. " + text
	}
	return text
}

func (w *logWriter) Write(line []byte) (int, error) {
	// A line without a known level is a debug line.
	text := strings.TrimSpace(string(line))
	level := slog.LevelDebug
	for _, p := range levels {
		if rest, ok := strings.CutPrefix(text, p.prefix); ok {
			text, level = strings.TrimSpace(rest), p.level
			break
		}
	}

	text = withExplanation(strings.TrimPrefix(text, "memberlist: "))
	if level == slog.LevelDebug {
		w.log.Debug(text)
		return len(line), nil
	}

	// Debug lines are not counted.
	if leftOut, yes := w.mayLog(text); yes && leftOut > 0 {
		w.log.Log(context.Background(), level, text, "again", leftOut)
	} else if yes {
		w.log.Log(context.Background(), level, text)
	}
	return len(line), nil
}
