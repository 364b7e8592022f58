package host

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// bitbucketCloud lists bitbucket.org. Its API is documented at
// developer.atlassian.com/cloud/bitbucket/rest.
type bitbucketCloud struct {
	*client
	conn   *config.Bitbucket
	choice *choice
	web    *url.URL
}

// cloudFields are the requested fields. Answers with all fields are ten times larger.
const cloudFields = "uuid,full_name,slug,project.key,is_private,parent.uuid,mainbranch.name,size,updated_on,description"

// cloudRepo is a repository in the API.
type cloudRepo struct {
	UUID     string `json:"uuid"`
	FullName string `json:"full_name"` // workspace/slug
	Slug     string `json:"slug"`
	Project  struct {
		Key string `json:"key"`
	} `json:"project"`
	Private     bool      `json:"is_private"`
	Parent      *struct{} `json:"parent"`
	Description string    `json:"description"`
	Size        int64     `json:"size"` // bytes
	Updated     time.Time `json:"updated_on"`
	Main        *struct {
		Name string `json:"name"`
	} `json:"mainbranch"`
}

func openBitbucketCloud(c *config.Bitbucket, t Tools) (Host, error) {
	api, err := addressOf(c.URL, "https://api.bitbucket.org/2.0")
	if err != nil {
		return nil, err
	}

	choice, err := choiceOf(c)
	if err != nil {
		return nil, err
	}

	// People write the address that browsers show.
	if api.Host == "bitbucket.org" {
		api.Host, api.Path = "api.bitbucket.org", "/2.0"
	}

	web := &url.URL{Scheme: api.Scheme, Host: strings.TrimPrefix(api.Host, "api.")}
	if web.Host != "bitbucket.org" {
		web.Path = strings.TrimSuffix(api.Path, "/2.0")
	}

	b := &bitbucketCloud{conn: c, web: web, choice: choice}
	b.client = &client{
		tools: t, product: "Bitbucket", name: c.Name, base: api,
		budget:    t.Budgets.budgetFor(api.Host, budgetKey(c.Token)),
		authorize: bitbucketAuthorization(c, t), explain: b.explain,
		cacheKey: cacheKeyOf(c.Token),
	}
	return b, nil
}

// List lists workspaces, projects and single repositories.
func (b *bitbucketCloud) List(ctx context.Context, sink Sink) error {
	if b.conn.All {
		sink.Issue(Issue{Code: NoEffect, Text: "all has no effect at Bitbucket Cloud; name workspaces, projects or repos"})
	}
	if b.conn.Exclude.Archived {
		sink.Issue(Issue{Code: NoEffect, Text: "exclude.archived has no effect at Bitbucket Cloud, which has no archived repositories"})
	}

	// A project is listed with its workspace, because no list spans workspaces.
	var targets []target
	for _, ws := range b.conn.Workspaces {
		targets = append(targets, b.listTarget("workspaces/"+ws, ws, ""))
	}
	for _, p := range b.conn.Projects {
		ws, key, _ := strings.Cut(p, "/")
		targets = append(targets, b.listTarget("projects/"+p, ws, key))
	}
	for _, r := range b.conn.Repos {
		targets = append(targets, b.singleTarget(r))
	}
	return newCollector(sink, b.choice).run(ctx, targets)
}

// listTarget returns a target that lists a workspace, or one project of it.
func (b *bitbucketCloud) listTarget(name, workspace, project string) target {
	q := url.Values{"pagelen": {"100"}, "sort": {"created_on"}, "fields": {"next,values." + strings.ReplaceAll(cloudFields, ",", ",values.")}}
	if project != "" {
		q.Set("q", projectFilter(project))
	}
	return target{name: name, list: func(ctx context.Context, found func(Repo, string) error) error {
		return cloudPages(ctx, b.client, b.at(q, "repositories", workspace), func(r *cloudRepo) error { return b.passOn(r, found) })
	}}
}

// projectFilter returns the query for a project's repositories.
func projectFilter(key string) string {
	return `project.key="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.ToUpper(key)) + `"`
}

// bitbucketSignal is the time of a repository's last change. The host does not promise that each
// push changes it.
var bitbucketSignal = Signal{Name: "updated_on", Lag: time.Minute, Hourly: 1000}

