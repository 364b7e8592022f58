package thread

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/disk"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/place"
	"github.com/shoalsearch/shoal/node/seal"
)

// Deps are the dependencies of a Store.
type Deps struct {
	Dir      string // of files; created on the first write
	Net      call.Network
	View     func() *catalog.View
	Alive    func(node string) bool
	Secret   func(ctx context.Context, name string) ([]byte, error)
	Age      func() time.Duration // age of the view
	Replicas int                  // copies of a file, if there are enough nodes
	Timing   float64              // multiplies timeouts of the network
	Now      func() time.Time
	Log      *slog.Logger
}

// Store stores conversations on several nodes. It is safe for concurrent use.
type Store struct {
	d   Deps
	box *seal.Box
}

// ErrGone means that no reachable node has the file.
var ErrGone = errors.New("no node that can be reached has this conversation")

// maxFile limits a sealed file, so that it fits into one call.
const maxFile = 12 << 20

// New returns a store that serves calls of other nodes. Call it before the network starts.
func New(d Deps) *Store {
	s := &Store{d: d, box: seal.New(secretName, "conversation", d.Secret)}
	putCall.Serve(d.Net, s.servePut)
	getCall.Serve(d.Net, s.serveGet)
	haveCall.Serve(d.Net, s.serveHave)
	return s
}

// Seal encrypts a few bytes for a record of the catalog.
func (s *Store) Seal(ctx context.Context, plain []byte) ([]byte, error) {
	return s.box.Seal(ctx, plain, boxTitle)
}

// Open decrypts what Seal returned.
func (s *Store) Open(ctx context.Context, sealed []byte) ([]byte, error) {
	return s.box.Open(ctx, sealed, boxTitle)
}

// Tag returns a hash of a text, never 0. Without the cluster's secret it reveals nothing about
// the text.
func (s *Store) Tag(ctx context.Context, text string) (uint64, error) { return s.box.Tag(ctx, text) }

type putRequest struct {
	File  string
	Bytes []byte
}

type fileRequest struct{ File string }

type getResponse struct {
	Has   bool
	Bytes []byte
}

type haveRequest struct{ Files []string }

type haveResponse struct{ Has []bool }

var (
	putCall  = call.To[putRequest, call.Nothing]("thread-put")
	getCall  = call.To[fileRequest, getResponse]("thread-get")
	haveCall = call.To[haveRequest, haveResponse]("thread-have")
)

// Put stores a turn on the live nodes of a thread and returns the file's name for the catalog.
func (s *Store) Put(ctx context.Context, thread string, plain []byte) (file string, size int, err error) {
	sealed, err := s.box.Seal(ctx, plain, boxFile)
	if err != nil {
		return "", 0, err
	}
	if len(sealed) > maxFile {
		return "", 0, fmt.Errorf("what was said has %d bytes", len(sealed))
	}
	file = nameOf(sealed)

	// Write here first, even if this node is no holder: the copy stays until the holders have
	// theirs.
	if err := s.writeFile(file, sealed); err != nil {
		return "", 0, err
	}

	// Write the wanted number of copies. If a node cannot be reached, the next in order takes its
	// place.
	want := s.liveHolders(s.d.View(), thread)
	for _, node := range s.liveNodes(s.d.View(), thread) {
		if len(want) == 0 {
			break
		}
		if node != s.d.Net.Self() && s.sendTo(ctx, node, file, sealed) != nil {
			continue
		}
		want = want[1:]
	}
	return file, len(sealed), ctx.Err()
}

func (s *Store) sendTo(ctx context.Context, node, file string, sealed []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.scaled(10*time.Second))
	defer cancel()
	_, err := putCall.Ask(ctx, s.d.Net, node, &putRequest{file, sealed})
	return err
}

// servePut stores a file that another node sends.
func (s *Store) servePut(_ context.Context, req *putRequest) (*call.Nothing, error) {
	if len(req.Bytes) > maxFile || !isName(req.File) || nameOf(req.Bytes) != req.File {
		return nil, call.Fail(call.ErrInvalid, "these are not the bytes of the file")
	}
	if err := s.writeFile(req.File, req.Bytes); err != nil {
		return nil, err
	}
	return new(call.Nothing), nil
}

