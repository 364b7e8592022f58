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

// FileStatus is the state of the configuration file of a node.
type FileStatus struct {
	Path      string    `json:"path"`
	Hash      string    `json:"hash"`     // of the configuration in force
	FileHash  string    `json:"fileHash"` // of this node's own file, as it was last read and found good
	Differs   bool      `json:"differs"`  // this node's file is not in force, or is refused
	LoadedAt  time.Time `json:"loadedAt,omitzero"`
	Errors    []string  `json:"errors"` // of the newest file, when it was refused
	RefusedAt time.Time `json:"refusedAt,omitzero"`
}

// File brings the configuration file of this node into the catalog. A file that
// is wrong is refused, whole, with all its errors; what was in force stays in
// force.
//
// The configuration of the catalog counts, and a start changes nothing that
// was agreed. So the bytes that this node had are remembered on disk, and the
// file is proposed only when somebody has changed it:
//
//	bytes in force                            nothing to do
//	last bytes that were seen here            nothing: another change won, here or elsewhere
//	never seen any, but one is in force       nothing: a node that joins brings none
//	seen before, and found by a start         nothing: an old image of the node
//	without a connection, where there are     refused: a template that nobody has filled in
//	anything else                             proposed
type File struct {
	path   string
	first  []byte // what the file was when the node started
	memory memory
	agreed Agreement
	log    *slog.Logger
	now    func() time.Time
	again  chan struct{} // asks to look at once

	offered []string // hashes of files that this process has proposed, the newest last; of Run alone

	mu     sync.Mutex // guards the field below
	status FileStatus
}

// The pace of watching. The file is read again and again: not every volume tells of
// changes, and what it would save is little.
const (
	settleTime = 100 * time.Millisecond
	pollEvery  = 500 * time.Millisecond
	retryEvery = time.Second // without a leader
)

// Found is the configuration file as a start finds it.
type Found struct {
	path   string
	bytes  []byte
	memory memory
}

// Find reads the configuration file of a node, "" for none, and what the data
// directory remembers of former ones. It fails where a file is named that cannot
// be read: a node that started without it would run on what it happens to know.
func Find(path, dir string) (*Found, error) {
	f := &Found{path: path}
	if path == "" {
		return f, nil
	}

	var err error
	if f.bytes, err = readFile(path); err != nil {
		return nil, err
	}

	// What it was at earlier starts decides whether it is offered again.
	if f.memory, err = recall(filepath.Join(dir, memoryFile)); err != nil {
		return nil, err
	}
	return f, nil
}

// NewFile makes the File of what a start found.
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

// Reload looks at the file at once.
func (f *File) Reload() {
	select {
	case f.again <- struct{}{}:
	default:
	}
}

// Run watches until the context ends.
func (f *File) Run(ctx context.Context) error {
	if f.path == "" {
		return nil
	}

	// What this node knows of the catalog may be old at its start, and what it
	// decides by that would not stand.
	synced := func() bool { _, err := f.agreed.Sync(ctx); return err == nil }
	if !untilDone(ctx, synced) {
		return nil
	}

	if !untilDone(ctx, func() bool { return f.begin(ctx) }) {
		return nil
	}

	last := hashOf(f.first)
	for {
		wait := pollEvery
		if !f.look(ctx, &last) {
			wait = retryEvery
		}
		if !pause(ctx, wait, f.again) {
			return nil
		}
	}
}

// untilDone tries again and again; false when the context ended before.
func untilDone(ctx context.Context, try func() bool) bool {
	for !try() {
		if !clock.Wait(ctx, retryEvery) {
			return false
		}
	}
	return true
}

// begin offers what the start found. It reports false where that is to be tried
// again.
func (f *File) begin(ctx context.Context) bool {
	// A start takes a while, in which the file may change and another node may bring that
	// into force: what the start found is old then, and only tells the next look that
	// there was a change. As in look, what is in force comes first.
	force := f.agreed.View().Config()
	raw, err := readFile(f.path)
	if err == nil && force.Index > 0 && hashOf(raw) != hashOf(f.first) {
		if _, err := config.Parse(f.first); err == nil {
			return f.memory.see(hashOf(f.first)) == nil
		}
		return true
	}

	return f.offer(ctx, f.first, force, true)
}

// look reads the file and offers it where it is another one than at the last
// look, which last is of: the hash of its bytes, or why it could not be read. It
// reports false where what it found is not settled.
func (f *File) look(ctx context.Context, last *string) bool {
	// Before the file is read: what comes into force from now on may be of a newer file
	// than the one that is read, where nodes share one or are given theirs in turn.
	force := f.agreed.View().Config()
	before, _ := os.Stat(f.path) // what fails here fails below
	raw, err := readFile(f.path)
	if err != nil {
		if *last != err.Error() {
			f.refuse(err.Error())
		}
		*last = err.Error()
		return true
	}

	hash := hashOf(raw)
	if *last == hash {
		return true
	}

	if !f.rests(ctx, before) {
		return false
	}

	// Not settled, as without a leader: it is offered again at the next look.
	if !f.offer(ctx, raw, force, false) {
		return false
	}
	*last = hash
	return true
}

