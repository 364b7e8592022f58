package hosttest

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// GitLab returns a fake of gitlab.com or of a self-hosted server, below a path.
func GitLab() *Deployment {
	api := "GET /gitlab/api/v4"
	return &Deployment{
		Name: "gitlab", Most: 100, prefix: "/gitlab", schema: "gitlab", versions: true,

		// Git needs a user name for each form of token.
		authorized: headerCheck("Bearer "),
		refuse:     refused(`{"message":"401 Unauthorized"}`),
		missing:    notFound(`{"message":"404 Not Found"}`),
		routes: []route{
			{api + "/projects", "answer projects", gitlabAll},
			{api + "/groups/{group}/projects", "answer projects", gitlabGroup},
			{api + "/users/{user}/projects", "answer projects", gitlabUser},
			{api + "/projects/{id}", "answer project", gitlabSingle},
			{api + "/personal_access_tokens/self", "answer token", gitlabToken},
		},
		clone: func(r Repo) string { return "/gitlab/" + r.Path() + ".git" },
		opens: passwordCheck("oauth2"),
	}
}

// gitlabList answers with a page of projects, by page number or by cursor.
func gitlabList(s *Server, h http.Header, r *http.Request, repos []Repo) any {
	q := r.URL.Query()
	if q.Get("archived") == "false" {
		matching := repos[:0:0]
		for _, p := range repos {
			if !p.Archived {
				matching = append(matching, p)
			}
		}
		repos = matching
	}
	if q.Get("order_by") == "last_activity_at" {
		repos = newest(repos)
	}

	// keyset pagination uses a cursor
	name := "page"
	if q.Get("pagination") == "keyset" {
		name = "cursor"
	}
	n := number(r, name, 1)
	page, more := s.pageOf(repos, n)
	if more {
		s.linkTo(h, r.URL.EscapedPath(), r, name, strconv.Itoa(n+1))
	}
	return describeAll(page, gitlabProject(s, r))
}

func gitlabAll(s *Server, h http.Header, r *http.Request) any {
	return gitlabList(s, h, r, s.reposWhere(func(Repo) bool { return true }))
}

// gitlabGroup answers with the projects of a group, and of its subgroups if asked.
func gitlabGroup(s *Server, h http.Header, r *http.Request) any {
	group := strings.ToLower(r.PathValue("group"))
	deep := r.URL.Query().Get("include_subgroups") == "true"
	repos := s.reposWhere(func(p Repo) bool {
		owner := strings.ToLower(p.Owner)
		return owner == group || deep && strings.HasPrefix(owner, group+"/")
	})
	if s.person(group) || repos == nil && group != "empty" {
		return nil
	}
	return gitlabList(s, h, r, repos)
}

func gitlabUser(s *Server, h http.Header, r *http.Request) any {
	if !s.person(r.PathValue("user")) {
		return nil
	}
	return gitlabList(s, h, r, s.reposOf(r.PathValue("user")))
}

// gitlabSingle answers with a project by number or path.
func gitlabSingle(s *Server, h http.Header, r *http.Request) any {
	id := r.PathValue("id")
	p, ok := s.firstRepo(func(p Repo) bool { return strconv.FormatInt(p.ID, 10) == id || strings.EqualFold(p.Path(), id) })
	if !ok {
		return nil
	}
	return gitlabProject(s, r)(p)
}

func gitlabToken(*Server, http.Header, *http.Request) any {
	return map[string]any{"id": 1, "name": "shoal", "revoked": false, "active": true, "scopes": []any{"read_api", "read_repository"}, "expires_at": "2027-01-01"}
}

// gitlabProject returns the description of a project. It includes the size if asked, but not in a
// group's list.
func gitlabProject(s *Server, request *http.Request) func(Repo) map[string]any {
	sized := request.URL.Query().Get("statistics") == "true" && request.PathValue("group") == ""
	return func(r Repo) map[string]any {
		visibility := "public"
		switch {
		case r.Internal:
			visibility = "internal"
		case r.Private:
			visibility = "private"
		}
		kind := "group"
		if s.person(r.Owner) {
			kind = "user"
		}

		out := map[string]any{
			"id": r.ID, "name": r.Name, "path": r.Name, "path_with_namespace": r.Path(), "name_with_namespace": strings.ReplaceAll(r.Path(), "/", " / "),
			"web_url": s.pagePrefix() + "/" + r.Path(), "http_url_to_repo": s.pagePrefix() + "/" + r.Path() + ".git",
			"description": r.Description, "visibility": visibility, "archived": r.Archived, "topics": topics(r), "star_count": r.Stars,
			"empty_repo": r.Branch == "", "default_branch": nil, "last_activity_at": instant(r.Pushed.Add(time.Second)),
			"repository_access_level": "enabled", "import_status": "none",
			"namespace": map[string]any{"id": 1, "name": r.Owner, "path": r.Owner, "full_path": r.Owner, "kind": kind},
		}

		// statistics need their parameter. A project under import cannot be fetched.
		if r.Branch != "" {
			out["default_branch"] = r.Branch
		}
		if r.Fork {
			out["forked_from_project"] = map[string]any{"id": 1, "name": "origin", "path": "origin", "web_url": s.pagePrefix() + "/origin"}
		}
		if sized {
			out["statistics"] = map[string]any{"repository_size": r.Size}
		}
		if r.Disabled {
			out["import_status"] = "started"
		}
		return out
	}
}
