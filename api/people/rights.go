package people

import (
	"context"
	"errors"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

var rightsTemplate = layout.Parse(templates, "templates/rights.html")

type rightsPage struct {
	User, Repo string // as they were asked for
	Wrong      string
	Answer     *rightsAnswer // nil before anything was asked
}

type rightsAnswer struct {
	Email, Role, State, Repo, Command string
	Sees, HostsAsked                  bool
	Reasons                           []rightsReason
}

// rightsReason is a line of the answer: a word for what it does beside the sentence,
// since a colour alone says nothing to many.
type rightsReason struct {
	Class, Word, Text string
	At                layout.When // of the answer that it stands on; none for what holds now
}

// rights tells owners why an account sees a repository, or does not.
func (p *Pages) rights(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	data := rightsPage{User: strings.TrimSpace(v.Query.Get("user")), Repo: strings.TrimSpace(v.Query.Get("repo"))}
	// Nothing is asked yet, as when the page is opened.
	if data.User == "" || data.Repo == "" {
		return p.showRights(v, data)
	}

	r, err := p.Accounts.Why(ctx, by, data.User, data.Repo)
	var e *call.Error
	switch {
	case err == nil:
		data.Answer = p.rightsAnswer(r)

	// A name that is misspelt is mended in the form that it stands in.
	case errors.As(err, &e) && (e.Kind == call.ErrNotFound || e.Kind == call.ErrRepoNotFound):
		v.Status, data.Wrong = 404, e.Message
	default:
		return err
	}
	return p.showRights(v, data)
}

func (p *Pages) showRights(v *layout.Visit, data rightsPage) error {
	return v.Show(layout.Head{Title: "Rights", Page: "settings", Side: "rights"}, rightsTemplate, data)
}

func (p *Pages) rightsAnswer(r *account.WhyResponse) *rightsAnswer {
	a := &rightsAnswer{
		Email: r.User.Email, Role: r.User.Role.String(), State: r.User.State.String(), Repo: r.Repo,
		Sees: r.Sees, HostsAsked: r.HostsAsked,
		Command: "shoal user access " + r.User.Email + " " + r.Repo,
	}

	// One reason that stops outweighs all that let see: it is marked first.
	for _, x := range r.Reasons {
		line := rightsReason{Class: "dim", Word: "no right", Text: x.Text, At: p.when(x.At)}
		switch {
		case x.Stops:
			line.Class, line.Word = "bad", "ends it"
		case x.Sees:
			line.Class, line.Word = "good", "enough"
		}
		a.Reasons = append(a.Reasons, line)
	}
	return a
}
