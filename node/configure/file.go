package configure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// FileStatus is the state of a node's configuration file.
type FileStatus struct {
	Path      string    `json:"path"`
	Hash      string    `json:"hash"`     // of the configuration in force
	FileHash  string    `json:"fileHash"` // of this node's file, when it was last read and valid
	Differs   bool      `json:"differs"`  // this node's file is not in force, or was refused
	LoadedAt  time.Time `json:"loadedAt,omitzero"`
	Errors    []string  `json:"errors"` // of the latest file, if it was refused
	RefusedAt time.Time `json:"refusedAt,omitzero"`
}

// File brings this node's configuration file into the catalog. It refuses an invalid file as a
// whole, with all of its errors. The configuration in force then stays.
//
// The catalog's configuration is in force, and starting a node changes nothing that was agreed. So
// the node remembers on disk the files that it had, and proposes a file only if somebody has
// changed it:
//
//	file in force                               nothing to do
//	the last file seen here                     nothing: another change won, here or elsewhere
//	no file seen yet, but one is in force       nothing: a joining node brings none
//	seen before, and found at a start           nothing: the node runs from an old image
//	no connections, but some are in force       refused: a template that nobody has filled in
//	anything else                               proposed
type File struct {
	path   string
	first  []byte // content of the file when the node started
	memory memory
	agreed Agreement
	log    *slog.Logger
	now    func() time.Time
	again  chan struct{} // requests a look at once

	offered []string // hashes of files that this process proposed, newest last; only Run uses it

	mu     sync.Mutex // guards the field below
	status FileStatus
}

// The pace of watching. The file is polled, because not every volume reports changes, and polling
// costs little.
const (
	settleTime = 100 * time.Millisecond
	pollEvery  = 500 * time.Millisecond
	retryEvery = time.Second // without a leader
)

// Found is the configuration file as a start found it.
type Found struct {
	path   string
	bytes  []byte
	memory memory
}

// Find reads a node's configuration file, and the memory of former files in the data directory. The
// path may be "": no file. Find fails if the file cannot be read, because the node would otherwise
// run on an old configuration.
func Find(path, dir string) (*Found, error) {
	f := &Found{path: path}
	if path == "" {
		return f, nil
	}

	var err error
	if f.bytes, err = readFile(path); err != nil {
		return nil, err
	}

	// Whether the file is proposed depends on the files of earlier starts.
	if f.memory, err = readMemory(filepath.Join(dir, memoryFile)); err != nil {
		return nil, err
	}
	return f, nil
}

// NewFile returns a File for the configuration file that the start of the node has found.
func NewFile(f *Found, agreed Agreement, log *slog.Logger, now func() time.Time) *File {
	return &File{
		path:   f.path,
		first:  f.bytes,
		memory: f.memory,
		agreed: agreed,
		log:    log,
		now:    now,
		again:  make(chan struct{}, 1),
		status: FileStatus{Path: f.path},
	}
}

// Reload makes Run check the file at once. It does not wait for that.
func (f *File) Reload() {
	select {
	case f.again <- struct{}{}:
	default:
	}
}

// Run watches the file until the context ends.
func (f *File) Run(ctx context.Context) error {
	if f.path == "" {
		return nil
	}

	// Catch up first: at its start the node may know only an old catalog, and would decide wrongly.
	synced := func() bool { _, err := f.agreed.Sync(ctx); return err == nil }
	if !untilDone(ctx, synced) {
		return nil
	}

	if !untilDone(ctx, func() bool { return f.offerFirst(ctx) }) {
		return nil
	}

	last := hashOf(f.first)
	for {
		wait := pollEvery
		if !f.offerIfChanged(ctx, &last) {
			wait = retryEvery
		}
		if !waitFor(ctx, wait, f.again) {
			return nil
		}
	}
}

// untilDone calls try until it returns true. It returns false if the context ends first.
func untilDone(ctx context.Context, try func() bool) bool {
	for !try() {
		if !clock.Wait(ctx, retryEvery) {
			return false
		}
	}
	return true
}

// offerFirst offers the file found at the start. It returns false if it must be called again.
func (f *File) offerFirst(ctx context.Context) bool {
	// If the file has changed since the start, another node may have brought the change into force
	// already. So do not offer the found file. Only remember it, so that offerIfChanged notices the
	// change. As there, first read what is in force.
	force := f.agreed.View().Config()
	raw, err := readFile(f.path)
	if err == nil && force.Index > 0 && hashOf(raw) != hashOf(f.first) {
		if _, err := config.Parse(f.first); err == nil {
			return f.memory.remember(hashOf(f.first)) == nil
		}
		return true
	}

	return f.proposeIfDue(ctx, f.first, force, true)
}

// offerIfChanged reads the file, and offers it if it has changed since the last call. last is the
// hash of the file at that call, or the error of reading it. The result is false if the file must
// be offered again.
func (f *File) offerIfChanged(ctx context.Context, last *string) bool {
	// Take the configuration in force before reading the file. One that comes into force later may
	// be from a newer file, so the proposal must not replace it.
	force := f.agreed.View().Config()
	before, _ := os.Stat(f.path) // reading the file reports the same error
	raw, err := readFile(f.path)
	if err != nil {
		if *last != err.Error() {
			f.recordRefusal(err.Error())
		}
		*last = err.Error()
		return true
	}

	hash := hashOf(raw)
	if *last == hash {
		return true
	}

	if !f.staysUnchanged(ctx, before) {
		return false
	}

	// If there was no decision, for example without a leader, the next call offers it again.
	if !f.proposeIfDue(ctx, raw, force, false) {
		return false
	}
	*last = hash
	return true
}

