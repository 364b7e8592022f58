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

// giteaPage is the requested page size. The server may have a lower limit, which it does not
// announce.
const giteaPage = 50

// gitea lists a Gitea or Forgejo server. The server documents its API at /api/swagger.
type gitea struct {
	*client
	conn   *config.Gitea
	choice *choice
	web    *url.URL // of the server, for people and git
}

// giteaRepo is a repository in the API.
type giteaRepo struct {
	ID            hostID    `json:"id"`
	FullName      string    `json:"full_name"`
	Description   string    `json:"description"`
	Private       bool      `json:"private"`
	Internal      bool      `json:"internal"`
	Fork          bool      `json:"fork"`
	Archived      bool      `json:"archived"`
	Empty         bool      `json:"empty"`
	HasCode       *bool     `json:"has_code"`
	DefaultBranch string    `json:"default_branch"`
	Size          int64     `json:"size"` // KiB
	Stars         uint32    `json:"stars_count"`
	Topics        []string  `json:"topics"`
	Updated       time.Time `json:"updated_at"` // changes only with pushes
}

func openGitea(conn config.Connection, t Tools) (Host, error) {
	c := conn.(*config.Gitea)
	web, err := addressOf(c.URL, "https://gitea.com", "/api/v1")
	if err != nil {
		return nil, err
	}
	choice, err := choiceOf(c)
	if err != nil {
		return nil, err
	}

	// The fallback token is for the public host only, and must not be sent to other hosts.
	secret := tokenOf(t, c.Token, "FALLBACK_GITEA_CLOUD_TOKEN", web.Host == "gitea.com")
	g := &gitea{
		conn: c, web: web, choice: choice,
		client: giteaClient(t, web, c.Shared().Name, budgetKey(c.Token), withPrefix("token ", secret)),
	}
	g.cacheKey = cacheKeyOf(c.Token)
	return g, nil
}

// giteaClient returns a client for one credential, identified by key.
func giteaClient(t Tools, web *url.URL, name, key string, authorize func(context.Context) (string, error)) *client {
	api := *web
	api.Path += "/api/v1"
	return &client{
		tools: t, product: "Gitea", name: name, base: &api,
		budget:    t.Budgets.budgetFor(web.Host, key),
		authorize: authorize,
		explain:   explainGitea,
	}
}

// List lists organisations, users and single repositories.
func (g *gitea) List(ctx context.Context, sink Sink) error {
	c := newCollector(sink, g.choice)
	// The collector drops repeated repositories.
	var targets []target
	for _, org := range g.conn.Orgs {
		targets = append(targets, g.ownerTarget("orgs", org))
	}
	for _, user := range g.conn.Users {
		targets = append(targets, g.ownerTarget("users", user))
	}
	for _, repo := range g.conn.Repos {
		targets = append(targets, g.singleTarget(repo))
	}
	return c.run(ctx, targets)
}

// ownerTarget returns a target that lists an organisation or a user.
func (g *gitea) ownerTarget(kind, name string) target {
	return target{name: kind + "/" + name, list: func(ctx context.Context, found func(Repo, string) error) error {
		first := g.at(url.Values{"page": {"1"}, "limit": {strconv.Itoa(giteaPage)}}, kind, name, "repos")
		take := func(r *giteaRepo) error { return g.passOn(r, found) }
		return listArrays(ctx, g.client, first, halvePages("limit", 5), take, g.pageAfter)
	}}
}

// pageAfter returns the URL of the page after one with n entries, or nil. The server may shorten
// pages, so a short page is not the last. If a proxy removed the Link header, the last page is an
// empty one, or the one that reaches the total count.
func (g *gitea) pageAfter(u *url.URL, head http.Header, n int) *url.URL {
	if next := g.nextLink(u, head); next != nil {
		// The server may know itself by another address.
		moved := *u
		moved.RawQuery = next.RawQuery
		return &moved
	}
	q := u.Query()
	page, total := atoi(q.Get("page")), head.Get("X-Total-Count")
	if n == 0 || head.Get("Link") != "" || total != "" && page*n >= atoi(total) {
		return nil
	}
	q.Set("page", strconv.Itoa(page+1))
	next := *u
	next.RawQuery = q.Encode()
	return &next
}

// singleTarget returns a target with one repository.
func (g *gitea) singleTarget(path string) target {
	owner, name, _ := strings.Cut(path, "/")
	return singleRepoTarget(g.client, "repos/"+path, g.at(nil, "repos", owner, name), g.passOn)
}

// giteaSignal is the time of the last push. It changes a second or two after a push, and for
// nothing else.
var giteaSignal = Signal{Name: "updated_at", Sure: true, Lag: time.Minute, Hourly: 14_400}

