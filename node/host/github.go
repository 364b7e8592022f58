package host

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// githubKeep is the share of a token's calls that is left to others who use it.
const githubKeep = 0.2

// github lists github.com, a subdomain of ghe.com, or an Enterprise Server.
// Its API is described at docs.github.com/rest.
type github struct {
	*client // with the token of the connection
	conn    *config.GitHub
	web     *url.URL
	choice  *choice

	mu     sync.Mutex // guards the field below
	owners map[string]*client
}

// githubRepo is what the API says of a repository.
type githubRepo struct {
	ID            hostID     `json:"id"`
	FullName      string     `json:"full_name"`
	Owner         githubUser `json:"owner"`
	HTMLURL       string     `json:"html_url"`
	Description   string     `json:"description"`
	Private       bool       `json:"private"`
	Visibility    string     `json:"visibility"`
	Fork          bool       `json:"fork"`
	Archived      bool       `json:"archived"`
	Disabled      bool       `json:"disabled"`
	DefaultBranch string     `json:"default_branch"`
	PushedAt      *time.Time `json:"pushed_at"`
	Stars         uint32     `json:"stargazers_count"`
	Topics        []string   `json:"topics"`
	Size          int64      `json:"size"` // kB
}

type githubUser struct {
	Login string `json:"login"`
}

func openGitHub(conn config.Connection, t Tools) (Host, error) {
	c := conn.(*config.GitHub)
	web, err := addressOf(c.URL, "https://github.com", "/api/v3")
	if err != nil {
		return nil, err
	}
	choice, err := choiceOf(c)
	if err != nil {
		return nil, err
	}
	g := &github{
		conn: c, web: web, choice: choice, owners: map[string]*client{},
		client: githubClient(t, web, c.Name, budgetKey(c.Token), prefixed("Bearer ", githubToken(c, web, t))),
	}
	g.cacheKey = cacheKeyOf(c.Token)
	return g, nil
}

// githubClient asks a site with one credential, of which key tells it apart.
func githubClient(t Tools, web *url.URL, name, key string, authorize func(context.Context) (string, error)) *client {
	c := &client{
		tools: t, product: "GitHub", name: name, base: githubAPI(web),
		header:    http.Header{"Accept": {"application/vnd.github+json"}},
		key:       key,
		budget:    t.Budgets.of(web.Host, key),
		keep:      githubKeep,
		authorize: authorize,
		limits:    githubLimits,
		expires:   githubExpiry,
		scopes:    githubScopes,
	}

	c.explain = func(res *http.Response, body []byte) *Refusal { return explainGitHub(c, res, body) }

	// A server of one's own may be older than any version that can be asked for.
	if web.Host == "github.com" || strings.HasSuffix(web.Host, ".ghe.com") {
		c.header.Set("X-GitHub-Api-Version", "2022-11-28")
	}
	return c
}

// by is what asks for repositories of an owner: with the token of the app that
// the owner has installed, else with that of the connection. The second result
// is an issue where there are apps and none can be used.
func (g *github) by(ctx context.Context, owner string) (*client, bool, *Issue) {
	if len(appsOf(g.tools, g.web)) == 0 {
		return g.client, false, nil
	}
	if _, err := g.tools.Installations.token(ctx, g.tools, g.web, owner); err != nil {
		issue := issueOf("", err)
		issue.Code = AuthenticationFallback
		issue.Text = "no token of a GitHub App for " + owner + ", so that of the connection is used: " + err.Error()
		return g.client, false, &issue
	}

	// One client for each owner, so that its budget is that of its installation.
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owners[owner] == nil {
		key := "installation of " + strings.ToLower(owner)
		g.owners[owner] = githubClient(g.tools, g.web, g.name, key, prefixed("Bearer ", func(ctx context.Context) (string, error) {
			return g.tools.Installations.token(ctx, g.tools, g.web, owner)
		}))
	}
	return g.owners[owner], true, nil
}

// asker is by for a listing, which tells of the issue.
func (g *github) asker(ctx context.Context, target, owner string, sink Sink) (c *client, installed bool) {
	c, installed, issue := g.by(ctx, owner)
	if issue != nil {
		issue.Target, issue.Partial = target, true
		sink.Issue(*issue)
	}
	return c, installed
}

// githubAPI is where the API of a site is.
func githubAPI(web *url.URL) *url.URL {
	api := *web
	switch {
	case web.Host == "github.com" || web.Host == "api.github.com":
		api.Host = "api.github.com"
	case strings.HasSuffix(web.Host, ".ghe.com"):
		api.Host = "api." + strings.TrimPrefix(web.Host, "api.")
	default:
		api.Path += "/api/v3"
	}
	return &api
}

