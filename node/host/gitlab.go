package host

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// gitlab lists gitlab.com or a GitLab server. Its API is documented at docs.gitlab.com/api.
type gitlab struct {
	*client
	conn   *config.GitLab
	choice *choice
	web    *url.URL // the configured URL
	links  *url.URL // for links in pages
}

// gitlabProject is a project in the API.
type gitlabProject struct {
	ID            hostID          `json:"id"`
	Path          string          `json:"path_with_namespace"`
	Description   string          `json:"description"`
	Visibility    string          `json:"visibility"` // missing for anonymous callers
	Archived      bool            `json:"archived"`
	Topics        []string        `json:"topics"`
	Tags          []string        `json:"tag_list"` // former name of topics
	Stars         uint32          `json:"star_count"`
	DefaultBranch string          `json:"default_branch"`
	Empty         bool            `json:"empty_repo"`
	Activity      time.Time       `json:"last_activity_at"`
	Access        string          `json:"repository_access_level"`
	Import        string          `json:"import_status"`
	ForkedFrom    *struct{}       `json:"forked_from_project"`
	Namespace     gitlabNamespace `json:"namespace"`
	Statistics    struct {
		Size int64 `json:"repository_size"`
	} `json:"statistics"`
}

type gitlabNamespace struct {
	Kind string `json:"kind"`
}

func openGitLab(conn config.Connection, t Tools) (Host, error) {
	c := conn.(*config.GitLab)
	web, err := addressOf(c.URL, "https://gitlab.com", "/api/v4")
	if err != nil {
		return nil, err
	}

	// Links may use another address than the API.
	links, err := addressOf(c.WebURL, web.String())
	if err != nil {
		return nil, err
	}

	choice, err := choiceOf(c)
	if err != nil {
		return nil, err
	}
	g := &gitlab{
		conn: c, web: web, links: links, choice: choice,
		client: gitlabClient(t, web, c.Name, budgetKey(c.Token), withPrefix("Bearer ", gitlabToken(c, web, t))),
	}
	g.cacheKey = cacheKeyOf(c.Token)
	return g, nil
}

// gitlabClient returns a client for one credential, identified by key.
func gitlabClient(t Tools, web *url.URL, name, key string, authorize func(context.Context) (string, error)) *client {
	api := *web
	api.Path += "/api/v4"
	return &client{
		tools: t, product: "GitLab", name: name, base: &api,
		budget:    t.Budgets.budgetFor(web.Host, key),
		timeout:   gitlabTimeout(t),
		authorize: authorize,
		explain:   explainGitLab,
		limits:    gitlabLimits,
	}
}

// gitlabTimeout returns the time limit of a page. Large groups take minutes.
func gitlabTimeout(t Tools) time.Duration {
	if t.LookupEnv != nil {
		text, _ := t.LookupEnv("GITLAB_CLIENT_QUERY_TIMEOUT_SECONDS")
		if n := atoi(text); n > 0 {
			return time.Duration(n) * time.Second
		}
	}
	return 10 * time.Minute
}

func gitlabToken(c *config.GitLab, web *url.URL, t Tools) func(context.Context) (string, error) {
	return tokenOf(t, c.Token, "FALLBACK_GITLAB_CLOUD_TOKEN", web.Host == "gitlab.com")
}

// List lists all projects, or those of groups and users, and single ones.
func (g *gitlab) List(ctx context.Context, sink Sink) error {
	// Get the token's end and scopes first, so that they are known even if the list fails.
	g.recordToken(ctx)
	c := newCollector(sink, g.choice)

	var targets []target
	if g.conn.All && g.web.Host == "gitlab.com" {
		sink.Issue(Issue{Code: NoEffect, Text: "all has no effect at gitlab.com, which has too many projects for it; name groups, users or projects"})
	} else if g.conn.All {
		// Use keyset pages, because GitLab refuses high page numbers.
		q := g.withPageSize(url.Values{"pagination": {"keyset"}, "order_by": {"id"}, "sort": {"asc"}, "per_page": {"100"}})
		targets = append(targets, g.listTarget("all", g.at(q, "projects")))
	}

	for _, group := range g.conn.Groups {
		q := gitlabPage()
		// Groups are nested, and people name the outermost.
		q.Set("include_subgroups", "true")
		targets = append(targets, g.groupTarget(group, g.listTarget("groups/"+group, g.at(q, "groups", group, "projects"))))
	}
	for _, user := range g.conn.Users {
		targets = append(targets, g.listTarget("users/"+user, g.at(g.withPageSize(gitlabPage()), "users", user, "projects")))
	}

	for _, project := range g.conn.Projects {
		targets = append(targets, g.singleTarget(project))
	}
	return c.run(ctx, targets)
}