// Changed searches each owner's repositories, last pushed first. The search needs the owner's
// number.
func (g *gitea) Changed(ctx context.Context, since time.Time, take func(Mark)) ([]string, error) {
	read := func(kind, name string) look {
		return look{kind + "/" + name, func() error {
			var owner struct {
				ID int64 `json:"id"`
			}
			if _, err := g.get(ctx, g.at(nil, kind, name), &owner); err != nil {
				return err
			}
			return g.readNewest(ctx, strconv.FormatInt(owner.ID, 10), since, take)
		}}
	}

	// Single repositories have no list. Polls find their pushes.
	var looks []look
	for _, org := range g.conn.Orgs {
		looks = append(looks, read("orgs", org))
	}
	for _, user := range g.conn.Users {
		looks = append(looks, read("users", user))
	}
	return runLooks(looks)
}

// readNewest reads an owner's repositories, back to a time.
func (g *gitea) readNewest(ctx context.Context, owner string, since time.Time, take func(Mark)) error {
	q := url.Values{"uid": {owner}, "exclusive": {"true"}, "sort": {"updated"}, "order": {"desc"}, "page": {"1"}, "limit": {strconv.Itoa(giteaPage)}}
	return g.walkPages(ctx, g.at(q, "repos", "search"), nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page struct {
			Data []giteaRepo `json:"data"`
		}
		head, err := g.get(ctx, u, &page)
		if err != nil {
			return nil, 0, err
		}

		// The newest repositories come first, so stop at the first old one.
		for i := range page.Data {
			if page.Data[i].Updated.Before(since) {
				return nil, 0, nil
			}
			id := externalID(config.KindGitea, g.web, page.Data[i].ID.String())
			take(Mark{ExternalID: id, At: page.Data[i].Updated})
		}
		return g.pageAfter(u, head, len(page.Data)), len(page.Data), nil
	})
}

// Lookup asks for a repository by its number. true: the connection still selects it.
func (g *gitea) Lookup(ctx context.Context, externalID string) (Repo, bool, error) {
	id, ok := hostIDOf(externalID, config.KindGitea, g.web)
	if !ok {
		return Repo{}, false, errForeignID
	}
	var r giteaRepo
	if _, err := g.getCached(ctx, g.at(nil, "repositories", id), &r); err != nil {
		return Repo{}, false, err
	}

	// Use the present name: a transfer may have taken it out of the selection.
	owner := textBefore(r.FullName, "/")
	selected := hasFold(g.conn.Orgs, owner) || hasFold(g.conn.Users, owner) || hasFold(g.conn.Repos, r.FullName)
	repo := g.convert(&r)
	return repo, selected && !g.choice.excludes(&repo, r.FullName), nil
}

// passOn passes on a repository that has code.
func (g *gitea) passOn(r *giteaRepo, found func(Repo, string) error) error {
	if r.ID <= 0 || strings.Count(r.FullName, "/") != 1 {
		return found(Repo{}, "") // counted as unusable
	}
	if r.HasCode != nil && !*r.HasCode {
		return nil
	}
	return found(g.convert(r), r.FullName)
}

// convert converts a repository. The clone URL uses the configured address, because the server may
// know itself by another behind a proxy.
func (g *gitea) convert(r *giteaRepo) Repo {
	web := g.web.JoinPath(r.FullName).String()
	name := hostName(g.web) + "/" + r.FullName
	return Repo{
		ExternalID: externalID(config.KindGitea, g.web, r.ID.String()),
		Name:       name, DisplayName: r.FullName, HostType: string(config.KindGitea),
		Remote: git.Remote{URL: web + ".git"}, WebURL: web,
		Description: r.Description, DefaultBranch: r.DefaultBranch, Topics: toLower(r.Topics),
		Fork: r.Fork, Archived: r.Archived, Empty: r.Empty, Visibility: visibilityOf(r.Private, r.Internal),
		PushedAt: r.Updated, Stars: r.Stars, SizeBytes: r.Size * 1024,
	}
}

// explainGitea detects a token without a needed scope.
func explainGitea(res *http.Response, body []byte) *Refusal {
	if res.StatusCode == http.StatusForbidden && strings.Contains(string(body), "scope") {
		return refusal(ScopeMissing, res.StatusCode, "the token lacks a scope: it needs read:repository, and read:organization and read:user for orgs and users")
	}
	return nil
}

// giteaCredential returns the credential for git: any user, with the token as password.
func giteaCredential(ctx context.Context, conn config.Connection, _ string, t Tools) (git.Credential, error) {
	c := conn.(*config.Gitea)
	web, err := addressOf(c.URL, "https://gitea.com", "/api/v1")
	if err != nil {
		return git.Credential{}, err
	}
	return passwordOf(ctx, "oauth2", tokenOf(t, c.Token, "FALLBACK_GITEA_CLOUD_TOKEN", web.Host == "gitea.com"))
}