func githubToken(c *config.GitHub, web *url.URL, t Tools) func(context.Context) (string, error) {
	return tokenOf(t, c.Token, "FALLBACK_GITHUB_CLOUD_TOKEN", web.Host == "github.com")
}

// List lists organisations, users and single repositories.
func (g *github) List(ctx context.Context, sink Sink) error {
	c := newCollector(sink, g.choice)
	var targets []target
	for _, org := range g.conn.Orgs {
		targets = append(targets, g.org(org, sink))
	}
	for _, user := range g.conn.Users {
		targets = append(targets, g.user(user, sink))
	}

	// Many single repositories are asked for together.
	batches := g.batches(ctx)
	for _, repo := range g.conn.Repos {
		targets = append(targets, g.single(repo, batches[repo], sink))
	}
	return c.run(ctx, targets)
}

// org lists an organisation; what is none by that name may be a user.
func (g *github) org(name string, sink Sink) target {
	return target{name: "orgs/" + name, list: func(ctx context.Context, found func(Repo, string) error) error {
		c, _ := g.asker(ctx, "orgs/"+name, name, sink)
		err := g.pages(ctx, c, sink, g.at(githubPage("all"), "orgs", name, "repos"), found)
		if errors.Is(err, ErrGone) {
			return g.pages(ctx, c, sink, g.at(githubPage("owner"), "users", name, "repos"), found)
		}
		return err
	}}
}

// user lists what a user owns. The list of a user shows the public ones
// alone; where the token is that user's, or one of a collaborator, its own
// list has the private ones.
func (g *github) user(name string, sink Sink) target {
	return target{name: "users/" + name, list: func(ctx context.Context, found func(Repo, string) error) error {
		c, installed := g.asker(ctx, "users/"+name, name, sink)
		if err := g.pages(ctx, c, sink, g.at(githubPage("owner"), "users", name, "repos"), found); err != nil {
			return err
		}

		if installed {
			return g.installed(ctx, c, found)
		}

		if g.conn.Token == nil {
			return nil
		}

		q := url.Values{"affiliation": {"owner,collaborator"}, "sort": {"created"}, "direction": {"asc"}, "per_page": {"100"}}
		err := g.pages(ctx, c, sink, g.at(q, "user", "repos"), func(r Repo, path string) error {
			if !strings.EqualFold(firstOf(path, "/"), name) {
				return nil
			}
			return found(r, path)
		})

		// A token of an app is nobody's: it has no list of its own.
		if r := (*Refusal)(nil); errors.As(err, &r) && (r.Status == http.StatusForbidden || r.Status == http.StatusNotFound) {
			return nil
		}
		return err
	}}
}

// installed lists what an installation of an app may read: of a user, that is
// where the private repositories are.
func (g *github) installed(ctx context.Context, c *client, found func(Repo, string) error) error {
	return c.walk(ctx, g.at(url.Values{"per_page": {"100"}, "page": {"1"}}, "installation", "repositories"), nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page struct {
			Repositories []githubRepo `json:"repositories"`
		}

		// This list is an object with a list in it, unlike all others.
		head, err := c.get(ctx, u, &page)
		if err != nil {
			return nil, 0, err
		}

		if err := each(page.Repositories, func(r *githubRepo) error { return g.found(r, found) }); err != nil {
			return nil, 0, err
		}
		n := len(page.Repositories)
		return c.behind(u, head, n), n, nil
	})
}

// githubPage asks for the oldest first: what is made meanwhile comes at the end.
func githubPage(kind string) url.Values {
	return url.Values{"type": {kind}, "sort": {"created"}, "direction": {"asc"}, "per_page": {"100"}, "page": {"1"}}
}

// pages walks a listing. An answer may say by a header alone that it leaves
// out what the token was not let into.
func (g *github) pages(ctx context.Context, c *client, sink Sink, first *url.URL, found func(Repo, string) error) error {
	take := func(r *githubRepo) error { return g.found(r, found) }
	return arrays(ctx, c, first, halves("per_page", 10), take, func(u *url.URL, head http.Header, n int) *url.URL {
		if sso := head.Get("X-GitHub-SSO"); strings.Contains(sso, "partial-results") {
			sink.Issue(Issue{Code: SSORequired, Partial: true, Text: "GitHub left out what the token is not authorised for by single sign-on: " + sso})
		}
		return c.behind(u, head, n)
	})
}

// githubSignal is when a repository was pushed to last.
var githubSignal = Signal{Name: "pushed_at", Sure: true, Lag: time.Minute, Hourly: 5000}