// staysUnchanged reports whether the file stays unchanged for a while. Writers may take several
// steps.
func (f *File) staysUnchanged(ctx context.Context, before os.FileInfo) bool {
	if before == nil || !before.Mode().IsRegular() {
		return true
	}
	clock.Wait(ctx, settleTime)
	after, err := os.Stat(f.path)
	return err == nil && os.SameFile(before, after) && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime())
}

// proposeIfDue validates a changed file, and proposes it if it is due. It returns false if the file must
// be read and offered again. The argument force is the configuration in force when the file was
// read.
func (f *File) proposeIfDue(ctx context.Context, raw []byte, force *catalog.Config, starting bool) bool {
	file, err := config.Parse(raw)
	if err != nil {
		f.recordRefusal(mistakes(err)...)
		return true
	}

	hash := hashOf(raw)
	if force.Index > 0 && (force.Hash == hash || !f.mustPropose(hash, starting)) {
		return f.rememberFile(hash, file)
	}

	// A file without connections, such as an empty template, would remove everything.
	if n := len(f.agreed.View().File().Connections); n > 0 && len(file.Connections) == 0 {
		f.recordRefusal(fmt.Sprintf("It names no connection; in force are %d: run `shoal config apply %s --accept` if that is meant", n, f.path))
		return true
	}

	// If another configuration comes into force meanwhile, it is newer than this file, which is
	// then only remembered.
	set := catalog.NewSetConfig(raw, file).Following(f.agreed.View())
	set.Instead = force.Index

	f.offered = append(f.offered[max(0, len(f.offered)-maxSeen):], hash)
	_, err = f.agreed.Propose(ctx, set)
	refusal, refused := catalog.Refused(err)
	switch {
	case err == nil:
		f.log.Info("configuration accepted", "path", f.path, "hash", hash[:12], "connections", len(file.Connections))
		return f.rememberFile(hash, file)

	// The file had the configuration that came into force meanwhile, and the answer to its proposal
	// was lost. Read the file again, and offer it instead.
	case refused && refusal.Code == catalog.Stale && f.hadBefore(f.agreed.View().Config().Hash):
		return false
	// A newer configuration of somebody else is in force. Only remember this file.
	case refused && refusal.Code == catalog.Stale:
		return f.rememberFile(hash, file)
	case refused:
		f.recordRefusal(refusal.Reason)
		return true
	}

	// The proposal failed without a decision. Offer the file again.
	if ctx.Err() == nil {
		f.log.Warn("configuration could not be proposed yet", "path", f.path, "err", err)
	}
	return false
}

// hadBefore reports whether the file once had the content with a hash.
func (f *File) hadBefore(hash string) bool {
	return slices.Contains(f.offered, hash) || slices.Contains(f.memory.Seen, hash)
}

// mustPropose reports whether a file that is not in force must be proposed: it was edited since it
// was last remembered. At the start of the node, a file that it has had before does not count as
// edited.
func (f *File) mustPropose(hash string, starting bool) bool {
	remembered := f.memory.Seen
	switch {
	case len(remembered) == 0 || remembered[len(remembered)-1] == hash:
		return false
	case starting && slices.Contains(remembered, hash):
		return false
	}
	return true
}

// rememberFile remembers a valid file. It returns false if that fails.
func (f *File) rememberFile(hash string, file *config.File) bool {
	if err := f.memory.remember(hash); err != nil {
		f.log.Error("the configuration file's hash could not be remembered", "err", err)
		return false
	}

	for _, w := range file.Warnings {
		f.log.Warn("configuration", "path", f.path, "warning", w.Error())
	}

	// An owner may have applied another configuration since.
	if force := f.agreed.View().Config().Hash; force != hash {
		f.log.Warn("this node's configuration file is not the one in force: change it, or use shoal config apply",
			"path", f.path, "hash", hash[:12], "in_force", force[:min(12, len(force))])
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Errors, f.status.RefusedAt = nil, time.Time{}
	f.status.LoadedAt, f.status.FileHash = f.now(), hash
	return true
}

// mistakes returns every mistake in an error.
func mistakes(err error) []string {
	var all config.Errors
	if !errors.As(err, &all) {
		return []string{err.Error()}
	}

	var list []string
	for _, e := range all {
		list = append(list, e.Error())
	}
	return list
}

// recordRefusal records why a file is refused.
func (f *File) recordRefusal(errs ...string) {
	f.log.Error("configuration refused; the one in force stays", "path", f.path, "errors", errs)

	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Errors, f.status.RefusedAt = errs, f.now()
}

// State returns the state of this node's file, and the configuration in force.
func (f *File) State() FileStatus {
	f.mu.Lock()
	defer f.mu.Unlock()

	s := f.status
	s.Hash = f.agreed.View().Config().Hash
	s.Differs = s.FileHash != "" && s.FileHash != s.Hash || len(s.Errors) > 0
	return s
}

// outsideReferences returns what the configuration file of this node reads from outside it, such as
// variables. If the file is invalid, reaches returns nil.
func (f *File) outsideReferences() []config.Reach {
	raw, err := readFile(f.path)
	if err != nil {
		return nil
	}
	file, err := config.Parse(raw)
	if err != nil {
		return nil
	}
	return config.Reaches(raw, file)
}

// readFile reads a configuration file.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()

	// One byte beyond the limit proves that the file is too large.
	raw, err := io.ReadAll(io.LimitReader(f, config.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(raw) > config.MaxSize {
		return nil, fmt.Errorf("configuration: %s is larger than %d bytes", path, config.MaxSize)
	}
	return raw, nil
}

// hashOf returns a file's hash, as in the catalog.
func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// waitFor waits for a time or an event. It returns false if the context ended.
func waitFor(ctx context.Context, d time.Duration, events <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
	case <-events:
	}
	return true
}
