package change

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/git"
)

// Mirror is where changes are read from; *git.Mirror implements it.
type Mirror interface {
	Ancestry(ctx context.Context, tips, not []string, most int, since time.Time) ([]string, error)
	Patches(ctx context.Context, ids []string, alone bool, to git.PatchReader) error
}

// The sizes of files of changes.
const (
	pieceText  = 64 << 20 // bytes of text, from which on a file ends
	firstRun   = 500      // that git reads in the first run for a file,
	longestRun = 5000     // and at most in a later one
	growth     = 3        // a file is joined with the one before it, unless that has so many times its text
	mostJoined = 4 * pieceText
	deadShare  = 4 // where one of so many commits is reached no more, the log is made anew
)

// Update makes the log cover some revisions. It reads the new commits into a small file, and joins
// small files. It calls pause before each piece of work. pause may wait, and its error ends the
// update; commits that were read stay.
func (l *Log) Update(ctx context.Context, m Mirror, revisions []Tip, bound Bound, now time.Time, pause func(context.Context) error) error {
	l.update.Lock()
	defer l.update.Unlock()
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return fmt.Errorf("changes: %w", err)
	}

	s, err := l.acquire()
	switch {
	case errors.Is(err, file.ErrNewer):
		return err
	case err != nil || s.m.Bound != "" && s.m.Bound != bound.String():
		// A damaged log, or one with another bound, is rebuilt. Searches use it until then, if
		// possible.
		if err == nil {
			s.release()
		}
		s = &generation{}
	default:
		defer s.release()
	}

	err = newUpdater(l, m, s, bound, pause).run(ctx, revisions, now)
	if errors.Is(err, errStale) {
		err = newUpdater(l, m, &generation{}, bound, pause).run(ctx, revisions, now)
	}
	return err
}

// errStale means that too many commits of the log are unreachable.
var errStale = errors.New("too many commits are reached no more")

func newUpdater(l *Log, m Mirror, from *generation, bound Bound, pause func(context.Context) error) *updater {
	return &updater{l: l, m: m, old: from, bound: bound, pause: pause, next: manifest{Bound: bound.String(), Files: slices.Clone(from.m.Files)}}
}

// updater is one update of a log.
type updater struct {
	l     *Log
	m     Mirror
	old   *generation // that it goes on from
	bound Bound
	pause func(context.Context) error
	next  manifest
	fresh []*index // opened by the update
}

// run does the whole update.
func (u *updater) run(ctx context.Context, revisions []Tip, now time.Time) error {
	defer func() {
		for _, x := range u.fresh {
			x.close()
		}
	}()

	tips := slices.Sorted(maps.Keys(bits(revisions)))
	ids, err := u.missing(ctx, tips, now)
	if err != nil {
		return err
	}
	for len(ids) > 0 {
		n, err := u.piece(ctx, ids)
		if err != nil {
			return err
		}
		ids = ids[n:]

		// An incomplete first history answers nothing, but a restart continues from it.
		if len(ids) > 0 && !u.l.answers() {
			if err := u.l.publish(u.next); err != nil {
				return err
			}
		}
	}
	if err := u.join(ctx); err != nil {
		return err
	}
	return u.end(revisions)
}

// answers reports whether the log covers a revision.
func (l *Log) answers() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state != nil && len(l.state.m.Revisions) > 0
}

// missing lists the commits that the log lacks, parents first.
func (u *updater) missing(ctx context.Context, tips []string, now time.Time) ([]string, error) {
	var since time.Time
	if u.bound.Age > 0 {
		since = now.Add(-u.bound.Age)
	}
	var not []string
	for _, r := range u.old.m.Revisions {
		not = append(not, r.Commit)
	}
	ids, err := u.m.Ancestry(ctx, tips, not, u.bound.Commits, since)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		_, known := u.find(id)
		return known
	}), nil
}

// files returns all files so far.
func (u *updater) files() []*index { return append(slices.Clone(u.old.files), u.fresh...) }

// find returns the number of a commit.
func (u *updater) find(id string) (uint32, bool) {
	if n, ok := u.old.find(id); ok {
		return n, ok
	}
	return (&generation{files: u.fresh}).find(id)
}

// base returns the number of commits in all files.
func (u *updater) base() int { return (&generation{files: u.files()}).commits() }

// piece reads the first of some commits into one file, and returns how many.
func (u *updater) piece(ctx context.Context, ids []string) (read int, err error) {
	read, err = u.read(ctx, ids, false)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errPause) {
		read, err = u.read(ctx, ids, true)
	}
	return read, err
}

// errPause means that the update had to stop.
var errPause = errors.New("the update was stopped")