// Changed reads the repositories of each organisation and user, those that were
// pushed to last first. A page that is as it was costs no call of the limit.
func (g *github) Changed(ctx context.Context, since time.Time, take func(Mark)) ([]string, error) {
	read := func(c *client, q url.Values, parts ...string) error {
		q.Set("sort", "pushed")
		q.Set("direction", "desc")
		return newest(ctx, c, g.at(q, parts...), since, g.mark, take, func(u *url.URL, head http.Header, _ int) *url.URL {
			return g.nextLink(u, head)
		})
	}

	var looks []look
	for _, org := range g.conn.Orgs {
		looks = append(looks, look{"orgs/" + org, func() error {
			c, _, _ := g.by(ctx, org)
			err := read(c, githubPage("all"), "orgs", org, "repos")
			if errors.Is(err, ErrGone) {
				return read(c, githubPage("owner"), "users", org, "repos")
			}
			return err
		}})
	}

	// The list of a user has no private repositories: only the own list of the
	// token has those. The list of an installation cannot be sorted.
	for _, user := range g.conn.Users {
		c, installed, _ := g.by(ctx, user)
		if installed {
			continue
		}
		looks = append(looks, look{"users/" + user, func() error {
			err := read(c, githubPage("owner"), "users", user, "repos")
			if err != nil || g.conn.Token == nil {
				return err
			}

			err = read(c, url.Values{"affiliation": {"owner,collaborator"}, "per_page": {"100"}}, "user", "repos")
			if r := (*Refusal)(nil); errors.As(err, &r) && (r.Status == http.StatusForbidden || r.Status == http.StatusNotFound) {
				return nil
			}
			return err
		}})
	}
	return runLooks(looks)
}

// mark is what GitHub says of the last push. One that was never pushed to was
// pushed to at the beginning of time, which ends the list.
func (g *github) mark(r *githubRepo) Mark {
	m := Mark{ExternalID: externalID(config.KindGitHub, g.web, r.ID.String())}
	if r.PushedAt != nil {
		m.At = *r.PushedAt
	}
	return m
}

// single is the target of one repository, which may be one of a batch.
func (g *github) single(path string, batch *githubBatch, sink Sink) target {
	owner, name, _ := strings.Cut(path, "/")
	return target{name: "repos/" + path, list: func(ctx context.Context, found func(Repo, string) error) error {
		// What the question of many has not answered is asked for by itself.
		if batch != nil {
			r, err := batch.get(ctx, path)
			if err != nil {
				return err
			}
			if r != nil {
				return g.found(r, found)
			}
		}

		c, _ := g.asker(ctx, "repos/"+path, owner, sink)
		return single(c, "repos/"+path, g.at(nil, "repos", owner, name), g.found).list(ctx, found)
	}}
}

// Lookup asks for a repository by GitHub's number.
func (g *github) Lookup(ctx context.Context, external string) (Repo, bool, error) {
	id, ok := hostIDOf(external, config.KindGitHub, g.web)
	if !ok {
		return Repo{}, false, errForeignID
	}
	var r githubRepo
	if err := g.lookup(ctx, g.at(nil, "repositories", id), &r); err != nil {
		return Repo{}, false, err
	}

	// By the name that it has now: a transfer may have taken it out of the selection.
	owner := firstOf(r.FullName, "/")
	selected := hasFold(g.conn.Orgs, owner) || hasFold(g.conn.Users, owner) || hasFold(g.conn.Repos, r.FullName)
	repo := g.repo(&r)
	return repo, selected && g.choice.reason(&repo, r.FullName) == "", nil
}

// lookup asks with the token of each owner that the connection names: an id does
// not tell whose it is, and a token of an app sees its own owner alone.
func (g *github) lookup(ctx context.Context, at *url.URL, into *githubRepo) error {
	askers, failed := []*client{g.client}, false
	if len(appsOf(g.tools, g.web)) > 0 {
		for _, owner := range g.namedOwners() {
			c, installed, issue := g.by(ctx, owner)
			if installed {
				askers = append(askers, c)
			}
			failed = failed || issue != nil
		}
	}

	var gone, other error
	for _, c := range askers {
		_, err := c.getCached(ctx, at, into)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrGone):
			gone = err
		default:
			other = err
		}
	}

	// It is gone only where all who could see it say so.
	if other == nil && failed {
		other = errors.New("not every GitHub App could be asked")
	}
	if other != nil {
		return other
	}
	return gone
}

