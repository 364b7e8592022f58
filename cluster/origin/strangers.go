package origin

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// Strangers are the connections that came in and have not proved who they are.
// When there are too many, of one network or in all, the one that has waited
// longest is closed: a node proves itself within milliseconds, so a silent
// connection takes places from silent ones only. A node comes in at once,
// however many silent connections there are. It is safe for concurrent use.
type Strangers struct {
	most, ofOne int // connections: in all, and of one network

	mu        sync.Mutex // guards the fields below
	all       list.List  // of *stranger, the oldest first
	byNetwork map[netip.Addr]*list.List
}

type stranger struct {
	conn        net.Conn
	from        netip.Addr // not valid where connections have no address
	here, there *list.Element
}

// NewStrangers returns room for so many connections in all and of one network.
func NewStrangers(most, ofOne int) *Strangers {
	return &Strangers{most: most, ofOne: ofOne, byNetwork: map[netip.Addr]*list.List{}}
}

// Enter adds a connection. The caller calls leave when the connection has proved
// itself or has failed; more than once does no harm.
func (s *Strangers) Enter(conn net.Conn) (leave func()) {
	x := &stranger{conn: conn, from: Network(Of(conn.RemoteAddr()))}

	s.mu.Lock()
	same := s.byNetwork[x.from]
	if same == nil {
		same = list.New()
	}

	// The oldest gives way: an honest handshake is over in milliseconds.
	var victim *stranger
	switch {
	case same.Len() >= s.ofOne:
		victim = same.Front().Value.(*stranger)
	case s.all.Len() >= s.most:
		victim = s.all.Front().Value.(*stranger)
	}

	if victim != nil {
		s.forget(victim)
	}
	// The list of a network may have gone with the last of its connections.
	s.byNetwork[x.from] = same
	x.here, x.there = s.all.PushBack(x), same.PushBack(x)
	s.mu.Unlock()

	if victim != nil {
		victim.conn.Close()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forget(x)
	}
}

// forget takes a connection out once. Callers hold the lock.
func (s *Strangers) forget(x *stranger) {
	if x.here == nil {
		return
	}
	same := s.byNetwork[x.from]
	s.all.Remove(x.here)
	same.Remove(x.there)
	x.here, x.there = nil, nil
	if same.Len() == 0 {
		delete(s.byNetwork, x.from)
	}
}
