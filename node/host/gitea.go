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

// giteaPage is how many repositories are asked for. The server gives fewer
// where its own limit is lower, and does not say so.
const giteaPage = 50

// gitea lists a Gitea or Forgejo server. Its API is described by the server
// itself at /api/swagger.
type gitea struct {
	*client
	conn   *config.Gitea
	choice *choice
	web    *url.URL // of the server, for people and for git
}

// giteaRepo is what the API says of a repository.
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
	Updated       time.Time `json:"updated_at"` // moves with pushes alone
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

	// The fallback token is for the public host alone: it must not be sent to others.
	secret := tokenOf(t, c.Token, "FALLBACK_GITEA_CLOUD_TOKEN", web.Host == "gitea.com")
	g := &gitea{
		conn: c, web: web, choice: choice,
		client: giteaClient(t, web, c.Shared().Name, budgetKey(c.Token), prefixed("token ", secret)),
	}
	g.memory = memoryOf(c.Token)
	return g, nil
}

// giteaClient asks a server with one credential, of which key tells it apart.
func giteaClient(t Tools, web *url.URL, name, key string, authorize func(context.Context) (string, error)) *client {
	api := *web
	api.Path += "/api/v1"
	return &client{
		tools: t, product: "Gitea", name: name, base: &api,
		budget:    t.Budgets.of(web.Host, key),
		authorize: authorize,
		explain:   explainGitea,
	}
}

// List lists organisations, users and single repositories.
func (g *gitea) List(ctx context.Context, sink Sink) error {
	c := newCollector(sink, g.choice)
	// What several of them have is found more than once; the collector passes it on once.
	var targets []target
	for _, org := range g.conn.Orgs {
		targets = append(targets, g.owner("orgs", org))
	}
	for _, user := range g.conn.Users {
		targets = append(targets, g.owner("users", user))
	}
	for _, repo := range g.conn.Repos {
		targets = append(targets, g.single(repo))
	}
	return c.run(ctx, targets)
}

// owner lists what an organisation or a user has.
func (g *gitea) owner(kind, name string) target {
	return target{name: kind + "/" + name, list: func(ctx context.Context, found func(Repo, string) error) error {
		first := g.at(url.Values{"page": {"1"}, "limit": {strconv.Itoa(giteaPage)}}, kind, name, "repos")
		take := func(r *giteaRepo) error { return g.found(r, found) }
		return arrays(ctx, g.client, first, halves("limit", 5), take, g.after)
	}}
}

