package hosttest

import (
	"net/http"
	"strconv"
	"strings"
)

// Gitea returns a fake Gitea or Forgejo server below a path.
func Gitea() *Deployment {
	api := "GET /git/api/v1"
	return &Deployment{
		Name: "gitea", Most: 50, prefix: "/git", schema: "gitea",

		// Gitea accepts several forms; this one is documented.
		authorized: headerCheck("token "),
		refuse:     refused(`{"message":"invalid username, password or token","url":"https://gitea.example/api/swagger"}`),
		missing:    notFound(`{"message":"The target couldn't be found.","url":"https://gitea.example/api/swagger","errors":[]}`),
		routes: []route{
			{api + "/orgs/{owner}/repos", "answer repositories", giteaOwner(false)},
			{api + "/users/{owner}/repos", "answer repositories", giteaOwner(true)},
			{api + "/orgs/{owner}", "answer organization", giteaAccount(false)},
			{api + "/users/{owner}", "answer user", giteaAccount(true)},
			{api + "/repos/search", "answer search", giteaSearch},
			{api + "/repos/{owner}/{name}", "answer repository", giteaByName},
			{api + "/repositories/{id}", "answer repository", giteaByNumber},
		},
		clone: func(r Repo) string { return "/git/" + r.Path() + ".git" },
		opens: passwordCheck(""),
	}
}

// giteaList answers with a page of repositories. Links use the server's configured address, which
// differs behind a proxy.
func giteaList(s *Server, h http.Header, r *http.Request, repos []Repo) []any {
	n := number(r, "page", 1)
	page, more := s.pageOf(repos, n)
	h.Set("X-Total-Count", strconv.Itoa(len(repos)))
	if more {
		s.linkTo(h, r.URL.EscapedPath(), r, "page", strconv.Itoa(n+1))
		h.Set("Link", strings.ReplaceAll(h.Get("Link"), s.http.URL, "http://inside.example:3000")+`, <http://inside.example:3000/x?page=99>; rel="last"`)
	}
	return describeAll(page, giteaRepo(s))
}

func giteaOwner(person bool) func(*Server, http.Header, *http.Request) any {
	return func(s *Server, h http.Header, r *http.Request) any {
		owner := r.PathValue("owner")
		repos := s.reposOf(owner)
		if s.person(owner) != person || repos == nil && owner != "empty" {
			return nil
		}
		return giteaList(s, h, r, repos)
	}
}

// giteaAccount answers with the id of an owner, for the search. The id is that of its first
// repository.
func giteaAccount(person bool) func(*Server, http.Header, *http.Request) any {
	return func(s *Server, h http.Header, r *http.Request) any {
		owner := r.PathValue("owner")
		repos := s.reposOf(owner)
		if s.person(owner) != person || len(repos) == 0 {
			return nil
		}
		if person {
			return map[string]any{"id": repos[0].ID, "login": owner}
		}
		return map[string]any{"id": repos[0].ID, "name": owner, "username": owner}
	}
}

func giteaSearch(s *Server, h http.Header, r *http.Request) any {
	first, ok := s.byNumber(r.URL.Query().Get("uid"))
	if !ok {
		return map[string]any{"ok": true, "data": []any{}}
	}
	return map[string]any{"ok": true, "data": giteaList(s, h, r, newest(s.reposOf(first.Owner)))}
}

func giteaByName(s *Server, h http.Header, r *http.Request) any {
	return giteaSingle(s)(s.byPath(r.PathValue("owner"), r.PathValue("name")))
}

func giteaByNumber(s *Server, h http.Header, r *http.Request) any {
	return giteaSingle(s)(s.byNumber(r.PathValue("id")))
}

func giteaSingle(s *Server) func(Repo, bool) any {
	return func(repo Repo, ok bool) any {
		if !ok {
			return nil
		}
		return giteaRepo(s)(repo)
	}
}

func giteaRepo(s *Server) func(Repo) map[string]any {
	return func(r Repo) map[string]any {
		return map[string]any{
			"id": r.ID, "name": r.Name, "full_name": r.Path(), "owner": map[string]any{"id": 1, "login": r.Owner},
			"html_url": "http://inside.example:3000/" + r.Path(), "clone_url": "http://inside.example:3000/" + r.Path() + ".git",
			"description": r.Description, "private": r.Private, "internal": r.Internal, "fork": r.Fork, "archived": r.Archived, "empty": r.Branch == "",
			"parent": nil, "has_code": true, "default_branch": r.Branch, "size": r.Size / 1024, "stars_count": r.Stars, "topics": topics(r),
			"updated_at": instant(r.Pushed), "object_format_name": "sha1",
		}
	}
}
