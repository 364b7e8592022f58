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

	// One that may be seen and not read, as by a role without code, is not taken.
	read := func(r *repo) error {
		if r.ID > 0 && r.Permissions.Pull {
			take(externalID(config.KindGitHub, g.web, strconv.FormatInt(r.ID, 10)))
		}
		return nil
	}

	// The public ones are everybody's.
	q := url.Values{"visibility": {"private"}, "affiliation": {"owner,collaborator,organization_member"}, "per_page": {"100"}}
	err = arrays(ctx, g.client, g.at(q, "user", "repos"), nil, read, func(u *url.URL, head http.Header, _ int) *url.URL {
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
		// Guests of a project see it, but not its code.
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
	return "", arrays(ctx, g.client, g.page("user", "repos"), halves("limit", 5), func(r *repo) error {
		// The public ones are everybody's, and need not be listed as somebody's own.
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
	workspaces, err := b.workspaces(ctx)
	if err != nil {
		return "", err
	}

	// Its list over all workspaces is gone from the interface: each is asked for itself.
	for _, ws := range workspaces {
		// What is public is everybody's. Only ids are asked for, as nothing else is needed.
		q := url.Values{"role": {"member"}, "q": {"is_private=true"}, "pagelen": {"100"}, "fields": {"next,values.uuid"}}
		err := cloudPages(ctx, b.client, b.at(q, "repositories", ws), func(r *cloudRepo) error {
			if r.UUID == "" {
				// One without an id fails the list: a part of it would take rights away.
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

// workspaces are the slugs of those that the person is a member of.
func (b *ownBitbucketCloud) workspaces(ctx context.Context) (slugs []string, err error) {
	err = cloudPages(ctx, b.client, b.at(url.Values{"pagelen": {"100"}}, "user", "workspaces"), func(v *struct {
		Workspace struct {
			Slug string `json:"slug"`
		} `json:"workspace"`
	}) error {
		// Left out it would look as if the person had lost what is in it.
		if v.Workspace.Slug == "" {
			return refusal(InvalidResponse, http.StatusOK, "%s lists a workspace without a name", b.product)
		}
		slugs = append(slugs, v.Workspace.Slug)
		return nil
	})
	return slugs, err
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

type ownAzure struct {
	*azure
	within []string // organisations, or collections of a server
}

// AzureDevOpsOwn opens Azure DevOps in the name of somebody, with a personal access
// token or one of Entra, for some organisations.
func AzureDevOpsOwn(p Person, t Tools) (Own, error) {
	opened, err := openAzure(&config.AzureDevOps{URL: p.Address}, t)
	if err != nil {
		return nil, err
	}
	a := opened.(*azure)
	a.authorize = func(context.Context) (string, error) { return azureSecret(p.Token), nil }
	a.client.budget = t.Budgets.of(a.web.Host, p.budget())

	// A page to sign in is its answer to a token that is good no more.
	a.client.explain = nil
	a.client.signIn = func() *Refusal {
		return refusal(TokenRefused, http.StatusUnauthorized, "%s refuses the person's token: it was revoked, has ended, or lacks the scope Code (read); link the account again", a.product)
	}
	a.named("Code (read)")
	return &ownAzure{a, p.Within}, nil
}

// each asks something of every organisation. One that refuses the person is left
// out, unless all of them do.
func (a *ownAzure) each(ask func(org string) error) (refusing []string, err error) {
	if len(a.within) == 0 {
		return nil, errors.New("no connection of the configuration names an organisation there")
	}

	// A token may be of one organisation alone: the others take it for nobody's.
	var last *Refusal
	for _, org := range a.within {
		err := ask(org)
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

// Who asks for the descriptor of the person, which is the same in all
// organisations. Whoever is not signed in has one too.
func (a *ownAzure) Who(ctx context.Context) (subject string, err error) {
	const nobody = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
	_, err = a.each(func(org string) error {
		if subject != "" {
			return nil // another one has said it
		}

		var data struct {
			Person struct {
				ID         string `json:"id"`
				Descriptor string `json:"subjectDescriptor"`
			} `json:"authenticatedUser"`
		}
		if err := a.askAt(ctx, []string{"7.1-preview.1", "5.0-preview.1"}, &data, org, "_apis", "connectionData"); err != nil {
			return err
		}

		switch {
		case data.Person.ID == nobody:
			return a.signIn()
		case data.Person.Descriptor == "":
			return refusal(InvalidResponse, http.StatusOK, "%s does not say whose the token is", a.product)
		}
		subject = data.Person.Descriptor
		return nil
	})
	return subject, err
}

// Repos lists what each organisation lets the person read.
func (a *ownAzure) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	refusing, err := a.each(func(org string) error {
		var all struct {
			Value []azureRepo `json:"value"`
		}
		if err := a.ask(ctx, &all, org, "_apis", "git", "repositories"); err != nil {
			return err
		}

		// The public ones are everybody's.
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

// GerritOwn opens Gerrit in the name of somebody, with their HTTP password.
func GerritOwn(p Person, t Tools) (Own, error) {
	opened, err := openGerrit(&config.Gerrit{URL: p.Address}, t)
	if err != nil {
		return nil, err
	}
	g := opened.(*gerrit)
	g.authorize = func(context.Context) (string, error) {
		return basic(git.Credential{User: p.User, Password: p.Token}), nil
	}
	g.base = g.web.JoinPath("a") // below it everybody has to show who they are
	g.client.budget = t.Budgets.of(g.web.Host, p.budget())
	g.named("")
	return &ownGerrit{g}, nil
}

// Who asks for the person's number.
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

// Repos lists the projects that Gerrit shows the person, which has no public ones.
func (g *ownGerrit) Repos(ctx context.Context, take func(string)) (withheld string, err error) {
	return "", gerritPages(ctx, g.gerrit, g.listQuery(), func(names []string, _ map[string]gerritProject) error {
		for _, name := range names {
			take(externalID(config.KindGerrit, g.web, name))
		}
		return nil
	})
}
