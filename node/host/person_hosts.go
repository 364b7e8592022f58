package host

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
)

// The hosts that list what somebody may read, each as its interface has it.

// numberedPerson is whom an answer is about.
type numberedPerson struct {
	ID int64 `json:"id"`
}

// self asks at an address who the token is of.
func (c *client) self(ctx context.Context, parts ...string) (string, error) {
	var me numberedPerson
	if _, err := c.get(ctx, c.at(nil, parts...), &me); err != nil {
		return "", err
	}
	if me.ID <= 0 {
		return "", refusal(InvalidResponse, http.StatusOK, "%s does not say whose the token is", c.product)
	}
	return strconv.FormatInt(me.ID, 10), nil
}

type ownGitHub struct {
	*client
	web *url.URL
}

// GitHubOwn opens GitHub in the name of somebody.
func GitHubOwn(p Person, t Tools) (Own, error) {
	web, err := p.web("https://github.com")
	if err != nil {
		return nil, err
	}
	return &ownGitHub{githubClient(t, web, "", p.budget(), p.authorize()).named("repo"), web}, nil
}

// Who asks for the person's number.
func (g *ownGitHub) Who(ctx context.Context) (string, error) { return g.self(ctx, "user") }

// Repos lists what the person owns, collaborates in, or has by an organisation.
func (g *ownGitHub) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	type repo struct {
		ID          int64 `json:"id"`
		Permissions struct {
			Pull bool `json:"pull"`
		} `json:"permissions"`
	}
	q := url.Values{"visibility": {"private"}, "affiliation": {"owner,collaborator,organization_member"}, "per_page": {"100"}}
	err = arrays(ctx, g.client, g.at(q, "user", "repos"), nil, func(r *repo) error {
		if r.ID > 0 && r.Permissions.Pull {
			take(externalID(config.KindGitHub, g.web, strconv.FormatInt(r.ID, 10)))
		}
		return nil
	}, func(u *url.URL, head http.Header, _ int) *url.URL {
		if strings.HasPrefix(head.Get("X-GitHub-SSO"), "partial-results") {
			withheld = "GitHub leaves out organisations with single sign-on for which the token is not authorised: sign in to them at GitHub, then link the account again"
		}
		return g.nextLink(u, head)
	})
	if err != nil {
		return "", err
	}

	// Without the scope the list is empty, and nothing says so.
	if scopes := g.Allowance().Scopes; len(scopes) > 0 && !slices.Contains(scopes, "repo") {
		return "", refusal(ScopeMissing, http.StatusOK, "the person's token lacks the scope repo: link the account again")
	}
	return withheld, nil
}

type ownGitLab struct {
	*client
	web *url.URL
}

// GitLabOwn opens GitLab in the name of somebody.
func GitLabOwn(p Person, t Tools) (Own, error) {
	web, err := p.web("https://gitlab.com")
	if err != nil {
		return nil, err
	}
	return &ownGitLab{gitlabClient(t, web, "", p.budget(), p.authorize()).named("read_api"), web}, nil
}

// Who asks for the person's number.
func (g *ownGitLab) Who(ctx context.Context) (string, error) { return g.self(ctx, "user") }

// Repos lists the projects in which the person is a Reporter at least.
func (g *ownGitLab) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	q := url.Values{
		"min_access_level": {strconv.Itoa(gitlabReporter)}, "visibility": {"private"}, "simple": {"true"},
		"pagination": {"keyset"}, "order_by": {"id"}, "sort": {"asc"}, "per_page": {"100"},
	}
	return "", arrays(ctx, g.client, g.at(q, "projects"), nil, func(r *numberedPerson) error {
		if r.ID > 0 {
			take(externalID(config.KindGitLab, g.web, strconv.FormatInt(r.ID, 10)))
		}
		return nil
	}, func(u *url.URL, head http.Header, _ int) *url.URL { return g.nextLink(u, head) })
}

type ownGitea struct{ *gitea }

// GiteaOwn opens Gitea or Forgejo in the name of somebody.
func GiteaOwn(p Person, t Tools) (Own, error) {
	web, err := p.web("https://gitea.com")
	if err != nil {
		return nil, err
	}
	return &ownGitea{&gitea{web: web, client: giteaClient(t, web, "", p.budget(), p.authorize()).named("read:repository")}}, nil
}

// Who asks for the person's number.
func (g *ownGitea) Who(ctx context.Context) (string, error) { return g.self(ctx, "user") }

