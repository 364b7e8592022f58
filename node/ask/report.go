package ask

import (
	"strings"
	"time"

	"github.com/shoalsearch/shoal/node/model"
)

// Question is one question with its options.
type Question struct {
	Query   string
	Repos   []string  // repositories to search, by name or unambiguous ending; empty: the thread's, or all that the asker may see
	Model   ModelName // zero: the thread's, or the first configured
	Thread  string    // thread to continue; "" starts a new one
	Public  bool      // a new thread is visible to everybody with its link
	Private bool      // a new thread is not; with neither, a guest's thread is public and others are private

	Earlier []*Report `json:"-"` // earlier turns of the thread, oldest first; Ask fills them in
}

// ModelName names a configured model. Provider may be empty if the name is unique.
type ModelName struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Started is a question whose turn has begun.
type Started struct {
	ID    string // of the thread
	After int    // the turn's events have numbers above this
}

// Kinds of events, in the order in which they first occur in a turn.
const (
	KindTurn      = "turn"      // the turn has begun; Text is the question
	KindStep      = "step"      // the node calls the model
	KindReasoning = "reasoning" // part of the model's reasoning
	KindText      = "text"      // part of the model's text
	KindCite      = "cite"      // a citation at this position of the text
	KindAside     = "aside"     // this step's text was no answer: the model calls tools
	KindAgain     = "again"     // this step's text is void
	KindCall      = "call"      // the model calls a tool
	KindResult    = "result"    // first line of the tool's result
	KindNote      = "note"      // a note for people
	KindError     = "error"     // why there is no answer
	KindDone      = "done"      // always the turn's last event
)

// Event is one step of a turn as watchers see it. N counts from 1 through all turns of a thread,
// without gaps, and is the same on every node. Only a lost turn leaves a gap: see lostEvents.
type Event struct {
	N      int
	Kind   string
	Step   int
	Text   string
	Failed bool      // with KindResult
	Cite   *Citation // with KindCite
}

// Status is the state of a turn.
type Status string

// States of a turn.
const (
	Running Status = "running"
	Done    Status = "done"    // there is an answer
	Stopped Status = "stopped" // the asker stopped it
	Failed  Status = "failed"
)

// Report is the stored result of a turn.
type Report struct {
	ID, Query string   // ID is the thread's
	Repos     []string // repositories it was restricted to; empty: all
	Model     string   // provider/model
	Status    Status
	Error     string  // if Failed
	Answer    []Piece // in order
	Limits    []string
	Began     time.Time
	Took      time.Duration
	Steps     int
	Searches  int
	Reads     []Read
	Usage     model.Usage
	First     int // number of the first event
	Last      int // number of the last event; 0 while the turn runs

	// Sight is the set of repositories that the asker could see, as a roaring bitmap. Only
	// viewers who can see all of them see how the answer was found.
	Sight []byte
}

// Provider returns the provider's part of Model.
func (r *Report) Provider() string { name, _, _ := strings.Cut(r.Model, "/"); return name }

// ModelName returns the model's name at its provider.
func (r *Report) ModelName() string { _, name, _ := strings.Cut(r.Model, "/"); return name }

// Piece is part of an answer: text or a citation.
type Piece struct {
	Text string
	Cite *Citation
}

// Read is a file that the tools showed, with the commit at which it was read; "" if it was only
// found.
type Read struct{ Repo, Path, Commit string }
