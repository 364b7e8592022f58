package host

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/shoalsearch/shoal/cluster/config"
)

// githubReader is a collaborator in the API.
type githubReader struct {
	ID          int64 `json:"id"`
	Permissions struct {
		Pull bool `json:"pull"`
	} `json:"permissions"`
}

// Readers returns GitHub's collaborators: everybody who may read the repository by an invitation, a
// team, or the organisation's default. The URL uses the number, as GitHub's redirects of renamed
// repositories do.
func (g *github) Readers(ctx context.Context, external, path string) ([]string, error) {
	id, ok := hostIDOf(external, config.KindGitHub, g.web)
	if !ok {
		return nil, errForeignID
	}

	// Prefer the owner's app, because a person's token may not see other readers.
	c, _, _ := g.clientFor(ctx, textBefore(path, "/"))

	// The list also has roles without read access.
	found := people{}
	first := c.at(url.Values{"affiliation": {"all"}, "per_page": {strconv.Itoa(100)}}, "repositories", id, "collaborators")
	err := listArrays(ctx, c, first, nil, func(p *githubReader) error {
		if p.Permissions.Pull {
			found.add(p.ID)
		}
		return nil
	}, func(u *url.URL, head http.Header, _ int) *url.URL { return c.nextLink(u, head) })

	return found.sorted(), err
}
