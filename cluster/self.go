package cluster

import (
	"errors"
	"fmt"
	"sync"
)

// self is the identity of this node. Its methods are safe for concurrent use, and their changes are
// on disk when they return.
type self struct {
	node  string // id of the node
	epoch uint64 // identifies this start
	home  *home
	moved bool // the log is another file than before

	mu      sync.Mutex // guards the fields below
	id      *identity
	attempt string // id of the cluster that this node tries to found; "": none
}

// openSelf locks a data directory and counts a start of its node. At the first start it creates the
// node.
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

	// An unknown place proves nothing.
	s.moved = id.Place != "" && place != "" && place != id.Place

	if err := id.start(); err != nil {
		return err
	}
	s.id, s.node, s.epoch = id, id.NodeID, id.epoch()
	return nil
}

// cluster returns the id of the node's cluster, or "".
func (s *self) cluster() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id.ClusterID
}

// enter records that the node belongs to a cluster.
func (s *self) enter(cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change(func(id *identity) { id.ClusterID, id.Promise = cluster, promise{} })
}

// found records that the node founds a cluster, unless it is bound to another founder.
func (s *self) found(cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id.Promise.Cluster != "" || s.id.ClusterID != "" {
		return errBound
	}
	return s.change(func(id *identity) { id.ClusterID, id.Founding = cluster, true })
}

var errBound = errors.New("this node was bound to another founder")

// founding reports whether the node was founding a cluster when it stopped.
func (s *self) founding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id.Founding
}

// founded records that the node's new cluster works.
func (s *self) founded() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.id.Founding {
		return nil
	}
	return s.change(func(id *identity) { id.Founding = false })
}

// promised returns the founder to which the node is bound, if any.
func (s *self) promised() promise {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id.Promise
}

// promise binds the node to a founder, or returns why it cannot.
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

	// Write it before answering: the promise must survive a crash.
	return s.change(func(id *identity) { id.Promise = p })
}

// release ends the node's promise.
func (s *self) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change(func(id *identity) { id.Promise = promise{} })
}

// setAttempt sets the cluster that the node tries to found, or "". It is never written: a node that
// restarts has given up.
func (s *self) setAttempt(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = cluster
}

// stands reports whether the node still tries to found a cluster, or has founded it.
func (s *self) stands(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cluster != "" && (cluster == s.attempt || cluster == s.id.ClusterID)
}

// settle records where the log lies.
func (s *self) settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.home.place()
	if err != nil || now == s.id.Place {
		return err
	}
	return s.change(func(id *identity) { id.Place = now })
}

// change edits the identity. It takes effect only if it was written to disk; otherwise the caller
// may try again. The caller holds s.mu.
func (s *self) change(edit func(id *identity)) error {
	next := *s.id
	edit(&next)
	if err := next.save(); err != nil {
		return err
	}
	*s.id = next
	return nil
}