// read reads commits into one file until it is large enough. alone reads each in a run of git of
// its own.
func (u *updater) read(ctx context.Context, ids []string, alone bool) (read int, err error) {
	w, err := newRecorder(u.l.dir, u.base(), u.find)
	if err != nil {
		return 0, err
	}
	for read < len(ids) && w.Text() < pieceText {
		n := min(nextRun(read, w.Text()), len(ids)-read)
		if err = u.pause(ctx); err != nil {
			err = fmt.Errorf("%w: %w", errPause, err)
		} else {
			err = u.m.Patches(ctx, ids[read:read+n], alone, w)
		}
		if err != nil {
			w.Abort()
			return 0, err
		}
		read += n
	}
	return read, u.take(w)
}

// nextRun returns how many commits git reads in its next run: as many as have a quarter of the text
// of a file, if they are like the commits so far. In a large repository a process costs as much as
// 50 commits.
func nextRun(read int, text int64) int {
	if read == 0 {
		return firstRun
	}
	return int(min(max(firstRun, pieceText/4*int64(read)/max(text, 1)), longestRun))
}

// take finishes a file, and opens it after the others.
func (u *updater) take(w *recorder) error {
	base := u.base()
	id, _, err := w.Finish()
	if err != nil {
		return err
	}
	x, err := openIndex(u.l.dir, id, uint32(base))
	if err != nil {
		return err
	}
	u.fresh = append(u.fresh, x)
	u.next.Files = append(u.next.Files, id)
	return nil
}

// join joins the last files into one, as long as the file before is not much larger. So there are
// few files, and each commit is rewritten a logarithmic number of times.
func (u *updater) join(ctx context.Context) error {
	files := u.files()
	from, text := len(files)-1, int64(0)
	if from < 1 {
		return nil
	}
	for text = files[from].m.Text; from > 0 && files[from-1].m.Text < growth*text && files[from-1].m.Text+text <= mostJoined; {
		from--
		text += files[from].m.Text
	}
	if from == len(files)-1 {
		return nil
	}

	w, err := newRecorder(u.l.dir, int(files[from].base), (&generation{files: files[:from]}).find)
	if err != nil {
		return err
	}
	for _, x := range files[from:] {
		if err := x.copyTo(ctx, w, files); err != nil {
			w.Abort()
			return err
		}
	}
	id, _, err := w.Finish()
	if err != nil {
		return err
	}
	u.next.Files = append(u.next.Files[:from], id)
	return nil
}

// copyTo writes all commits of a file to w.
func (x *index) copyTo(ctx context.Context, w *recorder, files []*index) error {
	var messages, lines textReader
	messages.x, messages.p, lines.x, lines.p = x, &x.messages, x, &x.lines
	for c := range uint32(x.m.Commits) {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := messages.text(c)
		if err != nil {
			return err
		}
		head := x.head(c, files)
		head.Message = string(text.added[:max(0, len(text.added)-1)])
		if err := w.Commit(&head); err != nil {
			return err
		}
		from, to := x.filesOf(c)
		for f := from; f < to; f++ {
			if text, err = lines.text(f); err != nil {
				return err
			}
			if err := w.File(x.patch(f, text)); err != nil {
				return err
			}
		}
	}
	for _, m := range x.m.Moved {
		if err := w.Moved(string(x.paths.at(m[0])), string(x.paths.at(m[1]))); err != nil {
			return err
		}
	}
	return nil
}

// end opens the new files, computes which commits are reachable, and publishes the result as the
// log's new state.
func (u *updater) end(revisions []Tip) error {
	files, err := openAll(u.l.dir, u.next.Files)
	if err != nil {
		return err
	}
	defer func() {
		for _, x := range files {
			x.close()
		}
	}()

	tips, at := map[uint32]uint64{}, &generation{files: files}
	for id, bit := range bits(revisions) {
		n, ok := at.find(id)
		if !ok {
			// A bound of days may exclude the tip itself.
			u.next.Cut = true
			continue
		}
		tips[n] |= bit
	}
	reach, cut := reached(files, tips)

	// Commits that no revision reaches are dead. If there are many, the log is rebuilt.
	dead := 0
	raw := make([]byte, 0, 8*len(reach))
	for _, mask := range reach {
		raw = binary.LittleEndian.AppendUint64(raw, mask)
		if mask == 0 {
			dead++
		}
	}
	if dead*deadShare > len(reach) && len(u.old.files) > 0 {
		return errStale
	}

	u.next.Reach = compress(nil, raw)
	u.next.Revisions, u.next.Cut = revisions, u.next.Cut || cut
	return u.l.publish(u.next)
}

func openAll(dir string, ids []file.ID) (files []*index, err error) {
	base := 0
	for _, id := range ids {
		x, err := openIndex(dir, id, uint32(base))
		if err != nil {
			return files, err
		}
		files = append(files, x)
		base += x.m.Commits
	}
	return files, nil
}