// recordToken records when the token ends and what it may do. Tokens of jobs and OAuth have no such
// page, and need none.
func (g *gitlab) recordToken(ctx context.Context) {
	if g.conn.Token == nil {
		return
	}

	var token struct {
		Expires string   `json:"expires_at"`
		Scopes  []string `json:"scopes"`
	}

	// Not all tokens have this page. Then nothing is recorded.
	if _, err := g.callOnce(ctx, &apiCall{at: g.at(nil, "personal_access_tokens", "self")}, &token); err != nil {
		return
	}

	if at, err := time.Parse(time.DateOnly, token.Expires); err == nil {
		g.budget.setEnd(at)
	}
	g.budget.setScopes(token.Scopes)
}

// gitlabSignal is the time of a project's last activity. A push changes it, but at most once an
// hour.
var gitlabSignal = Signal{Name: "last_activity_at", Sure: true, Lag: 65 * time.Minute, Hourly: 3600}

// Changed reads the projects of each target, latest activity first.
func (g *gitlab) Changed(ctx context.Context, since time.Time, take func(Mark)) ([]string, error) {
	read := func(target string, parts ...string) look {
		q := url.Values{"order_by": {"last_activity_at"}, "sort": {"desc"}, "per_page": {"100"}, "page": {"1"}, "simple": {"true"}}
		if parts[0] == "groups" {
			q.Set("include_subgroups", "true")
		}
		mark := func(p *gitlabProject) Mark {
			return Mark{ExternalID: externalID(config.KindGitLab, g.web, p.ID.String()), At: p.Activity}
		}

		return look{target, func() error {
			return readNewest(ctx, g.client, g.at(q, parts...), since, mark, take, func(u *url.URL, head http.Header, _ int) *url.URL {
				return g.nextLink(u, head)
			})
		}}
	}

	// gitlab.com is too large to list completely, so it is not polled either.
	var looks []look
	if g.conn.All && g.web.Host != "gitlab.com" {
		looks = append(looks, read("all", "projects"))
	}
	for _, group := range g.conn.Groups {
		looks = append(looks, read("groups/"+group, "groups", group, "projects"))
	}
	for _, user := range g.conn.Users {
		looks = append(looks, read("users/"+user, "users", user, "projects"))
	}
	return runLooks(looks)
}

// groupTarget returns a target for a group. Servers may fail for large groups. Then it lists the
// subgroups one by one.
func (g *gitlab) groupTarget(name string, together target) target {
	return target{name: together.name, list: func(ctx context.Context, found func(Repo, string) error) error {
		err := together.list(ctx, found)
		if err == nil || !smallerMayHelp(err) || ctx.Err() != nil {
			return err
		}

		// The collector drops the projects that were listed before the error.
		below, other := g.subgroups(ctx, name)
		if other != nil {
			return err
		}
		for _, group := range append([]string{name}, below...) {
			if err := g.listTarget(together.name, g.at(gitlabPage(), "groups", group, "projects")).list(ctx, found); err != nil {
				return err
			}
		}
		return nil
	}}
}

// subgroups returns the numbers of all subgroups of a group.
func (g *gitlab) subgroups(ctx context.Context, group string) (numbers []string, err error) {
	type entry struct {
		ID int64 `json:"id"`
	}
	take := func(e *entry) error {
		numbers = append(numbers, strconv.FormatInt(e.ID, 10))
		return nil
	}
	err = listArrays(ctx, g.client, g.at(gitlabPage(), "groups", group, "descendant_groups"), halvePages("per_page", 20), take, g.nextPage)
	return numbers, err
}

func gitlabPage() url.Values {
	return url.Values{"order_by": {"id"}, "sort": {"asc"}, "per_page": {"100"}, "page": {"1"}}
}

// withPageSize adds a parameter for the sizes of projects. Only members get them, and not in a
// group's list.
func (g *gitlab) withPageSize(q url.Values) url.Values {
	if g.conn.Token != nil {
		q.Set("statistics", "true")
	}
	return q
}

// listTarget returns a target that lists projects. If archived ones are excluded, the server must
// leave them out, because anonymous answers do not mark them.
func (g *gitlab) listTarget(name string, first *url.URL) target {
	if g.conn.Exclude.Archived {
		q := first.Query()
		q.Set("archived", "false")
		first.RawQuery = q.Encode()
	}
	return target{name: name, list: func(ctx context.Context, found func(Repo, string) error) error {
		take := func(p *gitlabProject) error { return g.passOn(p, found) }
		return listArrays(ctx, g.client, first, halvePages("per_page", 20), take, g.nextPage)
	}}
}

