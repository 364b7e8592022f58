package config

import (
	"net/url"
	"strings"
)

// warn adds to the warnings of a valid file what is allowed but hardly meant.
func (f *File) warn() {
	w := &checker{}
	for _, conn := range f.Connections {
		w.warnConnection(conn)
	}
	for _, x := range f.Contexts {
		path := child("contexts", x.Name)
		for _, list := range []struct {
			name  string
			names []string
		}{{"includeConnections", x.IncludeConnections}, {"excludeConnections", x.ExcludeConnections}} {
			for i, name := range list.names {
				if f.Connection(name) == nil {
					w.add(item(child(path, list.name), i), "There is no connection called %s.", show(name))
				}
			}
		}
		if len(x.Include)+len(x.IncludeConnections)+len(x.IncludeTopics) == 0 {
			w.add(path, "It includes nothing; add include, includeConnections or includeTopics.")
		}
	}
	for i, m := range f.Models {
		if m.Provider == Azure && m.BaseURL != "" && m.ResourceName != "" {
			w.add(item("models", i)+".resourceName", "It is ignored, because baseUrl is given.")
		}
	}
	hosts := make(map[string]bool)
	for i, a := range f.Apps {
		if hosts[strings.ToLower(a.DeploymentHostname)] {
			w.add(item("apps", i)+".deploymentHostname", "There is another app for this host; the first one is used where both are installed.")
		}
		hosts[strings.ToLower(a.DeploymentHostname)] = true
	}
	f.Warnings = append(Errors(f.Warnings), w.errs...).sorted()
}

func (c *checker) warnConnection(conn Connection) {
	path := child("connections", conn.Shared().Name)
	nothing := func(lists ...[]string) {
		for _, l := range lists {
			if len(l) > 0 {
				return
			}
		}
		c.add(path, "It takes no repository; say which ones.")
	}
	address := ""
	switch n := conn.(type) {
	case *GitHub:
		address = n.URL
		nothing(n.Users, n.Orgs, n.Repos)
	case *GitLab:
		address = n.URL
		public := hostOf(n.URL) == "gitlab.com"
		if n.All && public {
			c.add(path+".all", "It is ignored for gitlab.com; name users, groups or projects.")
		}
		if !n.All || public {
			nothing(n.Users, n.Groups, n.Projects)
		}
	case *Gitea:
		address = n.URL
		nothing(n.Orgs, n.Repos, n.Users)
	case *Gerrit:
		address = n.URL
	case *Bitbucket:
		address = n.URL
		c.warnBitbucket(path, n)
		if !n.All || n.Deployment == Cloud {
			nothing(n.Workspaces, n.Projects, n.Repos)
		}
	case *AzureDevOps:
		address = n.URL
		if n.Deployment == Server && hostOf(n.URL) == "dev.azure.com" {
			c.add(path+".url", "A server has a URL of its own; this is the one of the cloud.")
		}
		nothing(n.Orgs, n.Projects, n.Repos)
	case *Git:
		address = n.URL
	}
	if u, err := url.Parse(address); err == nil && u.User != nil {
		c.add(path+".url", "It holds a user name or a password, which everyone who may read this file sees; use token where the kind has it.")
	}
}

func (c *checker) warnBitbucket(path string, n *Bitbucket) {
	cloud := n.Deployment == Cloud
	if host := hostOf(n.URL); cloud && host != "bitbucket.org" && !strings.HasSuffix(host, ".bitbucket.org") {
		c.add(path+".deploymentType", "The URL is not that of the cloud; for a Bitbucket Data Center set deploymentType to server.")
	}
	if cloud && n.All {
		c.add(path+".all", "It is ignored for cloud; name workspaces, projects or repos.")
	}
	if cloud && n.Exclude.Archived {
		c.add(path+".exclude.archived", "It is ignored for cloud, which does not say what is archived.")
	}
	if !cloud && len(n.Workspaces) > 0 {
		c.add(path+".workspaces", "It is ignored for server, which has projects only.")
	}
	form := func(name string, list []string, slashes int, want string) {
		for i, s := range list {
			if strings.Count(s, "/") != slashes {
				c.add(item(child(path, name), i), "It should have the form %s for %s.", want, n.Deployment)
			}
		}
	}
	if cloud {
		form("projects", n.Projects, 1, "workspace/KEY")
		form("repos", n.Repos, 1, "workspace/slug")
	} else {
		form("projects", n.Projects, 0, "KEY")
		form("repos", n.Repos, 1, "KEY/slug")
	}
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
