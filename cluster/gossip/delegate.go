package gossip

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls. Its methods run in the loops of
// memberlist: they copy and return.
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

// NotifyAlive refuses what is no node of ours.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	if _, _, ok := parseName(n.Name); !ok || len(n.Meta) > memberlist.MetaMaxSize {
		return errors.New("not the name of a node")
	}
	return nil
}

// NotifyConflict learns of two nodes with one name: copies of a data
// directory that were started equally often.
func (d *delegate) NotifyConflict(existing, other *memberlist.Node) {
	d.g.o.Log.Error("two nodes have one identity: a data directory was copied", "name", existing.Name, "addr", existing.Address(), "other", other.Address())
}

// transport adds to the one of memberlist what tests need to cut links.
type transport struct {
	*memberlist.NetTransport
	reach func(network, addr string) bool
}

var errCut = errors.New("cut off by the test")

func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress sends a packet. One to where nothing can be reached is lost.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if t.reach != nil && !t.reach("udp", a.Addr) {
		return time.Now(), nil
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

// listen opens the port for TCP and UDP. Where any port will do, one that is
// free for TCP only is tried again.
func listen(o Options) (*memberlist.NetTransport, int, error) {
	host, text, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, 0, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, 0, errors.New("listen " + o.Listen + ": the port is no number")
	}
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
	for tries := 1; ; tries++ {
		t, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{host}, BindPort: port, Logger: logger(o.Log)})
		if err == nil {
			return t, max(port, t.GetAutoBindPort()), nil
		}
		if port != 0 || tries == 10 {
			return nil, 0, err
		}
	}
}

// logger takes the lines of memberlist, which begin with a level.
func logger(l *slog.Logger) *log.Logger {
	return log.New(&logWriter{log: l, now: time.Now, said: map[string]*saying{}}, "", 0)
}

// logWriter says the same thing once in a while only: a node with another
// cluster key makes a line of every packet.
type logWriter struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex // guards the field below
	said map[string]*saying
}

// saying is a line that was written, without what differs each time.
type saying struct {
	at     time.Time
	unsaid int // times since
}

// How often the same is said again, and how much is remembered.
const (
	sayAgain = 30 * time.Second
	sayings  = 256
)

// due tells whether a line is to be written, and how often it was not.
func (w *logWriter) due(text string) (unsaid int, yes bool) {
	key, _, _ := strings.Cut(text, "from=")
	key = strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, key)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if s := w.said[key]; s != nil {
		if now.Sub(s.at) < sayAgain {
			s.unsaid++
			return 0, false
		}
		unsaid = s.unsaid
	} else if len(w.said) >= sayings {
		clear(w.said)
	}
	w.said[key] = &saying{at: now}
	return unsaid, true
}

func (w *logWriter) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	level := slog.LevelDebug
	for _, p := range [...]struct {
		prefix string
		level  slog.Level
	}{{"[ERR]", slog.LevelWarn}, {"[WARN]", slog.LevelInfo}, {"[INFO]", slog.LevelDebug}, {"[DEBUG]", slog.LevelDebug}} {
		if rest, ok := strings.CutPrefix(text, p.prefix); ok {
			text, level = strings.TrimSpace(rest), p.level
			break
		}
	}
	text = strings.TrimPrefix(text, "memberlist: ")
	if level == slog.LevelDebug {
		w.log.Debug(text)
		return len(line), nil
	}
	if unsaid, yes := w.due(text); yes && unsaid > 0 {
		w.log.Log(context.Background(), level, text, "again", unsaid)
	} else if yes {
		w.log.Log(context.Background(), level, text)
	}
	return len(line), nil
}
