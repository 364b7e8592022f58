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

// Mirror is what changes are read from; *git.Mirror has it.
type Mirror interface {
	Ancestry(ctx context.Context, tips, not []string, most int, since time.Time) ([]string, error)
	Patches(ctx context.Context, ids []string, alone bool, to git.PatchReader) error
}

// The sizes of files of changes.
const (
	pieceText    = 64 << 20 // bytes of text, from which on a file ends
	pieceCommits = 500      // that git reads in one run
	growth       = 3        // a file is joined with the one before it, unless that has so many times its text
	mostJoined   = 4 * pieceText
	deadShare    = 4 // where one of so many commits is reached no more, the log is made anew
)

// Update makes the log cover some revisions. It reads the commits that are new, which become
// one small file; small files are joined. pause is called before each piece of work and may
// wait; its error ends the update, and what was read until then is kept.
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
		// What is damaged or has another bound is made anew, and searched until then if it can be.
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

// errStale is of a log of which too much is dead.
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

		// Half of a first history answers nothing, but a restart goes on from it.
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

// files are all files so far.
func (u *updater) files() []*index { return append(slices.Clone(u.old.files), u.fresh...) }

// find is the number of a commit.
func (u *updater) find(id string) (uint32, bool) {
	if n, ok := u.old.find(id); ok {
		return n, ok
	}
	return (&generation{files: u.fresh}).find(id)
}

// base is how many commits the files have.
func (u *updater) base() int { return (&generation{files: u.files()}).commits() }

// piece reads the first of some commits into one file, and returns how many.
func (u *updater) piece(ctx context.Context, ids []string) (read int, err error) {
	read, err = u.read(ctx, ids, false)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errPause) {
		read, err = u.read(ctx, ids, true)
	}
	return read, err
}

// errPause is of an update that had to stop.
var errPause = errors.New("the update was stopped")

func (u *updater) read(ctx context.Context, ids []string, alone bool) (read int, err error) {
	w, err := newRecorder(u.l.dir, u.base(), u.find)
	if err != nil {
		return 0, err
	}
	for read < len(ids) && w.Text() < pieceText {
		n := min(pieceCommits, len(ids)-read)
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

// take finishes a file and opens it behind the others.
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

// join makes one file of the last ones, as long as the one before is not much larger: so
// there are few files, and each commit is written a logarithmic number of times.
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

// copyTo writes all commits of a file again.
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
	return nil
}

// textReader reads texts in order, each page once.
type textReader struct {
	x    *index
	p    *pageColumn
	at   *page
	last int
	buf  []byte
}

func (r *textReader) text(n uint32) (changed, error) {
	if i := r.p.of(n); r.at == nil || i != r.last {
		var err error
		if r.at, r.buf, err = r.x.decode(r.p, i, r.buf); err != nil {
			return changed{}, err
		}
		r.last = i
	}
	return r.at.texts[n-r.at.first], nil
}

// end publishes what was made.
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
			// A bound of days may leave out the tip itself.
			u.next.Cut = true
			continue
		}
		tips[n] |= bit
	}
	reach, cut := reached(files, tips)

	// What nobody reaches is dead. Where there is much of it, all is read again.
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
