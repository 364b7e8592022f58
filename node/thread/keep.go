package thread

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

const (
	roundPause = 20 * time.Second // between two rounds of Run
	idleShare  = 50               // a round waits at least so many times its own duration
	fileGrace  = 10 * time.Minute // for a file that no thread names, because its thread may still be written
	fetchBytes = 64 << 20         // in one round
	oldView    = 30 * time.Second
	haveTime   = 3 * time.Second // to ask a holder which files it has
)

// Run copies and removes files of threads, round after round, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	for {
		began := clock.Now()
		s.maintain(ctx)
		if !clock.Wait(ctx, max(s.scaled(roundPause), idleShare*clock.Since(began))) {
			return nil
		}
	}
}

// maintain copies missing files and deletes needless ones. It does nothing if the view is old.
func (s *Store) maintain(ctx context.Context) {
	view := s.d.View()
	if s.d.Age() > oldView {
		return
	}

	threads := map[string]string{} // by file
	bytesLeft := fetchBytes
	for h := range view.Threads() {
		mine := slices.Contains(s.liveHolders(view, h.ID), s.d.Net.Self())
		for _, turn := range filesOf(h) {
			if mine || threads[turn.File] == "" {
				// A fork shares files with its origin. If several threads share a file, take one
				// that wants it here.
				threads[turn.File] = h.ID
			}
			if mine && bytesLeft > 0 {
				bytesLeft -= s.copyHere(ctx, h.ID, turn.File)
			}
		}
	}

	if ctx.Err() == nil {
		s.sweepFiles(ctx, view, threads)
	}
}

// filesOf returns the turns of a thread, and the file with the question of a running turn.
func filesOf(h *catalog.Thread) []catalog.ThreadTurn {
	if h.Run.Fence == 0 {
		return h.Turns
	}
	return append(slices.Clone(h.Turns), h.Run.Lost)
}

// copyHere fetches a file if it is missing here, and returns its size.
func (s *Store) copyHere(ctx context.Context, thread, file string) int {
	// The name is a hash: a wrong file under it is removed when it is read.
	if _, err := os.Stat(s.filePath(file)); err == nil {
		return 0
	}

	sealed, err := s.fetchFrom(ctx, thread, file)
	if err == nil {
		err = s.writeFile(file, sealed)
	}
	if err != nil {
		s.d.Log.Debug("a file of a conversation was not copied", "file", file, "err", err)
	}
	return len(sealed)
}

// sweepFiles deletes files that no thread names, and files that all their holders have.
func (s *Store) sweepFiles(ctx context.Context, view *catalog.View, threads map[string]string) {
	turns := filepath.Join(s.d.Dir, "turns")
	_ = filepath.WalkDir(turns, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // the next round tries again
		}

		thread, named := threads[e.Name()]
		switch {
		case !named && s.isOld(e):
			_ = os.Remove(path)
		case named && isName(e.Name()) && s.allHoldersHave(ctx, view, thread, e.Name()):
			_ = os.Remove(path)
		}
		return ctx.Err()
	})
}

// allHoldersHave reports whether this node is no holder of a file and all holders have it.
func (s *Store) allHoldersHave(ctx context.Context, view *catalog.View, thread, file string) bool {
	holders := s.liveHolders(view, thread)

	// With a single holder, this copy is the only other one.
	if slices.Contains(holders, s.d.Net.Self()) || len(holders) < 2 {
		return false
	}

	// Ask the nodes, because only they know their disks.
	for _, node := range holders {
		limited, cancel := context.WithTimeout(ctx, s.scaled(haveTime))
		r, err := haveCall.Ask(limited, s.d.Net, node, &haveRequest{[]string{file}})
		cancel()

		if err != nil || len(r.Has) != 1 || !r.Has[0] {
			return false
		}
	}
	return true
}

func (s *Store) isOld(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && s.d.Now().Sub(info.ModTime()) > fileGrace
}
