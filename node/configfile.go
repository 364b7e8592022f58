package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/clock"
)

// configFile brings the configuration file of this node into the catalog. A
// file that is wrong is refused, whole, with all its errors; what was in
// force stays in force.
//
// The configuration of the catalog counts, and a start changes nothing that
// was agreed. So the bytes that this node had are remembered on disk, and the
// file is proposed only when somebody has changed it:
//
//	bytes in force                            nothing to do
//	last bytes that were seen here            nothing: another change won, here or elsewhere
//	never seen any, but one is in force       nothing: a node that joins brings none
//	seen before, and found by a start         nothing: an old image of the node
//	anything else                             proposed
type configFile struct {
	path   string
	memory memory
	agreed agreement
	log    *slog.Logger
	now    func() time.Time
	again  chan struct{} // asks to look at once
	first  []byte        // what the file was when the node started

	mu     sync.Mutex // guards the field below
	status ConfigStatus
}

// agreement is what the cluster agrees on, as this package's parts need it.
type agreement interface {
	View() *catalog.View
	Sync(ctx context.Context) (uint64, error)
	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
}

// The pace of watching.
const (
	configSettle = 100 * time.Millisecond // writers take a moment
	configPoll   = 2 * time.Second        // for volumes that tell nothing
	configRetry  = time.Second            // without a leader
)

// newConfigFile fails where a file is named that cannot be read: a node that
// started without it would run on what it happens to know.
// The caller sets agreed before run.
func newConfigFile(path, dir string, log *slog.Logger, now func() time.Time) (*configFile, error) {
	c := &configFile{path: path, log: log, now: now, again: make(chan struct{}, 1), status: ConfigStatus{Path: path}}
	if path == "" {
		return c, nil
	}
	var err error
	if c.first, err = readBounded(path, config.MaxSize); err != nil {
		return nil, err
	}
	c.memory, err = recall(filepath.Join(dir, memoryFile))
	return c, err
}

// reload looks at the file at once.
func (c *configFile) reload() {
	select {
	case c.again <- struct{}{}:
	default:
	}
}

// run watches until the context ends.
func (c *configFile) run(ctx context.Context) error {
	if c.path == "" {
		return nil
	}
	c.watch(ctx)

	// What this node knows of the catalog may be old at its start, and what it
	// decides by that would not stand.
	for {
		if _, err := c.agreed.Sync(ctx); err == nil {
			break
		}
		if !clock.Wait(ctx, configRetry) {
			return nil
		}
	}

	// A change made while this node was starting is a change: it is told by the
	// bytes that the start found.
	for !c.offer(ctx, c.first, true) {
		if !clock.Wait(ctx, configRetry) {
			return nil
		}
	}

	last := hashOf(c.first)
	for {
		wait := configPoll
		raw, err := readBounded(c.path, config.MaxSize)
		if err != nil {
			if last != err.Error() {
				c.refuse(err.Error())
			}
			last = err.Error()
		} else if hash := hashOf(raw); last != hash {
			if c.offer(ctx, raw, false) {
				last = hash
			} else {
				wait = configRetry
			}
		}
		if !pause(ctx, wait, c.again) {
			return nil
		}
	}
}

// watch reports changes of the file. It watches the directory, since editors
// and orchestrators replace files instead of writing them. Where nothing can
// be watched, polling is enough.
func (c *configFile) watch(ctx context.Context) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	if err := w.Add(filepath.Dir(c.path)); err != nil {
		w.Close()
		return
	}
	go func() {
		defer w.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case _, ok := <-w.Events:
				if !ok {
					return
				}
				c.reload()
			case <-w.Errors:
			}
		}
	}()
}

