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

// delegate is what memberlist calls. Its methods run in memberlist's own loops:
// they must not block, so they copy and return.
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

func (d *delegate) NotifyJoin(n *memberlist.Node)   { d.g.note(n, true) }
func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.g.note(n, true) }
func (d *delegate) NotifyLeave(n *memberlist.Node)  { d.g.note(n, false) }

// NotifyAlive refuses what is not one of our nodes.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	if _, _, ok := parseName(n.Name); !ok || len(n.Meta) > memberlist.MetaMaxSize {
		return errors.New("not the name of a node")
	}
	return nil
}

// NotifyConflict is told of two nodes with one name: one data directory is a copy
// of the other, and both were started equally often.
func (d *delegate) NotifyConflict(existing, other *memberlist.Node) {
	d.g.o.Log.Error("two nodes have one identity: a data directory was copied", "name", existing.Name, "addr", existing.Address(), "other", other.Address())
}

// AckPayload tells a node that asks whether this one is there what time it is here,
// in nanoseconds since 1970, the high byte first.
func (d *delegate) AckPayload() []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(d.g.o.Now().UnixNano()))
}

// slowAck is how long an answer may take for the time in it to count: it is off by
// half of that at most.
const slowAck = time.Second

// NotifyPingComplete takes down what the clock of a node says that has answered.
func (d *delegate) NotifyPingComplete(n *memberlist.Node, took time.Duration, payload []byte) {
	node, epoch, ok := parseName(n.Name)
	if !ok || len(payload) != 8 || took > slowAck {
		return
	}
	there := time.Unix(0, int64(binary.BigEndian.Uint64(payload))).Add(took / 2)

	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	if p, known := d.g.peers[start{node, epoch}]; known {
		p.there, p.heard = there, clock.Now()
		d.g.peers[start{node, epoch}] = p
	}
}

// transport is memberlist's, with a bound on the connections that come in, and
// with links that a test can cut.
type transport struct {
	*memberlist.NetTransport
	reach   func(network, addr string) bool
	streams chan net.Conn
	ended   chan struct{} // closed when no more connections are taken
	once    sync.Once     // closes ended
}

// The bounds of connections that came in. An exchange is over in milliseconds, so
// the oldest makes room.
const (
	maxStreams      = 64
	maxStreamsOfOne = 16 // of one network
	streamPatience  = time.Second
)

func newTransport(t *memberlist.NetTransport, reach func(network, addr string) bool) *transport {
	x := &transport{NetTransport: t, reach: reach, streams: make(chan net.Conn), ended: make(chan struct{})}
	go x.accept()
	return x
}

// accept hands over connections that have begun to say something.
func (t *transport) accept() {
	open := origin.NewStrangers(maxStreams, maxStreamsOfOne)
	for {
		select {
		case <-t.ended:
			return
		case raw := <-t.NetTransport.StreamCh():
			s := &stream{Conn: raw, leave: open.Enter(raw)}
			go t.greet(s)
		}
	}
}

// greet waits for the first byte of a connection: nothing is done for one that is silent.
func (t *transport) greet(s *stream) {
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

// StreamCh returns the connections that came in.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown closes the port.
func (t *transport) Shutdown() error {
	// The library waits until its connections were accepted: accept ends after it.
	err := t.NetTransport.Shutdown()
	t.once.Do(func() { close(t.ended) })
	return err
}

// stream is a connection that came in. It counts until it is closed.
type stream struct {
	net.Conn
	leave func()
	first []byte // the byte that was waited for, until it is read
}

// Read reads what came, beginning with the first byte.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.first) > 0 && len(p) > 0 {
		n := copy(p, s.first)
		s.first = s.first[n:]
		return n, nil
	}
	return s.Conn.Read(p)
}

// Close closes the connection and gives its place back.
func (s *stream) Close() error {
	s.leave()
	return s.Conn.Close()
}

