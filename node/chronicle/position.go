package chronicle

import (
	"encoding/base64"
	"encoding/json"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/node/call"
)

// position is how far a reader is in the log of each node, by node. No node keeps it:
// the reader has it from one answer, and gives it with the next request.
type position map[string]readLog

// readLog is how far a reader is in the log of one node.
type readLog struct {
	Log  string `json:"log"`
	Read int    `json:"read"` // events of it, from its first one on
}

// maxPosition is more than the members of any cluster need.
const maxPosition = 64 << 10

// positionOf reads the text of a position; nil for "".
func positionOf(text string) (position, error) {
	if text == "" {
		return nil, nil
	}

	var p position
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxPosition || json.Unmarshal(plain, &p) != nil || len(p) == 0 {
		return nil, call.Fail(call.ErrInvalid, "after: it is not what a list of events told as `next`. Leave it out to begin anew.")
	}
	return p, nil
}

// text is what a reader gets of a position; "" of none.
func (p position) text() string {
	if len(p) == 0 {
		return ""
	}
	plain, _ := json.Marshal(p) // of words and numbers alone, it cannot fail
	return base64.RawURLEncoding.EncodeToString(plain)
}

// has reports whether the reader has had an event: the nth of a log.
func (p position) has(node, log string, n int) bool {
	at, ok := p[node]
	return ok && at.Log == log && n <= at.Read
}

// goesOn reports whether some node has noted all that has happened since. Each sees
// the whole cluster, so that one is enough.
func (p position) goesOn(told map[string]*eventsHere) bool {
	for node, t := range told {
		at, ok := p[node]
		if ok && at.Log == t.Log && at.Read >= t.dropped() {
			return true
		}
	}
	return false
}

// next is the position behind what the nodes told. Of a member that told nothing this
// time, what it notes meanwhile is still to come.
func (p position) next(told map[string]*eventsHere, members []cluster.Member) position {
	next := position{}
	for _, m := range members {
		if at, ok := p[m.ID]; ok {
			next[m.ID] = at
		}
		if t := told[m.ID]; t != nil && t.Log != "" {
			next[m.ID] = readLog{t.Log, t.Noted}
		}
	}
	return next
}
