package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Counted writes the singular for 1 and the plural for all other numbers.
func TestCounted_choosesSingularOrPlural(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 connections", 1: "1 connection", 2: "2 connections"} {
		if got := Counted(n, "connection", "connections"); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestEventRules_coverEveryCommand(t *testing.T) {
	t.Parallel()
	rows := map[string]int{}
	for _, r := range eventRules {
		rows[r.typ.Name()]++
		if (r.event == nil) == (r.whyNone == "") {
			t.Errorf("the row of %s has either an event or a reason for none", r.typ.Name())
		}
	}
	for _, kind := range commandKinds {
		if name := kind.typ.Name(); rows[name] != 1 {
			t.Errorf("%d rows of eventRules are of the command %s, want one: told, alwaysTold or untold with the reason", rows[name], name)
		}
	}
	if len(eventRules) != len(commandKinds) {
		t.Errorf("%d rows for %d commands", len(eventRules), len(commandKinds))
	}
}

// For random commands, an accepted change leaves one event in its entry. A refused command, or one
// that changes nothing, leaves none.
func TestAuditEvents_areOneForEachAcceptedChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 51))
		s, now := New(), epoch
		left := map[string]int{}
		for index := uint64(1); index <= 1500; index++ {
			now = now.Add(time.Second)
			e := drawEntry(rng, s.View(), index, now)
			e.Request = [16]byte{}
			results := s.Apply(e)

			_, attributed := e.Commands[0].(*Attribute)
			want := map[uint64]string{}
			set := "" // the configuration that an earlier command of the entry set
			for i, c := range e.Commands {
				// Setting the same configuration again leaves no event, and returns the index of
				// the first.
				again := false
				if config, ok := c.(*SetConfig); ok && results[i].Err == nil {
					again = results[i].ID != index || config.Hash == set
					set = config.Hash
				}
				if attributed && results[i].Err == nil && ruleOf(c).event != nil && !again {
					want[index*MaxCommands+uint64(i)] = CommandName(c)
				}
			}
			for ev := range s.View().EventsBefore(0) {
				if ev.ID < index*MaxCommands {
					break
				}
				left[want[ev.ID]]++
				if want[ev.ID] == "" || ev.Action == "" || ev.TargetType == "" || ev.Actor.ID != "a1" || !ev.At.Equal(now) || ev.Node != "n1" {
					t.Fatalf("seed %d, entry %d: event %+v of the command %q", seed, index, ev, want[ev.ID])
				}
				delete(want, ev.ID)
			}
			if len(want) > 0 {
				t.Fatalf("seed %d, entry %d: no events of %v", seed, index, want)
			}
		}
		if left["CreateKey"] == 0 || left["PutAccount"] == 0 || left["SetConfig"] == 0 {
			t.Fatalf("seed %d: events of %v only", seed, left)
		}
	}
}

// by returns an entry in which an actor makes one change.
func by(index uint64, at time.Time, who Actor, keep time.Duration, c Command) Entry {
	return Entry{Index: index, At: at, Node: "n1", Commands: []Command{&Attribute{who, keep}, c}}
}

func actions(s *State) (all []string) {
	for e := range s.View().EventsBefore(0) {
		all = append(all, e.Action)
	}
	return all
}

func TestEvents_ofANodesChangesNameTheNode(t *testing.T) {
	t.Parallel()
	s, node := New(), Actor{Type: ActorSystem, ID: "n1"}
	s.Apply(by(1, epoch, node, 0, &EnqueueJob{Kind: JobSync, Subject: "c"}))
	s.Apply(by(2, epoch, node, 0, &SetConfig{Raw: []byte("a"), Hash: hashText("a"), Instead: InsteadOfAny}))
	s.Apply(by(3, epoch, Actor{Type: ActorSystem, ID: "n2"}, 0, &SetConfig{Raw: []byte("a"), Hash: hashText("a"), Instead: InsteadOfAny}))
	s.Apply(Entry{Index: 4, At: epoch, Commands: []Command{&PutAccount{Account: User{ID: "a", Email: "a@x", Role: RoleOwner, State: AccountActive}}}})
	if got := actions(s); !slices.Equal(got, []string{"config.changed"}) {
		t.Errorf("events %v: want that of the configuration; entries of before have none", got)
	}
}