var errCut = errors.New("cut off by the test")

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress sends a packet. One to where nothing can be reached is lost.
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

// listen opens the port for TCP and UDP. When any port will do (0), the system
// may choose one that is free for TCP only: then another is tried.
func listen(o Options) (*memberlist.NetTransport, int, error) {
	// Numbers alone: the library knows no names of ports.
	host, text, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, 0, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, 0, errors.New("listen " + o.Listen + ": the port is no number")
	}

	// The library takes an address only.
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

	c := &memberlist.NetTransportConfig{BindAddrs: []string{host}, BindPort: port, Logger: logger(o.Log)}
	for tries := 1; ; tries++ {
		t, err := memberlist.NewNetTransport(c)
		if err == nil {
			return t, max(port, t.GetAutoBindPort()), nil
		}
		if port != 0 || tries == 10 {
			// The library keeps what went wrong as text only.
			if strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
				err = fmt.Errorf("listen %s: %w", o.Listen, syscall.EADDRINUSE)
			}
			return nil, 0, err
		}
	}
}

// logger passes the lines of memberlist on, which begin with a level.
func logger(l *slog.Logger) *log.Logger {
	return log.New(&logWriter{log: l, now: clock.Now, last: map[string]*logged{}}, "", 0)
}

// logWriter writes lines that are alike once in a while only: a node with another
// cluster key would make a line of every packet.
type logWriter struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex         // guards the field below
	last map[string]*logged // by the line without what differs each time
}

// logged is when a line was last written, and how many like it were left out
// since.
type logged struct {
	at      time.Time
	leftOut int
}

const (
	logAgain  = 30 * time.Second // between two lines that are alike
	mostLines = 256              // that are remembered
)

// due reports whether a line is to be written, and how many like it were left
// out before. Lines are alike that differ in digits and in what follows "from=".
func (w *logWriter) due(text string) (leftOut int, yes bool) {
	key, _, _ := strings.Cut(text, "from=")
	key = strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, key)

	// What was left out is told with the next one that is written.
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if l := w.last[key]; l != nil {
		if now.Sub(l.at) < logAgain {
			l.leftOut++
			return 0, false
		}
		leftOut = l.leftOut
	} else if len(w.last) >= mostLines {
		clear(w.last)
	}

	w.last[key] = &logged{at: now}
	return leftOut, true
}

// levels are memberlist's, and ours for them. Its warnings are of single packets,
// and its information is of no use to an operator.
var levels = [...]struct {
	prefix string
	level  slog.Level
}{
	{"[ERR]", slog.LevelWarn},
	{"[WARN]", slog.LevelInfo},
	{"[INFO]", slog.LevelDebug},
	{"[DEBUG]", slog.LevelDebug},
}

// otherKey is how memberlist says that a message was sealed with a key that
// this node has not.
const otherKey = "No installed keys could decrypt the message"

// inWords adds to a line of memberlist what an operator should know of it.
func inWords(text string) string {
	if strings.Contains(text, otherKey) {
		return "a message under another cluster key was refused: a node that has another key tries to join, or something else talks to this port. " + text
	}
	return text
}

func (w *logWriter) Write(line []byte) (int, error) {
	// Lines without a level that is known are detail.
	text := strings.TrimSpace(string(line))
	level := slog.LevelDebug
	for _, p := range levels {
		if rest, ok := strings.CutPrefix(text, p.prefix); ok {
			text, level = strings.TrimSpace(rest), p.level
			break
		}
	}

	text = inWords(strings.TrimPrefix(text, "memberlist: "))
	if level == slog.LevelDebug {
		w.log.Debug(text)
		return len(line), nil
	}

	// Only what an operator sees is counted: detail is for who looks for it.
	if leftOut, yes := w.due(text); yes && leftOut > 0 {
		w.log.Log(context.Background(), level, text, "again", leftOut)
	} else if yes {
		w.log.Log(context.Background(), level, text)
	}
	return len(line), nil
}
