package chronicle

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

func TestStatusChange_becomesAnEvent(t *testing.T) {
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
		want   string // "kind subject"
		back   string // want of the reverse change
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
		if got := kindsText(diffSights(before, after)); got != c.want {
			t.Errorf("%+v: %q, want %q", after, got, c.want)
		}
		if got := kindsText(diffSights(after, before)); got != c.back {
			t.Errorf("%+v taken back: %q, want %q", after, got, c.back)
		}
	}
}

func kindsText(events []Event) (out string) {
	for _, e := range events {
		out += e.Kind + " " + e.Subject + " "
	}
	return out
}

// answersOf returns nodes' answers from text. For example, "a: -b 10, +b 20" means that node a recorded
// b unreachable at second 10, and back at 20. "a~2" has been restarted; "a>3" has dropped three
// earlier events.
func answersOf(t *testing.T, lines ...string) map[string]*eventsHere {
	t.Helper()
	told := map[string]*eventsHere{}
	for _, line := range lines {
		name, events, _ := strings.Cut(line, ":")
		name, dropped, _ := strings.Cut(name, ">")
		node, start, _ := strings.Cut(name, "~")

		here := &eventsHere{Log: "log" + start}
		_, _ = fmt.Sscan(dropped, &here.Noted)
		for e := range strings.SplitSeq(events, ",") {
			what, at, ok := strings.Cut(strings.TrimSpace(e), " ")
			if !ok {
				continue
			}
			seconds, err := strconv.Atoi(at)
			if err != nil {
				t.Fatalf("%q: %v", e, err)
			}
			kind := map[byte]string{'-': "unreachable", '+': "back"}[what[0]]
			here.Events = append(here.Events, Event{At: time.Unix(int64(seconds), 0), Kind: kind, Subject: what[1:]})
		}
		here.Noted += len(here.Events)
		told[node] = here
	}
	return told
}

// eventsText formats events as answersOf reads them, newest first.
func eventsText(events []Event) string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s%s %d", map[string]string{"unreachable": "-", "back": "+"}[e.Kind], e.Subject, e.At.Unix()))
	}
	return strings.Join(out, ", ")
}

func listedOf(told map[string]*eventsHere, read *position, limit int) *EventsResponse {
	return newestUnread(told, read, mergeSightings(sortSightings(told, read)), limit)
}

// Nodes record the same event at about the same time; it is listed once. An event that happens
// again is listed again.
func TestEvents_ofSeveralNodesAreListedOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		told []string
		want string
	}{
		{nil, ""},
		{[]string{"a: -b 10, +b 20, -b 100", "c: -b 11, +b 19, -b 102"}, "-b 100, +b 19, -b 10"},
		{[]string{"a: -b 10", "c: -b 41"}, "-b 41, -b 10"},

		// Within moments, but one node lags behind the other.
		{[]string{"a: -b 10, +b 12, -b 14", "c: -b 15, +b 17, -b 19"}, "-b 14, +b 12, -b 10"},
		{[]string{"a: -b 10, +b 12, -b 14", "c: -b 15"}, "-b 14, +b 12, -b 10"},
		{[]string{"a: -b 10, -c 10", "c: -b 10"}, "-c 10, -b 10"},
	} {
		if got := eventsText(listedOf(answersOf(t, c.told...), nil, 10).Events); got != c.want {
			t.Errorf("%q: %s, want %s", c.told, got, c.want)
		}
	}

	told := answersOf(t, "a: -b 10, +b 20", "c:")
	told["a"].Since, told["c"].Since = time.Unix(5, 0), time.Unix(3, 0)
	if got := listedOf(told, nil, 1); eventsText(got.Events) != "+b 20" || got.Missed || got.Since.Unix() != 3 {
		t.Errorf("one event: %+v, want the newest, since the first look", got)
	}
}

