package host

import (
	"context"
	"net/http"
	"net/url"

	"github.com/shoalsearch/shoal/cluster/config"
)

// gitlabReporter is the least access level by which a member of a private
// project reads its code: a guest does not.
const gitlabReporter = 20

// gitlabMember is somebody in the list of members.
type gitlabMember struct {
	ID     int64  `json:"id"`
	State  string `json:"state"`
	Access int    `json:"access_level"`
}

// Readers are the members of a project, of the groups above it and of those it
// is shared with, from Reporter on.
func (g *gitlab) Readers(ctx context.Context, external, _ string) ([]string, error) {
	id, ok := hostIDOf(external, config.KindGitLab, g.web)
	if !ok {
		return nil, errForeignID
	}

	found := people{}

	// All: members of the groups above count as well, which the plain list of members lacks.
	first := g.at(url.Values{"per_page": {"100"}, "page": {"1"}}, "projects", id, "members", "all")
	err := arrays(ctx, g.client, first, nil, func(m *gitlabMember) error {
		// Blocked people and open invitations are in the list too.
		if m.Access >= gitlabReporter && m.State == "active" {
			found.add(m.ID)
		}
		return nil
	}, func(u *url.URL, head http.Header, _ int) *url.URL { return g.nextLink(u, head) })

	return found.sorted(), err
}
