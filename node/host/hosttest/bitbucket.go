package hosttest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// BitbucketCloud returns a fake of bitbucket.org.
func BitbucketCloud() *Deployment {
	return &Deployment{
		Name: "bitbucket cloud", Most: 100, schema: "bitbucket-cloud",
		public: "https://api.bitbucket.org", web: "https://bitbucket.org",

		// The API wants the e-mail address as user, and git a fixed name.
		authorized: passwordCheck(Account),
		refuse:     refused(`{"type":"error","error":{"message":"Token is invalid, expired, or not supported for this endpoint."}}`),
		missing:    notFound(`{"type":"error","error":{"message":"Repository not found"}}`),
		routes: []route{
			{"GET /2.0/repositories/{workspace}", "answer repositories", cloudList},
			{"GET /2.0/repositories/{workspace}/{slug}", "answer repository", cloudSingle},
		},
		clone: func(r Repo) string { return "/" + r.Path() + ".git" },
		opens: passwordCheck("x-bitbucket-api-token-auth"),
	}
}

var (
	cloudProject = regexp.MustCompile(`project\.key="([^"]*)"`)
	cloudUpdated = regexp.MustCompile(`updated_on>([0-9T:+-]+)`)
)

// cloudList answers with a page of a workspace or a project, optionally of changes since a time.
// The body has the URL of the next page.
func cloudList(s *Server, h http.Header, r *http.Request) any {
	q := r.URL.Query()
	workspace := r.PathValue("workspace")
	repos := s.reposOf(workspace)
	if repos == nil && workspace != "empty" {
		return nil
	}

	project, since := cloudProject.FindStringSubmatch(q.Get("q")), cloudUpdated.FindStringSubmatch(q.Get("q"))
	matching := repos[:0:0]
	for _, x := range repos {
		after := time.Time{}
		if since != nil {
			after, _ = time.Parse("2006-01-02T15:04:05-07:00", since[1])
		}
		if (project == nil || x.Project == project[1]) && (since == nil || x.Pushed.After(after)) {
			matching = append(matching, x)
		}
	}

	// The filter applies to all pages, so the next URL repeats it.
	n := number(r, "page", 1)
	page, more := s.pageOf(matching, n)
	body := map[string]any{"pagelen": s.page, "values": describeAll(page, cloudRepo)}
	if more {
		q.Set("page", strconv.Itoa(n+1))
		body["next"] = s.apiPrefix() + r.URL.Path + "?" + q.Encode()
	}
	return body
}

func cloudSingle(s *Server, h http.Header, r *http.Request) any {
	x, ok := s.firstRepo(func(x Repo) bool {
		slug := r.PathValue("slug")
		return strings.EqualFold(x.Owner, r.PathValue("workspace")) && (strings.EqualFold(x.Name, slug) || uuid(x.ID) == slug)
	})
	if !ok {
		return nil
	}
	return cloudRepo(x)
}

func uuid(id int64) string { return fmt.Sprintf("{00000000-0000-4000-8000-%012d}", id) }

func cloudRepo(r Repo) map[string]any {
	out := map[string]any{
		"type": "repository", "uuid": uuid(r.ID), "full_name": r.Path(), "name": r.Name, "slug": r.Name, "is_private": r.Private, "description": r.Description,
		"project": map[string]any{"type": "project", "key": r.Project}, "mainbranch": nil, "parent": nil,
		"updated_on": r.Pushed.UTC().Format("2006-01-02T15:04:05.000000-07:00"),
	}

	// Missing values are null. A size not yet computed is missing.
	if r.Branch != "" {
		out["mainbranch"] = map[string]any{"type": "branch", "name": r.Branch}
	}
	if r.Fork {
		out["parent"] = map[string]any{"type": "repository", "uuid": uuid(1)}
	}
	if r.Size > 0 {
		out["size"] = r.Size
	}
	return out
}

