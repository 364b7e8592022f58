package chronicle

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Event is something that happened to the cluster.
type Event struct {
	At      time.Time `json:"at"`      // when a node noticed it
	Kind    string    `json:"kind"`    // joined, removed, unreachable, back, draining, undrained, leader, voter, configuration or connection
	Subject string    `json:"subject"` // node, connection or hash of a configuration
	Text    string    `json:"text"`    // sentence for people
}

// EventsRequest asks for the newest events.
type EventsRequest struct {
	Limit int    // 1..1000; 0: 100
	After string // Next of an earlier response: only later events; "": all
}

// EventsResponse lists events, newest first.
type EventsResponse struct {
	Since  time.Time `json:"since,omitzero"` // no earlier events are known
	Events []Event   `json:"events"`
	Next   string    `json:"next,omitzero"`   // After for a later request, to any node; "" if no node could tell
	Missed bool      `json:"missed,omitzero"` // more has happened since After than is listed
}

// eventsCall asks a node for its events.
var eventsCall = call.To[call.Nothing, eventsHere]("events")

const (
	maxEvents     = 1000            // events that a node keeps
	eventEvery    = 2 * time.Second // between two looks
	settledLooks  = 2               // looks with a leader before changes count as events
	eventSpread   = 30 * time.Second
	answerTimeout = 300 * time.Millisecond // for other nodes to answer
)

// diary records in memory what a node sees happen to the cluster. It keeps the newest maxEvents. A
// list asks all nodes, so events survive the restart of one node, but not of all at once.
type diary struct {
	lookAtCluster func() sight
	now           func() time.Time

	mu     sync.Mutex // guards the fields below
	log    string     // name of this run's log
	events []Event    // oldest first
	noted  int        // all events of the log, dropped ones included
	since  time.Time  // start of the record
}

func newDiary(now func() time.Time, look func() sight) *diary {
	return &diary{now: now, lookAtCluster: look, log: rand.Text()}
}

// run looks repeatedly until the context ends.
func (d *diary) run(ctx context.Context) error {
	// A starting node learns of the others and their leader step by step. So changes count as events
	// only after some looks with a leader.
	before, led := d.lookAtCluster(), 0
	for clock.Wait(ctx, eventEvery) {
		now := d.lookAtCluster()
		switch {
		case led == settledLooks:
			d.recordEvents(diffSights(before, now))
		case now.leader != "" && len(now.members) > 0:
			led++
		}
		before = now
	}
	return nil
}

// recordEvents records events, with the present time.
func (d *diary) recordEvents(events []Event) {
	d.mu.Lock()
	defer d.mu.Unlock()

	// Set it without events too, because from now on they are recorded.
	if d.since.IsZero() {
		d.since = d.now()
	}

	// An event happened between two looks. The time of the look is close enough.
	for _, e := range events {
		e.At = d.now()
		d.events = append(d.events, e)
	}
	d.noted += len(events)

	if extra := len(d.events) - maxEvents; extra > 0 {
		d.events = slices.Delete(d.events, 0, extra)
	}
}

// eventsHere is a node's answer to another one.
type eventsHere struct {
	Events []Event // oldest first
	Since  time.Time
	Log    string // new after each start; "" from older versions
	Noted  int    // all events of the log, dropped ones included
}

// dropped returns how many events of the log are no longer kept.
func (e *eventsHere) dropped() int { return e.Noted - len(e.Events) }

// snapshot returns everything that this node has recorded.
func (d *diary) snapshot() eventsHere {
	d.mu.Lock()
	defer d.mu.Unlock()
	return eventsHere{slices.Clone(d.events), d.since, d.log, d.noted}
}

// sight is the state of the cluster at one look.
type sight struct {
	leader  string
	members map[string]memberSight
	config  string // hash of the configuration in force
	conns   map[string]connectionSight
}

type memberSight struct{ alive, draining, voter bool }

type connectionSight struct {
	held   bool // a listing shrank, and waits for a second one
	hidden bool // the host has long refused its token
	error  string
}

// sightOf returns the state of members and a catalog.
func sightOf(members []cluster.Member, leader string, view *catalog.View) sight {
	s := sight{leader: leader, members: map[string]memberSight{}, config: view.Config().Hash, conns: map[string]connectionSight{}}
	for _, m := range members {
		s.members[m.ID] = memberSight{m.Alive, m.State == catalog.MemberDraining, m.Voter}
	}
	for c := range view.Connections() {
		s.conns[c.Name] = connectionSight{c.Held > 0, !c.HiddenAt.IsZero(), c.Error}
	}
	return s
}

// diffSights returns the events between two states of the cluster: of nodes, the leader, the
// configuration and connections.
func diffSights(before, now sight) (out []Event) {
	out = memberChanges(before.members, now.members)

	switch {
	case now.leader == before.leader:
	case now.leader == "":
		out = append(out, newEvent("leader", "", "there is no leader: searches go on, changes wait"))
	default:
		out = append(out, newEvent("leader", now.leader, "node %s leads", now.leader))
	}

	if now.config != before.config {
		out = append(out, newEvent("configuration", now.config, "the configuration %.12s is in force", now.config))
	}
	return append(out, connectionChanges(before.conns, now.conns)...)
}

// newEvent returns an event without a time.
func newEvent(kind, subject, text string, args ...any) Event {
	return Event{Kind: kind, Subject: subject, Text: fmt.Sprintf(text, args...)}
}

// memberChanges returns what happened to nodes.
func memberChanges(before, now map[string]memberSight) (out []Event) {
	for _, id := range unionOfKeys(before, now) {
		was, known := before[id]
		current, there := now[id]
		switch {
		case !known:
			out = append(out, newEvent("joined", id, "node %s joined", id))
			continue
		case !there:
			out = append(out, newEvent("removed", id, "node %s was removed for good", id))
			continue
		}

		// One event for each property that changed.
		turn := func(was, current bool, kindYes, yes, kindNo, no string) {
			if current && !was {
				out = append(out, newEvent(kindYes, id, yes, id))
			} else if was && !current {
				out = append(out, newEvent(kindNo, id, no, id))
			}
		}
		turn(was.alive, current.alive, "back", "node %s answers again", "unreachable", "node %s does not answer")
		turn(was.draining, current.draining, "draining", "node %s is being drained", "undrained", "node %s is taken back")
		turn(was.voter, current.voter, "voter", "node %s votes", "voter", "node %s votes no more")
	}
	return out
}

// connectionChanges returns what happened to connections that existed before.
func connectionChanges(before, now map[string]connectionSight) (out []Event) {
	for _, name := range unionOfKeys(before, now) {
		was, known := before[name]
		current, there := now[name]

		text := ""
		switch {
		case !known || !there: // the configuration changed, which has its own event
			continue
		case current.hidden && !was.hidden:
			text = "the repositories of connection %s are hidden: its host has refused its token for 30 days"
		case was.hidden && !current.hidden:
			text = "the repositories of connection %s are shown again"
		case current.held && !was.held:
			text = "a listing of connection %s misses so much that it is held until a second one agrees"
		case was.held && !current.held:
			text = "connection %s holds nothing back any more"

		case current.error != "" && was.error == "":
			text = "connection %s fails"
		case was.error != "" && current.error == "":
			text = "connection %s works again"
		default:
			continue
		}
		out = append(out, newEvent("connection", name, text, name))
	}
	return out
}

// unionOfKeys returns the keys of two maps, sorted.
func unionOfKeys[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

// Events lists recent events of the cluster, as recorded by all nodes that answer in time.
func (c *Chronicle) Events(ctx context.Context, _ account.Owner, req EventsRequest) (*EventsResponse, error) {
	limit := cmp.Or(req.Limit, 100)
	if limit < 1 || limit > maxEvents {
		return nil, call.Fail(call.ErrInvalid, "limit must be from 1 to %d", maxEvents)
	}

	read, err := positionOf(req.After)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var nothing call.Nothing
	members := c.d.Members()
	answers := eventsCall.AskAll(ctx, c.d.Net, cluster.AliveIDs(members), &nothing)

	all := mergeSightings(sortSightings(answers, read))
	out := newestUnread(answers, read, all, limit)
	out.Next = read.next(answers, members, all, c.d.Now()).encode()
	return out, nil
}

// newestUnread returns the newest events that the reader has not read.
func newestUnread(answers map[string]*eventsHere, read *position, all []*happening, limit int) *EventsResponse {
	out := &EventsResponse{Events: []Event{}}
	for _, t := range answers {
		if !t.Since.IsZero() && (out.Since.IsZero() || t.Since.Before(out.Since)) {
			out.Since = t.Since
		}
	}

	for _, h := range slices.Backward(all) {
		if !h.read {
			out.Events = append(out.Events, h.Event)
		}
	}
	out.Missed = read != nil && (len(out.Events) > limit || !read.complete(answers))
	out.Events = out.Events[:min(limit, len(out.Events))]
	return out
}

// sighting is an event as one node recorded it.
type sighting struct {
	Event
	hash uint64 // see eventHash
	node string // "" for one that the reader was told recently; then nothing else is known
	read bool   // an earlier response has told the reader
}

// sortSightings returns the events of all nodes in the order of time.
func sortSightings(answers map[string]*eventsHere, read *position) (all []sighting) {
	for node, t := range answers {
		if read != nil && t.Log == "" {
			continue // it cannot tell which of its events are new
		}
		for i, e := range t.Events {
			all = append(all, sighting{e, eventHash(&e), node, read.has(node, t.Log, t.dropped()+i+1)})
		}
	}
	if read != nil {
		for _, l := range read.Late {
			all = append(all, sighting{Event{At: l.At}, l.What, "", true})
		}
	}

	slices.SortStableFunc(all, func(a, b sighting) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.node, b.node))
	})
	return all
}

// happening is an event with all nodes that recorded it.
type happening struct {
	sighting
	recordedBy map[string]bool
}

// mergeSightings merges the records of several nodes of the same event, in the order of time. Nodes
// notice an event within moments of each other. If the reader has one of the records, they have the
// event.
//
//	node 1   unreachable b 10:00:01                    back b 10:00:07
//	node 2   unreachable b 10:00:02   joined c 10:00:04
//	merged   unreachable b 10:00:01   joined c 10:00:04   back b 10:00:07
func mergeSightings(all []sighting) (out []*happening) {
	recent := map[uint64][]*happening{} // by hash, oldest first
	for _, s := range all {
		// If one node records the same twice, it happened twice. Its first record matches the first
		// of other nodes, its second their second.
		same := slices.DeleteFunc(recent[s.hash], func(h *happening) bool { return s.At.Sub(h.At) > eventSpread })
		recent[s.hash] = same
		if i := slices.IndexFunc(same, func(h *happening) bool { return !h.recordedBy[s.node] }); i >= 0 {
			same[i].recordedBy[s.node] = true
			same[i].read = same[i].read || s.read
			continue
		}

		h := &happening{s, map[string]bool{s.node: true}}
		recent[s.hash] = append(same, h)
		out = append(out, h)
	}
	return out
}

// serveEvents returns the events of this node.
func (c *Chronicle) serveEvents(context.Context, *call.Nothing) (*eventsHere, error) {
	recorded := c.diary.snapshot()
	return &recorded, nil
}
