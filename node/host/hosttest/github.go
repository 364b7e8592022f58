package hosttest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// GitHub returns a fake of github.com, or of a subdomain of ghe.com.
func GitHub() *Deployment {
	d := github("github", "github", "", "")
	d.public, d.web = "https://api.github.com", "https://github.com"
	return d
}

// GitHubServer returns a fake Enterprise Server.
func GitHubServer() *Deployment {
	return github("github enterprise server", "ghes", "/ghe", "/ghe/api/v3")
}

// github returns a deployment with the API below a path.
func github(name, schema, prefix, below string) *Deployment {
	api := "GET " + below
	return &Deployment{
		Name: name, Most: 100, prefix: prefix, schema: schema, versions: true,

		// The GraphQL path is outside of the REST paths.
		authorized: headerCheck("Bearer "),
		refuse:     refused(`{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest","status":"401"}`),
		missing:    notFound(`{"message":"Not Found","documentation_url":"https://docs.github.com/rest","status":"404"}`),
		routes: []route{
			{api + "/orgs/{owner}/repos", "answer repositories of an organization", githubOrg(below)},
			{api + "/organizations/{id}/repos", "answer repositories of an organization", githubOrgByNumber},
			{api + "/users/{owner}/repos", "answer repositories of a user", githubUser},
			{api + "/user/repos", "answer own repositories", githubOwn},
			{api + "/repos/{owner}/{name}", "answer repository", githubByName},
			{api + "/repositories/{id}", "answer repository", githubByNumber},
			{"POST " + strings.TrimSuffix(below, "/v3") + "/graphql", "github-graphql:answer repositories", githubGraph},
		},
		clone: func(r Repo) string { return prefix + "/" + r.Path() + ".git" },
		opens: passwordCheck("x-access-token"),
	}
}

// githubList answers with a page of repositories. next is the path of the next page's URL, which has
// the organisation's number, as on GitHub.
func githubList(s *Server, h http.Header, r *http.Request, repos []Repo, next string) any {
	h.Set("X-RateLimit-Limit", "5000")
	h.Set("X-RateLimit-Remaining", "4999")
	h.Set("X-RateLimit-Reset", "1772370000")
	h.Set("X-RateLimit-Resource", "core")

	if r.URL.Query().Get("sort") == "pushed" {
		repos = newest(repos)
	}
	n := number(r, "page", 1)
	page, more := s.pageOf(repos, n)
	if more {
		s.linkTo(h, next, r, "page", strconv.Itoa(n+1))
	}
	return describeAll(page, githubRepo)
}

// githubOrg answers a request for the repositories of an organisation, or with nil if there is none
// of that name. The pages' links begin with below.
func githubOrg(below string) func(*Server, http.Header, *http.Request) any {
	return func(s *Server, h http.Header, r *http.Request) any {
		owner := r.PathValue("owner")
		repos := s.reposOf(owner)
		if s.person(owner) || repos == nil && owner != "empty" {
			return nil
		}
		return githubList(s, h, r, repos, below+"/organizations/"+owner+"/repos")
	}
}

func githubOrgByNumber(s *Server, h http.Header, r *http.Request) any {
	return githubList(s, h, r, s.reposOf(r.PathValue("id")), r.URL.Path)
}

// githubUser answers with a user's public repositories.
func githubUser(s *Server, h http.Header, r *http.Request) any {
	owner := r.PathValue("owner")
	repos := s.reposWhere(func(x Repo) bool { return x.Owner == owner && !x.Private })
	if !s.person(owner) {
		return nil
	}
	return githubList(s, h, r, repos, r.URL.Path)
}

// githubOwn answers with all repositories of the token's account.
func githubOwn(s *Server, h http.Header, r *http.Request) any {
	return githubList(s, h, r, s.reposOf("ann"), r.URL.Path)
}

func githubByName(s *Server, h http.Header, r *http.Request) any {
	return githubSingle(s.byPath(r.PathValue("owner"), r.PathValue("name")))
}

