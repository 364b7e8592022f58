package host

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// Hosts that list what a person may read.

// numberedPerson is a person in an API.
type numberedPerson struct {
	ID int64 `json:"id"`
}

// fetchOwnID returns the id of the token's owner, from a path.
func (c *client) fetchOwnID(ctx context.Context, parts ...string) (string, error) {
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

// GitHubOwn opens GitHub with a person's token.
func GitHubOwn(p Person, t Tools) (Own, error) {
	web, err := p.hostURL("https://github.com")
	if err != nil {
		return nil, err
	}
	return &ownGitHub{githubClient(t, web, "", p.budgetKey(), p.authorize()).forPerson("repo"), web}, nil
}

// Who returns the person's numeric id.
func (g *ownGitHub) Who(ctx context.Context) (string, error) { return g.fetchOwnID(ctx, "user") }

// Repos passes the private repositories that the person may read to take. withheld says, if not
// empty, which ones GitHub leaves out.
func (g *ownGitHub) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	type repo struct {
		ID          int64 `json:"id"`
		Permissions struct {
			Pull bool `json:"pull"`
		} `json:"permissions"`
	}

	// Skip repositories that the person may see but not read.
	read := func(r *repo) error {
		if r.ID > 0 && r.Permissions.Pull {
			take(externalID(config.KindGitHub, g.web, strconv.FormatInt(r.ID, 10)))
		}
		return nil
	}

	// Public repositories need not be listed.
	q := url.Values{"visibility": {"private"}, "affiliation": {"owner,collaborator,organization_member"}, "per_page": {"100"}}
	err = listArrays(ctx, g.client, g.at(q, "user", "repos"), nil, read, func(u *url.URL, head http.Header, _ int) *url.URL {
		if strings.HasPrefix(head.Get("X-GitHub-SSO"), "partial-results") {
			withheld = "GitHub leaves out organisations with single sign-on for which the token is not authorised: sign in to them at GitHub, then link the account again"
		}
		return g.nextLink(u, head)
	})
	if err != nil {
		return "", err
	}

	// Without the scope, GitHub returns an empty list and no error.
	if scopes := g.Allowance().Scopes; len(scopes) > 0 && !slices.Contains(scopes, "repo") {
		return "", refusal(ScopeMissing, http.StatusOK, "the person's token lacks the scope repo: link the account again")
	}
	return withheld, nil
}

type ownGitLab struct {
	*client
	web *url.URL
}

// GitLabOwn opens GitLab with a person's token.
func GitLabOwn(p Person, t Tools) (Own, error) {
	web, err := p.hostURL("https://gitlab.com")
	if err != nil {
		return nil, err
	}
	return &ownGitLab{gitlabClient(t, web, "", p.budgetKey(), p.authorize()).forPerson("read_api"), web}, nil
}

// Who returns the person's numeric id.
func (g *ownGitLab) Who(ctx context.Context) (string, error) { return g.fetchOwnID(ctx, "user") }

// Repos lists the projects in which the person is at least a Reporter.
func (g *ownGitLab) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	q := url.Values{
		// Guests see a project but not its code.
		"min_access_level": {strconv.Itoa(gitlabReporter)}, "visibility": {"private"}, "simple": {"true"},
		"pagination": {"keyset"}, "order_by": {"id"}, "sort": {"asc"}, "per_page": {"100"},
	}
	return "", listArrays(ctx, g.client, g.at(q, "projects"), nil, func(r *numberedPerson) error {
		if r.ID > 0 {
			take(externalID(config.KindGitLab, g.web, strconv.FormatInt(r.ID, 10)))
		}
		return nil
	}, func(u *url.URL, head http.Header, _ int) *url.URL { return g.nextLink(u, head) })
}

type ownGitea struct{ *gitea }

// GiteaOwn opens Gitea or Forgejo with a person's token.
func GiteaOwn(p Person, t Tools) (Own, error) {
	web, err := p.hostURL("https://gitea.com")
	if err != nil {
		return nil, err
	}
	return &ownGitea{&gitea{web: web, client: giteaClient(t, web, "", p.budgetKey(), p.authorize()).forPerson("read:repository")}}, nil
}

// Who returns the person's numeric id.
func (g *ownGitea) Who(ctx context.Context) (string, error) { return g.fetchOwnID(ctx, "user") }

