package host

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// azure lists Azure DevOps Services or Server. Its API is documented at
// learn.microsoft.com/rest/api/azure/devops/git.
type azure struct {
	*client
	conn   *config.AzureDevOps
	choice *choice
	web    *url.URL
}

// azureRepo is a repository in the API.
type azureRepo struct {
	ID      string `json:"id"` // GUID
	Name    string `json:"name"`
	Project struct {
		Name       string `json:"name"`
		Visibility string `json:"visibility"`
	} `json:"project"`
	DefaultBranch string    `json:"defaultBranch"` // refs/heads/...; missing without a commit
	Size          int64     `json:"size"`          // bytes
	Disabled      bool      `json:"isDisabled"`
	Maintenance   bool      `json:"isInMaintenance"`
	Fork          bool      `json:"isFork"`
	Parent        *struct{} `json:"parentRepository"`
}

func openAzure(conn config.Connection, t Tools) (Host, error) {
	c := conn.(*config.AzureDevOps)
	web, err := addressOf(c.URL, "https://dev.azure.com")
	if err != nil {
		return nil, err
	}

	choice, err := choiceOf(c)
	if err != nil {
		return nil, err
	}

	// The collections of old servers are below this path. Some people write it in the url.
	if c.UseTFSPath && !strings.HasSuffix(web.Path, "/tfs") {
		web.Path += "/tfs"
	}

	a := &azure{conn: c, web: web, choice: choice}
	a.client = &client{
		tools: t, product: "Azure DevOps", name: c.Name, base: web,
		budget:    t.Budgets.budgetFor(web.Host, budgetKey(c.Token)),
		authorize: azureAuthorization(c, t), explain: a.explain, signInRefusal: a.refusedToken,
	}
	return a, nil
}

func azureToken(c *config.AzureDevOps, t Tools) func(context.Context) (string, error) {
	return tokenOf(t, c.Token, "", false)
}

// azureAuthorization returns a function that reads the Authorization header. A personal access
// token uses Basic without a user; a token of Entra, which is a JSON web token, uses Bearer.
func azureAuthorization(c *config.AzureDevOps, t Tools) func(context.Context) (string, error) {
	token := azureToken(c, t)
	return func(ctx context.Context) (string, error) {
		secret, err := token(ctx)
		if err != nil || secret == "" {
			return "", err
		}
		return azureSecret(secret), nil
	}
}

// azureSecret returns the Authorization header for a token.
func azureSecret(secret string) string {
	if strings.HasPrefix(secret, "eyJ") {
		return "Bearer " + secret
	}
	return basicHeader(git.Credential{Password: secret})
}

// List lists organisations or collections in one call each, projects, and single repositories.
func (a *azure) List(ctx context.Context, sink Sink) error {
	var targets []target
	for _, org := range a.conn.Orgs {
		// One call returns the repositories of all projects of an organisation.
		targets = append(targets, a.listTarget("orgs/"+org, org, org, "_apis", "git", "repositories"))
	}
	for _, p := range a.conn.Projects {
		// A project's name begins with its organisation.
		org, project, _ := strings.Cut(p, "/")
		targets = append(targets, a.listTarget("projects/"+p, org, org, project, "_apis", "git", "repositories"))
	}
	for _, r := range a.conn.Repos {
		targets = append(targets, a.singleTarget(r))
	}
	return newCollector(sink, a.choice).run(ctx, targets)
}

// listTarget returns a target that lists repositories in one call.
func (a *azure) listTarget(name, org string, parts ...string) target {
	return target{name: name, list: func(ctx context.Context, found func(Repo, string) error) error {
		// The list has no pages.
		var all struct {
			Value []azureRepo `json:"value"`
		}
		if err := a.getLatest(ctx, &all, parts...); err != nil {
			return err
		}

		for i := range all.Value {
			if err := a.passOn(&all.Value[i], org, found); err != nil {
				return err
			}
		}
		return nil
	}}
}

// getLatest calls with the newest API version that the server knows.
func (a *azure) getLatest(ctx context.Context, into any, parts ...string) error {
	return a.getWithVersions(ctx, []string{"7.1", "6.0", "5.0"}, into, parts...)
}

