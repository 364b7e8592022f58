package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// Restore and Recover bring a stopped node back after a disaster. Both make a new cluster, with a
// new id and this node as its only member. Returning nodes of the old cluster are refused.

// Recovered is the result of Restore or Recover.
type Recovered struct {
	Node    string // id of the node
	Cluster string // id of the new cluster
	Before  string // id of the old one
	Index   uint64 // newest entry in the catalog

	catalog.Refounded

	// Rights that are valid again, for the operator to review.
	Accounts int      // active accounts
	Keys     []string // API keys that have not expired: id, name and owner
}

// Restore turns an empty data directory into that of a node with the catalog of a snapshot (see
// Cluster.Snapshot). The key file must contain a key of the cluster that wrote it.
func Restore(dataDir, keyFile string, snapshot io.Reader) (*Recovered, error) {
	// Check the snapshot first: a damaged snapshot must leave the directory unchanged.
	state, err := catalog.Load(snapshot)
	if err != nil {
		return nil, fmt.Errorf("cluster: restore: %w", err)
	}
	if err := checkKeys(keyFile, state.View()); err != nil {
		return nil, err
	}

	h, err := openHome(dataDir)
	if err != nil {
		return nil, err
	}
	defer h.close()

	id, err := h.loadIdentity()
	if err != nil {
		return nil, err
	}
	if id.NodeID != "" || h.hasRaft() {
		return nil, fmt.Errorf("cluster: the data directory %s holds a node already: restore into an empty one", dataDir)
	}

	// The new catalog already has the node, as if it had been started once.
	id.NodeID, id.BootEpoch = newNodeID(), 1
	r := refound(state, id, true)

	// Write the identity last: a directory that is only half restored does not start.
	if err := saveAsRaft(h, id, state); err != nil {
		return nil, err
	}
	return r, errors.Join(id.save(), h.inherit())
}

// checkKeys returns an error if the keys of a file cannot open the secrets of a catalog. It does not
// read the file if there are no secrets.
func checkKeys(keyFile string, v *catalog.View) error {
	for name, box := range sealedBoxes(v) {
		text, err := os.ReadFile(keyFile)
		if err != nil {
			return fmt.Errorf("cluster: the snapshot needs the cluster key of the cluster that wrote it: %w", err)
		}

		keys, err := wire.ParseKeys(text)
		if err != nil {
			return err
		}

		if _, err := unseal(keys, name, box); err != nil {
			return fmt.Errorf("cluster: %s is not the cluster key of the cluster that wrote the snapshot: copy that one first", keyFile)
		}
	}
	return nil
}

// refound changes a catalog and an identity to those of a new cluster with this node alone. It returns
// which keys and how many accounts still work, for the operator to check.
func refound(state *catalog.State, id *identity, restored bool) *Recovered {
	r := &Recovered{Node: id.NodeID, Cluster: randomID(), Before: state.View().ClusterID(), Index: state.Index()}
	r.Refounded = *state.Refound(catalog.Successor{Cluster: r.Cluster, Node: id.NodeID, Restored: restored})
	id.ClusterID, id.Founding = r.Cluster, false

	// Revocations after this state are lost, so list what is valid now.
	v := state.View()
	for a := range v.Accounts() {
		if a.State == catalog.AccountActive {
			r.Accounts++
		}
	}
	for k := range v.Keys() {
		if k.Expires.IsZero() || v.Time().Before(k.Expires) {
			r.Keys = append(r.Keys, describeKey(v, k))
		}
	}
	return r
}

// describeKey names a key and its owner.
func describeKey(v *catalog.View, k *catalog.Key) string {
	owner := "nobody"
	if a := v.Account(k.Account); a != nil {
		owner = a.Email
	}
	return fmt.Sprintf("%s %q of %s", k.ID, k.Name, owner)
}

// onlyVoter returns a raft configuration with this node as the only voter.
func onlyVoter(id *identity) raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(id.NodeID), Address: raft.ServerAddress(id.NodeID)}}}
}

// saveAsRaft writes a catalog as a snapshot, from which raft starts as the only member of its
// cluster.
func saveAsRaft(h *home, id *identity, state *catalog.State) error {
	fail := func(err error) error { return fmt.Errorf("cluster: write the catalog as raft's: %w", err) }

	store, err := openStore(h.raft, offlineWatchdog())
	if err != nil {
		return err
	}
	defer store.Close()

	snaps, err := raft.NewFileSnapshotStore(h.raft, snapshotsKept, io.Discard)
	if err != nil {
		return fail(err)
	}

	// The new log begins with this snapshot, so it may use the first term.
	const term = 1
	_, trans := raft.NewInmemTransport(raft.ServerAddress(id.NodeID))

	sink, err := snaps.Create(raft.SnapshotVersionMax, max(1, state.Index()), term, onlyVoter(id), 1, trans)
	if err != nil {
		return fail(err)
	}

	if err := (snapshot{state.View()}).Persist(sink); err != nil {
		return fail(err)
	}

	if err := store.SetUint64(currentTerm, term); err != nil {
		return fail(err)
	}
	return nil
}

// offlineWatchdog returns a watchdog that does not exit: a failed write is just an error.
func offlineWatchdog() *watchdog {
	return &watchdog{limit: diskStall, exit: func(string) {}}
}

// Recover makes a node the only member of a new cluster, after its cluster has lost the majority of
// voters for good. The catalog contains everything in the node's log, even entries that were not
// acknowledged. Operators should choose the node with the highest Index, and move the data
// directories of the others away before those join again.
func Recover(dataDir string) (*Recovered, error) {
	// A mistyped path must not create a directory.
	if _, err := os.Stat(dataDir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cluster: there is no data directory %s", dataDir)
	}

	h, err := openHome(dataDir)
	if err != nil {
		return nil, err
	}
	defer h.close()

	id, err := h.loadIdentity()
	if err != nil {
		return nil, err
	}

	if id.ClusterID == "" || !h.hasRaft() {
		return nil, fmt.Errorf("cluster: the data directory %s is not that of a member of a cluster", dataDir)
	}

	store, err := openStore(h.raft, offlineWatchdog())
	if err != nil {
		return nil, err
	}
	defer store.Close()

	snaps, err := raft.NewFileSnapshotStore(h.raft, snapshotsKept, io.Discard)
	if err != nil {
		return nil, fmt.Errorf("cluster: open snapshots: %w", err)
	}

	m := &recovery{machine: newMachine(discardLog(), catalog.ThisBuild(), func(error) {}, func(uint64) {}), id: id}

	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = raft.ServerID(id.NodeID), newRaftLog(discardLog())
	_, trans := raft.NewInmemTransport(raft.ServerAddress(id.NodeID))

	// Raft replays the log into the machine, and writes a snapshot with one voter.
	if err := raft.RecoverCluster(conf, m, store, store, snaps, trans, onlyVoter(id)); err != nil {
		return nil, fmt.Errorf("cluster: recover: %w", err)
	}

	if m.done == nil {
		return nil, errors.New("cluster: recover: nothing was written")
	}
	return m.done, errors.Join(id.save(), h.inherit())
}

// recovery is a machine that turns its state into the new cluster's before the snapshot.
type recovery struct {
	*machine
	id   *identity
	done *Recovered
}

// Snapshot implements raft.FSM.
func (r *recovery) Snapshot() (raft.FSMSnapshot, error) {
	if r.stuck != nil {
		return nil, r.stuck
	}
	r.done = refound(r.state, r.id, false)
	return snapshot{r.state.View()}, nil
}

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }
