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
	Kind    string    `json:"kind"`    // joined, removed, unreachable, back, draining, undrained, leader, voter, configuration, connection
	Subject string    `json:"subject"` // node, connection or hash of a configuration
	Text    string    `json:"text"`    // a sentence for people
}

// EventsRequest asks for the newest events.
type EventsRequest struct {
	Limit int    // 1..1000; 0 means 100
	After string // the Next of an answer: only what was noticed since; "" for all
}

// EventsResponse lists events, newest first.
type EventsResponse struct {
	Since  time.Time `json:"since,omitzero"` // none before is known
	Events []Event   `json:"events"`
	Next   string    `json:"next,omitzero"`   // After of a later request, at any node; "" where no node that answered can tell
	Missed bool      `json:"missed,omitzero"` // since After more has happened than stands here
}

// eventsCall asks a node for what it has seen.
var eventsCall = call.To[call.Nothing, eventsHere]("events")

const (
	maxEvents   = 1000            // that a node keeps
	eventEvery  = 2 * time.Second // between two looks
	settled     = 2               // looks at a cluster with a leader, from which on changes are events
	eventSpread = 30 * time.Second
	answerTime  = 300 * time.Millisecond // that other nodes have to tell theirs
)

// diary notes what a node sees happen to the cluster, in memory: the newest
// maxEvents. Each node keeps its own, and whoever is asked asks all of them, so
// events outlast the restart of a node, and not that of all at once.
type diary struct {
	look func() sight
	now  func() time.Time

	mu     sync.Mutex // guards the fields below
	log    string     // name of what is noted since this start of the node
	events []Event    // oldest first
	noted  int        // of them, and of those that were dropped before them
	since  time.Time  // from when on what happens is noted
}

func newDiary(now func() time.Time, look func() sight) *diary {
	return &diary{now: now, look: look, log: rand.Text()}
}

// run looks again and again, until the context ends.
func (d *diary) run(ctx context.Context) error {
	// A node that starts hears of the others, and of their leader, one by one: that is
	// nothing that happens to them.
	before, led := d.look(), 0
	for clock.Wait(ctx, eventEvery) {
		now := d.look()
		switch {
		case led == settled:
			d.note(changes(before, now))
		case now.leader != "" && len(now.members) > 0:
			led++
		}
		before = now
	}
	return nil
}

// note keeps events, which happen now.
func (d *diary) note(events []Event) {
	d.mu.Lock()
	defer d.mu.Unlock()

	// Also where nothing happened: since then it would be known.
	if d.since.IsZero() {
		d.since = d.now()
	}

	// A node notices an event between two looks, so the time of the look is as good as any.
	for _, e := range events {
		e.At = d.now()
		d.events = append(d.events, e)
	}
	d.noted += len(events)

	if extra := len(d.events) - maxEvents; extra > 0 {
		d.events = slices.Delete(d.events, 0, extra)
	}
}

// eventsHere is what a node tells another one.
type eventsHere struct {
	Events []Event // oldest first
	Since  time.Time
	Log    string // another one after each start; "" from a node that is older than this field
	Noted  int    // events of it, with those that were dropped before these
}

// dropped is how many events of the log are remembered no more.
func (e *eventsHere) dropped() int { return e.Noted - len(e.Events) }

// told is all that is known here.
func (d *diary) told() eventsHere {
	d.mu.Lock()
	defer d.mu.Unlock()
	return eventsHere{slices.Clone(d.events), d.since, d.log, d.noted}
}

// sight is the cluster as one look sees it.
type sight struct {
	leader  string
	members map[string]memberSight
	config  string // hash of the one in force
	conns   map[string]connectionSight
}

type memberSight struct{ alive, draining, voter bool }

type connectionSight struct {
	held   bool // a listing that shrank waits for a second one
	hidden bool // its token has been refused for long
	error  string
}

// sightOf is what there is to see of members and a catalog.
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

// changes tells what happened between two looks.
func changes(before, now sight) (out []Event) {
	out = memberChanges(before.members, now.members)

	switch {
	case now.leader == before.leader:
	case now.leader == "":
		out = append(out, event("leader", "", "there is no leader: searches go on, changes wait"))
	default:
		out = append(out, event("leader", now.leader, "node %s leads", now.leader))
	}

	if now.config != before.config {
		out = append(out, event("configuration", now.config, "the configuration %.12s is in force", now.config))
	}
	return append(out, connectionChanges(before.conns, now.conns)...)
}

// event is something that has just been noticed.
func event(kind, subject, text string, args ...any) Event {
	return Event{Kind: kind, Subject: subject, Text: fmt.Sprintf(text, args...)}
}