// Repos lists what the person owns, collaborates in, or has through a team. In some of these, the
// person may read only issues.
func (g *ownGitea) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	type repo struct {
		ID          int64 `json:"id"`
		Private     bool  `json:"private"`
		Permissions struct {
			Pull bool `json:"pull"`
		} `json:"permissions"`
	}
	return "", listArrays(ctx, g.client, g.firstPage("user", "repos"), halvePages("limit", 5), func(r *repo) error {
		// Public repositories need not be listed.
		if r.ID > 0 && r.Private && r.Permissions.Pull {
			take(externalID(config.KindGitea, g.web, strconv.FormatInt(r.ID, 10)))
		}
		return nil
	}, g.pageAfter)
}

type ownBitbucketCloud struct{ *bitbucketCloud }

// BitbucketCloudOwn opens bitbucket.org with a person's token.
func BitbucketCloudOwn(p Person, t Tools) (Own, error) {
	opened, err := openBitbucketCloud(&config.Bitbucket{URL: p.Address}, t)
	if err != nil {
		return nil, err
	}
	b := opened.(*bitbucketCloud)
	b.authorize, b.client.budget = p.authorize(), t.Budgets.budgetFor(b.base.Host, p.budgetKey())
	b.forPerson("repository")
	return &ownBitbucketCloud{b}, nil
}

// Who returns the person's UUID.
func (b *ownBitbucketCloud) Who(ctx context.Context) (string, error) {
	var me struct {
		UUID string `json:"uuid"`
	}
	if _, err := b.get(ctx, b.at(nil, "user"), &me); err != nil {
		return "", err
	}
	return me.UUID, nil
}

