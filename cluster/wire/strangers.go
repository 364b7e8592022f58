package wire

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// strangers are the connections that came in and have not proved who they are.
// When there are too many, of one address or in all, the one that has waited
// longest is closed: a node proves itself within milliseconds, so who says
// nothing takes places from others that say nothing. A node comes in at once,
// however many silent connections there are.
type strangers struct {
	mu       sync.Mutex // guards the fields below
	all      list.List  // of *stranger, the oldest first
	byOrigin map[netip.Addr]*list.List
}

type stranger struct {
	conn        net.Conn
	from        netip.Addr // not valid where connections have no address
	here, there *list.Element
}

func newStrangers() *strangers { return &strangers{byOrigin: map[netip.Addr]*list.List{}} }

// enter adds a connection. Exactly one call of leave follows.
func (s *strangers) enter(conn net.Conn) *stranger {
	x := &stranger{conn: conn}
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		x.from = tcp.AddrPort().Addr().Unmap()
	}

	s.mu.Lock()
	same := s.byOrigin[x.from]
	if same == nil {
		same = list.New()
		s.byOrigin[x.from] = same
	}

	// The oldest gives way: an honest handshake is over in milliseconds.
	var victim *stranger
	switch {
	case same.Len() >= MaxHandshakesOfOne:
		victim = same.Front().Value.(*stranger)
	case s.all.Len() >= MaxHandshakes:
		victim = s.all.Front().Value.(*stranger)
	}

	if victim != nil {
		s.forget(victim)
	}
	// The list of an origin may have gone with the last of its connections.
	s.byOrigin[x.from] = same
	x.here, x.there = s.all.PushBack(x), same.PushBack(x)
	s.mu.Unlock()

	if victim != nil {
		victim.conn.Close()
	}
	return x
}

// leave takes a connection out, which was proved or has failed.
func (s *strangers) leave(x *stranger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(x)
}

// forget takes a connection out once. Callers hold the lock.
func (s *strangers) forget(x *stranger) {
	if x.here == nil {
		return
	}
	same := s.byOrigin[x.from]
	s.all.Remove(x.here)
	same.Remove(x.there)
	x.here, x.there = nil, nil
	if same.Len() == 0 {
		delete(s.byOrigin, x.from)
	}
}
