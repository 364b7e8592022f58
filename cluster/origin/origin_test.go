package origin

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
)

func TestNetworkOfAddress_groupsAddressesOfOneOwner(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"192.0.2.7":         "192.0.2.7",
		"::ffff:192.0.2.7":  "192.0.2.7",
		"2001:db8:1:2:3::9": "2001:db8:1:2::",
		"2001:db8:1:2:f::":  "2001:db8:1:2::",
		"2001:db8:1:3::9":   "2001:db8:1:3::",
		"fe80::1%eth0":      "fe80::",
		"::1":               "::",
	} {
		if got := Network(netip.MustParseAddr(in)); got.String() != want {
			t.Errorf("%s counts as %s, want %s", in, got, want)
		}
	}
	if got := Network(Of(&net.UnixAddr{Name: "x"})); got.IsValid() {
		t.Errorf("a socket without an address counts as %s", got)
	}
}

func TestUnknownConnections_aboveTheLimitOfANetworkAreClosed(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(i int) string{
		"an address":    func(int) string { return "10.0.0.9" },
		"a /64 of IPv6": func(i int) string { return fmt.Sprintf("2001:db8::%x", i+1) },
	} {
		s, closed := NewStrangers(100, 8), map[string]bool{}
		enter := func(name, ip string) func() {
			return s.Enter(fakeConn{name: name, ip: net.ParseIP(ip), closed: closed})
		}
		leave := enter("node", "10.0.0.1")
		for i := range 8 + 5 {
			enter(fmt.Sprint(i), address(i))
		}
		for i := range 6 {
			if got, want := closed[fmt.Sprint(i)], i < 5; got != want {
				t.Errorf("%s, connection %d: closed %t", name, i, got)
			}
		}
		if closed["node"] {
			t.Errorf("%s: the connection of another one was closed", name)
		}
		leave()
		leave()
		if s.all.Len() != 8 || len(s.byNetwork) != 1 {
			t.Errorf("%s: %d connections of %d networks are left", name, s.all.Len(), len(s.byNetwork))
		}
	}
}

func TestUnknownConnections_aboveTheTotalLimitAreClosed(t *testing.T) {
	t.Parallel()
	s, closed := NewStrangers(4, 2), map[string]bool{}
	for i := range 6 {
		s.Enter(fakeConn{name: fmt.Sprint(i), ip: net.IPv4(10, 0, 0, byte(i)), closed: closed})
	}
	if len(closed) != 2 || !closed["0"] || !closed["1"] {
		t.Errorf("closed %v, want the two oldest", closed)
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
