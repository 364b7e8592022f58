package ask

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/model"
)

// entry is one entry of the log of a turn: with all of them another node can go
// on where this one was.
type entry struct {
	Begun  *begun  `json:",omitempty"` // in the first one
	Events []Event `json:",omitempty"`
	State  *state  `json:",omitempty"` // after a step
	Report *Report `json:",omitempty"` // in the last one
}

// begun is what a turn began with.
type begun struct {
	Asker    catalog.Viewer
	Question Question // without what was said earlier: that is in the thread
	Began    time.Time
}

// state is how far the work is after a step. Each one tells what is new since
// the one before.
type state struct {
	Step     int
	Keep     int // messages that stay as they were; Messages follow them
	Messages []model.Message
	NoCalls  bool
	Why      string
	Repaired bool
	Empty    int
	PerToken float64
	Fence    string // between which results stand
	Usage    model.Usage
	Limits   []string
	Reads    []Read
	Searches int
}

// add makes the state of one that follows it.
func (s *state) add(next *state) {
	// Capped, so that append cannot write into what the caller holds.
	kept := min(next.Keep, len(s.Messages))
	messages := append(s.Messages[:kept:kept], next.Messages...)
	reads := append(s.Reads, next.Reads...)
	*s = *next
	s.Keep, s.Messages, s.Reads = 0, messages, reads
}

// save puts the state after a step into the log.
func (l *loop) save(step int) {
	// Only what is new is written: a whole conversation after each step would grow with its
	// square.
	keep := min(l.saved, len(l.req.Messages))
	reads, searches := l.ledger.take()

	l.t.mu.Lock()

	// Copies: the turn goes on while the entry waits to be written.
	usage := l.t.Usage
	limits := slices.Clone(l.t.Limits)
	l.t.mu.Unlock()

	l.t.note(entry{State: &state{
		Step:     step,
		Keep:     keep,
		Messages: cloned(l.req.Messages[keep:]),
		NoCalls:  l.req.NoCalls,
		Why:      l.why,
		Repaired: l.repaired,
		Empty:    l.empty,
		PerToken: l.perToken,
		Fence:    l.fence,
		Usage:    usage,
		Limits:   limits,
		Reads:    reads,
		Searches: searches,
	}})

	// Compaction sets this back, as it changes messages that are in the log.
	l.saved = len(l.req.Messages)
}

// cloned are messages that later compaction does not change.
func cloned(messages []model.Message) []model.Message {
	out := make([]model.Message, len(messages))
	for i, m := range messages {
		out[i] = m
		out[i].Parts = make([]model.Part, len(m.Parts))

		for k, p := range m.Parts {
			// Compaction writes into results: each needs its own.
			if p.Result != nil {
				r := *p.Result
				p.Result = &r
			}
			out[i].Parts[k] = p
		}
	}
	return out
}

// restore goes on where a state was saved.
func (l *loop) restore(s *state) {
	l.done = s.Step
	l.req.Messages, l.req.NoCalls = s.Messages, s.NoCalls
	l.saved = len(s.Messages)
	l.why, l.repaired, l.empty = s.Why, s.Repaired, s.Empty
	l.perToken, l.fence = s.PerToken, s.Fence

	l.t.mu.Lock()
	l.t.Steps, l.t.Usage, l.t.Limits = s.Step, s.Usage, s.Limits
	l.t.mu.Unlock()

	// What was read was noted before: it is not news.
	for _, r := range s.Reads {
		l.ledger.note(r.Repo, r.Path, r.Commit)
	}
	_, _ = l.ledger.take()
	l.ledger.mu.Lock()
	l.ledger.searches = s.Searches
	l.ledger.mu.Unlock()

	l.recall()
}

// recall learns from the conversation which calls were made, and what they
// found.
func (l *loop) recall() {
	before, after := "<data-"+l.fence+">\n", "\n</data-"+l.fence+">"

	keys := map[string]string{} // by ids of calls
	for i := range l.req.Messages {
		for _, c := range l.req.Messages[i].Calls() {
			keys[c.ID] = keyOf(c)
			l.times[keys[c.ID]]++
		}

		for _, r := range l.req.Messages[i].Results() {
			key := keys[r.ID]
			if key == "" || strings.HasPrefix(r.Text, dropped) {
				continue
			}
			text := strings.TrimPrefix(r.Text, before)
			l.results[key] = strings.TrimSuffix(text, after)
		}
	}
}

// kept is what is in the file of a turn that has ended.
type kept struct {
	Report Report
	Events []Event
}

// progress is what the entries of a log come to.
type progress struct {
	begun  *begun
	events []Event
	state  *state  // nil before the end of the first step
	report *Report // of a turn that has ended and is only to be closed
}

func readLog(entries [][]byte) (*progress, error) {
	p := new(progress)
	for i, b := range entries {
		var e entry
		if err := json.Unmarshal(b, &e); err != nil {
			return nil, fmt.Errorf("entry %d of a question: %w", i, err)
		}
		if e.Begun != nil {
			p.begun = e.Begun
		}
		// In order: numbers have no gaps, and a state follows the events of its step.
		p.events = append(p.events, e.Events...)

		switch {
		case e.State == nil:
			// Events only.
		case p.state == nil:
			p.state = e.State
		default:
			p.state.add(e.State)
		}

		if e.Report != nil {
			p.report = e.Report
		}
	}
	return p, nil
}