// A reader with a position gets each later event once, and is told if events are missing.
func TestEvents_continueAfterAPosition(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		first, later []string
		want         string
		missed       bool
	}{
		"nothing new":                   {[]string{"a: -b 10"}, []string{"a: -b 10"}, "", false},
		"a new one":                     {[]string{"a: -b 10"}, []string{"a: -b 10, +b 20"}, "+b 20", false},
		"other nodes notice it later":   {[]string{"a: -b 10", "c:"}, []string{"a: -b 10", "c: -b 12"}, "", false},
		"the same again":                {[]string{"a: -b 10"}, []string{"a: -b 10, -b 15"}, "-b 15", false},
		"seen by a node that is back":   {[]string{"a:"}, []string{"a:", "c: -b 10"}, "-b 10", false},
		"the clock of a node is slow":   {[]string{"a: -b 10", "c:"}, []string{"a: -b 10", "c: +b 5"}, "+b 5", false},
		"the node of the first is gone": {[]string{"a: -b 10", "c: -b 11"}, []string{"c: -b 11, +b 30"}, "+b 30", false},
		"a node was started again":      {[]string{"a: -b 10", "c: -b 11"}, []string{"a~2: +b 30", "c: -b 11, +b 29"}, "+b 29", false},
		"all nodes were started again":  {[]string{"a: -b 10"}, []string{"a~2: +b 30"}, "+b 30", true},
		"some are forgotten":            {[]string{"a: -b 10"}, []string{"a>2: +b 30"}, "+b 30", true},
		"what was read is forgotten":    {[]string{"a: -b 10"}, []string{"a>1: +b 30"}, "+b 30", false},
		"more than a list has":          {[]string{"a:"}, []string{"a: -b 1, -c 2, -d 3, -e 4, -f 5"}, "-f 5, -e 4, -d 3, -c 2", true},
		"nobody answers who did":        {[]string{"a: -b 10"}, []string{"c: -b 10"}, "", true},
		"forgotten where it was read":   {[]string{"a: -b 10", "c:"}, []string{"a>2: +b 30", "c: -b 11, +b 31"}, "+b 30", false},
	} {
		members := []cluster.Member{{Member: catalog.Member{ID: "a"}}, {Member: catalog.Member{ID: "c"}}}
		next := func(read *position, told map[string]*eventsHere, now int64) *position {
			text := read.next(told, members, mergeSightings(sortSightings(told, read)), time.Unix(now, 0)).encode()
			read, err := positionOf(text)
			if err != nil {
				t.Fatal(err)
			}
			return read
		}
		read := next(nil, answersOf(t, c.first...), 15)

		later := answersOf(t, c.later...)
		got := listedOf(later, read, 4)
		if eventsText(got.Events) != c.want || got.Missed != c.missed {
			t.Errorf("%s: %s, missed %v; want %s, %v", what, eventsText(got.Events), got.Missed, c.want, c.missed)
		}

		// After reading everything, nothing is left.
		if again := listedOf(later, next(read, later, 50), 4); len(again.Events) > 0 || again.Missed {
			t.Errorf("%s: again %s, missed %v", what, eventsText(again.Events), again.Missed)
		}
	}
}

// A position keeps members that do not answer, and drops removed ones, so that it does not grow.
func TestEventPosition_dropsRemovedMembers(t *testing.T) {
	t.Parallel()
	read := &position{Logs: map[string]readLog{"a": {"log", 3}, "gone": {"log", 9}}}
	told := answersOf(t, "c: -b 10, +b 20, -d 35"+strings.Repeat(", -e 40", 3*maxLate))
	members := []cluster.Member{{Member: catalog.Member{ID: "a"}}, {Member: catalog.Member{ID: "c"}}}
	got := read.next(told, members, mergeSightings(sortSightings(told, read)), time.Unix(45, 0))
	if want := map[string]readLog{"a": {"log", 3}, "c": {"log", 3 + 3*maxLate}}; !maps.Equal(got.Logs, want) || len(got.Late) != maxLate {
		t.Errorf("%v, want %v and %d of late", got, want, maxLate)
	}

	// Events told long ago are not recorded by other nodes any more.
	if got := read.next(told, members, mergeSightings(sortSightings(told, read))[:3], time.Unix(45, 0)); len(got.Late) != 2 {
		t.Errorf("late is %v", got.Late)
	}

	for _, text := range []string{"x", "e30", "bnVsbA", "!", "eyJsb2dzIjp7fX0", strings.Repeat("A", maxPosition+4)} {
		if p, err := positionOf(text); err == nil {
			t.Errorf("%.20q is taken for %v", text, p)
		}
	}
}

func TestEventMemory_dropsTheOldestWhenFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		c := newDiary(time.Now, func() sight {
			looks++
			return sight{config: fmt.Sprint(looks), leader: "a", members: map[string]memberSight{"a": {}}}
		})
		done := make(chan error)
		ctx, stop := context.WithCancel(t.Context())
		go func() { done <- c.run(ctx) }()
		time.Sleep(eventEvery*(maxEvents+10+settledLooks) + time.Second)
		stop()
		<-done
		if told := c.snapshot(); len(told.Events) != maxEvents || told.Events[maxEvents-1].Subject != fmt.Sprint(maxEvents+11+settledLooks) || told.Since.IsZero() || told.dropped() != 10 {
			t.Errorf("%d events, the newest %+v", len(told.Events), told.Events[len(told.Events)-1])
		}
	})
}

// What a node learns during its start is not an event.
func TestEventMemory_recordsNoEventWhileTheNodeStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		whole := sight{leader: "a", config: "c1", members: map[string]memberSight{"a": {alive: true, voter: true}, "b": {alive: true, voter: true}}}
		sights := []sight{
			{},
			{config: "c1", members: map[string]memberSight{"a": {voter: true}, "b": {voter: true}}},
			{leader: "a", config: "c1", members: map[string]memberSight{"a": {voter: true}, "b": {alive: true, voter: true}}},
			whole,
			whole,
			{leader: "", config: "c1", members: whole.members},
		}
		look := func() sight {
			now := sights[0]
			sights = sights[min(1, len(sights)-1):]
			return now
		}

		d := newDiary(time.Now, look)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.run(ctx) }()
		time.Sleep(10*eventEvery + time.Second)
		stop()
		<-done
		if got := kindsText(d.snapshot().Events); got != "leader  " {
			t.Errorf("noted %q, want that there is no leader any more", got)
		}
	})
}
