package settings

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/operate"
)

var actionTemplate = parse("action.html")

// action is one change that an owner can make in the settings.
type action struct {
	name    string
	title   string
	button  string
	side    string   // page in the navigation
	about   []string // consequences, one sentence each
	command []string // the `shoal` command that does the same; SUBJECT stands for the name of the thing
	said    string   // message after the change
	typed   bool     // the owner must type the subject to confirm
	loss    bool     // it may lose data: the owner must accept that

	// more returns facts about the subject to show before the change; nil shows none.
	more func(ctx context.Context, p *Pages, by account.Owner, subject string) (facts []string, err error)
	do   func(ctx context.Context, p *Pages, by account.Owner, subject string, accept bool) error
}

// actions is the table of all changes. A new change needs a row here, and a link from askURL.
var actions = []action{
	{
		name: "reindex", title: "Index a repository now", button: "Index now", side: "repos",
		about:   []string{"The repository is fetched and indexed before others that wait.", "Searches answer from the index that there is until the new one is complete."},
		command: []string{"shoal", "repo", "reindex", "SUBJECT"},
		said:    "The repository is queued.",
		do: func(ctx context.Context, p *Pages, by account.Owner, subject string, _ bool) error {
			// Repo checks that the owner may see the repository.
			repo, err := p.Browse.Repo(ctx, by.Viewer(), subject)
			if err != nil {
				return err
			}
			_, err = p.Operate.Reindex(ctx, by, repo.ID)
			return err
		},
	},
	{
		name: "sync", title: "List a connection now", button: "List now", side: "connections",
		about:   []string{"The code host is asked for its repositories; new and changed ones are indexed."},
		command: []string{"shoal", "connection", "sync", "SUBJECT"},
		said:    "The connection is queued.",
		do:      bySubject(operate.Operator.SyncConnection),
	},
	{
		name: "accept", title: "Believe a listing that shrank", button: "They are gone", side: "connections",
		about:   []string{"The last listing missed many repositories at once, so they were kept.", "If you accept it, the next listing, which begins now, is believed: what it misses leaves the index."},
		command: []string{"shoal", "connection", "accept", "SUBJECT"},
		said:    "The next listing will be believed.",
		more:    missingRepos,
		do:      bySubject(operate.Operator.AcceptListing),
	},
	{
		name: "retry", title: "Run a job now", button: "Run now", side: "jobs",
		about:   []string{"The job runs before others that wait, as soon as a node is free."},
		command: []string{"shoal", "jobs", "retry", "SUBJECT"},
		said:    "The job is queued.",
		more:    jobFacts,
		do:      bySubject(operate.Operator.RetryJob),
	},
	{
		name: "cancel", title: "Cancel a job", button: "Cancel the job", side: "jobs",
		about:   []string{"The job stops, and what it has not finished is thrown away. It counts as failed.", "It comes again when its interval is over, or when somebody asks for it."},
		command: []string{"shoal", "jobs", "cancel", "SUBJECT"},
		said:    "The job is cancelled.",
		more:    jobFacts,
		do:      bySubject(operate.Operator.CancelJob),
	},
	{
		name: "drain", title: "Drain a node", button: "Drain", side: "nodes",
		about:   []string{"The node gets no more data and no jobs, and gives away what it holds. Searches stay complete meanwhile.", "When nothing is left it can be stopped. It can be taken back at any time."},
		command: []string{"shoal", "drain", "SUBJECT"},
		said:    "The node is being drained.",
		more:    nodeContents,
		do:      bySubject(operate.Operator.Drain),
	},
	{
		name: "undrain", title: "Take a node back", button: "Take back", side: "nodes",
		about:   []string{"The node gets data and jobs again."},
		command: []string{"shoal", "undrain", "SUBJECT"},
		said:    "The node is taken back.",
		do:      bySubject(operate.Operator.Undrain),
	},
	{
		name: "remove", title: "Remove a node for good", button: "Remove", side: "nodes", typed: true, loss: true,
		about:   []string{"The cluster forgets the node. It stops, and comes back with a new data directory only.", "Where it has the last copy of something the removal is refused, unless you accept that the copy is lost; it is then made anew from the code host."},
		command: []string{"shoal", "remove", "SUBJECT"},
		said:    "The node is removed.",
		more:    nodeContents,
		do: func(ctx context.Context, p *Pages, by account.Owner, subject string, accept bool) error {
			_, err := p.Operate.Remove(ctx, by, subject, accept)
			return err
		},
	},
}

// bySubject makes the function of a change that only needs its subject.
func bySubject[T any](change func(operate.Operator, context.Context, account.Owner, string) (T, error)) func(context.Context, *Pages, account.Owner, string, bool) error {
	return func(ctx context.Context, p *Pages, by account.Owner, subject string, _ bool) error {
		_, err := change(p.Operate, ctx, by, subject)
		return err
	}
}

// findAction returns the row of actions with a name.
func findAction(name string) (*action, error) {
	for i := range actions {
		if actions[i].name == name {
			return &actions[i], nil
		}
	}
	return nil, call.Fail(call.ErrNotFound, "There is no such change.")
}

// messageOf returns the message after the change with a name; "" for an unknown name.
func messageOf(name string) string {
	a, err := findAction(name)
	if err != nil {
		return ""
	}
	return a.said
}

// askURL returns the page that asks for confirmation of a change.
func askURL(name, subject string) string {
	return "/settings/do/" + name + "?" + url.Values{"subject": {subject}}.Encode()
}

// dialog is the data of the page that asks for confirmation.
type dialog struct {
	*action
	Subject, Shown string
	Facts          []string
	Wrong          string
	Accept         bool // show the checkbox for a loss
}

