package host

import (
	"context"
	"net/http"
	"net/url"

	"github.com/shoalsearch/shoal/cluster/config"
)

// gitlabReporter is the lowest access level that may read a private project's code. Guests may not.
const gitlabReporter = 20

// gitlabMember is a member in the API.
type gitlabMember struct {
	ID     int64  `json:"id"`
	State  string `json:"state"`
	Access int    `json:"access_level"`
}

// Readers returns the members of a project, its parent groups and the groups it is shared with,
// from Reporter up.
func (g *gitlab) Readers(ctx context.Context, external, _ string) ([]string, error) {
	id, ok := hostIDOf(external, config.KindGitLab, g.web)
	if !ok {
		return nil, errForeignID
	}

	found := people{}

	// The path all includes members of parent groups, which the plain list omits.
	first := g.at(url.Values{"per_page": {"100"}, "page": {"1"}}, "projects", id, "members", "all")
	err := listArrays(ctx, g.client, first, nil, func(m *gitlabMember) error {
		// The list also has blocked people and open invitations.
		if m.Access >= gitlabReporter && m.State == "active" {
			found.add(m.ID)
		}
		return nil
	}, func(u *url.URL, head http.Header, _ int) *url.URL { return g.nextLink(u, head) })

	return found.sorted(), err
}