// after is the page behind one of n entries. The server cuts pages to a limit
// of its own, so a short page is not the last; where a proxy ate the Link
// header, an empty one is, or one that with as many before it has all that are counted.
func (g *gitea) after(u *url.URL, head http.Header, n int) *url.URL {
	if next := g.nextLink(u, head); next != nil {
		// The server's own idea of its address may be another.
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

// single asks for one repository.
func (g *gitea) single(path string) target {
	owner, name, _ := strings.Cut(path, "/")
	return single(g.client, "repos/"+path, g.at(nil, "repos", owner, name), g.found)
}

// giteaSignal is when a repository was pushed to last: the time moves a second
// or two after the push, and by nothing else.
var giteaSignal = Signal{Name: "updated_at", Sure: true, Lag: time.Minute, Hourly: 14_400}

// Changed searches the repositories of each owner, those that were pushed to
// last first. The search wants the owner's number.
func (g *gitea) Changed(ctx context.Context, since time.Time, take func(Mark)) ([]string, error) {
	read := func(kind, name string) look {
		return look{kind + "/" + name, func() error {
			var owner struct {
				ID int64 `json:"id"`
			}
			if _, err := g.get(ctx, g.at(nil, kind, name), &owner); err != nil {
				return err
			}
			return g.newest(ctx, strconv.FormatInt(owner.ID, 10), since, take)
		}}
	}

	// Repositories that are named one by one have no list: their pushes are found by polls.
	var looks []look
	for _, org := range g.conn.Orgs {
		looks = append(looks, read("orgs", org))
	}
	for _, user := range g.conn.Users {
		looks = append(looks, read("users", user))
	}
	return looked(looks)
}

// newest reads the repositories of an owner until one was pushed to before a
// time.
func (g *gitea) newest(ctx context.Context, owner string, since time.Time, take func(Mark)) error {
	q := url.Values{"uid": {owner}, "exclusive": {"true"}, "sort": {"updated"}, "order": {"desc"}, "page": {"1"}, "limit": {strconv.Itoa(giteaPage)}}
	return g.walk(ctx, g.at(q, "repos", "search"), nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page struct {
			Data []giteaRepo `json:"data"`
		}
		head, err := g.get(ctx, u, &page)
		if err != nil {
			return nil, 0, err
		}

		// The newest come first, so that the first old one ends the look.
		for i := range page.Data {
			if page.Data[i].Updated.Before(since) {
				return nil, 0, nil
			}
			id := externalID(config.KindGitea, g.web, page.Data[i].ID.String())
			take(Mark{ExternalID: id, At: page.Data[i].Updated})
		}
		return g.after(u, head, len(page.Data)), len(page.Data), nil
	})
}

// Lookup asks for a repository by the server's number.
func (g *gitea) Lookup(ctx context.Context, externalID string) (Repo, bool, error) {
	id, ok := numberOf(externalID, config.KindGitea, g.web)
	if !ok {
		return Repo{}, false, errForeignID
	}
	var r giteaRepo
	if _, err := g.recall(ctx, g.at(nil, "repositories", id), &r); err != nil {
		return Repo{}, false, err
	}

	// By the name that it has now: a transfer may have taken it out of the selection.
	owner := firstOf(r.FullName, "/")
	selected := hasFold(g.conn.Orgs, owner) || hasFold(g.conn.Users, owner) || hasFold(g.conn.Repos, r.FullName)
	repo := g.repo(&r)
	return repo, selected && g.choice.reason(&repo, r.FullName) == "", nil
}

// found passes on a repository that has code.
func (g *gitea) found(r *giteaRepo, found func(Repo, string) error) error {
	if r.ID <= 0 || strings.Count(r.FullName, "/") != 1 {
		return found(Repo{}, "") // of no use
	}
	if r.HasCode != nil && !*r.HasCode {
		return nil
	}
	return found(g.repo(r), r.FullName)
}

// repo is a repository in our terms. The address for git is the configured
// one: the server's own may be that of another side of a proxy.
func (g *gitea) repo(r *giteaRepo) Repo {
	web := g.web.JoinPath(r.FullName).String()
	name := hostName(g.web) + "/" + r.FullName
	return Repo{
		ExternalID: externalID(config.KindGitea, g.web, r.ID.String()),
		Name:       name, DisplayName: r.FullName, HostType: string(config.KindGitea),
		Remote: git.Remote{URL: web + ".git"}, WebURL: web,
		Description: r.Description, DefaultBranch: r.DefaultBranch, Topics: lowered(r.Topics),
		Fork: r.Fork, Archived: r.Archived, Empty: r.Empty, Visibility: visibility(r.Private, r.Internal),
		PushedAt: r.Updated, Stars: r.Stars, SizeBytes: r.Size * 1024,
	}
}

// explainGitea names the scope that a token lacks.
func explainGitea(res *http.Response, body []byte) *Refusal {
	if res.StatusCode == http.StatusForbidden && strings.Contains(string(body), "scope") {
		return refusal(ScopeMissing, res.StatusCode, "the token lacks a scope: it needs read:repository, and read:organization and read:user for orgs and users")
	}
	return nil
}

// giteaCredential is what git sends: any user, and the token as password.
func giteaCredential(ctx context.Context, conn config.Connection, _ string, t Tools) (git.Credential, error) {
	c := conn.(*config.Gitea)
	web, err := addressOf(c.URL, "https://gitea.com", "/api/v1")
	if err != nil {
		return git.Credential{}, err
	}
	return passwordOf(ctx, "oauth2", tokenOf(t, c.Token, "FALLBACK_GITEA_CLOUD_TOKEN", web.Host == "gitea.com"))
}
