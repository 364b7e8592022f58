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
	User, Repo string // as requested
	Wrong      string
	Answer     *rightsAnswer // nil before a request
}

type rightsAnswer struct {
	Email, Role, State, Repo, Command string
	Sees, HostsAsked                  bool
	Reasons                           []rightsReason
}

// rightsReason is a line of the answer. Word repeats the meaning of the color, which many people
// cannot see.
type rightsReason struct {
	Class, Word, Text string
	At                layout.When // time of the host's answer behind it; none if it always holds
}

// rights explains to owners why an account sees a repository, or does not.
func (p *Pages) rights(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	data := rightsPage{User: strings.TrimSpace(v.Query.Get("user")), Repo: strings.TrimSpace(v.Query.Get("repo"))}
	// Without both names show the form only.
	if data.User == "" || data.Repo == "" {
		return p.showRights(v, data)
	}

	r, err := p.Accounts.Why(ctx, by, data.User, data.Repo)
	var e *call.Error
	switch {
	case err == nil:
		data.Answer = p.rightsAnswer(r)

	// Show the form again, so that a misspelled name can be corrected.
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

	// A reason may both deny and grant access: then it denies it.
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
