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

// githubKeep is the share of a token's calls that is left to its other users.
const githubKeep = 0.2

// github lists github.com, a subdomain of ghe.com, or an Enterprise Server. Its API is documented
// at docs.github.com/rest.
type github struct {
	*client // uses the connection's token
	conn    *config.GitHub
	web     *url.URL
	choice  *choice

	mu     sync.Mutex // guards the field below
	owners map[string]*client
}

// githubRepo is a repository in the API.
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
		client: githubClient(t, web, c.Name, budgetKey(c.Token), withPrefix("Bearer ", githubToken(c, web, t))),
	}
	g.cacheKey = cacheKeyOf(c.Token)
	return g, nil
}

// githubClient returns a client for one credential, identified by key.
func githubClient(t Tools, web *url.URL, name, key string, authorize func(context.Context) (string, error)) *client {
	c := &client{
		tools: t, product: "GitHub", name: name, base: githubAPI(web),
		header:    http.Header{"Accept": {"application/vnd.github+json"}},
		key:       key,
		budget:    t.Budgets.budgetFor(web.Host, key),
		keep:      githubKeep,
		authorize: authorize,
		limits:    githubLimits,
		expires:   githubExpiry,
		scopes:    githubScopes,
	}

	c.explain = func(res *http.Response, body []byte) *Refusal { return explainGitHub(c, res, body) }

	// An Enterprise Server may be older than any API version.
	if web.Host == "github.com" || strings.HasSuffix(web.Host, ".ghe.com") {
		c.header.Set("X-GitHub-Api-Version", "2022-11-28")
	}
	return c
}

// clientFor returns the client for an owner's repositories. It uses the token of the app that the
// owner has installed, or else the connection's. installed reports whether it is an app's. The issue
// is set if apps are configured but none works for the owner. Each owner keeps one client.
func (g *github) clientFor(ctx context.Context, owner string) (c *client, installed bool, issue *Issue) {
	if len(appsOf(g.tools, g.web)) == 0 {
		return g.client, false, nil
	}
	if _, err := g.tools.Installations.tokenOf(ctx, g.tools, g.web, owner); err != nil {
		issue := issueOf("", err)
		issue.Code = AuthenticationFallback
		issue.Text = "no token of a GitHub App for " + owner + ", so that of the connection is used: " + err.Error()
		return g.client, false, &issue
	}

	// Each owner has a client, because each installation has a budget.
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owners[owner] == nil {
		key := "installation of " + strings.ToLower(owner)
		g.owners[owner] = githubClient(g.tools, g.web, g.name, key, withPrefix("Bearer ", func(ctx context.Context) (string, error) {
			return g.tools.Installations.tokenOf(ctx, g.tools, g.web, owner)
		}))
	}
	return g.owners[owner], true, nil
}

// listingClient returns clientFor an owner during the listing of a target. It reports the issue to
// sink.
func (g *github) listingClient(ctx context.Context, target, owner string, sink Sink) (c *client, installed bool) {
	c, installed, issue := g.clientFor(ctx, owner)
	if issue != nil {
		issue.Target, issue.Partial = target, true
		sink.Issue(*issue)
	}
	return c, installed
}

// githubAPI returns the URL of a site's API.
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
		targets = append(targets, g.orgTarget(org, sink))
	}
	for _, user := range g.conn.Users {
		targets = append(targets, g.userTarget(user, sink))
	}

	// Ask for many single repositories together.
	batches := g.makeBatches(ctx)
	for _, repo := range g.conn.Repos {
		targets = append(targets, g.singleTarget(repo, batches[repo], sink))
	}
	return c.run(ctx, targets)
}

// orgTarget returns a target that lists an organisation, or a user of that name.
func (g *github) orgTarget(name string, sink Sink) target {
	return target{name: "orgs/" + name, list: func(ctx context.Context, found func(Repo, string) error) error {
		c, _ := g.listingClient(ctx, "orgs/"+name, name, sink)
		err := g.listPages(ctx, c, sink, g.at(githubPage("all"), "orgs", name, "repos"), found)
		if errors.Is(err, ErrGone) {
			return g.listPages(ctx, c, sink, g.at(githubPage("owner"), "users", name, "repos"), found)
		}
		return err
	}}
}

