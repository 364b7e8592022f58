package chronicle

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Line is an entry of the audit: a change from the catalog, or an access from one node's files.
// Files and responses hold it as JSON:
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
	Status     int               `json:"status,omitzero"` // HTTP status of the answer; 0 for a change
	Count      int               `json:"count,omitzero"`  // accesses that the line stands for; 0: one
	Metadata   map[string]string `json:"metadata,omitempty"`

	// Change is the number of a change, or 0 for an access.
	Change uint64 `json:"-"`
}

// Access is a read or a refusal.
type Access struct {
	Action             string // code.searched, login.failed and so on
	Actor              catalog.Actor
	TargetType, Target string
	Message            string
	Query              string // query text; kept only if SHOAL_AUDIT_QUERIES allows it
	Status             int    // HTTP status of the answer
	Refusal            bool   // somebody was not let in; anonymous clients can cause many of these
}

// lineOfChange returns the line of a change.
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

	// Clean names as those of accesses, because terminals may print them.
	l.setActor(e.Actor)
	l.setMetadata("message", e.Message)
	return l
}

// line returns the line of an access, without its query.
func (a *Access) line(node string, at time.Time, index uint64) Line {
	// Clean and cut what clients chose before it is written.
	l := Line{
		ID:         accessID(node, at),
		At:         at.UTC(),
		Action:     oneLine(a.Action),
		TargetID:   oneLine(a.Target),
		TargetType: a.TargetType,
		Node:       node,
		Status:     a.Status,
	}

	l.setActor(a.Actor)
	l.setMetadata("message", oneLine(a.Message))
	l.setMetadata("catalogIndex", strconv.FormatUint(index, 10))
	return l
}

// accessID returns the id of an access. A node never uses a time twice.
func accessID(node string, at time.Time) string { return fmt.Sprintf("%s-%d", node, at.UnixNano()) }

// setActor sets the actor.
func (l *Line) setActor(a catalog.Actor) {
	l.ActorID, l.ActorType, l.ActorName = oneLine(a.ID), a.Type, oneLine(a.Name)
	l.Address, l.UserAgent = a.Address, oneLine(a.Agent)
	l.setMetadata("credential", oneLine(a.Key))
}

// setMetadata sets an entry of Metadata, unless the value is "".
func (l *Line) setMetadata(name, value string) {
	if value == "" {
		return
	}
	if l.Metadata == nil {
		l.Metadata = map[string]string{}
	}
	l.Metadata[name] = value
}

// compare compares lines, newest first. No two are equal, because changes have numbers and a node
// never uses a time twice.
func (l *Line) compare(other *Line) int {
	origin := func(l *Line) string {
		if l.Change > 0 {
			return ""
		}
		return l.Node
	}
	return cmp.Or(other.At.Compare(l.At), strings.Compare(origin(other), origin(l)), cmp.Compare(other.Change, l.Change))
}

// maxText is how many bytes of a text are kept, as in the catalog's events.
const maxText = 200

// oneLine returns a client's text, without control characters for terminals, cut to maxText.
func oneLine(s string) string {
	// Cut first, so that long texts cost no more.
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r == 0xfeff {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), maxText)], ""))

	// Cut again, because replacement characters are longer.
	return strings.ToValidUTF8(s[:min(len(s), maxText)], "")
}
