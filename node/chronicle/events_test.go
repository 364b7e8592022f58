package chronicle

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestChangesAreToldAsEvents(t *testing.T) {
	t.Parallel()
	whole := func() sight {
		return sight{
			leader: "a", config: "c1",
			members: map[string]memberSight{"a": {alive: true, voter: true}, "b": {alive: true, voter: true}},
			conns:   map[string]connectionSight{"work": {}},
		}
	}
	for _, c := range []struct {
		change func(*sight)
		want   string // kind, subject
		back   string // of the change taken back
	}{
		{func(*sight) {}, "", ""},
		{func(s *sight) { s.members["c"] = memberSight{alive: true} }, "joined c ", "removed c "},
		{func(s *sight) { s.members["b"] = memberSight{voter: true} }, "unreachable b ", "back b "},
		{func(s *sight) { s.members["b"] = memberSight{alive: true, voter: true, draining: true} }, "draining b ", "undrained b "},
		{func(s *sight) { s.members["b"] = memberSight{alive: true} }, "voter b ", "voter b "},
		{func(s *sight) { s.leader = "b" }, "leader b ", "leader a "},
		{func(s *sight) { s.leader = "" }, "leader  ", "leader a "},
		{func(s *sight) { s.config = "c2" }, "configuration c2 ", "configuration c1 "},
		{func(s *sight) { s.conns["work"] = connectionSight{held: true} }, "connection work ", "connection work "},
		{func(s *sight) { s.conns["work"] = connectionSight{error: "e"} }, "connection work ", "connection work "},
		{func(s *sight) { s.conns["work"] = connectionSight{held: true, error: "e"} }, "connection work ", "connection work "},
		{func(s *sight) { s.conns["work"] = connectionSight{hidden: true, error: "e"} }, "connection work ", "connection work "},
		{func(s *sight) { s.conns["new"] = connectionSight{error: "e"} }, "", ""},
	} {
		before, after := whole(), whole()
		c.change(&after)
		if got := named(changes(before, after)); got != c.want {
			t.Errorf("%+v: %q, want %q", after, got, c.want)
		}
		if got := named(changes(after, before)); got != c.back {
			t.Errorf("%+v taken back: %q, want %q", after, got, c.back)
		}
	}
}

func named(events []Event) (out string) {
	for _, e := range events {
		out += e.Kind + " " + e.Subject + " "
	}
	return out
}

// Nodes notice the same at about the same time: it is told once. What happens
// again is told again.
func TestEventsOfAllNodesAreJoined(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(1700000000+int64(seconds), 0) }
	down := func(seconds int) Event { return Event{At: at(seconds), Kind: "unreachable", Subject: "b"} }
	back := func(seconds int) Event { return Event{At: at(seconds), Kind: "back", Subject: "b"} }
	got := joined([]*eventsHere{
		{Events: []Event{down(10), back(20), down(100)}, Since: at(5)},
		{Events: []Event{down(11), back(19), down(102)}, Since: at(0)},
	}, 10)
	if names := named(got.Events); names != "unreachable b back b unreachable b " || !got.Since.Equal(at(0)) {
		t.Errorf("%s since %v", names, got.Since)
	}
	if first := joined([]*eventsHere{{Events: []Event{down(10), back(20)}}}, 1).Events; named(first) != "back b " {
		t.Errorf("one event: %v, want the newest", first)
	}
}

func TestANodeKeepsSoManyEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		c := &diary{now: time.Now, look: func() sight {
			looks++
			return sight{config: fmt.Sprint(looks), members: map[string]memberSight{"a": {}}}
		}}
		done := make(chan error)
		ctx, stop := context.WithCancel(t.Context())
		go func() { done <- c.run(ctx) }()
		time.Sleep(eventEvery*(maxEvents+10) + time.Second)
		stop()
		<-done
		if told := c.told(); len(told.Events) != maxEvents || told.Events[maxEvents-1].Subject != fmt.Sprint(maxEvents+11) || told.Since.IsZero() {
			t.Errorf("%d events, the newest %+v", len(told.Events), told.Events[len(told.Events)-1])
		}
	})
}
