package wire

import (
	"io"
	"net"
	"testing"
	"time"
)

// Silent connections keep no node out, whatever addresses they come from. Surplus ones are closed,
// oldest first.
func TestWire_acceptsNodesDespiteManySilentConnections(t *testing.T) {
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
