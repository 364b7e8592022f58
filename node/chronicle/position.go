package chronicle

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/node/call"
)

// position is how far a reader is in the logs of the nodes. No node keeps it: the reader
// has it from one answer, and gives it with the next request.
type position struct {
	Logs map[string]readLog `json:"logs"` // by node

	// Late is what was told a moment ago. The node that told it may be gone by the next
	// request, and others may notice the same only then.
	Late []toldLate `json:"late,omitempty"`
}

// readLog is how far a reader is in the log of one node.
type readLog struct {
	Log  string `json:"log"`
	Read int    `json:"read"` // events of it, from its first one on
}

// toldLate is an event that was told.
type toldLate struct {
	What uint64    `json:"what"` // see whatOf
	At   time.Time `json:"at"`
}

const (
	maxPosition = 64 << 10 // bytes of its text: more than the members of any cluster need
	mostLate    = 16
)

// whatOf stands for an event without its time.
func whatOf(e *Event) uint64 {
	return xxhash.Sum64String(e.Kind + "\x00" + e.Subject + "\x00" + e.Text)
}

// positionOf reads the text of a position; nil for "".
func positionOf(text string) (*position, error) {
	if text == "" {
		return nil, nil
	}

	p := &position{}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxPosition || json.Unmarshal(plain, p) != nil || len(p.Logs) == 0 || len(p.Late) > mostLate {
		return nil, call.Fail(call.ErrInvalid, "after is no valid position. Use `next` of an earlier answer, or leave it out to start over.")
	}
	return p, nil
}

// text is what a reader gets of a position; "" of none.
func (p *position) text() string {
	if len(p.Logs) == 0 {
		return ""
	}
	plain, _ := json.Marshal(p) // of words, numbers and times alone, it cannot fail
	return base64.RawURLEncoding.EncodeToString(plain)
}

// of is how far the reader is in the log of a node; false where he has had nothing of it,
// as at the beginning, where p is nil.
func (p *position) of(node string) (at readLog, ok bool) {
	if p != nil {
		at, ok = p.Logs[node]
	}
	return at, ok
}

// has reports whether the reader has had an event: the nth of a log.
func (p *position) has(node, log string, n int) bool {
	at, ok := p.of(node)
	return ok && at.Log == log && n <= at.Read
}

// goesOn reports whether some node has noted all that has happened since. Each sees
// the whole cluster, so that one is enough.
func (p *position) goesOn(told map[string]*eventsHere) bool {
	for node, t := range told {
		if p.has(node, t.Log, t.dropped()) {
			return true
		}
	}
	return false
}

// next is the position behind what the nodes told, which is all, at a time. Of a member
// that told nothing this time, what it notes meanwhile is still to come.
func (p *position) next(told map[string]*eventsHere, members []cluster.Member, all []*happening, now time.Time) *position {
	next := &position{Logs: map[string]readLog{}}
	for _, m := range members {
		if at, ok := p.of(m.ID); ok {
			next.Logs[m.ID] = at
		}
		if t := told[m.ID]; t != nil && t.Log != "" {
			next.Logs[m.ID] = readLog{t.Log, t.Noted}
		}
	}

	for _, h := range all[max(0, len(all)-mostLate):] {
		if now.Sub(h.At) <= eventSpread {
			next.Late = append(next.Late, toldLate{h.what, h.At})
		}
	}
	return next
}
