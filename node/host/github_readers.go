package host

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/shoalsearch/shoal/cluster/config"
)

// githubReader is somebody in the list of collaborators.
type githubReader struct {
	ID          int64 `json:"id"`
	Permissions struct {
		Pull bool `json:"pull"`
	} `json:"permissions"`
}

// Readers are the collaborators in GitHub's own sense: whoever may read the
// repository by being added to it, by a team, or by what the organisation lets
// all of its members do. The address by number is the one that GitHub's
// redirects of renamed repositories lead to.
func (g *github) Readers(ctx context.Context, external, path string) ([]string, error) {
	id, ok := hostIDOf(external, config.KindGitHub, g.web)
	if !ok {
		return nil, errForeignID
	}

	// With the app of the owner, where there is one: a token of somebody may not see who else reads.
	c, _, _ := g.by(ctx, firstOf(path, "/"))

	// Only those who can read are counted: the list also has roles without code.
	found := people{}
	first := c.at(url.Values{"affiliation": {"all"}, "per_page": {strconv.Itoa(100)}}, "repositories", id, "collaborators")
	err := arrays(ctx, c, first, nil, func(p *githubReader) error {
		if p.Permissions.Pull {
			found.add(p.ID)
		}
		return nil
	}, func(u *url.URL, head http.Header, _ int) *url.URL { return c.nextLink(u, head) })

	return found.sorted(), err
}