// BitbucketServer returns a fake Bitbucket Data Center below a path.
func BitbucketServer() *Deployment {
	api := "GET /bb/rest/api/1.0"
	return &Deployment{
		Name: "bitbucket data center", Most: 1000, prefix: "/bb", schema: "bitbucket-server",

		// Tokens use Bearer, and in git also the password of a fixed user.
		authorized: headerCheck("Bearer "),
		refuse:     refused(`{"errors":[{"context":null,"message":"Authentication failed.","exceptionName":"com.atlassian.bitbucket.auth.IncorrectPasswordAuthenticationException"}]}`),
		missing:    notFound(`{"errors":[{"context":null,"message":"Repository does not exist.","exceptionName":"com.atlassian.bitbucket.repository.NoSuchRepositoryException"}]}`),
		routes: []route{
			{api + "/repos", "answer repositories", serverList},
			{api + "/projects/{key}", "answer project", serverProject},
			{api + "/projects/{key}/repos/{slug}", "answer repository", serverSingle},
		},
		clone: func(r Repo) string { return "/bb/scm/" + strings.ToLower(r.Owner) + "/" + r.Name + ".git" },
		opens: anyCheck(headerCheck("Bearer "), passwordCheck("x-token-auth")),
	}
}

// serverList answers with a page of all repositories, or of a project. It includes archived ones
// only with archived=ALL. The start of the next page is independent of the number of entries.
func serverList(s *Server, h http.Header, r *http.Request) any {
	q := r.URL.Query()
	h.Set("X-AUSERNAME", "ann")
	repos := s.reposOf(q.Get("projectkey"))
	if q.Get("projectkey") == "" {
		repos = s.reposWhere(func(Repo) bool { return true })
	}
	if q.Get("archived") != "ALL" {
		repos = slices.DeleteFunc(slices.Clone(repos), func(x Repo) bool { return x.Archived })
	}

	// Pages are filtered by permissions, so they have any number of entries.
	const step = 7
	start := number(r, "start", 0)
	page, more := s.pageOf(repos, start/step+1)
	body := map[string]any{"size": len(page), "limit": s.page, "start": start, "isLastPage": !more, "nextPageStart": nil, "values": describeAll(page, serverRepo(s))}
	if more {
		body["nextPageStart"] = start + step
	}
	return body
}

// serverProject answers with a project. The project EMPTY exists and is empty.
func serverProject(s *Server, h http.Header, r *http.Request) any {
	key := r.PathValue("key")
	if s.reposOf(key) == nil && key != "EMPTY" {
		return nil
	}
	return map[string]any{"id": 1, "key": key, "name": key, "type": "NORMAL"}
}

func serverSingle(s *Server, h http.Header, r *http.Request) any {
	x, ok := s.byPath(r.PathValue("key"), r.PathValue("slug"))
	if !ok {
		return nil
	}
	return serverRepo(s)(x)
}

func serverRepo(s *Server) func(Repo) map[string]any {
	return func(r Repo) map[string]any {
		// The key of a personal project begins with a tilde.
		kind := "NORMAL"
		if strings.HasPrefix(r.Owner, "~") {
			kind = "PERSONAL"
		}
		out := map[string]any{
			"id": r.ID, "slug": r.Name, "name": r.Name, "public": !r.Private, "archived": r.Archived, "state": "AVAILABLE", "scmId": "git",
			"project": map[string]any{"id": 1, "key": r.Owner, "name": r.Owner, "type": kind},
			"links": map[string]any{
				"self":  []any{map[string]any{"href": s.pagePrefix() + "/projects/" + r.Owner + "/repos/" + r.Name + "/browse"}},
				"clone": []any{map[string]any{"name": "http", "href": strings.Replace(s.pagePrefix(), "://", "://ann@", 1) + "/scm/" + strings.ToLower(r.Owner) + "/" + r.Name + ".git"}},
			},
		}
		if r.Description != "" {
			out["description"] = r.Description
		}
		if r.Fork {
			out["origin"] = map[string]any{"id": 1, "slug": "origin", "project": map[string]any{"key": "ORIGIN"}}
		}
		if r.Disabled {
			out["state"] = "OFFLINE"
		}
		return out
	}
}