func TestEvents_recordAccountChanges(t *testing.T) {
	t.Parallel()
	s, who, index := New(), Actor{Type: ActorOperator}, uint64(0)
	put := func(id string, role Role, state AccountState) {
		t.Helper()
		c := &PutAccount{Account: User{ID: id, Email: id + "@x", Role: role, State: state}}
		if old := s.View().Account(id); old != nil {
			c.Instead = old.Changed
		}
		index++
		if r := s.Apply(by(index, epoch, who, 0, c)); r[1].Err != nil {
			t.Fatal(r[1].Err)
		}
	}
	put("o", RoleOwner, AccountActive)
	put("a", RoleMember, AccountPending)
	put("a", RoleMember, AccountActive)
	put("a", RoleOwner, AccountActive)
	put("a", RoleOwner, AccountSuspended)
	put("a", RoleOwner, AccountActive)
	put("a", RoleOwner, AccountActive)

	want := []string{"user.changed", "user.reactivated", "user.suspended", "user.role_changed", "user.approved", "user.created", "user.created"}
	if got := actions(s); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}

	// The last owner stays, and the refused attempt leaves no event.
	put("o", RoleMember, AccountActive)
	index++
	r := s.Apply(by(index, epoch, who, 0, &PutAccount{Account: User{ID: "a", Email: "a@x", Role: RoleMember, State: AccountActive}, Instead: s.View().Account("a").Changed}))
	if got := actions(s); r[1].Err == nil || len(got) != len(want)+1 {
		t.Errorf("a refused change: %v, events %v", r[1].Err, got)
	}
}

func TestEvents_tooOldOrTooManyAreDeleted(t *testing.T) {
	t.Parallel()
	s, who := New(), Actor{Type: ActorOperator}
	note := func(index uint64, at time.Time, keep time.Duration) {
		s.Apply(by(index, at, who, keep, &NoteEvent{Action: fmt.Sprint("a", index), TargetType: "t"}))
	}
	note(1, epoch, time.Hour)
	note(2, epoch.Add(50*time.Minute), time.Hour)
	note(3, epoch.Add(61*time.Minute), time.Hour)
	if got := actions(s); !slices.Equal(got, []string{"a3", "a2"}) {
		t.Errorf("after an hour there are %v", got)
	}
	note(4, epoch.Add(10000*time.Hour), 0)
	if got := actions(s); len(got) != 3 {
		t.Errorf("with no bound of age there are %v", got)
	}

	for index := uint64(5); index < maxEvents+100; index++ {
		note(index, epoch.Add(10000*time.Hour), 0)
	}
	if got := actions(s); len(got) != maxEvents || got[0] != fmt.Sprint("a", maxEvents+99) || got[len(got)-1] != "a100" {
		t.Errorf("%d events, from %s to %s", len(got), got[len(got)-1], got[0])
	}
}

// A name or user agent stays one field of one event, whatever characters it has.
func TestEvents_hostileTextStaysOneField(t *testing.T) {
	t.Parallel()
	hostile := "ok\r\n{\"action\":\"user.deleted\"}\x1b[2J\x00\u202e\u2028\u0085\xff" + strings.Repeat("ü", 500)
	s := New()
	s.Apply(by(1, epoch, Actor{Type: ActorUser, ID: "a", Name: hostile, Agent: hostile, Address: hostile}, 0,
		&CreateKey{Key{ID: "k", Name: hostile, Role: RoleOwner, Hash: make([]byte, 32)}}))
	s.Apply(by(2, epoch, Actor{Type: ActorUser, Agent: hostile}, 0, &NoteEvent{Action: "snapshot.taken", Target: hostile}))
	n := 0
	for e := range s.View().EventsBefore(0) {
		n++
		for _, text := range []string{e.Actor.Name, e.Actor.Agent, e.Actor.Address, e.Target, e.Message} {
			if strings.ContainsAny(text, "\r\n\x1b\x00\u202e\u2028\u0085") || !utf8.ValidString(text) || len(text) > maxEventText {
				t.Errorf("an event has the text %q", text)
			}
		}
	}
	if n == 0 || len(actions(s)) != n {
		t.Errorf("%d events", n)
	}
}

func TestEventsBefore_returnsPages(t *testing.T) {
	t.Parallel()
	s := New()
	for index := uint64(1); index <= 5; index++ {
		s.Apply(by(index, epoch, Actor{Type: ActorUser}, 0, &NoteEvent{Action: fmt.Sprint("a", index)}))
	}
	var got []string
	for e := range s.View().EventsBefore(4*MaxCommands + 1) {
		if got = append(got, e.Action); len(got) == 2 {
			break
		}
	}
	if !slices.Equal(got, []string{"a3", "a2"}) {
		t.Errorf("before the fourth: %v", got)
	}
}