// userTarget returns a target that lists what a user owns. A user's list has only public
// repositories. If the token belongs to the user or a collaborator, its own list has the private
// ones.
func (g *github) userTarget(name string, sink Sink) target {
	return target{name: "users/" + name, list: func(ctx context.Context, found func(Repo, string) error) error {
		c, installed := g.listingClient(ctx, "users/"+name, name, sink)
		if err := g.listPages(ctx, c, sink, g.at(githubPage("owner"), "users", name, "repos"), found); err != nil {
			return err
		}

		if installed {
			return g.listInstalled(ctx, c, found)
		}

		if g.conn.Token == nil {
			return nil
		}

		q := url.Values{"affiliation": {"owner,collaborator"}, "sort": {"created"}, "direction": {"asc"}, "per_page": {"100"}}
		err := g.listPages(ctx, c, sink, g.at(q, "user", "repos"), func(r Repo, path string) error {
			if !strings.EqualFold(textBefore(path, "/"), name) {
				return nil
			}
			return found(r, path)
		})

		// An app's token belongs to no user, so it has no list of its own.
		if r := (*Refusal)(nil); errors.As(err, &r) && (r.Status == http.StatusForbidden || r.Status == http.StatusNotFound) {
			return nil
		}
		return err
	}}
}

// listInstalled lists what an app's installation may read. For a user, only this list has private
// repositories.
func (g *github) listInstalled(ctx context.Context, c *client, found func(Repo, string) error) error {
	return c.walkPages(ctx, g.at(url.Values{"per_page": {"100"}, "page": {"1"}}, "installation", "repositories"), nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page struct {
			Repositories []githubRepo `json:"repositories"`
		}

		// Unlike all other lists, this one is inside an object.
		head, err := c.get(ctx, u, &page)
		if err != nil {
			return nil, 0, err
		}

		if err := forEach(page.Repositories, func(r *githubRepo) error { return g.passOn(r, found) }); err != nil {
			return nil, 0, err
		}
		n := len(page.Repositories)
		return c.nextPage(u, head, n), n, nil
	})
}

// githubPage returns the parameters of a list, oldest first, so that new repositories come at the
// end.
func githubPage(kind string) url.Values {
	return url.Values{"type": {kind}, "sort": {"created"}, "direction": {"asc"}, "per_page": {"100"}, "page": {"1"}}
}

// listPages lists all pages of repositories. A header says if an answer omits those without single
// sign-on.
func (g *github) listPages(ctx context.Context, c *client, sink Sink, first *url.URL, found func(Repo, string) error) error {
	take := func(r *githubRepo) error { return g.passOn(r, found) }
	return listArrays(ctx, c, first, halvePages("per_page", 10), take, func(u *url.URL, head http.Header, n int) *url.URL {
		if sso := head.Get("X-GitHub-SSO"); strings.Contains(sso, "partial-results") {
			sink.Issue(Issue{Code: SSORequired, Partial: true, Text: "GitHub left out what the token is not authorised for by single sign-on: " + sso})
		}
		return c.nextPage(u, head, n)
	})
}

// githubSignal is the time of a repository's last push.
var githubSignal = Signal{Name: "pushed_at", Sure: true, Lag: time.Minute, Hourly: 5000}