// rests reports whether the file stays as it was before it was read: writers take several steps.
func (f *File) rests(ctx context.Context, before os.FileInfo) bool {
	if before == nil || !before.Mode().IsRegular() {
		return true
	}
	clock.Wait(ctx, settleTime)
	after, err := os.Stat(f.path)
	return err == nil && os.SameFile(before, after) && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime())
}

// offer validates the bytes of a file that has changed since it was last
// looked at, and proposes them where that is due. It reports whether that is
// settled; if not the file is to be read and tried again. force is what was in force
// when the file was read.
func (f *File) offer(ctx context.Context, raw []byte, force *catalog.Config, starting bool) bool {
	file, err := config.Parse(raw)
	if err != nil {
		f.refuse(mistakes(err)...)
		return true
	}

	hash := hashOf(raw)
	if force.Index > 0 && (force.Hash == hash || !f.mustPropose(hash, starting)) {
		return f.settled(hash, file)
	}

	// A template that nobody has filled in would let go of everything.
	if n := len(f.agreed.View().File().Connections); n > 0 && len(file.Connections) == 0 {
		f.refuse(fmt.Sprintf("It names no connection; in force are %d: run `shoal config apply %s --accept` if that is meant", n, f.path))
		return true
	}

	// Another configuration may come into force meanwhile: that one is newer
	// than this file then, and this one is only seen.
	set := catalog.NewSetConfig(raw, file).Following(f.agreed.View())
	set.Instead = force.Index

	f.offered = append(f.offered[max(0, len(f.offered)-maxSeen):], hash)
	_, err = f.agreed.Propose(ctx, set)
	refusal, refused := catalog.Refused(err)
	switch {
	case err == nil:
		f.log.Info("configuration accepted", "path", f.path, "hash", hash[:12], "connections", len(file.Connections))
		return f.settled(hash, file)

	// What came into force meanwhile stood in this file before, and the answer to its
	// proposal was lost: the file is read again, and offered in place of it.
	case refused && refusal.Code == catalog.Stale && f.containedBefore(f.agreed.View().Config().Hash):
		return false
	// Somebody's newer configuration is in force: this file is only seen.
	case refused && refusal.Code == catalog.Stale:
		return f.settled(hash, file)
	case refused:
		f.refuse(refusal.Reason)
		return true
	}

	// Nobody has agreed or refused: it is offered again.
	if ctx.Err() == nil {
		f.log.Warn("configuration could not be proposed yet", "path", f.path, "err", err)
	}
	return false
}

// containedBefore reports whether the file had the bytes of a hash before.
func (f *File) containedBefore(hash string) bool {
	return slices.Contains(f.offered, hash) || slices.Contains(f.memory.Seen, hash)
}

// mustPropose reports whether bytes that are not in force are to be proposed where
// another configuration is.
func (f *File) mustPropose(hash string, starting bool) bool {
	seen := f.memory.Seen
	switch {
	case len(seen) == 0 || seen[len(seen)-1] == hash:
		return false
	case starting && slices.Contains(seen, hash):
		return false
	}
	return true
}

// settled remembers the bytes of a good file, and reports whether they count.
func (f *File) settled(hash string, file *config.File) bool {
	if err := f.memory.see(hash); err != nil {
		f.log.Error("the configuration file's hash could not be remembered", "err", err)
		return false
	}

	for _, w := range file.Warnings {
		f.log.Warn("configuration", "path", f.path, "warning", w.Error())
	}

	// An owner may have put another one in force since.
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

// mistakes is every mistake of a file.
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

// refuse remembers why a file is not taken.
func (f *File) refuse(errs ...string) {
	f.log.Error("configuration refused; the one in force stays", "path", f.path, "errors", errs)

	f.mu.Lock()
	defer f.mu.Unlock()
	f.status.Errors, f.status.RefusedAt = errs, f.now()
}

// State is what status shows: of this node's file, and what is in force.
func (f *File) State() FileStatus {
	f.mu.Lock()
	defer f.mu.Unlock()

	s := f.status
	s.Hash = f.agreed.View().Config().Hash
	s.Differs = s.FileHash != "" && s.FileHash != s.Hash || len(s.Errors) > 0
	return s
}

// reaches is what the file of this node uses as it is now; nothing of a bad one.
func (f *File) reaches() []config.Reach {
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

	// One byte more than is allowed tells that there are more.
	raw, err := io.ReadAll(io.LimitReader(f, config.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(raw) > config.MaxSize {
		return nil, fmt.Errorf("configuration: %s is larger than %d bytes", path, config.MaxSize)
	}
	return raw, nil
}

// hashOf names bytes as the catalog does.
func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// pause waits for a time or an event, and reports false when the context ended.
func pause(ctx context.Context, d time.Duration, events <-chan struct{}) bool {
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
