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

// Deps is what a Store works with.
type Deps struct {
	Dir      string // of its files; made when something is written
	Net      call.Network
	View     func() *catalog.View
	Alive    func(node string) bool
	Secret   func(ctx context.Context, name string) ([]byte, error)
	Age      func() time.Duration // how old the view may be
	Replicas int                  // copies of a file, where there are as many nodes
	Timing   float64              // multiplies times that depend on the network
	Now      func() time.Time
	Log      *slog.Logger
}

// Store keeps conversations. It is safe for concurrent use.
type Store struct {
	d   Deps
	box *seal.Box
}

// ErrGone says that no node that can be reached has what was asked for.
var ErrGone = errors.New("no node that can be reached has this conversation")

// maxFile bounds the sealed bytes of a file, so that it fits into one call.
const maxFile = 12 << 20

// New makes a store and answers the calls of other nodes. It comes before the
// first call.
func New(d Deps) *Store {
	s := &Store{d: d, box: seal.New(secretName, "conversation", d.Secret)}
	putCall.Serve(d.Net, s.servePut)
	getCall.Serve(d.Net, s.serveGet)
	haveCall.Serve(d.Net, s.serveHave)
	return s
}

// Seal seals a few bytes for a record of the catalog.
func (s *Store) Seal(ctx context.Context, plain []byte) ([]byte, error) {
	return s.box.Seal(ctx, plain, boxTitle)
}

// Open opens what Seal sealed.
func (s *Store) Open(ctx context.Context, sealed []byte) ([]byte, error) {
	return s.box.Open(ctx, sealed, boxTitle)
}

// Tag is a hash of a text that tells nothing of it to who lacks the cluster's
// secret; never 0.
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

// Put keeps what was said in a turn on the nodes of a thread, on as many live
// ones as there should be, and returns its name for the catalog.
func (s *Store) Put(ctx context.Context, thread string, plain []byte) (file string, size int, err error) {
	sealed, err := s.box.Seal(ctx, plain, boxFile)
	if err != nil {
		return "", 0, err
	}
	if len(sealed) > maxFile {
		return "", 0, fmt.Errorf("what was said has %d bytes", len(sealed))
	}
	file = nameOf(sealed)

	// This node may not be one of them; its copy is one more until they have it.
	if err := s.write(file, sealed); err != nil {
		return "", 0, err
	}

	// As many copies as there should be; where a node cannot be reached the next one in order stands in for it.
	want := s.holders(s.d.View(), thread)
	for _, node := range s.order(s.d.View(), thread) {
		if len(want) == 0 {
			break
		}
		if node != s.d.Net.Self() && s.push(ctx, node, file, sealed) != nil {
			continue
		}
		want = want[1:]
	}
	return file, len(sealed), ctx.Err()
}

func (s *Store) push(ctx context.Context, node, file string, sealed []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.scaled(10*time.Second))
	defer cancel()
	_, err := putCall.Ask(ctx, s.d.Net, node, &putRequest{file, sealed})
	return err
}

func (s *Store) servePut(_ context.Context, req *putRequest) (*call.Nothing, error) {
	if len(req.Bytes) > maxFile || !isName(req.File) || nameOf(req.Bytes) != req.File {
		return nil, call.Fail(call.ErrInvalid, "these are not the bytes of the file")
	}
	if err := s.write(req.File, req.Bytes); err != nil {
		return nil, err
	}
	return new(call.Nothing), nil
}

// Get reads what was said in a turn, from this node or from one that has it.
func (s *Store) Get(ctx context.Context, thread, file string) ([]byte, error) {
	sealed, err := s.read(file)
	if err != nil {
		sealed, err = s.fetch(ctx, thread, file)
		if err != nil {
			return nil, err
		}
	}
	return s.box.Open(ctx, sealed, boxFile)
}

// fetch asks the other nodes for a file, those first that should have it.
func (s *Store) fetch(ctx context.Context, thread, file string) ([]byte, error) {
	for _, node := range s.order(s.d.View(), thread) {
		if node == s.d.Net.Self() {
			continue
		}

		one, cancel := context.WithTimeout(ctx, s.scaled(10*time.Second))
		r, err := getCall.Ask(one, s.d.Net, node, &fileRequest{file})
		cancel()

		// The hash tells bytes that are damaged there, and those of another file.
		if err == nil && r.Has && nameOf(r.Bytes) == file {
			return r.Bytes, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, ErrGone
}

func (s *Store) serveGet(_ context.Context, req *fileRequest) (*getResponse, error) {
	b, err := s.read(req.File)
	if err != nil {
		// It is not here, or damaged: others have it.
		return &getResponse{}, nil
	}
	return &getResponse{true, b}, nil
}

func (s *Store) serveHave(_ context.Context, req *haveRequest) (*haveResponse, error) {
	r := &haveResponse{Has: make([]bool, len(req.Files))}
	for i, f := range req.Files {
		_, err := s.read(f)
		r.Has[i] = err == nil
	}
	return r, nil
}

// order is the live nodes in the order in which a thread prefers them.
func (s *Store) order(view *catalog.View, thread string) []string {
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
			score -= 1e9 // only where there is nobody else
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

// holders are the live nodes that should have the files of a thread.
func (s *Store) holders(view *catalog.View, thread string) []string {
	order := s.order(view, thread)
	return order[:min(len(order), max(s.d.Replicas, 2))]
}

func (s *Store) scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * s.d.Timing) }

func (s *Store) path(file string) string { return filepath.Join(s.d.Dir, "turns", file[:2], file) }

// write keeps a file. It appears under its name only when it is complete.
func (s *Store) write(file string, sealed []byte) error {
	path := s.path(file)
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

// read reads a file that is here, and removes one whose bytes are not what its
// name says.
func (s *Store) read(file string) ([]byte, error) {
	if !isName(file) {
		return nil, os.ErrNotExist
	}
	b, err := os.ReadFile(s.path(file))
	if err != nil {
		return nil, err
	}

	if nameOf(b) != file {
		s.d.Log.Error("a file of a conversation is damaged and was removed", "file", file)
		_ = os.Remove(s.path(file)) // a second look finds it again
		return nil, os.ErrNotExist
	}
	return b, nil
}
