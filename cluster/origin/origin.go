// Package origin says from which network a connection comes, and bounds the
// connections of those that have not proved who they are.
package origin

import (
	"net"
	"net/netip"
)

// Of is the address of the other end without its port; not valid where it has none.
func Of(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap().WithZone("")
}

// Network is what an address counts as: itself, and of IPv6 the first address of
// its /64, which one host has to itself.
func Network(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); !a.Is6() {
		return a
	}
	p, _ := a.Prefix(64) // fails for more bits than an address has only
	return p.Addr()
}
