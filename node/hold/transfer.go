package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
)

// The methods with which nodes copy from each other. A file is identified by its hash only.
const (
	MethodFile     = "file"     // stream of a shard or side file by name
	MethodMirror   = "mirror"   // stream of a mirror by repository id, without what the caller has
	MethodPrefetch = "prefetch" // call that makes a node copy the files of a generation before it is published
)

// Limits of copying.
const (
	copiesIn     = 4           // concurrent streams into this node
	copiesOut    = 4           // concurrent streams out of this node
	copyRate     = 256 << 20   // bytes a second into this node
	secondTime   = time.Minute // longest wait of a publication for a second copy
	prefetchHold = time.Minute // how long files stay that were copied before their publication
)

// mirrorCall asks for a mirror.
type mirrorCall struct {
	Repo catalog.RepoID
	Have []string // commits that the caller has
}

// prefetchCall asks a node to copy files from the caller, which is about to publish them as the
// next generation of a repository.
type prefetchCall struct {
	Names      []string
	Repo       catalog.RepoID
	Generation uint64 // index of the live generation
}

// Caller calls other nodes by their ids.
type Caller interface {
	Call(ctx context.Context, node, method string, in []byte) ([]byte, error)
	Stream(ctx context.Context, node, method string, in []byte) (io.ReadCloser, error)
}

// Transfers copies files and mirrors between nodes. It is safe for concurrent use.
type Transfers struct {
	cluster Cluster
	calls   Caller
	files   *Files
	opt     TransferOptions

	in, out chan struct{} // slots for streams
	rate    *rate.Limiter
	copied  atomic.Int64 // bytes copied into this node
}

// TransferOptions are the settings of Transfers.
type TransferOptions struct {
	Replicas int         // wanted copies of everything
	Full     func() bool // reports whether nothing more should be copied to this disk
	Log      *slog.Logger
	Now      func() time.Time
}

// NewTransfers returns the Transfers of a node.
func NewTransfers(cluster Cluster, calls Caller, files *Files, opt TransferOptions) *Transfers {
	return &Transfers{
		cluster: cluster,
		calls:   calls,
		files:   files,
		opt:     opt,
		in:      make(chan struct{}, copiesIn),
		out:     make(chan struct{}, copiesOut),
		rate:    rate.NewLimiter(copyRate, copyRate/10),
	}
}

// Copied returns how many bytes of files and mirrors this node has copied from others since it
// started.
func (t *Transfers) Copied() int64 { return t.copied.Load() }

// Handle serves the calls of other nodes. It must be called before the cluster runs.
func (t *Transfers) Handle(c *cluster.Cluster) {
	c.HandleStream(MethodFile, t.serveFile)
	c.HandleStream(MethodMirror, t.serveMirror)
	c.Handle(MethodPrefetch, t.servePrefetch)
}