// memberChanges tells what happened to nodes.
func memberChanges(before, now map[string]memberSight) (out []Event) {
	for _, id := range either(before, now) {
		was, known := before[id]
		is, there := now[id]
		switch {
		case !known:
			out = append(out, event("joined", id, "node %s joined", id))
			continue
		case !there:
			out = append(out, event("removed", id, "node %s was removed for good", id))
			continue
		}

		// What a node was and is: one event for each that is another now.
		turn := func(was, is bool, kindYes, yes, kindNo, no string) {
			if is && !was {
				out = append(out, event(kindYes, id, yes, id))
			} else if was && !is {
				out = append(out, event(kindNo, id, no, id))
			}
		}
		turn(was.alive, is.alive, "back", "node %s answers again", "unreachable", "node %s does not answer")
		turn(was.draining, is.draining, "draining", "node %s is being drained", "undrained", "node %s is taken back")
		turn(was.voter, is.voter, "voter", "node %s votes", "voter", "node %s votes no more")
	}
	return out
}

// connectionChanges tells what happened to connections that were there before.
func connectionChanges(before, now map[string]connectionSight) (out []Event) {
	for _, name := range either(before, now) {
		was, known := before[name]
		is, there := now[name]

		text := ""
		switch {
		case !known || !there: // the configuration changed, which is told
			continue
		case is.hidden && !was.hidden:
			text = "the repositories of connection %s are hidden: its host has refused its token for 30 days"
		case was.hidden && !is.hidden:
			text = "the repositories of connection %s are shown again"
		case is.held && !was.held:
			text = "a listing of connection %s misses so much that it is held until a second one agrees"
		case was.held && !is.held:
			text = "connection %s holds nothing back any more"

		case is.error != "" && was.error == "":
			text = "connection %s fails"
		case was.error != "" && is.error == "":
			text = "connection %s works again"
		default:
			continue
		}
		out = append(out, event("connection", name, text, name))
	}
	return out
}

// either is the keys of two maps, sorted.
func either[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

// Events lists what happened to the cluster lately, as all nodes that answer at
// once have seen it.
func (c *Chronicle) Events(ctx context.Context, _ account.Owner, req EventsRequest) (*EventsResponse, error) {
	limit := cmp.Or(req.Limit, 100)
	if limit < 1 || limit > maxEvents {
		return nil, call.Fail(call.ErrInvalid, "limit must be from 1 to %d", maxEvents)
	}

	read, err := positionOf(req.After)
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var nothing call.Nothing
	members := c.d.Members()
	told := eventsCall.AskAll(ctx, c.d.Net, cluster.AliveIDs(members), &nothing)

	all := happenings(sightings(told, read))
	out := listed(told, read, all, limit)
	out.Next = read.next(told, members, all, c.d.Now()).text()
	return out, nil
}

// listed is the newest of what has happened, without what a reader has had.
func listed(told map[string]*eventsHere, read *position, all []*happening, limit int) *EventsResponse {
	out := &EventsResponse{Events: []Event{}}
	for _, t := range told {
		if !t.Since.IsZero() && (out.Since.IsZero() || t.Since.Before(out.Since)) {
			out.Since = t.Since
		}
	}

	for _, h := range slices.Backward(all) {
		if !h.had {
			out.Events = append(out.Events, h.Event)
		}
	}
	out.Missed = read != nil && (len(out.Events) > limit || !read.goesOn(told))
	out.Events = out.Events[:min(limit, len(out.Events))]
	return out
}

// sighting is an event as one node noted it.
type sighting struct {
	Event
	what uint64 // see whatOf
	node string // "" for one that was told a moment ago, of which no more is known
	had  bool   // the reader has had it
}

// sightings are the events of all nodes, in the order of time.
func sightings(told map[string]*eventsHere, read *position) (all []sighting) {
	for node, t := range told {
		if read != nil && t.Log == "" {
			continue // nobody could tell which of them are new
		}
		for i, e := range t.Events {
			all = append(all, sighting{e, whatOf(&e), node, read.has(node, t.Log, t.dropped()+i+1)})
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

// happening is an event with all nodes that noticed it.
type happening struct {
	sighting
	by map[string]bool
}

// happenings puts together what several nodes have noticed of the same, in the order
// of time: nodes notice it within moments of one another, and it is told once. Had from
// one of them, it is had from all.
//
//	node 1   unreachable b 10:00:01                    back b 10:00:07
//	node 2   unreachable b 10:00:02   joined c 10:00:04
//	told     unreachable b 10:00:01   joined c 10:00:04   back b 10:00:07
func happenings(all []sighting) (out []*happening) {
	lately := map[uint64][]*happening{} // oldest first, by what
	for _, s := range all {
		// The same again at one node has happened again: its first one is the first of others
		// too, its second one their second.
		same := slices.DeleteFunc(lately[s.what], func(h *happening) bool { return s.At.Sub(h.At) > eventSpread })
		lately[s.what] = same
		if i := slices.IndexFunc(same, func(h *happening) bool { return !h.by[s.node] }); i >= 0 {
			same[i].by[s.node] = true
			same[i].had = same[i].had || s.had
			continue
		}

		h := &happening{s, map[string]bool{s.node: true}}
		lately[s.what] = append(same, h)
		out = append(out, h)
	}
	return out
}

// serveEvents tells another node of what this one has seen.
func (c *Chronicle) serveEvents(context.Context, *call.Nothing) (*eventsHere, error) {
	told := c.diary.told()
	return &told, nil
}
