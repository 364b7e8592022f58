package origin

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
)

// Strangers are incoming connections that have not authenticated yet. If there are too many, of one
// network or in all, the oldest is closed. Honest nodes authenticate within milliseconds, so only
// silent connections lose their place. A new node gets in at once, however many silent connections
// there are. It is safe for concurrent use.
type Strangers struct {
	max, maxOfNetwork int // limits: in all, and of one network

	mu        sync.Mutex // guards the fields below
	all       list.List  // of *stranger, oldest first
	byNetwork map[netip.Addr]*list.List
}

type stranger struct {
	conn        net.Conn
	from        netip.Addr // invalid if the connection has no address
	here, there *list.Element
}

// NewStrangers returns an empty set with limits in all and per network.
func NewStrangers(most, ofOne int) *Strangers {
	return &Strangers{max: most, maxOfNetwork: ofOne, byNetwork: map[netip.Addr]*list.List{}}
}

// Enter adds a connection. The caller must call leave when the connection has authenticated or
// failed. Further calls of leave do nothing.
func (s *Strangers) Enter(conn net.Conn) (leave func()) {
	x := &stranger{conn: conn, from: Network(Of(conn.RemoteAddr()))}

	s.mu.Lock()
	same := s.byNetwork[x.from]
	if same == nil {
		same = list.New()
	}

	// Close the oldest: an honest handshake takes milliseconds.
	var victim *stranger
	switch {
	case same.Len() >= s.maxOfNetwork:
		victim = same.Front().Value.(*stranger)
	case s.all.Len() >= s.max:
		victim = s.all.Front().Value.(*stranger)
	}

	if victim != nil {
		s.forget(victim)
	}
	// forget deletes the list of a network with its last connection, so store it again.
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

// forget removes a connection, if it is still there. The caller holds the lock.
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
