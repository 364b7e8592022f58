package host

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/shard/git"
)

// gerritPage is how many projects a page has.
const gerritPage = 500

// gerrit lists a Gerrit server. Its API is documented at
// gerrit-review.googlesource.com/Documentation/rest-api-projects.html. A project has no number: its
// id is its name.
type gerrit struct {
	*client
	conn   *config.Gerrit
	choice *choice
	web    *url.URL
}

// gerritProject is a project in the API. Its name is the key.
type gerritProject struct {
	State       string `json:"state"` // ACTIVE, READ_ONLY or HIDDEN
	Description string `json:"description"`
	WebLinks    []struct {
		URL string `json:"url"`
	} `json:"web_links"`
}

// gerritSystem are projects of every server that contain no code.
var gerritSystem = []string{"All-Projects", "All-Users", "All-Avatars", "All-Archived-Projects"}

func openGerrit(conn config.Connection, t Tools) (Host, error) {
	c := conn.(*config.Gerrit)
	web, err := addressOf(c.URL, c.URL)
	if err != nil {
		return nil, err
	}

	choice, err := choiceOf(c)
	if err != nil {
		return nil, err
	}
	g := &gerrit{conn: c, web: web, choice: choice, client: &client{
		tools: t, product: "Gerrit", name: c.Name,
		budget: t.Budgets.budgetFor(web.Host, cmp.Or(budgetKey(c.Token), c.Name)),
		authorize: func(ctx context.Context) (string, error) {
			cred, err := gerritUser(ctx, c, t)
			return basicHeader(cred), err
		},
	}}

	// With a password, the API is below /a.
	api := *web
	if c.Token != nil || credentialOf(c.URL) != (git.Credential{}) {
		api.Path += "/a"
	}
	g.base = &api
	return g, nil
}

