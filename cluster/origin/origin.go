// Package origin tells from which network a connection comes. It limits connections of strangers,
// who have not authenticated yet.
package origin

import (
	"net"
	"net/netip"
)

// Of returns the peer's address without its port, or an invalid one if it is not TCP.
func Of(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// Network returns the unit by which connections are counted: the address itself, or the /64 network
// for IPv6, because one host usually has a whole /64.
func Network(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); !a.Is6() {
		return a
	}
	p, _ := a.Prefix(64) // cannot fail: an IPv6 address has more than 64 bits
	return p.Addr()
}
