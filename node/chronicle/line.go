package chronicle

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Line is an entry of the audit: a change, which the catalog has, or an access,
// which one node has in its files. Its JSON is what files and answers hold:
//
//	{"id":"n1-1767348000000000000","timestamp":"2026-01-02T10:00:00Z","action":"code.searched","actorId":"4f1c",
//	 "actorType":"user","actorName":"ann@example.com","targetId":"","targetType":"","address":"192.0.2.7","node":"n1","status":200}
type Line struct {
	ID         string            `json:"id"`
	At         time.Time         `json:"timestamp"`
	Action     string            `json:"action"`
	ActorID    string            `json:"actorId"`
	ActorType  string            `json:"actorType"`
	ActorName  string            `json:"actorName,omitempty"`
	TargetID   string            `json:"targetId"`
	TargetType string            `json:"targetType"`
	Address    string            `json:"address,omitempty"`
	UserAgent  string            `json:"userAgent,omitempty"`
	Node       string            `json:"node"`
	Status     int               `json:"status,omitzero"` // of the answer; 0 for a change
	Count      int               `json:"count,omitzero"`  // of accesses that are told in one; 0 for one
	Metadata   map[string]string `json:"metadata,omitempty"`

	// Change is the number of a change, 0 for an access.
	Change uint64 `json:"-"`
}

// Access is something that was read or refused.
type Access struct {
	Action             string // code.searched, login.failed and so on
	Actor              catalog.Actor
	TargetType, Target string
	Message            string
	Query              string // what was looked for; kept only where SHOAL_AUDIT_QUERIES says so
	Status             int    // of the answer
	Refusal            bool   // somebody was not let in: strangers can make as many of these as they like
}

// lineOfChange is a change as the audit tells it.
func lineOfChange(e *catalog.Event) Line {
	l := Line{
		ID:         strconv.FormatUint(e.ID, 10),
		Change:     e.ID,
		At:         e.At.UTC(),
		Action:     e.Action,
		TargetID:   e.Target,
		TargetType: e.TargetType,
		Node:       e.Node,
	}

	// Names are cut and cleaned as those of accesses, since a terminal may show them.
	l.by(e.Actor)
	l.tell("message", e.Message)
	return l
}

// line is an access as the audit tells it, without what was looked for.
func (a *Access) line(node string, at time.Time, index uint64) Line {
	// What strangers have chosen is cut and cleaned before it is written down.
	l := Line{
		ID:         accessID(node, at),
		At:         at.UTC(),
		Action:     oneLine(a.Action),
		TargetID:   oneLine(a.Target),
		TargetType: a.TargetType,
		Node:       node,
		Status:     a.Status,
	}

	l.by(a.Actor)
	l.tell("message", oneLine(a.Message))
	l.tell("catalogIndex", strconv.FormatUint(index, 10))
	return l
}

// accessID names an access: no node gives two the same time.
func accessID(node string, at time.Time) string { return fmt.Sprintf("%s-%d", node, at.UnixNano()) }

// by says who it was.
func (l *Line) by(a catalog.Actor) {
	l.ActorID, l.ActorType, l.ActorName = oneLine(a.ID), a.Type, oneLine(a.Name)
	l.Address, l.UserAgent = a.Address, oneLine(a.Agent)
	l.tell("credential", oneLine(a.Key))
}

func (l *Line) tell(name, value string) {
	if value == "" {
		return
	}
	if l.Metadata == nil {
		l.Metadata = map[string]string{}
	}
	l.Metadata[name] = value
}

// before orders lines, newest first. No two are equal: changes have numbers, and
// a node gives no two accesses the same time.
func (l *Line) before(other *Line) int {
	origin := func(l *Line) string {
		if l.Change > 0 {
			return ""
		}
		return l.Node
	}
	return cmp.Or(other.At.Compare(l.At), strings.Compare(origin(other), origin(l)), cmp.Compare(other.Change, l.Change))
}

// mostText is how many bytes of each text are kept, as in the events of the catalog.
const mostText = 200

// oneLine is a text of a stranger without what a terminal obeys, cut.
func oneLine(s string) string {
	// Cut before it is cleaned, so that a long text costs no more than a short one.
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), mostText)], ""))

	// And cut once more: what stands for a control character is longer than that.
	return strings.ToValidUTF8(s[:min(len(s), mostText)], "")
}