// List lists the projects that the globs select.
func (g *gerrit) List(ctx context.Context, sink Sink) error {
	return newCollector(sink, g.choice).run(ctx, []target{{name: "projects", list: func(ctx context.Context, found func(Repo, string) error) error {
		return gerritPages(ctx, g, g.listQuery(), func(names []string, page map[string]gerritProject) error {
			for _, name := range names {
				// Gerrit's own projects contain settings, not code.
				if p := page[name]; !slices.Contains(gerritSystem, name) && g.selects(name) {
					if err := found(g.convert(name, &p), name); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}}})
}

// listQuery returns the query for projects, with hidden ones unless they are excluded.
func (g *gerrit) listQuery() url.Values {
	q := url.Values{"d": {""}}
	if !g.conn.Exclude.Hidden {
		q.Set("all", "")
	}
	return q
}

// gerritPages lists all pages of projects, which are sorted by name.
func gerritPages[T any](ctx context.Context, g *gerrit, q url.Values, take func(names []string, page map[string]T) error) error {
	q.Set("n", strconv.Itoa(gerritPage))
	if p := commonPrefix(g.conn.Projects); p != "" {
		q.Set("p", p)
	}

	last := ""
	for from := 0; from < maxPages*gerritPage; {
		q.Set("S", strconv.Itoa(from))
		var page map[string]T
		if _, err := g.get(ctx, g.at(q, "projects", ""), &page); err != nil {
			return err
		}

		// Only an empty page shows the end: an earlier page may be short, and not every server marks
		// its last one.
		if len(page) == 0 {
			return nil
		}
		from += len(page)

		// A server that ignores the start would repeat its pages.
		names := slices.Sorted(maps.Keys(page))
		if slices.Contains(names, last) {
			return refusal(InvalidResponse, http.StatusOK, "the pages of %s go in a circle", g.product)
		}
		last = names[len(names)-1]
		if err := take(names, page); err != nil {
			return err
		}
	}
	return refusal(InvalidResponse, http.StatusOK, "%s lists projects without end", g.product)
}

// gerritSignal is the commits of master and main. One call has those of a page of projects. Pushes
// to other branches are not reported.
var gerritSignal = Signal{Name: "commits of master and main", Lag: time.Minute, Hourly: 480}

// Changed lists all projects with the commits of their main branches, because Gerrit has no list of
// changes since a time.
func (g *gerrit) Changed(ctx context.Context, _ time.Time, take func(Mark)) ([]string, error) {
	type project struct {
		Branches map[string]string `json:"branches"`
	}
	err := gerritPages(ctx, g, url.Values{"b": {"master", "main"}}, func(names []string, page map[string]project) error {
		for _, name := range names {
			m := Mark{ExternalID: externalID(config.KindGerrit, g.web, name)}
			for _, branch := range slices.Sorted(maps.Keys(page[name].Branches)) {
				// Gerrit sends dashes for a missing branch.
				if commit := page[name].Branches[branch]; !strings.Contains(commit, "-") {
					m.Commits = append(m.Commits, commit)
				}
			}
			if len(m.Commits) > 0 {
				take(m)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []string{"projects"}, nil
}

func (g *gerrit) selects(name string) bool {
	return g.choice.selected.Empty() || g.choice.selected.Match(name)
}

// Lookup asks for a project by its name. true: the connection still selects it.
func (g *gerrit) Lookup(ctx context.Context, external string) (Repo, bool, error) {
	name, ok := hostIDOf(external, config.KindGerrit, g.web)
	if !ok {
		return Repo{}, false, errForeignID
	}
	var p gerritProject
	if _, err := g.get(ctx, g.at(nil, "projects", name), &p); err != nil {
		return Repo{}, false, err
	}
	repo := g.convert(name, &p)
	return repo, g.selects(name) && !g.choice.excludes(&repo, name), nil
}

func (g *gerrit) convert(name string, p *gerritProject) Repo {
	clone := g.web.JoinPath(name)
	if g.base.Path != g.web.Path {
		clone = g.web.JoinPath("a", name)
	}

	r := Repo{
		ExternalID: externalID(config.KindGerrit, g.web, name), Name: hostName(g.web) + "/" + name, DisplayName: name,
		HostType: string(config.KindGerrit), Remote: git.Remote{URL: clone.String()},
		Description: p.Description, Archived: p.State == "READ_ONLY",
	}

	// A project is known to be public only if anonymous callers see it.
	if g.base.Path == g.web.Path {
		r.Visibility = Public
	}

	if len(p.WebLinks) > 0 {
		if u, err := g.web.Parse(p.WebLinks[0].URL); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			r.WebURL = u.String()
		}
	}

	switch {
	case p.State == "HIDDEN" && g.conn.Exclude.Hidden:
		r.leftOut = ByHidden
	case p.State == "READ_ONLY" && g.conn.Exclude.ReadOnly:
		r.leftOut = ByArchive
	}
	return r
}

// commonPrefix returns the common prefix of all names that the globs match.
func commonPrefix(globs []string) string {
	prefix := ""
	for i, g := range globs {
		// x/** matches x too.
		start, _ := glob.Start(g)
		if rest, ok := strings.CutPrefix(g, start); !ok || strings.HasPrefix(rest, "**") {
			start = strings.TrimSuffix(start, "/")
		}
		if i == 0 {
			prefix = start
		}
		for !strings.HasPrefix(start, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return prefix
}

// gerritUser returns the connection's credential: the configured account, or the one in its URL, or
// none.
func gerritUser(ctx context.Context, c *config.Gerrit, t Tools) (git.Credential, error) {
	if c.Token == nil {
		return credentialOf(c.URL), nil
	}
	return passwordOf(ctx, c.User, tokenOf(t, c.Token, "", false))
}

func gerritCredential(ctx context.Context, conn config.Connection, _ string, t Tools) (git.Credential, error) {
	return gerritUser(ctx, conn.(*config.Gerrit), t)
}
