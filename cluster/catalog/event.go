package catalog

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Counted is a number of things: "1 connection", "2 connections". Its text is
// replicated with the events.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Event is a change that somebody made, for the audit. It is written by the
// entry that makes the change: there is none without the other.
//
//	3/1  2026-01-02 10:00  user 4f1c anna@example.com  from 192.0.2.7  key.created  api_key 81d2  "ci"
type Event struct {
	ID         uint64 // grows; index of the entry and the command's place in it
	At         time.Time
	Action     string // as in eventRules: key.created
	Actor      Actor
	Node       string // that took the request
	TargetType string // user, api_key, session, oauth_grant, repository, connection, node, …
	Target     string // id of what was changed
	Message    string // what else there is to know; never a secret
}

// The types of actors.
const (
	ActorUser     = "user"         // an account, signed in by a browser
	ActorKey      = "api_key"      // an account or nobody, by a key
	ActorAgent    = "oauth_client" // an account, by an agent that it let in
	ActorOperator = "operator"     // whoever may open the socket in the data directory
	ActorGuest    = "anonymous"    // nobody has signed in
	ActorSystem   = "system"       // a node, by itself
)

// Actor is who asks for a change, and from where.
type Actor struct {
	Type    string // of those above
	ID      string // of the account, else of the key or node; may be empty
	Name    string // for people
	Key     string // public id of the key or session
	Address string // where the request came from; empty for a node and for the socket
	Agent   string // what the client says of itself
}

// Attribute comes first in an entry whose changes are audited, and says by whom
// they are made. An entry without one leaves no event: so do those of earlier
// versions, on every node alike.
type Attribute struct {
	Actor Actor
	Keep  time.Duration // older events go; 0 keeps as many as there may be
}

// NoteEvent leaves an event of something that changes nothing else here.
type NoteEvent struct {
	Action     string
	TargetType string
	Target     string
	Message    string
}

// Bounds of events.
const (
	maxEvents    = 50000
	maxEventText = 200 // bytes of each text
)

type actorKey struct{}

// WithActor says in a context who asks for the changes that are proposed under it.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf is what WithActor said, if anything.
func ActorOf(ctx context.Context) (a Actor, ok bool) {
	a, ok = ctx.Value(actorKey{}).(Actor)
	return a, ok
}

// Audited reports whether commands leave an event: when a person asks for them,
// or when a node does by itself.
func Audited(cmds []Command, person bool) bool {
	for _, c := range cmds {
		if r := ruleOf(c); r.tell != nil && (person || r.always) {
			return true
		}
	}
	return false
}

func (c *Attribute) apply(t *txn) Result {
	// What a client says of itself is shown in a terminal, and must not obey one.
	a := c.Actor
	for _, text := range []*string{&a.Type, &a.ID, &a.Name, &a.Key, &a.Address, &a.Agent} {
		*text = plainText(*text)
	}
	t.by = &a

	// What is too old goes before anything is added.
	for c.Keep > 0 {
		oldest := t.events.First()
		if oldest == nil || t.now.Sub(oldest.At) <= c.Keep {
			break
		}
		t.events.Delete(oldest.ID)
	}
	return Result{}
}

func (c *NoteEvent) apply(*txn) Result {
	if c.Action == "" {
		return refuse(Invalid, "an event has an action")
	}
	return Result{}
}

// tell is the event of a command that is about to be applied, nil for none.
func (t *txn) tell(c Command) *Event {
	if t.by == nil {
		return nil
	}
	rule := ruleOf(c)
	if rule.tell == nil || !rule.always && t.by.Type == ActorSystem {
		return nil
	}
	e := rule.tell(t, c)
	if e.Action == "" {
		return nil
	}
	return &e
}

// record keeps the event of the command at a place of the entry, and drops the
// oldest where there are too many:
//
//	events.len() <= maxEvents
func (t *txn) record(e *Event, place int) {
	for _, text := range []*string{&e.Action, &e.TargetType, &e.Target, &e.Message} {
		*text = plainText(*text)
	}
	e.ID, e.At, e.Node = t.index*MaxCommands+uint64(place), t.now, t.node

	// Whoever signs in is nobody until they have, and so is an agent that shows
	// the code which a person gave it.
	person := e.Actor.ID
	if person == "" && e.TargetType == "user" {
		person = e.Target
	}
	e.Actor = *t.by
	if e.Actor.Type == ActorGuest {
		e.Actor.ID = person
	}

	t.events.Set(e.ID, e)
	for t.events.Len() > maxEvents {
		t.events.Delete(t.events.First().ID)
	}
}

// plainText is a text on one line, with nothing in it that a terminal obeys or
// that changes the order of what is read, and not longer than maxEventText.
// What it does is part of the state: it must not depend on tables that change
// with the version of Unicode.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r < 0x20 || r >= 0x7f && r < 0xa0, // control characters
			r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, // no width, ends of lines, directions
			r >= 0x2060 && r <= 0x206f, r == 0xfeff:
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))

	// A letter that the cut parts is left out.
	if len(s) <= maxEventText {
		return s
	}
	return strings.ToValidUTF8(s[:maxEventText], "")
}

// EventsBefore goes through the events of the audit, newest first, from the
// newest one whose ID is less than before; 0 begins with the newest of all.
func (v *View) EventsBefore(before uint64) iter.Seq[*Event] {
	if before == 0 {
		before = 1<<64 - 1
	}
	return func(yield func(*Event) bool) {
		for id, e := range v.events.Down(before) {
			if id < before && !yield(e) {
				return
			}
		}
	}
}
