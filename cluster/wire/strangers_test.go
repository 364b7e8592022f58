package wire

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// Connections that say nothing keep no node out, from whatever addresses they
// come; those that are too many are closed, the oldest first.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	key := NewKey()
	a, b := start(t, key, "c1", "a"), start(t, key, "c1", "b")
	b.Handle("echo", echo)
	var silent []net.Conn
	for i := range 2 * MaxHandshakes {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%16))}}
		c, err := d.DialContext(within(t), "tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		silent = append(silent, c)
	}
	if out, err := a.Call(within(t), b.target(), "echo", []byte("x")); err != nil || string(out) != "a:x" {
		t.Errorf("a node beside them: %q, %v", out, err)
	}
	if err := silent[0].SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := silent[0].Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the oldest silent connection: %v, want it closed", err)
	}
}

func TestStrangersOfOneAddress(t *testing.T) {
	t.Parallel()
	s := newStrangers()
	closed := map[string]bool{}
	enter := func(name, ip string) *stranger {
		return s.enter(fakeConn{name: name, ip: net.ParseIP(ip), closed: closed})
	}
	node := enter("node", "10.0.0.1")
	for i := range MaxHandshakesOfOne + 5 {
		enter(fmt.Sprint(i), "10.0.0.9")
	}
	for i := range 6 {
		if got, want := closed[fmt.Sprint(i)], i < 5; got != want {
			t.Errorf("connection %d: closed %t", i, got)
		}
	}
	if closed["node"] {
		t.Error("the connection of another address was closed")
	}
	s.leave(node)
	s.leave(node)
	if s.all.Len() != MaxHandshakesOfOne || len(s.byOrigin) != 1 {
		t.Errorf("%d connections of %d addresses are left", s.all.Len(), len(s.byOrigin))
	}
}

type fakeConn struct {
	net.Conn
	name   string
	ip     net.IP
	closed map[string]bool
}

func (c fakeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.ip, Port: 1} }
func (c fakeConn) Close() error         { c.closed[c.name] = true; return nil }
