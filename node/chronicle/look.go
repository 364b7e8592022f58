package chronicle

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// look asks a node for accesses: the newest Limit that fit, newest first.
type look struct {
	Since, Until  time.Time // zero: no bound; Until is not included
	Action, Actor string
	After         *Line // only what stands behind it in the list
	Limit         int
}

// looked is what a node answers.
type looked struct {
	Lines []Line
	More  bool      // there are others behind them
	Newer int       // lines that a newer version has written, which this one cannot read
	Back  time.Time // nothing older was looked at, for want of time; zero: all was
}

// fits reports whether a line is one that is asked for.
func (q *look) fits(l *Line) bool {
	switch {
	case l.At.Before(q.Since), !q.Until.IsZero() && !l.At.Before(q.Until):
		return false
	case q.Action != "" && l.Action != q.Action && !strings.HasPrefix(l.Action, q.Action+"."):
		return false
	case q.After != nil && q.After.before(l) >= 0:
		return false
	case q.Actor == "":
		return true
	}
	return slices.Contains([]string{l.ActorID, l.ActorType, l.Metadata["credential"]}, q.Actor) || strings.EqualFold(l.ActorName, q.Actor)
}

// look reads the files, newest first. One reader at a time: a file is in memory
// while it is looked through.
func (t *trail) look(ctx context.Context, q *look) (*looked, error) {
	select {
	case t.looking <- struct{}{}:
		defer func() { <-t.looking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	out := &looked{}

	// What was noted a moment ago is still on its way to a file: it is written first.
	for _, s := range t.all() {
		s.flush(ctx)
		part := s.look(ctx, q)
		out.Lines = append(out.Lines, part.Lines...)
		out.More, out.Newer = out.More || part.More, out.Newer+part.Newer
		if part.Back.After(out.Back) {
			out.Back = part.Back
		}
	}

	// Each series is in order, both together are not.
	slices.SortFunc(out.Lines, func(a, b Line) int { return a.before(&b) })
	if len(out.Lines) > q.Limit {
		out.Lines, out.More = out.Lines[:q.Limit], true
	}
	return out, nil
}

// look reads the files of a series, newest first, until there is enough.
func (s *series) look(ctx context.Context, q *look) *looked {
	out, names := &looked{}, s.names()
	for i, name := range slices.Backward(names) {
		first, _ := s.timeOf(name)
		switch {
		case !q.Until.IsZero() && !first.Before(q.Until):
			continue // all of it is newer
		case i+1 < len(names) && s.begins(names[i+1], q.Since):
			return out // all of it, and of those before, is older

		// Out of time: what was read counts, and Back says from when on that is all.
		case ctx.Err() != nil:
			if out.Back = s.d.Now(); i+1 < len(names) {
				out.Back, _ = s.timeOf(names[i+1])
			}
			return out
		}

		text, err := os.ReadFile(filepath.Join(s.d.Dir, name))
		if err != nil {
			continue // it was the oldest, and has gone meanwhile
		}
		if out.read(text, q); out.More {
			return out
		}
	}
	return out
}

// begins reports whether a file begins at a time or before.
func (s *series) begins(name string, at time.Time) bool {
	first, _ := s.timeOf(name)
	return !at.IsZero() && !first.After(at)
}

// read takes the lines of a file that fit, from its end, until there is enough.
func (out *looked) read(text []byte, q *look) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	for len(text) > 0 {
		start := bytes.LastIndexByte(text, '\n') + 1
		line := text[start:]
		text = text[:max(0, start-1)]

		// Most lines are told from the others without being read.
		if q.Action != "" && !bytes.Contains(line, []byte(`"action":"`+q.Action)) {
			continue
		}
		// One that a crash has cut is none. A whole one is of another version.
		var l Line
		if json.Unmarshal(line, &l) != nil {
			if json.Valid(line) {
				out.Newer++
			}
			continue
		}
		if !q.fits(&l) {
			continue
		}

		// One more than asked for is enough to know that there are more.
		if len(out.Lines) == q.Limit {
			out.More = true
			return
		}
		out.Lines = append(out.Lines, l)
	}
}