// Repos lists what the person owns, collaborates in, or has by a team. Of some
// of them the person may read issues alone.
func (g *ownGitea) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	type repo struct {
		ID          int64 `json:"id"`
		Private     bool  `json:"private"`
		Permissions struct {
			Pull bool `json:"pull"`
		} `json:"permissions"`
	}
	return "", arrays(ctx, g.client, g.page("user", "repos"), halves("limit", "page", 5), func(r *repo) error {
		if r.ID > 0 && r.Private && r.Permissions.Pull {
			take(externalID(config.KindGitea, g.web, strconv.FormatInt(r.ID, 10)))
		}
		return nil
	}, g.after)
}

type ownBitbucketCloud struct{ *bitbucketCloud }

// BitbucketCloudOwn opens bitbucket.org in the name of somebody.
func BitbucketCloudOwn(p Person, t Tools) (Own, error) {
	opened, err := openBitbucketCloud(&config.Bitbucket{URL: p.Address}, t)
	if err != nil {
		return nil, err
	}
	b := opened.(*bitbucketCloud)
	b.authorize, b.client.budget = p.authorize(), t.Budgets.of(b.base.Host, p.budget())
	b.named("repository")
	return &ownBitbucketCloud{b}, nil
}

// Who asks for the person's UUID.
func (b *ownBitbucketCloud) Who(ctx context.Context) (string, error) {
	var me struct {
		UUID string `json:"uuid"`
	}
	if _, err := b.get(ctx, b.at(nil, "user"), &me); err != nil {
		return "", err
	}
	return me.UUID, nil
}

// Repos lists each workspace that the person is a member of.
func (b *ownBitbucketCloud) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	var workspaces []string
	err = b.walk(ctx, b.at(url.Values{"pagelen": {"100"}}, "user", "workspaces"), nil, func(ctx context.Context, u *url.URL) (*url.URL, error) {
		var page struct {
			Next   string `json:"next"`
			Values []struct {
				Workspace struct {
					Slug string `json:"slug"`
				} `json:"workspace"`
			} `json:"values"`
		}
		if _, err := b.get(ctx, u, &page); err != nil {
			return nil, err
		}
		for _, v := range page.Values {
			if v.Workspace.Slug == "" {
				return nil, refusal(InvalidResponse, http.StatusOK, "%s lists a workspace without a name", b.product)
			}
			workspaces = append(workspaces, v.Workspace.Slug)
		}
		if page.Next == "" {
			return nil, nil
		}
		return u.Parse(page.Next)
	})
	if err != nil {
		return "", err
	}

	for _, ws := range workspaces {
		q := url.Values{"role": {"member"}, "q": {"is_private=true"}, "pagelen": {"100"}, "fields": {"next,values.uuid"}}
		err := b.pages(ctx, b.at(q, "repositories", ws), func(r *cloudRepo) error {
			if r.UUID == "" {
				return refusal(InvalidResponse, http.StatusOK, "%s lists a repository without an id", b.product)
			}
			take(externalID(config.KindBitbucket, b.web, ws+"/"+r.UUID))
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

type ownBitbucketServer struct{ *bitbucketServer }

// BitbucketServerOwn opens a Bitbucket Data Center in the name of somebody.
func BitbucketServerOwn(p Person, t Tools) (Own, error) {
	opened, err := openBitbucketServer(&config.Bitbucket{URL: p.Address, Deployment: config.Server}, t)
	if err != nil {
		return nil, err
	}
	b := opened.(*bitbucketServer)
	b.authorize, b.client.budget = p.authorize(), t.Budgets.of(b.web.Host, p.budget())
	b.named("REPO_READ")
	return &ownBitbucketServer{b}, nil
}

// Who asks for something that only somebody who is signed in gets: a token that
// has ended is taken for nobody in particular, without an error. The head of the
// answer says who it is.
func (b *ownBitbucketServer) Who(ctx context.Context) (string, error) {
	var page struct{}
	head, err := b.get(ctx, b.at(url.Values{"limit": {"1"}}, "profile", "recent", "repos"), &page)
	if err != nil {
		return "", err
	}
	if id := head.Get("X-AUSERID"); id != "" {
		return id, nil
	}
	return "", refusal(TokenRefused, http.StatusOK, "%s takes the person's token for nobody's: it was revoked, or has ended; link the account again", b.product)
}

// Repos lists what the person may read. Somebody who is not signed in would get
// a list too: it counts only together with Who.
func (b *ownBitbucketServer) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	q := serverPage()
	q.Set("permission", "REPO_READ")
	q.Set("visibility", "private")
	return "", b.listing("repositories of a person", q, "repos").list(ctx, func(r Repo, _ string) error {
		take(r.ExternalID)
		return nil
	})
}