// offer validates the bytes of a file that has changed since it was last
// looked at, and proposes them where that is due. It reports whether that is
// settled; if not the file is to be read and tried again.
func (c *configFile) offer(ctx context.Context, raw []byte, starting bool) bool {
	file, err := config.Parse(raw)
	if err != nil {
		c.refuse(configErrors(err)...)
		return true
	}

	hash, force := hashOf(raw), c.agreed.View().Config()
	if force.Index > 0 && (force.Hash == hash || !c.due(hash, starting)) {
		return c.settled(hash, file)
	}

	// Another configuration may come into force meanwhile: that one is newer
	// than this file then, and this one is only seen.
	set := catalog.NewSetConfig(raw, file)
	set.Instead = force.Index
	_, err = c.agreed.Propose(ctx, set)
	refusal, refused := catalog.Refused(err)
	switch {
	case err == nil:
		c.log.Info("configuration accepted", "path", c.path, "hash", hash[:12], "connections", len(file.Connections))
		return c.settled(hash, file)
	case refused && refusal.Code == catalog.Stale:
		return c.settled(hash, file)
	case refused:
		c.refuse(refusal.Reason)
		return true
	}
	if ctx.Err() == nil {
		c.log.Warn("configuration could not be proposed yet", "path", c.path, "err", err)
	}
	return false
}

// due tells whether bytes that are not in force are to be proposed where
// another configuration is.
func (c *configFile) due(hash string, starting bool) bool {
	seen := c.memory.Seen
	switch {
	case len(seen) == 0 || seen[len(seen)-1] == hash:
		return false
	case starting && slices.Contains(seen, hash):
		return false
	}
	return true
}

// settled remembers the bytes of a good file, and says whether they count.
func (c *configFile) settled(hash string, file *config.File) bool {
	if err := c.memory.see(hash); err != nil {
		c.log.Error("the configuration file's hash could not be remembered", "err", err)
		return false
	}
	for _, w := range file.Warnings {
		c.log.Warn("configuration", "path", c.path, "warning", w.Error())
	}
	if force := c.agreed.View().Config().Hash; force != hash {
		c.log.Warn("this node's configuration file is not the one in force: change it, or use shoal config apply", "path", c.path, "hash", hash[:12], "in_force", force[:min(12, len(force))])
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Errors, c.status.RefusedAt = nil, time.Time{}
	c.status.LoadedAt, c.status.FileHash = c.now(), hash
	return true
}

// configErrors is every mistake of a file.
func configErrors(err error) []string {
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

func (c *configFile) refuse(errs ...string) {
	c.log.Error("configuration refused; the one in force stays", "path", c.path, "errors", errs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Errors, c.status.RefusedAt = errs, c.now()
}

// memoryFile is the file of the data directory that remembers.
const memoryFile = "config-file.json"

// maxSeen is how many files are remembered.
const maxSeen = 64

// memory is the hashes of the configuration files that this node had, on
// disk. It belongs to one goroutine.
type memory struct {
	Seen []string `json:"seen"` // the newest last, each once

	path string
}

// recall reads the memory of a data directory; there is none at first.
func recall(path string) (memory, error) {
	m := memory{path: path}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return m, fmt.Errorf("configuration: %s, which remembers what this node's file was, cannot be read: remove it, and the configuration in force stays: %w", path, err)
	}
	return m, nil
}

// see makes a file the newest.
func (m *memory) see(hash string) error {
	if n := len(m.Seen); n > 0 && m.Seen[n-1] == hash {
		return nil
	}
	seen := append(slices.DeleteFunc(slices.Clone(m.Seen), func(h string) bool { return h == hash }), hash)
	seen = seen[max(0, len(seen)-maxSeen):]
	data, err := json.Marshal(memory{Seen: seen})
	if err != nil {
		return err
	}
	if err := replaceFile(m.path, append(data, '\n')); err != nil {
		return err
	}
	m.Seen = seen
	return nil
}

// replaceFile writes a file so that after a crash it is the old or the new one.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// state is what status shows: of this node's file, and what is in force.
func (c *configFile) state() ConfigStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	s.Hash = c.agreed.View().Config().Hash
	s.Differs = s.FileHash != "" && s.FileHash != s.Hash || len(s.Errors) > 0
	return s
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("configuration: %s is larger than %d bytes", path, limit)
	}
	return raw, nil
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// pause waits for a time or an event, and reports false when the context
// ended. After an event it waits a moment for the rest of them.
func pause(ctx context.Context, d time.Duration, events <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	case <-events:
	}
	settle := time.NewTimer(configSettle)
	defer settle.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-settle.C:
			return true
		case <-events:
		}
	}
}