// Getters for the template.
func (a *action) Title() string   { return a.title }
func (a *action) Button() string  { return a.button }
func (a *action) About() []string { return a.about }
func (a *action) Typed() bool     { return a.typed }
func (a *action) Name() string    { return a.name }
func (a *action) Back() string    { return "/settings/" + a.side }

// askConfirmation shows the consequences of a change, and asks the owner to confirm it.
func (p *Pages) askConfirmation(ctx context.Context, v *layout.Visit) error {
	a, err := findAction(strings.TrimPrefix(v.Path, "/settings/do/"))
	if err != nil {
		return err
	}
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}
	return p.dialog(ctx, v, by, &dialog{action: a, Subject: v.Query.Get("subject")})
}

func (p *Pages) dialog(ctx context.Context, v *layout.Visit, by account.Owner, d *dialog) error {
	// Read the facts again after a refusal too, because they may have changed.
	if d.more != nil {
		facts, err := d.more(ctx, p, by, d.Subject)
		if err != nil {
			return err
		}
		d.Facts = facts
	}
	d.Shown = shellCommand(d.command, d.Subject)
	return p.show(v, d.side, d.title, actionTemplate, d)
}

// makeChange makes a change, and redirects to the page that shows its effect.
func (p *Pages) makeChange(ctx context.Context, v *layout.Visit) error {
	// Refuse another site's form: the browser sends it with the owner's session.
	if err := v.SameSite(); err != nil {
		return err
	}
	a, err := findAction(strings.TrimPrefix(v.Path, "/settings/do/"))
	if err != nil {
		return err
	}
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	// For a change that cannot be undone, the owner must type the name.
	d := &dialog{action: a, Subject: v.Form.Get("subject")}
	if a.typed && v.Form.Get("typed") != d.Subject {
		d.Wrong = "Type the name exactly as it stands above."
		v.Status = 400
		return p.dialog(ctx, v, by, d)
	}

	acceptLoss := v.Form.Get("accept") == "1"
	if err := a.do(ctx, p, by, d.Subject, acceptLoss); err != nil {
		return p.showRefusal(ctx, v, by, d, err)
	}
	// Redirect, so that reloading the page does not repeat the change.
	return v.Redirect(303, a.Back()+"?did="+a.name)
}

// showRefusal shows the page again with the reason of a refusal. It returns err if asking again would
// not help.
func (p *Pages) showRefusal(ctx context.Context, v *layout.Visit, by account.Owner, d *dialog, err error) error {
	var refusal *call.Error
	if !errors.As(err, &refusal) || refusal.Kind == call.ErrNotFound || refusal.Kind == call.ErrForbidden {
		return err
	}
	v.Status, d.Wrong = 409, refusal.Error()
	// Show the checkbox only after a refusal for a loss, so that nobody ticks it by habit.
	d.Accept = d.loss && refusal.Kind == call.ErrHeld
	return p.dialog(ctx, v, by, d)
}

// shellCommand returns a command for a shell, with subject in place of SUBJECT.
func shellCommand(words []string, subject string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quoteWord(strings.ReplaceAll(w, "SUBJECT", subject))
	}
	return strings.Join(out, " ")
}

// quoteWord quotes a word for a shell, unless all its characters are harmless.
func quoteWord(w string) string {
	isSpecial := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r))
	}
	if w != "" && !strings.ContainsFunc(w, isSpecial) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// jobFacts describes the state of a job.
func jobFacts(ctx context.Context, p *Pages, by account.Owner, subject string) ([]string, error) {
	j, err := p.Operate.Job(ctx, by.Viewer(), subject)
	if err != nil {
		return nil, err
	}
	facts := []string{"It is the job " + j.Kind + " of " + j.Subject + ", and " + jobMarks[j.State].Word + "."}
	if j.Error != "" {
		facts = append(facts, "Its last attempt failed: "+j.Error)
	}
	return facts, nil
}

// missingRepos says how many repositories the last listing of a connection misses.
func missingRepos(ctx context.Context, p *Pages, by account.Owner, subject string) ([]string, error) {
	all, err := p.Operate.Connections(ctx, by)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if c := &all[i]; c.Name == subject {
			return []string{"The last listing misses " + layout.Counted(c.Held, "repository", "repositories") + " of " + layout.Grouping(c.Repos) + "."}, nil
		}
	}
	return nil, call.Fail(call.ErrNotFound, "Connection %q not found", subject)
}

// roleNames describes the roles of nodes.
var roleNames = map[string]string{"leader": "the leader", "voter": "a voter", "nonvoter": "not a voter"}

// nodeContents says what a node holds, and which other nodes could take its data.
func nodeContents(ctx context.Context, p *Pages, by account.Owner, subject string) ([]string, error) {
	s, err := p.State.Status(ctx, by.Viewer())
	if err != nil {
		return nil, err
	}

	var facts, others []string
	found := false

	for i := range s.Members {
		m := &s.Members[i]
		switch {
		case m.ID == subject:
			found = true
			facts = append(facts, "It holds "+layout.Counted(m.Groups, "unit", "units")+" of placement, "+layout.Size(m.Bytes)+" of index files; it is "+roleNames[m.Role]+".")

			// Left is 0 unless the node is being drained.
			if m.Draining {
				facts = append(facts, layout.Counted(m.Left, "repository has", "repositories have")+" too few copies elsewhere.")
			}

		// Dead and draining nodes get no data.
		case m.Health == "alive" && !m.Draining:
			others = append(others, m.ID)
		}
	}

	if !found {
		return nil, call.Fail(call.ErrNotFound, "there is no node %q", subject)
	}

	if len(others) == 0 {
		return append(facts, "No other node could take it."), nil
	}
	return append(facts, "Others that hold data: "+strings.Join(others, ", ")+"."), nil
}