// namedOwners are the owners that the connection names, each once.
func (g *github) namedOwners() []string {
	owners := slices.Concat(g.conn.Orgs, g.conn.Users)
	for _, r := range g.conn.Repos {
		owners = append(owners, firstOf(r, "/"))
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

func (g *github) found(r *githubRepo, found func(Repo, string) error) error {
	if r.ID <= 0 || strings.Count(r.FullName, "/") != 1 {
		return found(Repo{}, "") // of no use
	}
	return found(g.repo(r), r.FullName)
}

func (g *github) repo(r *githubRepo) Repo {
	web := g.web.JoinPath(r.FullName).String()
	repo := Repo{
		ExternalID: externalID(config.KindGitHub, g.web, r.ID.String()),
		Name:       hostName(g.web) + "/" + r.FullName, DisplayName: r.FullName, HostType: string(config.KindGitHub),
		Remote: git.Remote{URL: web + ".git"}, WebURL: web,
		Description: r.Description, DefaultBranch: r.DefaultBranch, Topics: lowered(r.Topics),
		Fork: r.Fork, Archived: r.Archived, Visibility: visibility(r.Private || r.Visibility != "" && r.Visibility != "public", r.Visibility == "internal"),
		Stars: r.Stars, SizeBytes: r.Size * 1000,
	}

	// One without a commit was never pushed to.
	if r.PushedAt != nil {
		repo.PushedAt = *r.PushedAt
	}
	if r.Disabled {
		repo.Unfetchable = "GitHub has disabled the repository"
	}
	return repo
}

// explainGitHub reads GitHub's ways to refuse: limits come with 403 too, and single
// sign-on is asked for by a header.
func explainGitHub(c *client, res *http.Response, body []byte) *Refusal {
	// The order matters: a limit is told with 403 too, and only its headers or its words set it
	// apart from a right that is missing.
	status, text := res.StatusCode, strings.ToLower(string(body))
	switch {
	case status == http.StatusUnauthorized, status == http.StatusNotFound, status/100 == 5:
		return nil

	case res.Header.Get("X-RateLimit-Remaining") == "0" && (status == http.StatusForbidden || status == http.StatusTooManyRequests):
		reset := c.ours(epochSeconds(res.Header.Get("X-RateLimit-Reset")))
		if soon := c.tools.Now(); reset.Before(soon) {
			reset = soon
		}
		return c.budget.later(reset.Add(time.Second))

	case status == http.StatusTooManyRequests, strings.Contains(text, "secondary rate limit"), strings.Contains(text, "abuse detection"):
		r := refusal(RateLimited, status, "GitHub asks for fewer calls")
		r.Until = c.tools.Now().Add(time.Minute)
		if until := c.retryAfter(res.Header); !until.IsZero() {
			r.Until = until
		}
		return r

	case strings.HasPrefix(res.Header.Get("X-GitHub-SSO"), "required"):
		_, address, _ := strings.Cut(res.Header.Get("X-GitHub-SSO"), "url=")
		return refusal(SSORequired, status, "the organisation asks for single sign-on: authorise the token at %s (good for an hour)", address)

	case strings.Contains(text, "not accessible by"):
		return refusal(ScopeMissing, status, "the token lacks a permission: %s", res.Header.Get("X-Accepted-GitHub-Permissions"))
	case strings.Contains(text, "ip allow list"):
		return refusal(Forbidden, status, "the organisation lets only some addresses in, and this node's is none of them")
	case status == http.StatusUnavailableForLegalReasons, strings.Contains(text, "access blocked"):
		return refusal(Forbidden, status, "GitHub has blocked access to it")
	}
	return nil
}

// githubLimits reads the limit of an hour.
func githubLimits(h http.Header) (limit, remaining int, reset time.Time) {
	return atoi(h.Get("X-RateLimit-Limit")), atoi(h.Get("X-RateLimit-Remaining")), epochSeconds(h.Get("X-RateLimit-Reset"))
}

// githubExpiry reads when the token ends.
func githubExpiry(h http.Header) time.Time {
	ends, err := time.Parse("2006-01-02 15:04:05 MST", h.Get("Github-Authentication-Token-Expiration"))
	if err != nil {
		return time.Time{}
	}
	return ends
}

// githubScopes reads the scopes of a classic token; fine-grained ones and those
// of apps are not told.
func githubScopes(h http.Header) []string {
	return strings.FieldsFunc(h.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
}

func epochSeconds(text string) time.Time { return time.Unix(int64(atoi(text)), 0) }

// githubCredential is the token of the app that the owner of a repository has
// installed, else that of the connection.
func githubCredential(ctx context.Context, conn config.Connection, cloneURL string, t Tools) (git.Credential, error) {
	c := conn.(*config.GitHub)
	web, err := addressOf(c.URL, "https://github.com", "/api/v3")
	if err != nil {
		return git.Credential{}, err
	}

	// An app where it is installed, else the token of the connection.
	if len(appsOf(t, web)) > 0 {
		path := strings.TrimPrefix(cloneURL, web.String()+"/")

		secret, err := t.Installations.token(ctx, t, web, firstOf(path, "/"))
		if err == nil {
			return git.Credential{User: "x-access-token", Password: secret}, nil
		}

		// With a token, the failure of an app is not the end.
		if c.Token == nil && !errors.Is(err, errNotInstalled) {
			return git.Credential{}, err
		}
	}

	return passwordOf(ctx, "x-access-token", githubToken(c, web, t))
}
