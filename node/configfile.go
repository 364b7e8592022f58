package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// configFile brings the configuration file of this node into the catalog. A
// file that is wrong is refused, whole, with all its errors; what was in
// force stays in force.
type configFile struct {
	n    *Node
	path string

	proposed string // hash of the bytes that were last proposed from here

	mu     sync.Mutex // guards the field below
	status ConfigStatus
}

// The pace of watching.
const (
	configSettle = 100 * time.Millisecond // writers take a moment
	configPoll   = 2 * time.Second        // for volumes that tell nothing
	configRetry  = time.Second            // without a leader
)

func newConfigFile(n *Node) *configFile {
	return &configFile{n: n, path: n.opt.ConfigPath, status: ConfigStatus{Path: n.opt.ConfigPath}}
}

// run watches until the context ends.
func (c *configFile) run(ctx context.Context) error {
	if c.path == "" {
		return nil
	}
	events := c.watch(ctx)
	last := []byte(nil)
	seen := false
	for {
		inForce := c.n.cluster.View().Config().Index // before the file is read
		raw, err := readBounded(c.path, config.MaxSize)
		switch {
		case err != nil:
			if sum := []byte(err.Error()); !seen || !bytes.Equal(sum, last) {
				c.refuse([]string{err.Error()})
				last = sum
			}
			seen = true
		case !seen || !bytes.Equal(raw, last):
			if c.offer(ctx, raw, inForce) {
				last, seen = raw, true
			}
		}
		wait := configPoll
		if !seen || err == nil && !bytes.Equal(raw, last) {
			wait = configRetry
		}
		if !pause(ctx, wait, events) {
			return nil
		}
	}
}

// watch reports changes of the file. It watches the directory, since editors
// and orchestrators replace files instead of writing them. Where nothing can
// be watched, polling is enough.
func (c *configFile) watch(ctx context.Context) <-chan struct{} {
	out := make(chan struct{}, 1)
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return out
	}
	if err := w.Add(filepath.Dir(c.path)); err != nil {
		w.Close()
		return out
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
				select {
				case out <- struct{}{}:
				default:
				}
			case <-w.Errors:
			}
		}
	}()
	return out
}

// offer validates the bytes of a file and proposes them instead of what was in
// force when they were read. It reports whether that is settled; if not the
// file is to be read and tried again.
func (c *configFile) offer(ctx context.Context, raw []byte, inForce uint64) bool {
	file, err := config.Parse(raw)
	if err != nil {
		var list []string
		if errs := (config.Errors)(nil); errors.As(err, &errs) {
			for _, e := range errs {
				list = append(list, e.Error())
			}
		} else {
			list = []string{err.Error()}
		}
		c.refuse(list)
		return true
	}
	now := c.n.cluster.View().Config()
	if now.Index > 0 && now.Hash == hashOf(raw) {
		c.accepted(file, now.Hash)
		return true
	}
	// Another node may have a newer file. Bytes that were offered from here
	// before, or that an older start of this node found, do not win again
	// only because this node was restarted: a file counts when it changes.
	set := catalog.NewSetConfig(raw, file)
	set.Instead = inForce
	if _, err := c.n.cluster.Propose(ctx, set); err != nil {
		if ctx.Err() == nil {
			c.n.opt.Log.Warn("configuration could not be proposed yet", "path", c.path, "err", err)
		}
		var refusal *catalog.Refusal
		return errors.As(err, &refusal) && refusal.Code != catalog.Stale
	}
	c.n.opt.Log.Info("configuration accepted", "path", c.path, "hash", hashOf(raw)[:12], "connections", len(file.Connections))
	c.accepted(file, hashOf(raw))
	return true
}

func (c *configFile) accepted(file *config.File, hash string) {
	for _, w := range file.Warnings {
		c.n.opt.Log.Warn("configuration", "path", c.path, "warning", w.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Errors, c.status.RefusedAt = nil, time.Time{}
	c.status.LoadedAt, c.status.Hash = c.n.opt.Now(), hash
	c.proposed = hash
}

func (c *configFile) refuse(errs []string) {
	c.n.opt.Log.Error("configuration refused; the one in force stays", "path", c.path, "errors", errs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.Errors, c.status.RefusedAt = errs, c.n.opt.Now()
}

// state is what status shows: of this node's file, and what is in force.
func (c *configFile) state() ConfigStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	s.Hash = c.n.cluster.View().Config().Hash
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
