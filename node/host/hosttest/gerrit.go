package hosttest

import (
	"net/http"
	"strings"
)

// Gerrit returns a fake Gerrit server. Its repositories have no ids, and authenticated calls use
// the path /a.
func Gerrit() *Deployment {
	return &Deployment{
		Name: "gerrit", Most: 500, prefix: "/r", schema: "gerrit", before: ")]}'\n",

		// Errors are plain text, not JSON.
		authorized: passwordCheck("ann"),
		refuse:     func(w http.ResponseWriter) { writeAnswer(w, http.StatusUnauthorized, "Unauthorized") },
		missing:    func(w http.ResponseWriter) { writeAnswer(w, http.StatusNotFound, "Not found") },
		routes: []route{
			{"GET /r/a/projects/{$}", "answer projects", gerritList},
			{"GET /r/a/projects/{name}", "answer project", gerritSingle},
			{"GET /r/projects/{$}", "answer projects", gerritList},
			{"GET /r/projects/{name}", "answer project", gerritSingle},
		},
		clone: func(r Repo) string { return "/r/a/" + r.Path() },
		opens: passwordCheck("ann"),
	}
}

// gerritList answers with a page of projects, sorted by name. It does not tell whether more follow,
// as some servers do not. Hidden projects need the parameter all.
func gerritList(s *Server, h http.Header, r *http.Request) any {
	q := r.URL.Query()
	repos := s.reposWhere(func(p Repo) bool { return strings.HasPrefix(p.Path(), q.Get("p")) && (!p.Hidden || q.Has("all")) })
	repos = append(repos, Repo{Owner: "", Name: "All-Users"})

	// The start is a number of entries, not of pages.
	from := min(number(r, "S", 0), len(repos))
	to := min(from+s.page, len(repos))
	out := map[string]any{}
	for _, p := range repos[from:to] {
		info := gerritProject(p)
		if branches := q["b"]; len(branches) > 0 {
			commits := map[string]any{}
			for _, b := range branches {
				commits[b] = strings.Repeat("-", 40)
				if b == p.Branch && p.Commit != "" {
					commits[b] = p.Commit
				}
			}
			info["branches"] = commits
		}
		out[strings.TrimPrefix(p.Path(), "/")] = info
	}
	return out
}

func gerritSingle(s *Server, h http.Header, r *http.Request) any {
	p, ok := s.firstRepo(func(p Repo) bool { return p.Path() == r.PathValue("name") })
	if !ok {
		return nil
	}
	return gerritProject(p)
}

func gerritProject(r Repo) map[string]any {
	// A project has one state. Hidden wins over read-only.
	state := "ACTIVE"
	switch {
	case r.Hidden:
		state = "HIDDEN"
	case r.Archived:
		state = "READ_ONLY"
	}
	out := map[string]any{
		"id": strings.ReplaceAll(strings.TrimPrefix(r.Path(), "/"), "/", "%2F"), "state": state,
		"web_links": []any{map[string]any{"name": "gitiles", "url": "/plugins/gitiles/" + r.Path()}},
	}
	if r.Description != "" {
		out["description"] = r.Description
	}
	return out
}