// Get reads a turn from this node or another one.
func (s *Store) Get(ctx context.Context, thread, file string) ([]byte, error) {
	sealed, err := s.readSealed(ctx, thread, file)
	if err != nil {
		return nil, err
	}
	return s.box.Open(ctx, sealed, boxFile)
}

// readSealed returns a file in encrypted form, from this node or another one.
func (s *Store) readSealed(ctx context.Context, thread, file string) ([]byte, error) {
	if b, err := s.readFile(file); err == nil {
		return b, nil
	}
	return s.fetchFrom(ctx, thread, file)
}

// fetchFrom gets a file from another node. It first asks the nodes that should have the file.
func (s *Store) fetchFrom(ctx context.Context, thread, file string) ([]byte, error) {
	for _, node := range s.liveNodes(s.d.View(), thread) {
		if node == s.d.Net.Self() {
			continue
		}

		limited, cancel := context.WithTimeout(ctx, s.scaled(10*time.Second))
		r, err := getCall.Ask(limited, s.d.Net, node, &fileRequest{file})
		cancel()

		// The hash detects damaged bytes and wrong files.
		if err == nil && r.Has && nameOf(r.Bytes) == file {
			return r.Bytes, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, ErrGone
}

// serveGet returns a file to another node.
func (s *Store) serveGet(_ context.Context, req *fileRequest) (*getResponse, error) {
	b, err := s.readFile(req.File)
	if err != nil {
		// Missing or damaged here: the caller asks other nodes.
		return &getResponse{}, nil
	}
	return &getResponse{true, b}, nil
}

// serveHave tells another node which of some files are here.
func (s *Store) serveHave(_ context.Context, req *haveRequest) (*haveResponse, error) {
	r := &haveResponse{Has: make([]bool, len(req.Files))}
	for i, f := range req.Files {
		_, err := s.readFile(f)
		r.Has[i] = err == nil
	}
	return r, nil
}

// liveNodes returns the live nodes, those that a thread prefers first.
func (s *Store) liveNodes(view *catalog.View, thread string) []string {
	type scored struct {
		id    string
		score float64
	}

	var all []scored
	key := place.Key(thread)
	for m := range view.Members() {
		if m.State == catalog.MemberRemoved || m.ID != s.d.Net.Self() && !s.d.Alive(m.ID) {
			continue
		}

		score := place.Score(key, place.Member{ID: m.ID, Weight: 1})
		if m.State == catalog.MemberDraining {
			score -= 1e9 // last resort
		}
		all = append(all, scored{m.ID, score})
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Compare(b.score, a.score)
	})

	ids := make([]string, len(all))
	for i, m := range all {
		ids[i] = m.id
	}
	return ids
}

// liveHolders returns the live nodes that should have the files of a thread.
func (s *Store) liveHolders(view *catalog.View, thread string) []string {
	order := s.liveNodes(view, thread)
	return order[:min(len(order), max(s.d.Replicas, 2))]
}

func (s *Store) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * s.d.Timing) }

func (s *Store) filePath(file string) string { return filepath.Join(s.d.Dir, "turns", file[:2], file) }

// writeFile stores a file. It appears under its name only when complete.
func (s *Store) writeFile(file string, sealed []byte) error {
	path := s.filePath(file)
	if _, err := os.Stat(path); err == nil {
		return nil
	}

	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("threads: %w", err)
	}

	if _, err := disk.Replace(path, bytes.NewReader(sealed)); err != nil {
		return fmt.Errorf("threads: %w", err)
	}
	return nil
}

// readFile reads a file of this node, and removes it if its bytes do not match its name.
func (s *Store) readFile(file string) ([]byte, error) {
	if !isName(file) {
		return nil, os.ErrNotExist
	}
	b, err := os.ReadFile(s.filePath(file))
	if err != nil {
		return nil, err
	}

	if nameOf(b) != file {
		s.d.Log.Error("a file of a conversation is damaged and was removed", "file", file)
		_ = os.Remove(s.filePath(file)) // if it fails, the next read removes it
		return nil, os.ErrNotExist
	}
	return b, nil
}
