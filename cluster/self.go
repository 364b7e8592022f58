package cluster

import (
	"errors"
	"fmt"
	"sync"
)

// self is who this node is. Its methods are safe for concurrent use, and what
// they change is on the disk when they return.
type self struct {
	node  string // its id
	epoch uint64 // which start of it this is
	home  *home
	moved bool // the log is in another file than this node left it in

	mu      sync.Mutex // guards the fields below
	id      *identity
	attempt string // id of the cluster that this node tries to found; empty when it does not
}

// openSelf locks a data directory and counts a start of the node that it
// belongs to, making that node at the first.
func openSelf(dir string) (*self, error) {
	h, err := openHome(dir)
	if err != nil {
		return nil, err
	}

	s := &self{home: h}
	if err := s.start(); err != nil {
		h.close()
		return nil, err
	}
	return s, nil
}

func (s *self) start() error {
	id, err := s.home.loadIdentity()
	if err != nil {
		return err
	}
	place, err := s.home.place()
	if err != nil {
		return err
	}

	// A place that is not known proves nothing.
	s.moved = id.Place != "" && place != "" && place != id.Place

	if err := id.start(); err != nil {
		return err
	}
	s.id, s.node, s.epoch = id, id.NodeID, id.epoch()
	return nil
}

// cluster is the id of the cluster that the node is part of, empty for none.
func (s *self) cluster() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id.ClusterID
}

// enter writes down that the node belongs to a cluster.
func (s *self) enter(cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change(func(id *identity) { id.ClusterID, id.Promise = cluster, promise{} })
}

// found writes down that the node founds a cluster, unless it is bound to
// another founder.
func (s *self) found(cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id.Promise.Cluster != "" || s.id.ClusterID != "" {
		return errBound
	}
	return s.change(func(id *identity) { id.ClusterID, id.Founding = cluster, true })
}

var errBound = errors.New("this node was bound to another founder")

// founding reports whether the node was about to found a cluster when it stopped.
func (s *self) founding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id.Founding
}

// founded writes down that the cluster that the node founds stands.
func (s *self) founded() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.id.Founding {
		return nil
	}
	return s.change(func(id *identity) { id.Founding = false })
}

// promised is the founder that the node is bound to, if any.
func (s *self) promised() promise {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id.Promise
}

// promise binds the node to a founder; it says why that cannot be.
func (s *self) promise(p promise) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.id.ClusterID != "":
		return fmt.Errorf("node %s is part of cluster %s already", s.node, s.id.ClusterID)
	case s.id.Promise == p:
		return nil
	case s.id.Promise.Cluster != "":
		return fmt.Errorf("node %s is bound to node %s", s.node, s.id.Promise.Founder)
	case s.attempt != "":
		return fmt.Errorf("node %s founds a cluster itself", s.node)
	}

	// On the disk before it is said: a node that crashes keeps its word.
	return s.change(func(id *identity) { id.Promise = p })
}

// release frees the node of its promise.
func (s *self) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change(func(id *identity) { id.Promise = promise{} })
}

// try notes which cluster the node tries to found, "" for none. It is never
// written: who starts again has given up.
func (s *self) try(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = cluster
}

// stands reports whether the node still means to found a cluster, or has.
func (s *self) stands(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cluster != "" && (cluster == s.attempt || cluster == s.id.ClusterID)
}

// settle writes down where the log lies.
func (s *self) settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.home.place()
	if err != nil || now == s.id.Place {
		return err
	}
	return s.change(func(id *identity) { id.Place = now })
}

// change edits who the node is, once that is on the disk: what could not be written
// has not happened, and is tried again by who asks again. s.mu is held.
func (s *self) change(edit func(id *identity)) error {
	next := *s.id
	edit(&next)
	if err := next.save(); err != nil {
		return err
	}
	*s.id = next
	return nil
}
