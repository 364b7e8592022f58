package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host/hosttest"
)

// wanted is a selection in terms common to all kinds. A kind uses the parts that it supports.
type wanted struct {
	owners, users, repos         []string
	all                          bool
	topics                       []string
	noForks, noArchived          bool
	noDisabled, noHidden, noUser bool
	noRepos, noTopics            []string
	noProjects                   []string
	size                         config.Size
}

// deploymentTest is a deployment in the conformance tests, with how to write connections to it.
type deploymentTest struct {
	host *hosttest.Deployment
	conn func(url string, w wanted) config.Connection
	// has are the supported properties of selection.
	has []string
	// owner returns the deployment's spelling of an owner; nil: unchanged.
	owner func(string) string
	// target is the name of an owner's target in issues.
	target string
	// lone is true if the whole listing is one target.
	lone bool
	// id returns the last part of the external id.
	id func(r hosttest.Repo) string
	// real is the real server behind it; nil: none.
	real *realGitea
}

// pages returns how a deployment links to the next page, or "" without pages.
func (st *deploymentTest) pages() string {
	switch st.host.Name {
	case "azure devops services", "azure devops server":
		return ""
	case "gerrit":
		return "offset"
	case "bitbucket cloud":
		return "body"
	case "bitbucket data center":
		return "start"
	}
	return "link"
}

var standToken = &config.Token{Env: "T"}

func number(r hosttest.Repo) string { return strconv.FormatInt(r.ID, 10) }

func githubDeployment(d *hosttest.Deployment) deploymentTest {
	return deploymentTest{
		host: d, target: "orgs/", id: number,
		has: []string{"forks", "archived", "names", "topics", "excluded topics", "size"},
		conn: func(url string, w wanted) config.Connection {
			return &config.GitHub{Token: standToken, URL: url, Orgs: w.owners, Users: w.users, Repos: w.repos, Topics: w.topics,
				Exclude: config.GitHubExclude{Forks: w.noForks, Archived: w.noArchived, Repos: w.noRepos, Topics: w.noTopics, Size: w.size}}
		},
	}
}

func azureDeployment(d *hosttest.Deployment, deployment config.Deployment) deploymentTest {
	return deploymentTest{
		host: d, target: "orgs/", id: func(r hosttest.Repo) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", r.ID) },
		has: []string{"names", "disabled", "projects", "size"},
		conn: func(url string, w wanted) config.Connection {
			url, tfs := strings.CutSuffix(url, "/tfs")
			c := &config.AzureDevOps{Token: standToken, URL: url, UseTFSPath: tfs, Deployment: deployment, Orgs: slices.Concat(w.owners, w.users),
				Exclude: config.AzureDevOpsExclude{Disabled: w.noDisabled, Repos: w.noRepos, Projects: w.noProjects, Size: w.size}}
			for _, r := range w.repos {
				owner, name, _ := strings.Cut(r, "/")
				c.Repos = append(c.Repos, owner+"/Big Project/"+name)
			}
			return c
		},
	}
}

func giteaDeployment() deploymentTest {
	return deploymentTest{
		host: hosttest.Gitea(), target: "orgs/", id: number,
		has: []string{"forks", "archived", "names"},
		conn: func(url string, w wanted) config.Connection {
			return &config.Gitea{Token: standToken, URL: url, Orgs: w.owners, Users: w.users, Repos: w.repos,
				Exclude: config.GiteaExclude{Forks: w.noForks, Archived: w.noArchived, Repos: w.noRepos}}
		},
	}
}