func githubByNumber(s *Server, h http.Header, r *http.Request) any {
	return githubSingle(s.byNumber(r.PathValue("id")))
}

// asked matches a repository in a GraphQL query.
var asked = regexp.MustCompile(`(\w+):repository\(owner:"([^"]*)",name:"([^"]*)",followRenames:true\){\.\.\.f}`)

// githubGraph answers a query for many repositories. Missing ones are null, with an error.
func githubGraph(s *Server, h http.Header, r *http.Request) any {
	var question struct{ Query string }
	if err := json.NewDecoder(r.Body).Decode(&question); err != nil || !strings.Contains(question.Query, "fragment f on Repository{") {
		return map[string]any{"errors": []any{map[string]any{"message": "Parse error"}}}
	}

	h.Set("X-RateLimit-Limit", "5000")
	h.Set("X-RateLimit-Remaining", "4990")
	h.Set("X-RateLimit-Reset", "1772370000")
	h.Set("X-RateLimit-Resource", "graphql")

	// A missing repository does not affect the others.
	data, errs := map[string]any{}, []any{}
	for _, m := range asked.FindAllStringSubmatch(question.Query, -1) {
		repo, ok := s.byPath(m[2], m[3])
		if !ok {
			data[m[1]] = nil
			errs = append(errs, map[string]any{"type": "NOT_FOUND", "path": []any{m[1]}, "message": "Could not resolve to a Repository with the name '" + m[2] + "/" + m[3] + "'."})
			continue
		}
		data[m[1]] = githubNode(repo)
	}
	out := map[string]any{"data": data}
	if len(errs) > 0 {
		out["errors"] = errs
	}
	return out
}

func githubNode(r Repo) map[string]any {
	// GraphQL uses capitals, unlike the lists.
	visibility, nodes := "PUBLIC", []any{}
	switch {
	case r.Internal:
		visibility = "INTERNAL"
	case r.Private:
		visibility = "PRIVATE"
	}
	for _, t := range r.Topics {
		nodes = append(nodes, map[string]any{"topic": map[string]any{"name": t}})
	}
	out := map[string]any{
		"databaseId": r.ID, "nameWithOwner": r.Path(), "visibility": visibility, "isFork": r.Fork, "isArchived": r.Archived, "isDisabled": r.Disabled,
		"diskUsage": r.Size / 1000, "stargazerCount": r.Stars, "description": nil, "pushedAt": nil, "defaultBranchRef": nil,
		"repositoryTopics": map[string]any{"nodes": nodes},
	}
	if r.Description != "" {
		out["description"] = r.Description
	}
	if r.Branch != "" {
		out["defaultBranchRef"] = map[string]any{"name": r.Branch}
	}
	if !r.Pushed.IsZero() {
		out["pushedAt"] = instant(r.Pushed)
	}
	return out
}

func githubSingle(repo Repo, ok bool) any {
	if !ok {
		return nil
	}
	return githubRepo(repo)
}

// githubRepo returns a repository as GitHub's REST API writes it.
func githubRepo(r Repo) map[string]any {
	// Internal repositories are private, too, for clients that read only that field.
	visibility := "public"
	switch {
	case r.Internal:
		visibility = "internal"
	case r.Private:
		visibility = "private"
	}
	out := map[string]any{
		"id": r.ID, "name": r.Name, "full_name": r.Path(), "owner": map[string]any{"login": r.Owner},
		"private": r.Private || r.Internal, "visibility": visibility, "fork": r.Fork, "archived": r.Archived, "disabled": r.Disabled,
		"description": nil, "default_branch": "main", "pushed_at": nil, "stargazers_count": r.Stars, "topics": topics(r), "size": r.Size / 1000,
	}
	if r.Description != "" {
		out["description"] = r.Description
	}
	if r.Branch != "" {
		out["default_branch"] = r.Branch
	}
	if !r.Pushed.IsZero() {
		out["pushed_at"] = instant(r.Pushed)
	}
	return out
}

func topics(r Repo) []any {
	out := []any{}
	for _, t := range r.Topics {
		out = append(out, t)
	}
	return out
}
