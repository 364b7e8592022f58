package hosttest

import (
	"fmt"
	"net/http"
	"strings"
)

// AzureServices returns a fake of dev.azure.com. It answers a bad token with a sign-in page and
// status 203.
func AzureServices() *Deployment {
	d := azure("azure devops services", "", func(w http.ResponseWriter) {
		writeAnswer(w, http.StatusNonAuthoritativeInfo, "<html><body>Sign in to your account</body></html>")
	})
	d.public, d.web = "https://dev.azure.com", "https://dev.azure.com"
	return d
}

// AzureServer returns a fake Azure DevOps Server with the path of old servers.
func AzureServer() *Deployment {
	return azure("azure devops server", "/tfs", func(w http.ResponseWriter) { writeAnswer(w, http.StatusUnauthorized, "<html>401</html>") })
}

func azure(name, prefix string, refuse func(http.ResponseWriter)) *Deployment {
	return &Deployment{
		Name: name, prefix: prefix, schema: "azure",

		// Any user is accepted with the token, in the API and in git.
		authorized: passwordCheck(""),
		refuse:     refuse,
		missing:    notFound(`{"$id":"1","message":"TF401019: The Git repository with name or identifier does not exist.","typeName":"GitRepositoryNotFoundException","errorCode":0}`),
		routes: []route{
			{"GET " + prefix + "/{org}/_apis/git/repositories", "answer repositories", azureList},
			{"GET " + prefix + "/{org}/{project}/_apis/git/repositories", "answer repositories", azureList},
			{"GET " + prefix + "/{org}/_apis/git/repositories/{repo}", "answer repository", azureSingle},
			{"GET " + prefix + "/{org}/{project}/_apis/git/repositories/{repo}", "answer repository", azureSingle},
		},
		clone: func(r Repo) string { return prefix + "/" + r.Owner + "/" + r.Project + "/_git/" + r.Name },
		opens: passwordCheck(""),
	}
}

// azureList answers with all repositories of an organisation or a project.
func azureList(s *Server, h http.Header, r *http.Request) any {
	org, project := r.PathValue("org"), r.PathValue("project")
	repos := s.reposOf(org)
	if repos == nil && org != "empty" {
		return nil
	}

	matching := repos[:0:0]
	for _, x := range repos {
		if project == "" || strings.EqualFold(x.Project, project) {
			matching = append(matching, x)
		}
	}
	if project != "" && len(matching) == 0 {
		return nil
	}
	return map[string]any{"count": len(matching), "value": describeAll(matching, azureRepo(s))}
}

func azureSingle(s *Server, h http.Header, r *http.Request) any {
	project, name := r.PathValue("project"), r.PathValue("repo")
	x, ok := s.firstRepo(func(x Repo) bool {
		return strings.EqualFold(x.Owner, r.PathValue("org")) && (guid(x.ID) == name || strings.EqualFold(x.Name, name) && strings.EqualFold(x.Project, project))
	})
	if !ok {
		return nil
	}
	return azureRepo(s)(x)
}

func guid(id int64) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", id) }

func azureRepo(s *Server) func(Repo) map[string]any {
	return func(r Repo) map[string]any {
		// Visibility belongs to the project, not to the repository.
		visibility := "public"
		switch {
		case r.Internal:
			visibility = "organization"
		case r.Private:
			visibility = "private"
		}
		out := map[string]any{
			"id": guid(r.ID), "name": r.Name, "url": s.pagePrefix() + "/_apis/git/repositories/" + guid(r.ID),
			"project":   map[string]any{"id": guid(1), "name": r.Project, "state": "wellFormed", "visibility": visibility},
			"remoteUrl": s.pagePrefix() + "/" + r.Owner + "/" + r.Project + "/_git/" + r.Name, "webUrl": s.pagePrefix() + "/" + r.Owner + "/" + r.Project + "/_git/" + r.Name,
			"size": r.Size, "isDisabled": r.Disabled, "isInMaintenance": false,
		}
		if r.Branch != "" {
			out["defaultBranch"] = "refs/heads/" + r.Branch
		}
		if r.Fork {
			out["isFork"] = true
		}
		return out
	}
}