// Changed asks for the repositories of each workspace or project that changed after a time.
func (b *bitbucketCloud) Changed(ctx context.Context, since time.Time, take func(Mark)) ([]string, error) {
	read := func(target, workspace, filter string) look {
		// Few fields make the answer much smaller.
		q := url.Values{
			"pagelen": {"100"}, "sort": {"-updated_on"}, "fields": {"next,values.uuid,values.full_name,values.updated_on"},
			"q": {filter + `updated_on>` + since.UTC().Format("2006-01-02T15:04:05-07:00")},
		}
		return look{target, func() error {
			return cloudPages(ctx, b.client, b.at(q, "repositories", workspace), func(r *cloudRepo) error {
				take(Mark{ExternalID: externalID(config.KindBitbucket, b.web, workspace+"/"+r.UUID), At: r.Updated})
				return nil
			})
		}}
	}

	var looks []look
	for _, ws := range b.conn.Workspaces {
		looks = append(looks, read("workspaces/"+ws, ws, ""))
	}
	for _, p := range b.conn.Projects {
		ws, key, _ := strings.Cut(p, "/")
		looks = append(looks, read("projects/"+p, ws, projectFilter(key)+" AND "))
	}
	return runLooks(looks)
}

func (b *bitbucketCloud) singleTarget(path string) target {
	workspace, slug, _ := strings.Cut(path, "/")
	return singleRepoTarget(b.client, "repos/"+path, b.at(nil, "repositories", workspace, slug), b.passOn)
}

// Lookup implements Finder. It asks by UUID, in the workspace of the external id.
func (b *bitbucketCloud) Lookup(ctx context.Context, external string) (repo Repo, chosen bool, err error) {
	id, ok := hostIDOf(external, config.KindBitbucket, b.web)
	workspace, uuid, both := strings.Cut(id, "/")
	if !ok || !both {
		return Repo{}, false, errForeignID
	}
	var found cloudRepo
	if _, err := b.getCached(ctx, b.at(nil, "repositories", workspace, uuid), &found); err != nil {
		return Repo{}, false, err
	}

	repo = b.convert(&found)
	project := workspace + "/" + found.Project.Key
	selected := hasFold(b.conn.Workspaces, workspace) || hasFold(b.conn.Projects, project) || hasFold(b.conn.Repos, found.FullName)
	return repo, selected && !b.choice.excludes(&repo, b.path(&found)), nil
}

// path returns workspace/project/repository, which exclude.repos matches.
func (b *bitbucketCloud) path(r *cloudRepo) string {
	workspace, slug, _ := strings.Cut(r.FullName, "/")
	return workspace + "/" + r.Project.Key + "/" + slug
}

// passOn passes a repository on to found.
func (b *bitbucketCloud) passOn(r *cloudRepo, found func(Repo, string) error) error {
	if r.UUID == "" || strings.Count(r.FullName, "/") != 1 {
		return found(Repo{}, "") // counted as unusable
	}
	return found(b.convert(r), b.path(r))
}

// convert converts a repository of the API.
func (b *bitbucketCloud) convert(r *cloudRepo) Repo {
	workspace := textBefore(r.FullName, "/")
	web := b.web.JoinPath(r.FullName).String()
	repo := Repo{
		ExternalID: externalID(config.KindBitbucket, b.web, workspace+"/"+r.UUID),
		Name:       hostName(b.web) + "/" + b.path(r), DisplayName: b.path(r), HostType: "bitbucketCloud",
		Remote: git.Remote{URL: web + ".git"}, WebURL: web, Description: r.Description,
		Fork: r.Parent != nil, Visibility: visibilityOf(r.Private, false), PushedAt: r.Updated, SizeBytes: r.Size,
	}

	// A repository without a commit has no main branch.
	if r.Main == nil {
		repo.Empty = true
	} else {
		repo.DefaultBranch = r.Main.Name
	}
	return repo
}

// explain detects app passwords, which Bitbucket no longer accepts.
func (b *bitbucketCloud) explain(res *http.Response, _ []byte) *Refusal {
	if res.StatusCode == http.StatusUnauthorized && b.conn.User != "" && !strings.Contains(b.conn.User, "@") && b.conn.User != "x-token-auth" {
		return refusal(TokenRefused, res.StatusCode, "Bitbucket refused the credential of connection %s: app passwords ended on 9 June 2026; make an API token and set user to the e-mail address of its account", b.name)
	}
	return nil
}
