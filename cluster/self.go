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
	if err := s.readAndCountStart(); err != nil {
		h.close()
		return nil, err
	}
	return s, nil
}

// readAndCountStart reads the identity, notices whether the log has moved, and counts the start.
func (s *self) readAndCountStart() error {
	id, err := s.home.loadIdentity()
	if err != nil {
		return err
	}
	place, err := s.home.logPlace()
	if err != nil {
		return err
	}

	// The log has moved only if both places are known.
	s.moved = id.Place != "" && place != "" && place != id.Place

	if err := id.countStart(); err != nil {
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

// recordCluster records that the node belongs to a cluster.
func (s *self) recordCluster(cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.editIdentity(func(id *identity) { id.ClusterID, id.Promise = cluster, promise{} })
}

// recordFounding records that the node founds a cluster. It returns errBound if the node has promised
// to join another founder's cluster, or is in one.
func (s *self) recordFounding(cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id.Promise.Cluster != "" || s.id.ClusterID != "" {
		return errBound
	}
	return s.editIdentity(func(id *identity) { id.ClusterID, id.Founding = cluster, true })
}

var errBound = errors.New("this node was bound to another founder")

// founding reports whether the node was founding a cluster when it stopped.
func (s *self) founding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id.Founding
}

// endFounding records that the node's new cluster works.
func (s *self) endFounding() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.id.Founding {
		return nil
	}
	return s.editIdentity(func(id *identity) { id.Founding = false })
}

// promised returns the node's promise to join a founder's cluster, or the zero promise.
func (s *self) promised() promise {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id.Promise
}

// recordPromise records a promise to join a founder's cluster, or returns why the node cannot give it.
func (s *self) recordPromise(p promise) error {
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
	return s.editIdentity(func(id *identity) { id.Promise = p })
}

// endPromise ends the node's promise.
func (s *self) endPromise() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.editIdentity(func(id *identity) { id.Promise = promise{} })
}

// setAttempt sets the cluster that the node tries to found, or "". It is never written: a node that
// restarts has given up.
func (s *self) setAttempt(cluster string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = cluster
}

// stillFounds reports whether the node still tries to found a cluster, or has founded it.
func (s *self) stillFounds(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cluster != "" && (cluster == s.attempt || cluster == s.id.ClusterID)
}

// recordPlace records the present logPlace.
func (s *self) recordPlace() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	place, err := s.home.logPlace()
	if err != nil || place == s.id.Place {
		return err
	}
	return s.editIdentity(func(id *identity) { id.Place = place })
}

// editIdentity edits the identity. It takes effect only if it was written to disk; otherwise the caller
// may try again. The caller holds s.mu.
func (s *self) editIdentity(update func(id *identity)) error {
	next := *s.id
	update(&next)
	if err := next.save(); err != nil {
		return err
	}
	*s.id = next
	return nil
}
