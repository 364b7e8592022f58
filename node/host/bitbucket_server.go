package host

import (
	"context"
	"net/url"
	"strings"
	"sync"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// bitbucketServer lists a Bitbucket Data Center. Its API is documented at
// developer.atlassian.com/server/bitbucket/rest.
type bitbucketServer struct {
	*client
	conn   *config.Bitbucket
	choice *choice
	web    *url.URL

	mu  sync.Mutex      // guards the field below
	all map[string]Repo // result of everything
}

// serverRepo is a repository in the API.
type serverRepo struct {
	ID      hostID `json:"id"`
	Slug    string `json:"slug"`
	Name    string `json:"name"`
	Project struct {
		Key  string `json:"key"`
		Type string `json:"type"`
	} `json:"project"`
	Public      bool      `json:"public"`
	Archived    bool      `json:"archived"`
	Origin      *struct{} `json:"origin"` // set for a fork
	State       string    `json:"state"`
	Description string    `json:"description"`
}

func openBitbucketServer(c *config.Bitbucket, t Tools) (Host, error) {
	web, err := addressOf(c.URL, c.URL, "/rest/api/1.0", "/rest/api/latest", "/rest")
	if err != nil {
		return nil, err
	}

	choice, err := choiceOf(c)
	if err != nil {
		return nil, err
	}

	// The url may contain either form of the API's path.
	api := *web
	api.Path += "/rest/api/1.0"
	return &bitbucketServer{conn: c, web: web, choice: choice, client: &client{
		tools: t, product: "Bitbucket Data Center", name: c.Name, base: &api,
		budget:    t.Budgets.budgetFor(web.Host, budgetKey(c.Token)),
		authorize: bitbucketAuthorization(c, t),
		cacheKey:  cacheKeyOf(c.Token),
	}}, nil
}

// List lists all repositories, or those of projects, and single ones.
func (b *bitbucketServer) List(ctx context.Context, sink Sink) error {
	var targets []target
	if b.conn.All {
		targets = append(targets, b.listTarget("all", serverPage(), "repos"))
	}

	for _, key := range b.conn.Projects {
		targets = append(targets, b.projectTarget(key))
	}

	for _, r := range b.conn.Repos {
		targets = append(targets, b.singleTarget(r))
	}

	// Settings without effect are reported but not refused, because the same file may have a
	// connection to Cloud.
	if len(b.conn.Workspaces) > 0 {
		sink.Issue(Issue{Code: NoEffect, Text: "workspaces has no effect at Bitbucket Data Center; name projects"})
	}
	return newCollector(sink, b.choice).run(ctx, targets)
}

// serverPage returns the parameters of a list. Without archived, the server omits archived
// repositories.
func serverPage() url.Values { return url.Values{"archived": {"ALL"}, "limit": {"1000"}} }

// projectTarget returns a target that lists one project. Servers before version 8 ignore the
// project and return all repositories.
func (b *bitbucketServer) projectTarget(key string) target {
	q := serverPage()
	q.Set("projectkey", key)
	all := b.listTarget("projects/"+key, q, "repos")

	return target{name: all.name, list: func(ctx context.Context, found func(Repo, string) error) error {
		n := 0
		err := all.list(ctx, func(r Repo, path string) error {
			n++
			return found(r, path)
		})
		if err != nil || n > 0 {
			return err
		}

		// The list of an unknown project is empty too. Only the project itself shows the
		// difference.
		_, err = b.get(ctx, b.at(nil, "projects", key), &struct{}{})
		return err
	}}
}

func (b *bitbucketServer) listTarget(name string, q url.Values, parts ...string) target {
	return target{name: name, list: func(ctx context.Context, found func(Repo, string) error) error {
		return serverPages(ctx, b.client, b.at(q, parts...), func(r *serverRepo) error {
			// Old servers return other projects, too.
			if key := q.Get("projectkey"); key != "" && !strings.EqualFold(key, r.Project.Key) {
				return nil
			}
			return b.passOn(r, found)
		})
	}}
}

func (b *bitbucketServer) singleTarget(path string) target {
	key, slug, _ := strings.Cut(path, "/")
	return singleRepoTarget(b.client, "repos/"+path, b.at(nil, "projects", key, "repos", slug), b.passOn)
}

// Lookup finds a repository by its number. The API has no address by number, so the first look-up
// lists everything that the token may see, for all later ones.
func (b *bitbucketServer) Lookup(ctx context.Context, external string) (Repo, bool, error) {
	id, ok := hostIDOf(external, config.KindBitbucket, b.web)
	if !ok {
		return Repo{}, false, errForeignID
	}

	all, err := b.allRepos(ctx)
	if err != nil {
		return Repo{}, false, err
	}

	// The host no longer has the repository, or does not show it.
	r, ok := all[external]
	if !ok {
		return Repo{}, false, &Refusal{Issue: Issue{Code: TargetNotFound, Text: "the server has no repository of number " + id}, cause: ErrGone}
	}

	selected := b.conn.All || hasFold(b.conn.Projects, textBefore(r.DisplayName, "/")) || hasFold(b.conn.Repos, r.DisplayName)
	return r, selected && !b.choice.excludes(&r, r.DisplayName), nil
}

// allRepos returns all repositories that the token may see, by external id. Concurrent and later
// calls share one list.
func (b *bitbucketServer) allRepos(ctx context.Context) (map[string]Repo, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all != nil {
		return b.all, nil
	}

	all := map[string]Repo{}
	err := b.listTarget("all", serverPage(), "repos").list(ctx, func(r Repo, _ string) error {
		all[r.ExternalID] = r
		return nil
	})

	if err != nil {
		return nil, err
	}

	b.all = all
	return all, nil
}

func (b *bitbucketServer) passOn(r *serverRepo, found func(Repo, string) error) error {
	if r.ID <= 0 || r.Slug == "" || r.Project.Key == "" {
		return found(Repo{}, "") // counted as unusable
	}
	return found(b.convert(r), r.Project.Key+"/"+r.Slug)
}

func (b *bitbucketServer) convert(r *serverRepo) Repo {
	path := r.Project.Key + "/" + r.Slug
	repo := Repo{
		ExternalID: externalID(config.KindBitbucket, b.web, r.ID.String()),
		Name:       hostName(b.web) + "/" + path, DisplayName: path, HostType: "bitbucketServer",
		Remote: git.Remote{URL: b.web.JoinPath("scm", strings.ToLower(r.Project.Key), r.Slug+".git").String()},
		WebURL: b.web.JoinPath("projects", r.Project.Key, "repos", r.Slug).String(),
		Fork:   r.Origin != nil, Archived: r.Archived, Description: r.Description, Visibility: visibilityOf(!r.Public, false),
	}

	// Repositories under creation or offline are listed but not fetched.
	if r.State != "" && r.State != "AVAILABLE" {
		repo.Unfetchable = "Bitbucket says that it is " + r.State
	}
	return repo
}
