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
	Mine    bool // the viewer may continue and change it
	Running bool // the last turn is running
	Created time.Time
	Changed time.Time
	Turns   []Report // empty in a list
	Count   int      // number of turns
}

func noChat() error { return call.Fail(call.ErrNotFound, "There is no such chat.") }

// ownerOf returns the owner of a viewer's threads: the account, a key without an account, or the
// operator; "" for all guests together.
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

// owns reports whether the viewer owns a thread. All guests own each other's threads, if they
// have the link.
func owns(v catalog.Viewer, h *catalog.Thread) bool {
	return v.Role != catalog.RoleNone && h.Owner == ownerOf(v)
}

// sight decides what a viewer may see of a turn.
type sight struct {
	repos *account.Repos // nil means no repository
	whole bool           // the viewer can see all that the asker could
}

// canSee reports whether the viewer may see a repository; false if permissions cannot be checked.
func (s *sight) canSee(repo string) bool {
	if s.repos == nil {
		return false
	}
	_, err := s.repos.ByName(repo)
	return err == nil
}

// filterReport returns a report without the repositories that the viewer may not see: citations of them
// are removed from the text.
func (s *sight) filterReport(r Report) Report {
	answer := r.Answer
	r.Answer = nil
	for _, p := range answer {
		if p.Cite == nil || !p.Cite.Found() || s.canSee(p.Cite.Repo) {
			r.Answer = append(r.Answer, p)
		}
	}
	r.Reads = slices.DeleteFunc(slices.Clone(r.Reads), func(x Read) bool { return !s.canSee(x.Repo) })
	r.Repos = slices.DeleteFunc(slices.Clone(r.Repos), func(name string) bool { return !s.canSee(name) })
	return r
}

// filterEvent returns an event as the viewer may see it, with the same number.
func (s *sight) filterEvent(e Event) Event {
	switch e.Kind {
	case KindCall, KindResult, KindReasoning:
		if !s.whole {
			e.Text = ""
		}
	case KindCite:
		if e.Cite != nil && e.Cite.Found() && !s.canSee(e.Cite.Repo) {
			e.Kind, e.Cite = KindText, nil
		}
	}
	return e
}