// getWithVersions makes a call with the first of the API versions that the server knows. A server
// answers 400 to an unknown one.
func (a *azure) getWithVersions(ctx context.Context, versions []string, into any, parts ...string) error {
	var err error
	for _, version := range versions {
		_, err = a.get(ctx, a.at(url.Values{"api-version": {version}}, parts...), into)
		if r := (*Refusal)(nil); !errors.As(err, &r) || r.Status != http.StatusBadRequest {
			return err
		}
	}
	return err
}

func (a *azure) singleTarget(path string) target {
	return target{name: "repos/" + path, list: func(ctx context.Context, found func(Repo, string) error) error {
		parts := strings.SplitN(path, "/", 3)
		if len(parts) < 3 {
			return refusal(TargetNotFound, 0, "%s is not of the form organisation/project/repository", path)
		}
		var r azureRepo
		if err := a.getLatest(ctx, &r, parts[0], parts[1], "_apis", "git", "repositories", parts[2]); err != nil {
			return err
		}
		return a.passOn(&r, parts[0], found)
	}}
}

// Lookup asks for a repository by its GUID, in the organisation of its external id. The
// result is true if the connection still selects the repository.
func (a *azure) Lookup(ctx context.Context, external string) (Repo, bool, error) {
	id, ok := hostIDOf(external, config.KindAzureDevOps, a.web)
	org, guid, both := strings.Cut(id, "/")
	if !ok || !both {
		return Repo{}, false, errForeignID
	}

	var r azureRepo
	if err := a.getLatest(ctx, &r, org, "_apis", "git", "repositories", guid); err != nil {
		return Repo{}, false, err
	}

	// The look-up is by id only, so check whether the connection still selects the repository.
	repo := a.convert(&r, org)
	project := org + "/" + r.Project.Name
	selected := hasFold(a.conn.Orgs, org) || hasFold(a.conn.Projects, project) || hasFold(a.conn.Repos, project+"/"+r.Name)
	return repo, selected && !a.choice.excludes(&repo, r.Project.Name+"/"+r.Name), nil
}

func (a *azure) passOn(r *azureRepo, org string, found func(Repo, string) error) error {
	if r.ID == "" || r.Name == "" || r.Project.Name == "" {
		return found(Repo{}, "") // counted as unusable
	}
	return found(a.convert(r, org), r.Project.Name+"/"+r.Name)
}

func (a *azure) convert(r *azureRepo, org string) Repo {
	// Names omit the path of old servers.
	path := org + "/" + r.Project.Name + "/" + r.Name
	web := a.web.JoinPath(org, r.Project.Name, "_git", r.Name).String()
	repo := Repo{
		ExternalID: externalID(config.KindAzureDevOps, a.web, org+"/"+r.ID),
		Name:       strings.TrimSuffix(hostName(a.web), "/tfs") + "/" + path, DisplayName: path, HostType: string(config.KindAzureDevOps),
		Remote: git.Remote{URL: web}, WebURL: web, DefaultBranch: strings.TrimPrefix(r.DefaultBranch, "refs/heads/"),
		Fork: r.Fork || r.Parent != nil, Archived: r.Disabled, Empty: r.DefaultBranch == "" && r.Size == 0,
		Visibility: visibilityOf(r.Project.Visibility != "public", r.Project.Visibility == "organization"), SizeBytes: r.Size,
	}

	// A repository that cannot be fetched now is still listed, so that its last index stays.
	switch {
	case r.Disabled:
		repo.Unfetchable = "the repository is disabled at Azure DevOps"
	case r.Maintenance:
		repo.Unfetchable = "the repository is in maintenance at Azure DevOps"
	}

	switch {
	case r.Disabled && a.conn.Exclude.Disabled:
		repo.leftOut = ByDisabled
	case a.choice.projects.Match(r.Project.Name):
		repo.leftOut = ByProject
	}
	return repo
}

// explain detects a refused token.
func (a *azure) explain(res *http.Response, _ []byte) *Refusal {
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusFound {
		return a.refusedToken()
	}
	return nil
}

// refusedToken returns the refusal of a token. A sign-in page means the same.
func (a *azure) refusedToken() *Refusal {
	return refusal(TokenRefused, http.StatusUnauthorized, "Azure DevOps refused the token of connection %s: it has expired, lacks the scope Code (read), or belongs to another organisation", a.conn.Name)
}

func azureCredential(ctx context.Context, conn config.Connection, _ string, t Tools) (git.Credential, error) {
	return passwordOf(ctx, "shoal", azureToken(conn.(*config.AzureDevOps), t))
}