// deploymentTests returns all deployments.
func deploymentTests() []deploymentTest {
	return []deploymentTest{
		githubDeployment(hosttest.GitHub()),
		githubDeployment(hosttest.GitHubServer()),
		{
			host: hosttest.GitLab(), target: "groups/", id: number,
			has: []string{"all", "forks", "archived", "names", "topics", "excluded topics", "of users"},
			conn: func(url string, w wanted) config.Connection {
				return &config.GitLab{Token: standToken, URL: url, All: w.all, Groups: w.owners, Users: w.users, Projects: w.repos, Topics: w.topics,
					Exclude: config.GitLabExclude{Forks: w.noForks, Archived: w.noArchived, UserOwnedProjects: w.noUser, Projects: w.noRepos, Topics: w.noTopics}}
			},
		},
		giteaDeployment(),
		{
			host: hosttest.Gerrit(), target: "projects", lone: true, id: hosttest.Repo.Path,
			has: []string{"all", "archived", "names", "hidden"},
			conn: func(url string, w wanted) config.Connection {
				c := &config.Gerrit{URL: url, User: "ann", Token: standToken, Projects: slices.Clone(w.repos),
					Exclude: config.GerritExclude{Projects: w.noRepos, ReadOnly: w.noArchived, Hidden: w.noHidden}}
				for _, o := range slices.Concat(w.owners, w.users) {
					c.Projects = append(c.Projects, o+"/**")
				}
				return c
			},
		},
		{
			host: hosttest.BitbucketCloud(), target: "workspaces/", id: func(r hosttest.Repo) string { return fmt.Sprintf("{00000000-0000-4000-8000-%012d}", r.ID) },
			has: []string{"forks", "names"},
			conn: func(url string, w wanted) config.Connection {
				return &config.Bitbucket{Token: standToken, User: hosttest.Account, URL: url, Deployment: config.Cloud, Workspaces: slices.Concat(w.owners, w.users), Repos: w.repos,
					Exclude: config.BitbucketExclude{Forks: w.noForks, Repos: w.noRepos}}
			},
		},
		{
			host: hosttest.BitbucketServer(), target: "projects/", id: number,
			has: []string{"all", "forks", "archived", "names"},
			owner: func(o string) string {
				if o == "ann" {
					return "~ann"
				}
				return strings.ToUpper(o)
			},
			conn: func(url string, w wanted) config.Connection {
				return &config.Bitbucket{Token: standToken, URL: url, Deployment: config.Server, All: w.all, Projects: slices.Concat(w.owners, w.users), Repos: w.repos,
					Exclude: config.BitbucketExclude{Forks: w.noForks, Archived: w.noArchived, Repos: w.noRepos}}
			},
		},
		azureDeployment(hosttest.AzureServices(), config.Cloud),
		azureDeployment(hosttest.AzureServer(), config.Server),
	}
}

// world returns the repositories of each host. Each exclusion leaves out a different one.
func world() []hosttest.Repo {
	day := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	repos := []hosttest.Repo{
		{ID: 1, Owner: "acme", Name: "app", Description: "the app", Topics: []string{"Web", "go"}, Stars: 3, Size: 20_480_000},
		{ID: 2, Owner: "acme", Name: "copy", Fork: true, Topics: []string{"web"}},
		{ID: 3, Owner: "acme", Name: "frozen", Archived: true, Topics: []string{"web"}},
		{ID: 4, Owner: "acme", Name: "vault", Private: true, Topics: []string{"web", "old"}, Size: 20_000},
		{ID: 5, Owner: "acme", Name: "app-old", Topics: []string{"website"}},
		{ID: 6, Owner: "acme", Name: "huge", Size: 5_000_000_000, Topics: []string{"web"}},
		{ID: 7, Owner: "acme", Name: "off", Disabled: true},
		{ID: 8, Owner: "acme", Name: "veiled", Hidden: true},
		{ID: 9, Owner: "acme", Name: "plan", Project: "Secret Project"},
		{ID: 10, Owner: "ann", Name: "own", Private: true, Topics: []string{"web"}},
		{ID: 11, Owner: "other", Name: "tool", Topics: []string{"WEB"}},
	}
	for i := range repos {
		r := &repos[i]
		r.Branch, r.Pushed = "main", day.Add(time.Duration(i)*time.Hour)
		if r.Project == "" {
			r.Project = "Big Project"
		}
	}
	return repos
}

// property is a property of a selection that leaves repositories out.
type property struct {
	name  string
	set   func(w *wanted)
	drops func(r hosttest.Repo) bool
}

