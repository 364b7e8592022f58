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

// Both ways back after a disaster, for a node that is stopped. Each makes a
// new cluster, with a new id and this node as its only member: nodes of the
// old one, should they come back, are refused instead of being mixed in.

// Recovered is what Restore or Recover has made.
type Recovered struct {
	Node    string // id of the node
	Cluster string // id of the new cluster
	Before  string // id of the old one
	Index   uint64 // of the newest entry that is in the catalog

	catalog.Refounded

	// What is in force again as it was then, for the operator to look through.
	Accounts int      // that are active
	Keys     []string // API keys that have not ended by the catalog's clock: id, name and whose they are
}

// Restore makes an empty data directory that of a node with the catalog of a
// snapshot (see Cluster.Snapshot). The key file must hold the key of the
// cluster that wrote it.
func Restore(dataDir, keyFile string, snapshot io.Reader) (*Recovered, error) {
	// A snapshot that is of no use leaves the directory as it was.
	state, err := catalog.Load(snapshot)
	if err != nil {
		return nil, fmt.Errorf("cluster: restore: %w", err)
	}
	if err := opens(keyFile, state.View()); err != nil {
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

	// The node is in the new catalog before its first start, as if it had been started once.
	id.NodeID, id.BootEpoch = newNodeID(), 1
	r := refound(state, id, true)

	// The identity is written last: a directory that is half restored does not start.
	if err := saveAsRaft(h, id, state); err != nil {
		return nil, err
	}
	return r, errors.Join(id.save(), h.inherit())
}

// opens reports whether the secrets of a catalog can be read with the keys of a
// file.
func opens(keyFile string, v *catalog.View) error {
	// Each may be sealed under another key of the file, so each is tried.
	for name, box := range boxes(v) {
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

// refound gives a catalog and an identity to a new cluster.
func refound(state *catalog.State, id *identity, restored bool) *Recovered {
	r := &Recovered{Node: id.NodeID, Cluster: randomID(), Before: state.View().ClusterID(), Index: state.Index()}
	r.Refounded = *state.Refound(catalog.Successor{Cluster: r.Cluster, Node: id.NodeID, Restored: restored})
	id.ClusterID, id.Founding = r.Cluster, false

	// Who was shut out, and which keys were revoked, after the catalog was written down is not known here.
	v := state.View()
	for a := range v.Accounts() {
		if a.State == catalog.AccountActive {
			r.Accounts++
		}
	}
	for k := range v.Keys() {
		if k.Expires.IsZero() || v.Time().Before(k.Expires) {
			r.Keys = append(r.Keys, describe(v, k))
		}
	}
	return r
}

// describe names a key and whose it is.
func describe(v *catalog.View, k *catalog.Key) string {
	owner := "nobody"
	if a := v.Account(k.Account); a != nil {
		owner = a.Email
	}
	return fmt.Sprintf("%s %q of %s", k.ID, k.Name, owner)
}

// alone is the configuration of raft with one voter.
func alone(id *identity) raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(id.NodeID), Address: raft.ServerAddress(id.NodeID)}}}
}

// saveAsRaft writes a state as the snapshot from which raft starts.
func saveAsRaft(h *home, id *identity, state *catalog.State) error {
	fail := func(err error) error { return fmt.Errorf("cluster: write the catalog as raft's: %w", err) }

	store, err := openStore(h.raft, offline())
	if err != nil {
		return err
	}
	defer store.Close()

	snaps, err := raft.NewFileSnapshotStore(h.raft, snapshotsKept, io.Discard)
	if err != nil {
		return fail(err)
	}

	// A new log begins with this snapshot, so it may begin with the first term.
	const term = 1
	_, trans := raft.NewInmemTransport(raft.ServerAddress(id.NodeID))

	sink, err := snaps.Create(raft.SnapshotVersionMax, max(1, state.Index()), term, alone(id), 1, trans)
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

// offline lets a failed write be an error: there is no process to be ended.
func offline() *watchdog {
	return &watchdog{limit: diskStall, exit: func(string) {}}
}

// Recover makes a node of a cluster that has lost the majority of its voters
// for good the only one of a new cluster, with all that is in its log, also
// what was not acknowledged. Choose the node whose Index is the highest, and
// move the data directories of the others away before they join the new cluster.
func Recover(dataDir string) (*Recovered, error) {
	// A name that was written wrong must not leave a directory behind.
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

	store, err := openStore(h.raft, offline())
	if err != nil {
		return nil, err
	}
	defer store.Close()

	snaps, err := raft.NewFileSnapshotStore(h.raft, snapshotsKept, io.Discard)
	if err != nil {
		return nil, fmt.Errorf("cluster: open snapshots: %w", err)
	}

	m := &recovery{machine: newMachine(discard(), catalog.ThisBuild(), func(error) {}, func(uint64) {}), id: id}

	conf := raft.DefaultConfig()
	conf.LocalID, conf.Logger = raft.ServerID(id.NodeID), newRaftLog(discard())
	_, trans := raft.NewInmemTransport(raft.ServerAddress(id.NodeID))

	// Raft replays the log into the machine and writes one snapshot, of a cluster of this node alone.
	if err := raft.RecoverCluster(conf, m, store, store, snaps, trans, alone(id)); err != nil {
		return nil, fmt.Errorf("cluster: recover: %w", err)
	}

	if m.done == nil {
		return nil, errors.New("cluster: recover: nothing was written")
	}
	return m.done, errors.Join(id.save(), h.inherit())
}

// recovery is a machine whose snapshot is that of the new cluster.
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

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
