package host

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/shoalsearch/shoal/cluster/config"
)

// giteaPerson is a person in the API. Only administrators see whether a person is blocked.
type giteaPerson struct {
	ID      int64 `json:"id"`
	Blocked bool  `json:"prohibit_login"`
}

// giteaTeam is a team with access to a repository.
type giteaTeam struct {
	ID         int64             `json:"id"`
	Permission string            `json:"permission"` // owner and admin have all units
	Units      map[string]string `json:"units_map"`
}

// Readers returns the owner, the collaborators, and members of teams that may read code.
// Administrators of the server count only if they are one of these.
func (g *gitea) Readers(ctx context.Context, external, _ string) ([]string, error) {
	id, ok := hostIDOf(external, config.KindGitea, g.web)
	if !ok {
		return nil, errForeignID
	}

	// The lists are by name, so get the present name by number.
	var repo struct {
		Name     string      `json:"name"`
		FullName string      `json:"full_name"`
		Owner    giteaPerson `json:"owner"`
	}
	if _, err := g.get(ctx, g.at(nil, "repositories", id), &repo); err != nil {
		return nil, err
	}

	owner, found := textBefore(repo.FullName, "/"), people{}
	take := func(p *giteaPerson) error {
		if !p.Blocked {
			found.add(p.ID)
		}
		return nil
	}

	if err := listArrays(ctx, g.client, g.firstPage("repos", owner, repo.Name, "collaborators"), nil, take, g.pageAfter); err != nil {
		return nil, err
	}

	teams, personal, err := g.readerTeams(ctx, owner, repo.Name)
	if err != nil {
		return nil, err
	}
	if personal {
		// The repository does not say whether its owner is blocked.
		if _, err := g.get(ctx, g.at(nil, "users", owner), &repo.Owner); err != nil {
			return nil, err
		}
	}

	for _, t := range teams {
		if err := listArrays(ctx, g.client, g.firstPage("teams", strconv.FormatInt(t.ID, 10), "members"), nil, take, g.pageAfter); err != nil {
			return nil, err
		}
	}

	if err := take(&repo.Owner); err != nil {
		return nil, err
	}
	return found.sorted(), nil
}

// readerTeams returns the teams that may read a repository's code. A personal repository has none:
// personal is true then.
func (g *gitea) readerTeams(ctx context.Context, owner, name string) (readers []giteaTeam, personal bool, err error) {
	var all []giteaTeam
	_, err = g.get(ctx, g.at(nil, "repos", owner, name, "teams"), &all)
	// Gitea answers 405 for a user's repository.
	if r := (*Refusal)(nil); errors.As(err, &r) && r.Status == http.StatusMethodNotAllowed {
		return nil, true, nil
	}
	for _, t := range all {
		// A team may see only issues. Owners and administrators have all units, whatever units_map
		// says.
		code := t.Units["repo.code"]
		if t.Permission == "owner" || t.Permission == "admin" || code != "" && code != "none" {
			readers = append(readers, t)
		}
	}
	return readers, false, err
}

// firstPage returns the URL of a list's first page.
func (g *gitea) firstPage(parts ...string) *url.URL {
	return g.at(url.Values{"page": {"1"}, "limit": {strconv.Itoa(giteaPage)}}, parts...)
}
