package catalog

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reason is one thing that decides whether an account sees a repository.
type Reason struct {
	Kind  string    `json:"kind"`          // account, role, repository, open, closed, grant, host_account, host_known, host_by_person, host_by_repository, sync
	Sees  bool      `json:"sees"`          // enough for the account to see the repository
	Stops bool      `json:"stops"`         // the account does not see it, whatever the other reasons are
	Text  string    `json:"detail"`        // a sentence
	At    time.Time `json:"asOf,omitzero"` // time of the answer from a code host; zero: as of now

	Person      string   `json:"person,omitzero"`       // person at the code host: name and id there
	Connections []string `json:"connections,omitempty"` // connections that close the repository, or whose token the host was asked with
}

// Why explains why an account sees a repository, or why not:
//
//	Visible(account) has the repository  ⇔  some reason Sees and none Stops
func (v *View) Why(a *User, r *Repo) (all []Reason) {
	if a.State != AccountActive {
		all = append(all, Reason{Kind: "account", Stops: true, Text: fmt.Sprintf("The account is %s: it sees nothing.", a.State)})
	}
	if r.Orphaned() {
		all = append(all, Reason{Kind: "repository", Stops: true, Text: "No connection lists the repository any more: nobody sees it."})
	} else if !v.Shown()(r) {
		all = append(all, Reason{Kind: "repository", Stops: true, Text: "Its host refuses the token of the connection that lists it, and has for 30 days: nobody sees it until the host takes one."})
	}
	return slices.Concat(all, whyRole(a), v.whyOpen(r), v.whyGranted(a, r), v.whyByHost(a, r))
}

// whyRole explains to owners that their role opens no repository.
func whyRole(a *User) []Reason {
	if a.Role != RoleOwner {
		return nil
	}
	return []Reason{{Kind: "role", Text: "The account is an owner's: it sees no more by that than a member's does."}}
}

// whyOpen explains whether a repository is open to everybody, or which connections enforce
// permissions.
func (v *View) whyOpen(r *Repo) []Reason {
	// Use the same function as Visible: the explanation must not differ.
	enforced := v.enforcements()
	if isOpen(r, enforced) {
		text := "It is open to everybody: none of its connections enforces permissions."
		if slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return enforced[c.Name].private }) {
			text = "It is open to everybody: it is public at its host."
		}
		return []Reason{{Kind: "open", Sees: true, Text: text}}
	}

	names := closingConnections(r, enforced)
	return []Reason{{Kind: "closed", Connections: names, Text: "It is not open to everybody: permissions are enforced by " + strings.Join(names, ", ") + "."}}
}

// closingConnections returns the connections of a repository that enforce permissions. One that the
// configuration does not name counts, too.
func closingConnections(r *Repo, enforced map[string]enforcement) (names []string) {
	for _, c := range r.Connections {
		if e, known := enforced[c.Name]; !known || e.private {
			names = append(names, c.Name)
		}
	}
	return names
}

// whyGranted tells whether an owner granted the repository.
func (v *View) whyGranted(a *User, r *Repo) []Reason {
	for _, g := range v.GrantsOf(a.ID) {
		if g.Set().Contains(r.ID) {
			return []Reason{{Kind: "grant", Sees: true, Text: "An owner granted it; the grants of the account changed last at this time.", At: g.At}}
		}
	}
	return []Reason{{Kind: "grant", Text: "No owner has granted it."}}
}

// whyByHost explains what the repository's code host lets the account read.
func (v *View) whyByHost(a *User, r *Repo) (all []Reason) {
	// If hosts are not asked, their earlier answers do not count.
	site := SiteOf(r.ExternalID)
	switch mode := v.PermissionSync(); {
	case mode != PermissionSyncOn:
		return []Reason{{Kind: "sync", Text: fmt.Sprintf("Code hosts are not asked: PERMISSION_SYNC_ENABLED is %s.", mode)}}
	case site == "":
		return []Reason{{Kind: "sync", Text: "It is of no code host that tells who may read it."}}
	}

	for _, x := range v.IdentitiesOf(a.ID) {
		if v.SiteOfIdentity(x) == site {
			all = append(all, v.whyRead(x, v.hostAccessAt(x, site), r)...)
		}
	}
	if all == nil {
		all = []Reason{{Kind: "host_account", Text: "The account is linked to nobody at " + site + "."}}
	}
	return all
}

// whyRead explains whether one code host lets a person read a repository.
func (v *View) whyRead(who *Identity, x hostAccess, r *Repo) (all []Reason) {
	person := who.Subject
	if who.Login != "" {
		person = who.Login + " (" + who.Subject + ")"
	}

	if x.refused() {
		all = append(all, Reason{Kind: "host_account", Text: x.site + " does not let " + person + " in any more: " + x.reader.Issue, At: x.reader.At})
	} else if openAtHost(r) {
		all = append(all, Reason{Kind: "host_known", Sees: true, Text: "The account is linked to " + person + " at " + x.site + ", and the repository is public or internal there."})
	}

	all = append(all, v.whyListed(person, x, r))
	for i := range all {
		all[i].Person = person
	}
	return all
}

// whyListed compares the list of the repository's readers with the list of what the person may
// read. The one that was asked later counts.
func (v *View) whyListed(person string, x hostAccess, r *Repo) Reason {
	access := v.Access(r.ID)
	if access == nil {
		access = &Access{}
	}

	// Each list was asked with its own token: the person's, or a connection's.
	byPerson := Reason{Kind: "host_by_person"}
	byRepo := Reason{Kind: "host_by_repository", At: access.At, Connections: closingConnections(r, v.enforcements())}
	if x.reader == nil {
		byPerson.At, byPerson.Text = access.At, x.site+" has not said yet what "+person+" may read."
		return byPerson
	}
	byPerson.At = x.reader.At

	complete, extra := x.reader.May(r.ID)
	because := byPerson
	because.Text = x.site + " lists it as one that " + person + " may read, asked with the person's own token"
	if complete && access.Began > x.reader.Began || !complete && extra {
		because = byRepo
		because.Text = x.site + " lists " + person + " as a reader of it, asked with the token of " + strings.Join(byRepo.Connections, " or ")
	}

	// Use the same set as Visible: a reason must not promise more.
	switch {
	case x.readableRepos().Contains(r.ID):
		because.Sees, because.Text = true, because.Text+"."
	case complete || extra:
		because.Text += ", but that answer is too old to count: there was no good one since."
	case x.reader.Began == 0 && access.Began == 0:
		because.Text = x.site + " has not been asked yet, or has not answered."

	default:
		because = byPerson
		if access.Began > x.reader.Began {
			because = byRepo
		}
		because.Text = x.site + " names it neither among what " + person + " may read, nor " + person + " among its readers."
		if x.reader.Note != "" {
			because.Text += " Its last list of the person's was not whole: " + x.reader.Note
		}
	}
	return because
}