// CopyFile copies a file from the first of the nodes that has it. It does nothing if the file is here
// already.
func (t *Transfers) CopyFile(ctx context.Context, name string, from []string) error {
	if err := checkFileName(name); err != nil {
		return err
	}
	if t.files.Has(name) {
		return nil
	}

	// Take a slot only if a copy is needed.
	leave, err := t.acquireInSlot(ctx)
	if err != nil {
		return err
	}
	defer leave()

	// The first success ends the loop. If all nodes fail, the error is that of the last.
	err = fmt.Errorf("copy %s: no node has it", name)
	for _, node := range from {
		if err = t.copyFileFrom(ctx, name, node); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// copyFileFrom copies an index file from a node.
func (t *Transfers) copyFileFrom(ctx context.Context, name, node string) error {
	stream, err := t.calls.Stream(ctx, node, MethodFile, []byte(name))
	if err != nil {
		return fmt.Errorf("copy %s from %s: %w", name, node, err)
	}
	defer stream.Close()

	if err := t.files.Import(ctx, name, &reader{ctx: ctx, r: stream, rate: t.rate, count: &t.copied}); err != nil {
		return fmt.Errorf("copy %s from %s: %w", name, node, err)
	}
	return nil
}

// CopyMirror makes the mirror of a repository equal to that of the first of the nodes that has one.
func (t *Transfers) CopyMirror(ctx context.Context, id catalog.RepoID, from []string) error {
	leave, err := t.acquireInSlot(ctx)
	if err != nil {
		return err
	}
	defer leave()

	have, err := t.files.Mirrors.Get(id).Tips(ctx)
	if err != nil {
		have = nil // a damaged mirror is copied anew
	}

	// The other node sends only what these commits do not reach.
	in, err := json.Marshal(mirrorCall{Repo: id, Have: have})
	if err != nil {
		return err
	}

	err = errors.New("no node has it")
	for _, node := range from {
		if err = t.copyMirrorFrom(ctx, id, in, node); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("copy mirror %d: %w", id, err)
	}
	return nil
}

// copyMirrorFrom copies a repository's mirror from a node. in is the request.
func (t *Transfers) copyMirrorFrom(ctx context.Context, id catalog.RepoID, in []byte, node string) error {
	stream, err := t.calls.Stream(ctx, node, MethodMirror, in)
	if err != nil {
		return err
	}
	defer stream.Close()
	return t.files.Mirrors.Get(id).Import(ctx, &reader{ctx: ctx, r: stream, rate: t.rate, count: &t.copied})
}

// CopyMissingFiles copies the missing files of a repository's live generation from other nodes. It
// stops at the first failure, because then the caller builds the whole repository again.
func (t *Transfers) CopyMissingFiles(ctx context.Context, repo *catalog.Repo) {
	view := t.cluster.View()
	for _, s := range repo.Shards {
		for key, file := range FilesOf(repo.ID, s) {
			if t.files.Has(file) {
				continue
			}
			if err := t.CopyFile(ctx, file, liveSources(view, key, t.cluster.Self(), t.cluster.Alive)); err != nil {
				return
			}
		}
	}
}

// AnyFileLost reports whether a file of the live generation is neither on this node nor on another
// live node.
func (t *Transfers) AnyFileLost(view *catalog.View, repo *catalog.Repo) bool {
	for _, s := range repo.Shards {
		for key, file := range FilesOf(repo.ID, s) {
			if !t.files.Has(file) && len(liveSources(view, key, t.cluster.Self(), t.cluster.Alive)) == 0 {
				return true
			}
		}
	}
	return false
}

// serveFile sends an index file to another node.
func (t *Transfers) serveFile(ctx context.Context, _ cluster.Peer, in []byte, out io.Writer) error {
	name := string(in)
	if err := checkFileName(name); err != nil {
		return err
	}

	// Copies share the disk with searches: only a few run at once.
	if err := acquireSlot(ctx, t.out); err != nil {
		return err
	}
	defer func() { <-t.out }()

	f, _, err := t.files.Export(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(out, &reader{ctx: ctx, r: f})
	return err
}

// serveMirror sends the commits of a mirror that another node lacks.
func (t *Transfers) serveMirror(ctx context.Context, _ cluster.Peer, in []byte, out io.Writer) error {
	var call mirrorCall
	if err := json.Unmarshal(in, &call); err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	if !t.files.Mirrors.Has(call.Repo) {
		return errors.New("the mirror is not here")
	}

	// An export reads the whole mirror: only a few run at once.
	if err := acquireSlot(ctx, t.out); err != nil {
		return err
	}
	defer func() { <-t.out }()

	return t.files.Mirrors.Get(call.Repo).Export(ctx, call.Have, out)
}

// servePrefetch copies the files of a generation that the caller is about to publish, so that the
// generation is never on one disk only.
func (t *Transfers) servePrefetch(ctx context.Context, from cluster.Peer, in []byte) ([]byte, error) {
	var call prefetchCall
	if err := json.Unmarshal(in, &call); err != nil {
		return nil, fmt.Errorf("prefetch: %w", err)
	}

	// No view names the files yet: without the guard the collector would remove them.
	release := t.files.Guard(call.Names)
	defer release()
	for _, name := range call.Names {
		if err := t.CopyFile(ctx, name, []string{from.Node}); err != nil {
			return nil, err
		}
	}

	// When the guard ends, the files stay until the publication or a timeout.
	t.files.awaitPublication(call, t.opt.Now().Add(prefetchHold))
	return nil, nil
}

// errDisk is the error of copying to a full disk.
var errDisk = errors.New("the disk is nearly full")

// acquireInSlot takes a slot for a stream into this node.
func (t *Transfers) acquireInSlot(ctx context.Context) (leave func(), err error) {
	if t.opt.Full != nil && t.opt.Full() {
		return nil, errDisk
	}
	if err := acquireSlot(ctx, t.in); err != nil {
		return nil, err
	}
	return func() { <-t.in }, nil
}

// acquireSlot takes one of the slots, and waits for it until ctx ends.
func acquireSlot(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// checkFileName returns an error unless name is the name of an index file. No other files are ever
// requested or sent.
func checkFileName(name string) error {
	if _, _, ok := shard.ParseFileName(name); !ok {
		return errors.New("that is not the name of an index file")
	}
	return nil
}
