package ask

import (
	"strings"
	"time"

	"github.com/shoalsearch/shoal/node/model"
)

// Question is what somebody wants to know.
type Question struct {
	Query   string
	Repos   []string  // that may be looked at, by full names or unambiguous endings; none for all that the asker may see, or for those of the thread
	Model   ModelName // zero for that of the thread, or the first of the configuration
	Thread  string    // that it goes on with; "" for a new one
	Public  bool      // a new thread is for everybody who has its link
	Private bool      // it is not; with neither, a key's thread is private and a guest's public

	Earlier []*Report `json:"-"` // of the same thread, the oldest first; filled in by Ask
}

// ModelName names a configured model. The provider may be left out where the
// name is that of one model only.
type ModelName struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Started is a question that is being answered.
type Started struct {
	ID    string // of its thread
	After int    // its events have numbers above
}

// The kinds of events, in the order in which a turn has them.
const (
	KindTurn      = "turn"      // it has begun; Text is the question
	KindStep      = "step"      // the node asks the model
	KindReasoning = "reasoning" // a piece of what it thinks
	KindText      = "text"      // a piece of what it says
	KindCite      = "cite"      // a citation, where the text is at this moment
	KindAside     = "aside"     // what it said in this step was no answer: it goes on with calls
	KindAgain     = "again"     // what it said in this step is void
	KindCall      = "call"      // a tool is called
	KindResult    = "result"    // the first line of what it answered
	KindNote      = "note"      // something that people should know
	KindError     = "error"     // why there is no answer
	KindDone      = "done"      // the last one of the turn
)

// Event is one step of a turn as watchers see it. N counts from 1 through all
// turns of a thread, and means the same on every node. It leaves out no number,
// but in a turn whose node was lost: see lostEvents.
type Event struct {
	N      int
	Kind   string
	Step   int
	Text   string
	Failed bool      // of a result
	Cite   *Citation // of a cite
}

// Status is how far a turn is.
type Status string

// The states of a turn.
const (
	Running Status = "running"
	Done    Status = "done"    // there is an answer
	Stopped Status = "stopped" // by the asker
	Failed  Status = "failed"
)

// Report is what is kept of a turn.
type Report struct {
	ID, Query string   // ID is that of the thread
	Repos     []string // that it was bound to; none for all
	Model     string   // provider/model
	Status    Status
	Error     string  // of a failed one
	Answer    []Piece // in order
	Limits    []string
	Began     time.Time
	Took      time.Duration
	Steps     int
	Searches  int
	Reads     []Read
	Usage     model.Usage
	First     int // number of the first event
	Last      int // of the last one; 0 while it runs

	// Sight is the repositories that the asker could see, as a roaring bitmap:
	// how the answer was found is shown to those who can see as many.
	Sight []byte
}

// Provider is who answers for the model.
func (r *Report) Provider() string { name, _, _ := strings.Cut(r.Model, "/"); return name }

// ModelName is the model's name at its provider.
func (r *Report) ModelName() string { _, name, _ := strings.Cut(r.Model, "/"); return name }

// Piece is a piece of an answer: text, or a citation.
type Piece struct {
	Text string
	Cite *Citation
}

// Read is a file that the tools showed, and the commit that it was read at; ""
// where it was only found.
type Read struct{ Repo, Path, Commit string }