func properties() []property {
	least, most := int64(20_000), int64(20_480_000)
	topic := func(r hosttest.Repo, is func(string) bool) bool {
		return slices.ContainsFunc(r.Topics, func(t string) bool { return is(strings.ToLower(t)) })
	}
	return []property{
		{"forks", func(w *wanted) { w.noForks = true }, func(r hosttest.Repo) bool { return r.Fork }},
		{"archived", func(w *wanted) { w.noArchived = true }, func(r hosttest.Repo) bool { return r.Archived }},
		{"disabled", func(w *wanted) { w.noDisabled = true }, func(r hosttest.Repo) bool { return r.Disabled }},
		{"hidden", func(w *wanted) { w.noHidden = true }, func(r hosttest.Repo) bool { return r.Hidden }},
		{"of users", func(w *wanted) { w.noUser = true }, func(r hosttest.Repo) bool { return r.Owner == "ann" }},
		{"names", func(w *wanted) { w.noRepos = []string{"**/*-old"} }, func(r hosttest.Repo) bool { return strings.HasSuffix(r.Name, "-old") }},
		{"projects", func(w *wanted) { w.noProjects = []string{"secret*"} }, func(r hosttest.Repo) bool { return r.Project == "Secret Project" }},
		{"topics", func(w *wanted) { w.topics = []string{"WEB*"} }, func(r hosttest.Repo) bool {
			return !topic(r, func(t string) bool { return strings.HasPrefix(t, "web") })
		}},
		{"excluded topics", func(w *wanted) { w.noTopics = []string{"o*d"} }, func(r hosttest.Repo) bool {
			return topic(r, func(t string) bool { return t == "old" })
		}},
		// The limits equal existing sizes. A size of 0 is unknown.
		{"size", func(w *wanted) { w.size = config.Size{Min: &least, Max: &most} }, func(r hosttest.Repo) bool {
			return r.Size != 0 && (r.Size < least || r.Size > most)
		}},
	}
}

// hostTest is a running case: a server and a connection to it.
type hostTest struct {
	*testing.T
	st    *deploymentTest
	s     *hosttest.Server
	tools Tools
}

func (st *deploymentTest) start(t *testing.T, repos ...hosttest.Repo) *hostTest {
	t.Helper()
	for i := range repos {
		if st.owner != nil {
			repos[i].Owner = st.owner(repos[i].Owner)
		}
	}
	tr := &hostTest{T: t, st: st, tools: tools(t)}
	if st.real != nil {
		tr.s = hosttest.Before(t, st.host, st.real.behind(), repos...)
	} else {
		tr.s = hosttest.Start(t, st.host, repos...)
	}
	tr.tools.Transport = tr.s.Transport()
	return tr
}

// open opens a connection, with the deployment's spelling of owners.
func (tr *hostTest) open(w wanted) Host {
	tr.Helper()
	if own := tr.st.owner; own != nil {
		spell := func(names []string) (out []string) {
			for _, n := range names {
				owner, name, more := strings.Cut(n, "/")
				if owner = own(owner); more {
					owner += "/" + name
				}
				out = append(out, owner)
			}
			return out
		}
		w.owners, w.users, w.repos = spell(w.owners), spell(w.users), spell(w.repos)
	}
	conn := tr.st.conn(tr.s.URL, w)
	conn.Shared().Name = "work"
	h, err := Open(conn, tr.tools)
	if err != nil {
		tr.Fatal(err)
	}
	return h
}

// list lists a selection. It checks that no message contains the token.
func (tr *hostTest) list(w wanted) (*recorder, error) {
	tr.Helper()
	return tr.listAgain(tr.open(w))
}

func (tr *hostTest) listAgain(h Host) (*recorder, error) {
	tr.Helper()
	rec := &recorder{}
	err := h.List(tr.Context(), rec)
	if text := fmt.Sprintf("%v %+v %+v", err, rec.issues, rec.repos); strings.Contains(text, hosttest.Token) {
		tr.Errorf("the token is told: %s", text)
	}
	return rec, err
}

// ids returns the host's ids of the listed repositories, in order.
func ids(rec *recorder) string {
	var out []string
	for _, r := range rec.repos {
		id := r.ExternalID[strings.LastIndex(r.ExternalID, ":")+1:]
		out = append(out, id)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// idsOf returns the ids of the server's repositories that match, as a listing has them.
func (tr *hostTest) idsOf(is func(hosttest.Repo) bool) string {
	var out []string
	tr.s.Do(func(s *hosttest.State) {
		for _, r := range *s.Repos {
			if !is(r) {
				continue
			}
			id := tr.st.id(r)
			switch tr.st.host.Name {
			case "bitbucket cloud", "azure devops services", "azure devops server":
				id = r.Owner + "/" + id
			}
			out = append(out, id)
		}
	})
	slices.Sort(out)
	return strings.Join(out, " ")
}
