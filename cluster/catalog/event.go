package catalog

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Counted returns a number with its noun: "1 connection", "2 connections". The text is replicated
// with the events.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Event is an audited change. The entry that makes the change also writes the event, so that
// neither exists without the other.
//
//	3/1  2026-01-02 10:00  user 4f1c anna@example.com  from 192.0.2.7  key.created  api_key 81d2  "ci"
type Event struct {
	ID         uint64 // ascending: the entry's index, then the command's place in it
	At         time.Time
	Action     string // as in eventRules: key.created
	Actor      Actor
	Node       string // the node that took the request
	TargetType string // user, api_key, session, oauth_grant, repository, connection, node, …
	Target     string // id of the changed thing
	Message    string // further details; never a secret
}

// Types of actors.
const (
	ActorUser     = "user"         // an account, signed in by a browser
	ActorKey      = "api_key"      // an API key, with or without an account
	ActorAgent    = "oauth_client" // an agent that an account let in
	ActorOperator = "operator"     // whoever may open the socket in the data directory
	ActorGuest    = "anonymous"    // not signed in
	ActorSystem   = "system"       // a node on its own
)

// Actor is who requests a change, and from where.
type Actor struct {
	Type    string // one of the types above
	ID      string // id of the account, else of the key or node; may be empty
	Name    string // for display
	Key     string // public id of the key or session
	Address string // where the request came from; "" for a node or the socket
	Agent   string // the client's own description of itself
}

// Attribute is the first command of an audited entry and names the actor. An entry without it
// leaves no event, as those of the earliest versions.
type Attribute struct {
	Actor Actor
	Keep  time.Duration // older events are deleted; 0 keeps up to maxEvents
}

// NoteEvent only leaves an event.
type NoteEvent struct {
	Action     string
	TargetType string
	Target     string
	Message    string
}

// Limits of events.
const (
	maxEvents    = 50000
	maxEventText = 200 // bytes of each text
)

type actorKey struct{}

// WithActor returns a context that names the actor of all changes proposed under it.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the actor that WithActor stored, if any.
func ActorOf(ctx context.Context) (a Actor, ok bool) {
	a, ok = ctx.Value(actorKey{}).(Actor)
	return a, ok
}

// Audited reports whether one of the commands leaves an event. person says whether a person
// requested them: some commands leave an event only then.
func Audited(cmds []Command, person bool) bool {
	for _, c := range cmds {
		if r := ruleOf(c); r.event != nil && (person || r.always) {
			return true
		}
	}
	return false
}

// apply makes the command's actor the author of the events of this entry, and deletes old events.
func (c *Attribute) apply(t *txn) Result {
	// A client chooses its own description. Strip what could control a terminal.
	a := c.Actor
	for _, text := range []*string{&a.Type, &a.ID, &a.Name, &a.Key, &a.Address, &a.Agent} {
		*text = plainText(*text)
	}
	t.by = &a

	// Delete expired events before adding new ones.
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

// eventOf returns the event of a command that is about to be applied, or nil.
func (t *txn) eventOf(c Command) *Event {
	if t.by == nil {
		return nil
	}
	rule := ruleOf(c)
	if rule.event == nil || !rule.always && t.by.Type == ActorSystem {
		return nil
	}
	e := rule.event(t, c)
	if e.Action == "" {
		return nil
	}
	return &e
}

// record stores the event of a command at its place in the entry.
func (t *txn) record(e *Event, place int) {
	for _, text := range []*string{&e.Action, &e.TargetType, &e.Target, &e.Message} {
		*text = plainText(*text)
	}
	e.ID, e.At, e.Node = t.index*MaxCommands+uint64(place), t.now, t.node

	// Someone who signs in is anonymous until the command succeeds. So is an agent that redeems a
	// code. The event names the account instead.
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

// plainText cuts a text to maxEventText and replaces line breaks and invisible characters, which
// could control a terminal or change the reading order. The result is part of the state, so it must
// not depend on the Unicode version.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r < 0x20 || r >= 0x7f && r < 0xa0, // control characters
			r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, // zero width, line ends, directions
			r >= 0x2060 && r <= 0x206f, r == 0xfeff:
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))

	// Drop a letter that the cut splits.
	if len(s) <= maxEventText {
		return s
	}
	return strings.ToValidUTF8(s[:maxEventText], "")
}

// EventsBefore iterates over audit events, newest first, from the newest one with an ID below
// before. 0 begins with the newest of all.
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
