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

// look asks a node for the newest Limit matching accesses, newest first.
type look struct {
	Since, Until  time.Time // zero: no limit; Until is exclusive
	Action, Actor string
	After         *Line // only lines after it in the list
	Limit         int
}

// looked is a node's answer to a look.
type looked struct {
	Lines []Line
	More  bool      // more lines match
	Newer int       // lines of a newer version, which this one cannot read
	Back  time.Time // older lines were not searched, for lack of time; zero: all were
}

// matches reports whether a line matches.
func (q *look) matches(l *Line) bool {
	switch {
	case l.At.Before(q.Since), !q.Until.IsZero() && !l.At.Before(q.Until):
		return false
	case q.Action != "" && l.Action != q.Action && !strings.HasPrefix(l.Action, q.Action+"."):
		return false
	case q.After != nil && q.After.compare(l) >= 0:
		return false
	case q.Actor == "":
		return true
	}
	return slices.Contains([]string{l.ActorID, l.ActorType, l.Metadata["credential"]}, q.Actor) || strings.EqualFold(l.ActorName, q.Actor)
}

// search searches the recorded accesses, newest first. Only one search runs at a time, because it
// holds a whole file in memory.
func (t *trail) search(ctx context.Context, q *look) (*looked, error) {
	select {
	case t.looking <- struct{}{}:
		defer func() { <-t.looking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	out := &looked{}

	// Write queued accesses first, so that the search finds them.
	for _, s := range t.allSeries() {
		s.flush(ctx)
		part := s.search(ctx, q)
		out.Lines = append(out.Lines, part.Lines...)
		out.More, out.Newer = out.More || part.More, out.Newer+part.Newer
		if part.Back.After(out.Back) {
			out.Back = part.Back
		}
	}

	// Each series is sorted; merge them.
	slices.SortFunc(out.Lines, func(a, b Line) int { return a.compare(&b) })
	if len(out.Lines) > q.Limit {
		out.Lines, out.More = out.Lines[:q.Limit], true
	}
	return out, nil
}

// search searches the files of a series, newest first, until it has enough.
func (s *series) search(ctx context.Context, q *look) *looked {
	out, names := &looked{}, s.fileNames()
	for i, name := range slices.Backward(names) {
		first, _ := s.timeOf(name)
		switch {
		case !q.Until.IsZero() && !first.Before(q.Until):
			continue // all of its lines are too new
		case i+1 < len(names) && s.beginsBefore(names[i+1], q.Since):
			return out // this file and earlier ones are too old

		// Out of time: return what was found. Back says how far the search came.
		case ctx.Err() != nil:
			if out.Back = s.d.Now(); i+1 < len(names) {
				out.Back, _ = s.timeOf(names[i+1])
			}
			return out
		}

		text, err := os.ReadFile(filepath.Join(s.d.Dir, name))
		if err != nil {
			continue // tidy has just removed it as the oldest
		}
		if out.addMatches(text, q); out.More {
			return out
		}
	}
	return out
}

// beginsBefore reports whether a file begins at or before a time; false for the zero time.
func (s *series) beginsBefore(name string, at time.Time) bool {
	first, _ := s.timeOf(name)
	return !at.IsZero() && !first.After(at)
}

// addMatches adds the matching lines of a file, from its end, until there are q.Limit.
func (out *looked) addMatches(text []byte, q *look) {
	text = bytes.TrimSuffix(text, []byte("\n"))
	for len(text) > 0 {
		start := bytes.LastIndexByte(text, '\n') + 1
		line := text[start:]
		text = text[:max(0, start-1)]

		// Skip most lines without decoding them.
		if q.Action != "" && !bytes.Contains(line, []byte(`"action":"`+q.Action)) {
			continue
		}
		// A line cut by a crash is not JSON. Valid JSON that does not decode is from another
		// version.
		var l Line
		if json.Unmarshal(line, &l) != nil {
			if json.Valid(line) {
				out.Newer++
			}
			continue
		}
		if !q.matches(&l) {
			continue
		}

		// One line beyond the limit proves that there are more.
		if len(out.Lines) == q.Limit {
			out.More = true
			return
		}
		out.Lines = append(out.Lines, l)
	}
}
