package ask

import (
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Chat is a thread as one viewer sees it.
type Chat struct {
	ID      string
	Title   string
	Public  bool
	Mine    bool // the viewer goes on with it, and may change it
	Running bool // the last turn is being answered
	Created time.Time
	Changed time.Time
	Turns   []Report // none in a list
	Count   int      // of turns
}

func noChat() error { return call.Fail(call.ErrNotFound, "There is no such chat.") }

// ownerOf is whose the threads of a viewer are: an account's, a key's that
// belongs to no account, or the operator's; "" for all guests together.
func ownerOf(v catalog.Viewer) string {
	switch {
	case v.Account != "":
		return "account " + v.Account
	case v.KeyID != "":
		return "key " + v.KeyID
	case v.Role == catalog.RoleGuest:
		return ""
	}
	return "operator"
}

// owns reports whether a viewer may go on with a thread. One of a guest is that
// of every guest who has its link.
func owns(v catalog.Viewer, h *catalog.Thread) bool {
	return v.Role != catalog.RoleNone && h.Owner == ownerOf(v)
}

// sight is what a viewer may see of a turn.
type sight struct {
	repos *account.Repos // nil for nobody
	whole bool           // the viewer can see all that the asker could
}

func (s *sight) sees(repo string) bool {
	if s.repos == nil {
		return false
	}
	_, err := s.repos.ByName(repo)
	return err == nil
}

// report is a report without the sources that the viewer may not see: their
// citations are gone from the text.
func (s *sight) report(r Report) Report {
	answer := r.Answer
	r.Answer = nil
	for _, p := range answer {
		if p.Cite == nil || !p.Cite.Found() || s.sees(p.Cite.Repo) {
			r.Answer = append(r.Answer, p)
		}
	}
	r.Reads = slices.DeleteFunc(slices.Clone(r.Reads), func(x Read) bool { return !s.sees(x.Repo) })
	r.Repos = slices.DeleteFunc(slices.Clone(r.Repos), func(name string) bool { return !s.sees(name) })
	return r
}

// event is an event as the viewer may see it. It keeps its number.
func (s *sight) event(e Event) Event {
	switch e.Kind {
	case KindCall, KindResult, KindReasoning:
		if !s.whole {
			e.Text = ""
		}
	case KindCite:
		if e.Cite != nil && e.Cite.Found() && !s.sees(e.Cite.Repo) {
			e.Kind, e.Cite = KindText, nil
		}
	}
	return e
}