func (g *gitlab) singleTarget(path string) target {
	return singleRepoTarget(g.client, "projects/"+path, g.at(g.withPageSize(url.Values{}), "projects", path), g.passOn)
}

// Lookup asks for a project by its number. true: the connection still selects it.
func (g *gitlab) Lookup(ctx context.Context, external string) (Repo, bool, error) {
	id, ok := hostIDOf(external, config.KindGitLab, g.web)
	if !ok {
		return Repo{}, false, errForeignID
	}
	var p gitlabProject
	if _, err := g.getCached(ctx, g.at(g.withPageSize(url.Values{}), "projects", id), &p); err != nil {
		return Repo{}, false, err
	}
	repo := g.convert(&p)
	selected := g.selects(&p) && g.choice.exclusionReason(&repo, p.Path) == "" && p.Access != "disabled"
	return repo, selected && !(g.conn.Exclude.UserOwnedProjects && p.Namespace.Kind == "user"), nil
}

// selects reports whether the connection selects a project.
func (g *gitlab) selects(p *gitlabProject) bool {
	if g.conn.All && g.web.Host != "gitlab.com" || hasFold(g.conn.Projects, p.Path) || hasFold(g.conn.Users, textBefore(p.Path, "/")) {
		return true
	}
	for _, group := range g.conn.Groups {
		if strings.HasPrefix(strings.ToLower(p.Path), strings.ToLower(group)+"/") {
			return true
		}
	}
	return false
}

// passOn passes a project that has a repository on to found. It skips a project without one.
func (g *gitlab) passOn(p *gitlabProject, found func(Repo, string) error) error {
	if p.ID <= 0 || !strings.Contains(p.Path, "/") {
		return found(Repo{}, "") // counted as unusable
	}
	if p.Access == "disabled" {
		return nil
	}
	repo := g.convert(p)
	if g.conn.Exclude.UserOwnedProjects && p.Namespace.Kind == "user" {
		repo.leftOut = ByOwner
	}
	return found(repo, p.Path)
}

func (g *gitlab) convert(p *gitlabProject) Repo {
	repo := Repo{
		ExternalID: externalID(config.KindGitLab, g.web, p.ID.String()),
		Name:       hostName(g.web) + "/" + p.Path, DisplayName: p.Path, HostType: string(config.KindGitLab),
		Remote: git.Remote{URL: g.web.JoinPath(p.Path).String() + ".git"}, WebURL: g.links.JoinPath(p.Path).String(),
		Description: p.Description, DefaultBranch: p.DefaultBranch, Topics: toLower(append(p.Topics, p.Tags...)),
		Fork: p.ForkedFrom != nil, Archived: p.Archived, Empty: p.Empty,
		Visibility: g.visibility(p),
		PushedAt:   p.Activity, Stars: p.Stars, SizeBytes: p.Statistics.Size,
	}

	// During an import, the code is missing or incomplete.
	if p.Import != "" && p.Import != "finished" && p.Import != "none" {
		repo.Unfetchable = "GitLab is still importing it (" + p.Import + ")"
	}
	return repo
}

// visibility returns a project's visibility. Anonymous callers get only public projects, without
// the field. An unknown value counts as private.
func (g *gitlab) visibility(p *gitlabProject) Visibility {
	open := p.Visibility == "public" || p.Visibility == "" && g.conn.Token == nil
	return visibilityOf(!open, p.Visibility == "internal")
}

func explainGitLab(res *http.Response, body []byte) *Refusal {
	if res.StatusCode == http.StatusForbidden && strings.Contains(string(body), "insufficient_scope") {
		return refusal(ScopeMissing, res.StatusCode, "the token lacks a scope: it needs read_api and read_repository")
	}
	return nil
}

func gitlabLimits(h http.Header) (limit, remaining int, reset time.Time) {
	return atoi(h.Get("RateLimit-Limit")), atoi(h.Get("RateLimit-Remaining")), epochSeconds(h.Get("RateLimit-Reset"))
}

func gitlabCredential(ctx context.Context, conn config.Connection, _ string, t Tools) (git.Credential, error) {
	c := conn.(*config.GitLab)
	web, err := addressOf(c.URL, "https://gitlab.com", "/api/v4")
	if err != nil {
		return git.Credential{}, err
	}
	return passwordOf(ctx, "oauth2", gitlabToken(c, web, t))
}