// Repos lists each workspace of the person.
func (b *ownBitbucketCloud) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	workspaces, err := b.workspaces(ctx)
	if err != nil {
		return "", err
	}

	// The API has no list across workspaces any more.
	for _, ws := range workspaces {
		// Public repositories need not be listed. Only ids are needed.
		q := url.Values{"role": {"member"}, "q": {"is_private=true"}, "pagelen": {"100"}, "fields": {"next,values.uuid"}}
		err := cloudPages(ctx, b.client, b.at(q, "repositories", ws), func(r *cloudRepo) error {
			if r.UUID == "" {
				// Fail, because an incomplete list would take permissions away.
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

// workspaces returns the slugs of the person's workspaces.
func (b *ownBitbucketCloud) workspaces(ctx context.Context) (slugs []string, err error) {
	err = cloudPages(ctx, b.client, b.at(url.Values{"pagelen": {"100"}}, "user", "workspaces"), func(v *struct {
		Workspace struct {
			Slug string `json:"slug"`
		} `json:"workspace"`
	}) error {
		// Fail, because the person would lose the repositories in it.
		if v.Workspace.Slug == "" {
			return refusal(InvalidResponse, http.StatusOK, "%s lists a workspace without a name", b.product)
		}
		slugs = append(slugs, v.Workspace.Slug)
		return nil
	})
	return slugs, err
}

type ownBitbucketServer struct{ *bitbucketServer }

// BitbucketServerOwn opens a Bitbucket Data Center with a person's token.
func BitbucketServerOwn(p Person, t Tools) (Own, error) {
	opened, err := openBitbucketServer(&config.Bitbucket{URL: p.Address, Deployment: config.Server}, t)
	if err != nil {
		return nil, err
	}
	b := opened.(*bitbucketServer)
	b.authorize, b.client.budget = p.authorize(), t.Budgets.budgetFor(b.web.Host, p.budgetKey())
	b.forPerson("REPO_READ")
	return &ownBitbucketServer{b}, nil
}

// Who makes a call that needs a signed-in person. The server treats an expired token as anonymous,
// without an error. A header of the answer has the person's id.
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

// Repos lists what the person may read. An anonymous caller gets a list too, so call Who first.
func (b *ownBitbucketServer) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	q := serverPage()
	q.Set("permission", "REPO_READ")
	q.Set("visibility", "private")
	return "", b.listTarget("repositories of a person", q, "repos").list(ctx, func(r Repo, _ string) error {
		take(r.ExternalID)
		return nil
	})
}

type ownAzure struct {
	*azure
	within []string // organisations, or collections of a server
}

// AzureDevOpsOwn opens Azure DevOps with a personal access token or a token of Entra, for some
// organisations.
func AzureDevOpsOwn(p Person, t Tools) (Own, error) {
	opened, err := openAzure(&config.AzureDevOps{URL: p.Address}, t)
	if err != nil {
		return nil, err
	}
	a := opened.(*azure)
	a.authorize = func(context.Context) (string, error) { return azureSecret(p.Token), nil }
	a.client.budget = t.Budgets.budgetFor(a.web.Host, p.budgetKey())

	// Azure answers a bad token with a sign-in page.
	a.client.explain = nil
	a.client.signInRefusal = func() *Refusal {
		return refusal(TokenRefused, http.StatusUnauthorized, "%s refuses the person's token: it was revoked, has ended, or lacks the scope Code (read); link the account again", a.product)
	}
	a.forPerson("Code (read)")
	return &ownAzure{a, p.Within}, nil
}

// eachOrg runs call for each organisation. It returns those that refuse the person, and fails if all
// do, or if a call fails for another reason.
func (a *ownAzure) eachOrg(call func(org string) error) (refusing []string, err error) {
	if len(a.within) == 0 {
		return nil, errors.New("no connection of the configuration names an organisation there")
	}

	// A token may be for one organisation only. The others treat it as anonymous.
	var last *Refusal
	for _, org := range a.within {
		err := call(org)
		if r := (*Refusal)(nil); errors.As(err, &r) && r.Code == TokenRefused {
			refusing, last = append(refusing, org), r
			continue
		}
		if err != nil {
			return nil, err
		}
	}

	if len(refusing) == len(a.within) {
		return nil, last
	}
	return refusing, nil
}

// Who returns the person's descriptor, which is the same in all organisations. Anonymous callers
// have a descriptor too.
func (a *ownAzure) Who(ctx context.Context) (subject string, err error) {
	const nobody = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
	_, err = a.eachOrg(func(org string) error {
		if subject != "" {
			return nil // another organisation has answered
		}

		var data struct {
			Person struct {
				ID         string `json:"id"`
				Descriptor string `json:"subjectDescriptor"`
			} `json:"authenticatedUser"`
		}
		if err := a.getWithVersions(ctx, []string{"7.1-preview.1", "5.0-preview.1"}, &data, org, "_apis", "connectionData"); err != nil {
			return err
		}

		switch {
		case data.Person.ID == nobody:
			return a.signInRefusal()
		case data.Person.Descriptor == "":
			return refusal(InvalidResponse, http.StatusOK, "%s does not say whose the token is", a.product)
		}
		subject = data.Person.Descriptor
		return nil
	})
	return subject, err
}

// Repos lists what the person may read in each organisation.
func (a *ownAzure) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	refusing, err := a.eachOrg(func(org string) error {
		var all struct {
			Value []azureRepo `json:"value"`
		}
		if err := a.getLatest(ctx, &all, org, "_apis", "git", "repositories"); err != nil {
			return err
		}

		// Public repositories need not be listed.
		for _, r := range all.Value {
			if r.ID == "" {
				return refusal(InvalidResponse, http.StatusOK, "%s lists a repository without an id", a.product)
			}
			if r.Project.Visibility != "public" {
				take(externalID(config.KindAzureDevOps, a.web, org+"/"+r.ID))
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}

	if len(refusing) > 0 {
		withheld = a.product + " does not take the person's token in " + strings.Join(refusing, ", ") + ": a token for all accessible organisations opens them"
	}
	return withheld, nil
}

type ownGerrit struct{ *gerrit }

// GerritOwn opens Gerrit with a person's HTTP password.
func GerritOwn(p Person, t Tools) (Own, error) {
	opened, err := openGerrit(&config.Gerrit{URL: p.Address}, t)
	if err != nil {
		return nil, err
	}
	g := opened.(*gerrit)
	g.authorize = func(context.Context) (string, error) {
		return basicHeader(git.Credential{User: p.User, Password: p.Token}), nil
	}
	g.base = g.web.JoinPath("a") // below it, everybody must authenticate
	g.client.budget = t.Budgets.budgetFor(g.web.Host, p.budgetKey())
	g.forPerson("")
	return &ownGerrit{g}, nil
}

// Who returns the person's numeric id.
func (g *ownGerrit) Who(ctx context.Context) (string, error) {
	var me struct {
		ID int64 `json:"_account_id"`
	}
	if _, err := g.get(ctx, g.at(nil, "accounts", "self"), &me); err != nil {
		return "", err
	}
	if me.ID <= 0 {
		return "", refusal(InvalidResponse, http.StatusOK, "%s does not say whose the password is", g.product)
	}
	return strconv.FormatInt(me.ID, 10), nil
}

// Repos lists the projects that the person sees. Gerrit does not mark public ones.
func (g *ownGerrit) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	return "", gerritPages(ctx, g.gerrit, g.listQuery(), func(names []string, _ map[string]gerritProject) error {
		for _, name := range names {
			take(externalID(config.KindGerrit, g.web, name))
		}
		return nil
	})
}
