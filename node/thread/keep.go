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
	lookPause  = 20 * time.Second
	lookShare  = 50               // a look is followed by a rest of at least so many times what it took
	keepGrace  = 10 * time.Minute // of a file that no thread names: its thread may be about to
	fetchBytes = 64 << 20         // in one look
	oldView    = 30 * time.Second
	haveTime   = 3 * time.Second // to ask a holder for its files
)

// Run keeps the files of this node as they should be, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	for {
		began := clock.Now()
		s.look(ctx)
		if !clock.Wait(ctx, max(s.scaled(lookPause), lookShare*clock.Since(began))) {
			return nil
		}
	}
}

// look copies what this node lacks and deletes what it need not have. With an
// old view it does neither.
func (s *Store) look(ctx context.Context) {
	view := s.d.View()
	if s.d.Age() > oldView {
		return
	}

	threads := map[string]string{} // by file
	left := fetchBytes
	for h := range view.Threads() {
		mine := slices.Contains(s.holders(view, h.ID), s.d.Net.Self())
		for _, turn := range filesOf(h) {
			if mine || threads[turn.File] == "" {
				// Turns of a fork are in files of the thread that it came from: of several
				// threads one that wants the file here counts.
				threads[turn.File] = h.ID
			}
			if mine && left > 0 {
				left -= s.copyHere(ctx, h.ID, turn.File)
			}
		}
	}

	if ctx.Err() == nil {
		s.sweepFiles(ctx, view, threads)
	}
}

// filesOf is the turns of a thread, with the question that is being answered.
func filesOf(h *catalog.Thread) []catalog.ThreadTurn {
	if h.Run.Fence == 0 {
		return h.Turns
	}
	return append(slices.Clone(h.Turns), h.Run.Lost)
}

// copyHere fetches a file that should be here and is not.
func (s *Store) copyHere(ctx context.Context, thread, file string) int {
	// The name is a hash: what is here under it is right, or removed when it is read.
	if _, err := os.Stat(s.path(file)); err == nil {
		return 0
	}

	sealed, err := s.fetch(ctx, thread, file)
	if err == nil {
		err = s.write(file, sealed)
	}
	if err != nil {
		s.d.Log.Debug("a file of a conversation was not copied", "file", file, "err", err)
	}
	return len(sealed)
}

// sweepFiles deletes the files that no thread names, and those that all nodes
// that should have them have.
func (s *Store) sweepFiles(ctx context.Context, view *catalog.View, threads map[string]string) {
	turns := filepath.Join(s.d.Dir, "turns")
	_ = filepath.WalkDir(turns, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil // what cannot be read now is looked at again
		}

		thread, named := threads[e.Name()]
		switch {
		case !named && s.old(e):
			_ = os.Remove(path)
		case named && isName(e.Name()) && s.elsewhere(ctx, view, thread, e.Name()):
			_ = os.Remove(path)
		}
		return ctx.Err()
	})
}

// elsewhere reports whether this node is none that should have a file, and all
// of those say that they have it.
func (s *Store) elsewhere(ctx context.Context, view *catalog.View, thread, file string) bool {
	holders := s.holders(view, thread)

	// One holder alone is no reason to give up the copy here.
	if slices.Contains(holders, s.d.Net.Self()) || len(holders) < 2 {
		return false
	}

	// They are asked, since only they know what is really on their disks.
	for _, node := range holders {
		one, cancel := context.WithTimeout(ctx, s.scaled(haveTime))
		r, err := haveCall.Ask(one, s.d.Net, node, &haveRequest{[]string{file}})
		cancel()

		if err != nil || len(r.Has) != 1 || !r.Has[0] {
			return false
		}
	}
	return true
}

func (s *Store) old(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && s.d.Now().Sub(info.ModTime()) > keepGrace
}
