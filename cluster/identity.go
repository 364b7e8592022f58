package cluster

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/catalog/codec"
	"github.com/shoalsearch/shoal/cluster/disk"
)

// identity is the content of node.json: which node this is. It is written and synced before
// anything that depends on it.
type identity struct {
	Format    int    `json:"format"` // identityFormat of the writer
	NodeID    string `json:"node_id"`
	BootEpoch uint64 `json:"boot_epoch"` // number of the start, from 1
	ClusterID string `json:"cluster_id"` // "" until the node is in a cluster
	// Founding is set while this node founds a cluster. After a crash, only this node finishes
	// that.
	Founding bool `json:"founding,omitempty"`

	// Promise binds this node to another node that founds a cluster: see form.go.
	Promise promise `json:"promise,omitzero"`

	// Place identifies the log file when it was last used: see home.place.
	Place string `json:"place,omitempty"`

	random uint32 // of this start, never written: see catalog.NewEpoch
	path   string
}

// identityFormat grows when an older program must not write the file, because it would lose fields.
const identityFormat = 1

func (id *identity) epoch() uint64 { return catalog.NewEpoch(id.BootEpoch, id.random) }

// promise names the cluster that a node will join, and its founder.
type promise struct {
	Founder string `json:"founder"`
	Cluster string `json:"cluster"`
}

// home is the data directory, locked by this process.
type home struct {
	dir  string
	raft string
	lock *os.File
	made bool // this process created it
}

// ErrInUse is wrapped if another process uses the data directory.
var ErrInUse = errors.New("in use by another process")

// openHome creates and locks the data directory.
func openHome(dir string) (*home, error) {
	h := &home{dir: dir, raft: filepath.Join(dir, "raft")}
	_, err := os.Stat(dir)
	h.made = errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(h.raft, 0o700); err != nil {
		return nil, cmp.Or(faultOf(h.raft, err), fmt.Errorf("cluster: data directory: %w", err))
	}

	lock, err := os.Open(h.raft)
	if err != nil {
		return nil, cmp.Or(faultOf(h.raft, err), fmt.Errorf("cluster: data directory: %w", err))
	}

	// The kernel releases the lock when the process ends, even after a crash.
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("cluster: the data directory %s is %w", dir, ErrInUse)
	}

	h.lock = lock
	return h, nil
}

// close releases the lock explicitly. A child process that is just being started also has the file
// open, so closing the file alone would not release it at once.
func (h *home) close() {
	unix.Flock(int(h.lock.Fd()), unix.LOCK_UN)
	h.lock.Close()
}

// logPlace identifies the log file by its inode and birth time; "" without a log. It changes if the
// directory is copied or restored, but also if it is moved to another disk. So after a change the
// node asks the others.
func (h *home) logPlace() (string, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, filepath.Join(h.raft, logFile), 0, unix.STATX_INO|unix.STATX_BTIME, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cluster: look at %s: %w", filepath.Join(h.raft, logFile), err)
	}

	place := strconv.FormatUint(st.Ino, 36)
	if st.Mask&unix.STATX_BTIME != 0 { // some file systems do not have it
		place += "-" + strconv.FormatInt(st.Btime.Sec, 36) + "-" + strconv.FormatUint(uint64(st.Btime.Nsec), 36)
	}
	return place, nil
}

// loadIdentity reads node.json without counting a start.
func (h *home) loadIdentity() (*identity, error) {
	id := &identity{path: filepath.Join(h.dir, "node.json"), random: randomBits()}

	data, err := os.ReadFile(id.path)
	if errors.Is(err, fs.ErrNotExist) {
		if h.hasRaft() {
			return nil, fmt.Errorf("cluster: %s is missing but %s is not empty: put node.json back, or move the data directory away to join as a new node", id.path, h.raft)
		}
		return id, nil
	}

	if err != nil {
		return nil, cmp.Or(faultOf(id.path, err), fmt.Errorf("cluster: node.json: %w", err))
	}

	// Check the format first: a later format may give these fields another meaning.
	var form struct {
		Format int `json:"format"`
	}
	err = json.Unmarshal(data, &form)
	if err == nil && form.Format > identityFormat {
		return nil, refused(fmt.Sprintf("cluster: %s has format %d, and this program reads up to %d: %v. Start that version or a later one on this data directory", id.path, form.Format, identityFormat, codec.ErrNewer))
	}
	if err = cmp.Or(err, json.Unmarshal(data, id)); err != nil || id.NodeID == "" {
		return nil, fmt.Errorf("cluster: %s is damaged: put it back from a copy, or move the data directory away to join as a new node", id.path)
	}

	// Without its log, the node could vote a second time in a term.
	if id.ClusterID != "" && !id.Founding && !h.hasRaft() {
		return nil, fmt.Errorf("cluster: %s says that this node is part of a cluster, but the log in %s is gone: a node must not forget its votes. Move the whole data directory away to join as a new node, and `shoal remove` the old one", id.path, h.raft)
	}
	return id, nil
}

// hasRaft reports whether there is a raft log. An empty file does not count: a power cut can leave
// one, and bbolt would begin a new log in it.
func (h *home) hasRaft() bool {
	info, err := os.Stat(filepath.Join(h.raft, logFile))
	return err == nil && info.Size() > 0
}

// countStart counts a start of the node in node.json. At the first start it creates the node's id.
func (id *identity) countStart() error {
	if id.NodeID == "" {
		id.NodeID = newNodeID()
	}
	id.BootEpoch++
	return id.save()
}

// save writes node.json and syncs it.
func (id *identity) save() error {
	id.Format = identityFormat
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return fmt.Errorf("cluster: node.json: %w", err)
	}
	if _, err := disk.Replace(id.path, bytes.NewReader(append(data, '\n'))); err != nil {
		return cmp.Or(faultOf(id.path, err), fmt.Errorf("cluster: node.json: %w", err))
	}
	return nil
}

// newNodeID returns 80 random bits as 16 letters and digits, short enough to type.
func newNodeID() string {
	var b [10]byte
	rand.Read(b[:])
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

func randomBits() uint32 {
	var b [4]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

// randomID returns 128 random bits in hexadecimal.
func randomID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