// Changed reads the repositories of each organisation and user, last pushed first. GitHub does not
// count requests for unchanged pages.
func (g *github) Changed(ctx context.Context, since time.Time, take func(Mark)) ([]string, error) {
	read := func(c *client, q url.Values, parts ...string) error {
		q.Set("sort", "pushed")
		q.Set("direction", "desc")
		return readNewest(ctx, c, g.at(q, parts...), since, g.pushMark, take, func(u *url.URL, head http.Header, _ int) *url.URL {
			return g.nextLink(u, head)
		})
	}

	var looks []look
	for _, org := range g.conn.Orgs {
		looks = append(looks, look{"orgs/" + org, func() error {
			c, _, _ := g.clientFor(ctx, org)
			err := read(c, githubPage("all"), "orgs", org, "repos")
			if errors.Is(err, ErrGone) {
				return read(c, githubPage("owner"), "users", org, "repos")
			}
			return err
		}})
	}

	// Only the token's own list has a user's private repositories. The list of an installation
	// cannot be sorted.
	for _, user := range g.conn.Users {
		c, installed, _ := g.clientFor(ctx, user)
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

// pushMark returns the mark of a repository. If it was never pushed to, the time is zero, which ends
// the list.
func (g *github) pushMark(r *githubRepo) Mark {
	m := Mark{ExternalID: externalID(config.KindGitHub, g.web, r.ID.String())}
	if r.PushedAt != nil {
		m.At = *r.PushedAt
	}
	return m
}

// singleTarget returns a target with one repository, which may be in a batch.
func (g *github) singleTarget(path string, batch *githubBatch, sink Sink) target {
	owner, name, _ := strings.Cut(path, "/")
	return target{name: "repos/" + path, list: func(ctx context.Context, found func(Repo, string) error) error {
		// Ask separately for a repository that the batch did not return.
		if batch != nil {
			r, err := batch.get(ctx, path)
			if err != nil {
				return err
			}
			if r != nil {
				return g.passOn(r, found)
			}
		}

		c, _ := g.listingClient(ctx, "repos/"+path, owner, sink)
		return singleRepoTarget(c, "repos/"+path, g.at(nil, "repos", owner, name), g.passOn).list(ctx, found)
	}}
}

// Lookup asks for a repository by its number. true: the connection still selects it.
func (g *github) Lookup(ctx context.Context, external string) (Repo, bool, error) {
	id, ok := hostIDOf(external, config.KindGitHub, g.web)
	if !ok {
		return Repo{}, false, errForeignID
	}
	var r githubRepo
	if err := g.lookupWithAnyToken(ctx, g.at(nil, "repositories", id), &r); err != nil {
		return Repo{}, false, err
	}

	// Use the present name: a transfer may have taken it out of the selection.
	owner := textBefore(r.FullName, "/")
	selected := hasFold(g.conn.Orgs, owner) || hasFold(g.conn.Users, owner) || hasFold(g.conn.Repos, r.FullName)
	repo := g.convert(&r)
	return repo, selected && !g.choice.excludes(&repo, r.FullName), nil
}

// lookupWithAnyToken asks for a repository with each token of the connection, until one sees it. An
// id does not name the owner, and an app's token sees only the repositories of one owner.
func (g *github) lookupWithAnyToken(ctx context.Context, at *url.URL, into *githubRepo) error {
	clients, failed := []*client{g.client}, false
	if len(appsOf(g.tools, g.web)) > 0 {
		for _, owner := range g.namedOwners() {
			c, installed, issue := g.clientFor(ctx, owner)
			if installed {
				clients = append(clients, c)
			}
			failed = failed || issue != nil
		}
	}

	var notFound, otherError error
	for _, c := range clients {
		_, err := c.getCached(ctx, at, into)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrGone):
			notFound = err
		default:
			otherError = err
		}
	}

	// The repository is gone only if every client says so.
	if otherError == nil && failed {
		otherError = errors.New("not every GitHub App could be asked")
	}
	if otherError != nil {
		return otherError
	}
	return notFound
}

