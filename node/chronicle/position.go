package chronicle

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/node/call"
)

// position is how far a reader has read the nodes' logs. Nodes do not store it: the reader gets it
// in one response and sends it with the next request.
type position struct {
	Logs map[string]readLog `json:"logs"` // by node

	// Late are the events told most recently. By the next request their node may be gone, and other
	// nodes may record them only then.
	Late []toldLate `json:"late,omitempty"`
}

// readLog is how far a reader has read the log of one node.
type readLog struct {
	Log  string `json:"log"`
	Read int    `json:"read"` // events from the start of the log
}

// toldLate is an event that the reader has.
type toldLate struct {
	What uint64    `json:"what"` // see eventHash
	At   time.Time `json:"at"`
}

const (
	maxPosition = 64 << 10 // bytes of encoded text; more than any cluster's members need
	maxLate     = 16
)

// eventHash returns a hash of an event without its time.
func eventHash(e *Event) uint64 {
	return xxhash.Sum64String(e.Kind + "\x00" + e.Subject + "\x00" + e.Text)
}

// positionOf decodes a position, or returns nil for "".
func positionOf(text string) (*position, error) {
	if text == "" {
		return nil, nil
	}

	p := &position{}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxPosition || json.Unmarshal(plain, p) != nil || len(p.Logs) == 0 || len(p.Late) > maxLate {
		return nil, call.Fail(call.ErrInvalid, "after is no valid position. Use `next` of an earlier answer, or leave it out to start over.")
	}
	return p, nil
}

// encode returns the encoded position, or "" if it is empty.
func (p *position) encode() string {
	if len(p.Logs) == 0 {
		return ""
	}
	plain, _ := json.Marshal(p) // only strings, numbers and times, so it cannot fail
	return base64.RawURLEncoding.EncodeToString(plain)
}

// readOf returns how far the reader has read the log of a node, or false if they have read none of it.
// The position may be nil.
func (p *position) readOf(node string) (at readLog, ok bool) {
	if p != nil {
		at, ok = p.Logs[node]
	}
	return at, ok
}

// has reports whether the reader has the nth event of a log.
func (p *position) has(node, log string, n int) bool {
	at, ok := p.readOf(node)
	return ok && at.Log == log && n <= at.Read
}

// complete reports whether a node has recorded everything since this position. One is enough, because
// each sees the whole cluster.
func (p *position) complete(answers map[string]*eventsHere) bool {
	for node, t := range answers {
		if p.has(node, t.Log, t.dropped()) {
			return true
		}
	}
	return false
}

// next returns the position after reading all that the nodes told. A member that did not answer
// keeps its position.
func (p *position) next(answers map[string]*eventsHere, members []cluster.Member, all []*happening, now time.Time) *position {
	next := &position{Logs: map[string]readLog{}}
	for _, m := range members {
		if at, ok := p.readOf(m.ID); ok {
			next.Logs[m.ID] = at
		}
		if t := answers[m.ID]; t != nil && t.Log != "" {
			next.Logs[m.ID] = readLog{t.Log, t.Noted}
		}
	}

	for _, h := range all[max(0, len(all)-maxLate):] {
		if now.Sub(h.At) <= eventSpread {
			next.Late = append(next.Late, toldLate{h.hash, h.At})
		}
	}
	return next
}
