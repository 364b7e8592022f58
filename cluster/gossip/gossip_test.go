package gossip

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

var testKey = bytes.Repeat([]byte{7}, 32)

// begin runs a node until the test ends or the returned function is called.
func begin(t *testing.T, o Options) (*Gossip, func()) {
	t.Helper()
	o.Listen, o.Timing = "127.0.0.1:0", 0.2
	if o.Keys == nil {
		o.Keys = [][]byte{testKey}
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return g, stop
}

// await waits until every node sees the given peers, in the form "a b:dead c=meta".
func await(t *testing.T, want string, nodes ...*Gossip) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	for _, g := range nodes {
		for {
			changed := g.Changed()
			got := view(g)
			if got == want {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatalf("node %s sees %q, want %q", g.o.Node, got, want)
			}
		}
	}
}

// Nodes measure how far their clocks differ.
func TestClockDifference_isMeasuredBetweenNodes(t *testing.T) {
	t.Parallel()
	later := func(d time.Duration) func() time.Time {
		return func() time.Time { return time.Now().Add(d) }
	}
	a, _ := begin(t, Options{Node: "a"})
	b, _ := begin(t, Options{Node: "b", Join: []string{a.Addr()}, Now: later(time.Hour)})
	c, _ := begin(t, Options{Node: "c", Join: []string{a.Addr()}, Now: later(-time.Minute)})

	want := map[*Gossip]map[string]time.Duration{
		a: {"b": time.Hour, "c": -time.Minute},
		b: {"a": -time.Hour, "c": -time.Hour - time.Minute},
		c: {"a": time.Minute, "b": time.Hour + time.Minute},
	}
	var said string
	right := func() bool {
		for g, others := range want {
			ahead := g.Ahead()
			said = fmt.Sprintf("%s says %v", g.o.Node, ahead)
			for node, d := range others {
				if got, asked := ahead[node]; !asked || (got-d).Abs() > slowAck/2+100*time.Millisecond {
					return false
				}
			}
		}
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	for !right() {
		if !clock.Wait(ctx, 20*time.Millisecond) {
			t.Fatalf("the clocks are not told: %s", said)
		}
	}
}

func view(g *Gossip) string {
	var out []string
	for _, p := range g.Peers() {
		s := p.Node
		if len(p.Meta) > 0 {
			s += "=" + string(p.Meta)
		}
		if !p.Alive {
			s += ":dead"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestGossip_nodesFindEachOther(t *testing.T) {
	t.Parallel()
	a, _ := begin(t, Options{Node: "node-a", Epoch: 1})
	b, _ := begin(t, Options{Node: "node-b", Epoch: 1, Join: []string{a.Addr()}})
	c, stop := begin(t, Options{Node: "node-c", Epoch: 1, Join: []string{a.Addr(), "127.0.0.1:1"}})
	await(t, "node-a node-b node-c", a, b, c)
	if err := c.SetMeta([]byte("load 7")); err != nil {
		t.Fatal(err)
	}
	await(t, "node-a node-b node-c=load 7", a, b, c)
	if err := c.SetMeta(make([]byte, MaxMeta+1)); err == nil {
		t.Error("too much meta data is accepted")
	}
	stop()
	await(t, "node-a node-b node-c=load 7:dead", a, b)
	// Restarted, it has another address, and its old start does not count.
	c, _ = begin(t, Options{Node: "node-c", Epoch: 2, Join: []string{b.Addr()}})
	await(t, "node-a node-b node-c", a, b, c)
	if p, ok := a.Peer("node-c"); !ok || p.Epoch != 2 || p.Addr != c.Addr() {
		t.Errorf("after a restart: %+v", p)
	}
	if _, ok := a.Peer("node-d"); ok {
		t.Error("an unknown node is known")
	}
}

// A copied data directory that was started once more than the original has a newer epoch. After it
// has ended, the original is found again.
func TestGossip_anEndedCopyDoesNotHideTheOriginalNode(t *testing.T) {
	t.Parallel()
	a, _ := begin(t, Options{Node: "a"})
	b, _ := begin(t, Options{Node: "b", Epoch: 3, Join: []string{a.Addr()}})
	await(t, "a b", a, b)
	copied, stop := begin(t, Options{Node: "b", Epoch: 4, Meta: []byte("copy"), Join: []string{a.Addr()}})
	await(t, "a b=copy", a, copied)
	stop()
	await(t, "a b", a, b)
	if p, _ := a.Peer("b"); p.Addr != b.Addr() || p.Epoch != 3 {
		t.Errorf("the node is taken to be at %s with epoch %d, it is at %s", p.Addr, p.Epoch, b.Addr())
	}
}

func TestGossip_healsAPartition(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	cut := false
	side := map[string]bool{} // by address
	reach := func(own bool) func(string, string) bool {
		return func(_, addr string) bool {
			mu.Lock()
			defer mu.Unlock()
			return !cut || side[addr] == own
		}
	}
	set := func(is bool) {
		mu.Lock()
		defer mu.Unlock()
		cut = is
	}
	a, _ := begin(t, Options{Node: "a", Reach: reach(true)})
	b, _ := begin(t, Options{Node: "b", Reach: reach(false), Join: []string{a.Addr()}})
	c, _ := begin(t, Options{Node: "c", Reach: reach(false), Join: []string{a.Addr()}})
	mu.Lock()
	side[a.Addr()] = true
	mu.Unlock()
	await(t, "a b c", a, b, c)
	set(true)
	await(t, "a b:dead c:dead", a)
	await(t, "a:dead b c", b, c)
	set(false)
	await(t, "a b c", a, b, c)
}

func TestGossipKeys_rotateWithoutLosingPeers(t *testing.T) {
	t.Parallel()
	second := bytes.Repeat([]byte{9}, 32)
	a, _ := begin(t, Options{Node: "a"})
	other, _ := begin(t, Options{Node: "x", Keys: [][]byte{second}})
	if _, err := other.list.Join([]string{a.Addr()}); err == nil {
		t.Error("a node with another key was let in")
	}
	if got := view(a); got != "a" {
		t.Errorf("after a try with another key it sees %q", got)
	}
	// Rotation: both accept the new key, both use it, both forget the old one.
	b, _ := begin(t, Options{Node: "b", Join: []string{a.Addr()}})
	await(t, "a b", a, b)
	for i, keys := range [][][]byte{{testKey, second}, {second, testKey}, {second}} {
		for _, g := range []*Gossip{a, b} {
			if err := g.SetKeys(keys); err != nil {
				t.Fatal(err)
			}
		}
		meta := fmt.Sprint("step ", i)
		if err := b.SetMeta([]byte(meta)); err != nil {
			t.Fatal(err)
		}
		await(t, "a b="+meta, a)
	}
	if err := a.SetKeys(nil); err == nil {
		t.Error("no key is accepted")
	}
	if _, err := b.list.Join([]string{other.Addr()}); err != nil {
		t.Errorf("under the new key: %v", err)
	}
}

func TestNewGossip_checksItsOptions(t *testing.T) {
	t.Parallel()
	good := Options{Listen: "127.0.0.1:0", Node: "a", Keys: [][]byte{testKey}}
	for _, tt := range []struct {
		set  func(*Options)
		want string
	}{
		{func(o *Options) { o.Node = "" }, "node id"},
		{func(o *Options) { o.Keys = nil }, "no key"},
		{func(o *Options) { o.Keys = [][]byte{{1}} }, "key size"},
		{func(o *Options) { o.Meta = make([]byte, MaxMeta+1) }, "meta data"},
		{func(o *Options) { o.Listen = "nowhere" }, "missing port"},
		{func(o *Options) { o.Listen = "0.0.0.0:0" }, "wildcard"},
		{func(o *Options) { o.Advertise = "127.0.0.1:x" }, "no number"},
	} {
		o := good
		tt.set(&o)
		if g, err := New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
			if err == nil {
				g.Close()
			}
		}
	}
	o := good
	o.Listen, o.Advertise = "0.0.0.0:0", "localhost"
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if !strings.HasPrefix(g.Addr(), "127.0.0.1:") && !strings.HasPrefix(g.Addr(), "[::1]:") {
		t.Errorf("address %s", g.Addr())
	}
	g.Know([]string{"127.0.0.1:9", g.Addr()})
	g.o.Join = []string{"127.0.0.2", "127.0.0.3:5", "[::1]:6"}
	got, alone := g.searchAddresses(context.Background())
	if !alone || len(got) != 4 {
		t.Errorf("targets %v, alone %t", got, alone)
	}
}

func TestGossipName_parsesBackToItsParts(t *testing.T) {
	t.Parallel()
	for _, p := range []Peer{{Node: "a"}, {Node: "a-b-c", Epoch: 35}, {Node: "x", Epoch: 1<<64 - 1}} {
		if node, epoch, ok := parseName(startName(p.Node, p.Epoch)); !ok || node != p.Node || epoch != p.Epoch {
			t.Errorf("%+v becomes %s %d %t", p, node, epoch, ok)
		}
	}
	for _, bad := range []string{"", "a", "-1", "a-", "a-?"} {
		if _, _, ok := parseName(bad); ok {
			t.Errorf("%q is a name", bad)
		}
	}
}

// memberlist logs every packet of a stranger. Such lines are written only from time to time.
func TestGossipLog_suppressesSimilarLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(0, 0)
	strip := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	w := &logWriter{log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: strip})), now: func() time.Time { return now }, lastByText: map[string]*loggedLine{}}
	for i := range 100 {
		fmt.Fprintf(w, "[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt the message from=127.0.0.1:%d\n", 1000+i)
	}
	fmt.Fprintln(w, "[WARN] memberlist: Refuting a dead message (from: n1)")
	now = now.Add(logPause)
	fmt.Fprintln(w, "[ERR] memberlist: Decrypt packet failed: no installed keys could decrypt the message from=127.0.0.1:2000")
	for i := range 10 * maxLines {
		fmt.Fprintf(w, "[WARN] memberlist: %s\n", strings.Repeat("x", i+1))
	}
	if len(w.lastByText) > maxLines {
		t.Errorf("%d lines are remembered", len(w.lastByText))
	}
	want := `level=WARN msg="a message under another cluster key was refused: the key of this node or of the sender is out of date, or something else talks to this port. Decrypt packet failed: no installed keys could decrypt the message from=127.0.0.1:1000"
level=INFO msg="Refuting a dead message (from: n1)"
level=WARN msg="a message under another cluster key was refused: the key of this node or of the sender is out of date, or something else talks to this port. Decrypt packet failed: no installed keys could decrypt the message from=127.0.0.1:2000" again=99
`
	if got := out.String(); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%.500s\nwant\n%s", got, want)
	}
}

// A name that cannot be looked up is logged once, not at each try.
func TestGossipLog_failedLookupIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	g := &Gossip{unfound: map[string]bool{}, o: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}

	said := func() int { return strings.Count(log.String(), "name=nowhere.invalid") }
	for _, step := range []struct {
		err  error
		want int
	}{{errors.New("no such host"), 1}, {errors.New("no such host"), 1}, {nil, 1}, {errors.New("no such host"), 2}} {
		if g.noteLookup("nowhere.invalid", step.err); said() != step.want {
			t.Errorf("after %v it was said %d times, want %d", step.err, said(), step.want)
		}
	}
}

// Silent connections are closed soon, are limited, and keep no node out.
func TestGossip_acceptsNodesDespiteManySilentConnections(t *testing.T) {
	t.Parallel()
	a, _ := begin(t, Options{Node: "a"})
	var silent []net.Conn
	for i := range 4 * maxStreams {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%16))}}
		c, err := d.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		silent = append(silent, c)
	}

	b, _ := begin(t, Options{Node: "b", Join: []string{a.Addr()}})
	await(t, "a b", a, b)
	for i, c := range silent {
		if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("silent connection %d: %v, want it closed", i, err)
		}
	}
}