// namedOwners returns the connection's owners, each once.
func (g *github) namedOwners() []string {
	owners := slices.Concat(g.conn.Orgs, g.conn.Users)
	for _, r := range g.conn.Repos {
		owners = append(owners, textBefore(r, "/"))
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

func (g *github) passOn(r *githubRepo, found func(Repo, string) error) error {
	if r.ID <= 0 || strings.Count(r.FullName, "/") != 1 {
		return found(Repo{}, "") // counted as unusable
	}
	return found(g.convert(r), r.FullName)
}

func (g *github) convert(r *githubRepo) Repo {
	web := g.web.JoinPath(r.FullName).String()
	repo := Repo{
		ExternalID: externalID(config.KindGitHub, g.web, r.ID.String()),
		Name:       hostName(g.web) + "/" + r.FullName, DisplayName: r.FullName, HostType: string(config.KindGitHub),
		Remote: git.Remote{URL: web + ".git"}, WebURL: web,
		Description: r.Description, DefaultBranch: r.DefaultBranch, Topics: toLower(r.Topics),
		Fork: r.Fork, Archived: r.Archived, Visibility: visibilityOf(r.Private || r.Visibility != "" && r.Visibility != "public", r.Visibility == "internal"),
		Stars: r.Stars, SizeBytes: r.Size * 1000,
	}

	// A repository without a commit was never pushed to.
	if r.PushedAt != nil {
		repo.PushedAt = *r.PushedAt
	}
	if r.Disabled {
		repo.Unfetchable = "GitHub has disabled the repository"
	}
	return repo
}

// explainGitHub interprets GitHub's refusals. Limits may have status 403, and single sign-on has a
// header.
func explainGitHub(c *client, res *http.Response, body []byte) *Refusal {
	// The order matters: both limits and missing permissions have status 403. Only headers or words
	// tell them apart.
	status, text := res.StatusCode, strings.ToLower(string(body))
	switch {
	case status == http.StatusUnauthorized, status == http.StatusNotFound, status/100 == 5:
		return nil

	case res.Header.Get("X-RateLimit-Remaining") == "0" && (status == http.StatusForbidden || status == http.StatusTooManyRequests):
		reset := c.toOwnClock(epochSeconds(res.Header.Get("X-RateLimit-Reset")))
		if soon := c.tools.Now(); reset.Before(soon) {
			reset = soon
		}
		return c.budget.refuseUntil(reset.Add(time.Second))

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

// githubLimits returns the limit per hour.
func githubLimits(h http.Header) (limit, remaining int, reset time.Time) {
	return atoi(h.Get("X-RateLimit-Limit")), atoi(h.Get("X-RateLimit-Remaining")), epochSeconds(h.Get("X-RateLimit-Reset"))
}

// githubExpiry returns when the token ends.
func githubExpiry(h http.Header) time.Time {
	ends, err := time.Parse("2006-01-02 15:04:05 MST", h.Get("Github-Authentication-Token-Expiration"))
	if err != nil {
		return time.Time{}
	}
	return ends
}

// githubScopes returns the scopes of a classic token. GitHub sends none for fine-grained tokens and
// apps.
func githubScopes(h http.Header) []string {
	return strings.FieldsFunc(h.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
}

func epochSeconds(text string) time.Time { return time.Unix(int64(atoi(text)), 0) }

// githubCredential returns the token of the app that the repository's owner installed, or else the
// connection's.
func githubCredential(ctx context.Context, conn config.Connection, cloneURL string, t Tools) (git.Credential, error) {
	c := conn.(*config.GitHub)
	web, err := addressOf(c.URL, "https://github.com", "/api/v3")
	if err != nil {
		return git.Credential{}, err
	}

	// Prefer an app's token to the connection's.
	if len(appsOf(t, web)) > 0 {
		path := strings.TrimPrefix(cloneURL, web.String()+"/")

		secret, err := t.Installations.tokenOf(ctx, t, web, textBefore(path, "/"))
		if err == nil {
			return git.Credential{User: "x-access-token", Password: secret}, nil
		}

		// If the app fails, use the connection's token, if there is one.
		if c.Token == nil && !errors.Is(err, errNotInstalled) {
			return git.Credential{}, err
		}
	}

	return passwordOf(ctx, "x-access-token", githubToken(c, web, t))
}
