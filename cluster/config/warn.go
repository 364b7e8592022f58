package config

import (
	"net/url"
	"strings"
)

// addWarnings adds warnings about settings that are valid but probably mistakes.
func (f *File) addWarnings() {
	w := &checker{}
	for _, conn := range f.Connections {
		w.warnConnection(conn)
	}

	for _, x := range f.Contexts {
		w.warnContext(f, x)
	}

	for _, o := range f.Overrides {
		if why := whyNoEffect(o.Name); why != "" {
			w.report(childPath("environmentOverrides", o.Name), "%s", why)
		}
	}

	hosts := make(map[string]bool) // lower case
	for i, a := range f.Apps {
		host := strings.ToLower(a.DeploymentHostname)
		if hosts[host] {
			w.report(item("apps", i)+".deploymentHostname", "There is another app for this host; the first one is used where both are installed.")
		}
		hosts[host] = true
	}

	f.Warnings = append(append(Errors(f.Warnings), w.errs...), f.ignoredProperties()...).normalized()
}

// ignoredProperties returns the properties that have no effect, because of other properties of
// their object.
func (f *File) ignoredProperties() Errors {
	c := &checker{}
	for _, conn := range f.Connections {
		path := childPath("connections", conn.Shared().Name)
		switch n := conn.(type) {
		case *GitLab:
			if n.All && isTooLargeForAll(n) {
				c.report(path+".all", "It is ignored for gitlab.com; name users, groups or projects.")
			}
		case *Bitbucket:
			cloud := n.Deployment == Cloud
			if n.All && cloud {
				c.report(path+".all", "It is ignored for cloud; name workspaces, projects or repos.")
			}
			if n.Exclude.Archived && cloud {
				c.report(path+".exclude.archived", "It is ignored for cloud, which does not say what is archived.")
			}
			if len(n.Workspaces) > 0 && !cloud {
				c.report(path+".workspaces", "It is ignored for server, which has projects only.")
			}
		}
	}
	for i, m := range f.Models {
		if m.Provider == Azure && m.BaseURL != "" && m.ResourceName != "" {
			c.report(item("models", i)+".resourceName", "It is ignored, because baseUrl is given.")
		}
	}
	return c.errs
}

// warnContext warns about unknown connections in a context, and about an empty context.
func (c *checker) warnContext(f *File, x Context) {
	path := childPath("contexts", x.Name)

	// An unknown connection is no error, because the next version of the file may add it.
	warnUnknown := func(property string, names []string) {
		for i, name := range names {
			if f.Connection(name) == nil {
				c.report(item(childPath(path, property), i), "There is no connection called %s.", formatValue(name))
			}
		}
	}
	warnUnknown("includeConnections", x.IncludeConnections)
	warnUnknown("excludeConnections", x.ExcludeConnections)

	if len(x.Include)+len(x.IncludeConnections)+len(x.IncludeTopics) == 0 {
		c.report(path, "It includes nothing; add include, includeConnections or includeTopics.")
	}
}

// warnConnection reports settings of a connection that are valid but probably mistakes.
func (c *checker) warnConnection(conn Connection) {
	path := childPath("connections", conn.Shared().Name)
	if enforced := conn.Shared().EnforcePermissions; enforced != nil && *enforced {
		c.report(path+".enforcePermissions", "%s", byEnvironment)
	}

	switch n := conn.(type) {
	case *GitHub:
		c.warnAddress(path, n.URL)
		c.warnEmpty(path, n.Users, n.Orgs, n.Repos)
	case *GitLab:
		c.warnAddress(path, n.URL)
		c.warnGitLab(path, n)
	case *Gitea:
		c.warnAddress(path, n.URL)
		c.warnEmpty(path, n.Orgs, n.Repos, n.Users)

	case *Gerrit: // without projects it lists all
		c.warnAddress(path, n.URL)
	case *Bitbucket:
		c.warnAddress(path, n.URL)
		c.warnBitbucket(path, n)

	case *AzureDevOps:
		c.warnAddress(path, n.URL)
		if n.Deployment == Server && hostOf(n.URL) == "dev.azure.com" {
			c.report(path+".url", "A server has a URL of its own; this is the one of the cloud.")
		}
		c.warnEmpty(path, n.Orgs, n.Projects, n.Repos)
	case *Git:
		c.warnSecret(path, n.URL)
	}
}

// warnSecret warns about a URL with a secret in it.
func (c *checker) warnSecret(path, address string) {
	if secretIn(address) {
		c.report(path+".url", "It holds a user name or a password, which everyone who may read this file sees; use token where the kind has it.")
	}
}

// warnAddress warns about mistakes in the URL of a host.
func (c *checker) warnAddress(path, address string) {
	c.warnSecret(path, address)

	// Users copy the URL of an organisation from the browser.
	if instead := ownersOf[hostOf(address)]; instead != "" && pathOf(address) != "" && apiPaths[pathOf(address)] == "" {
		c.report(path+".url", "It has a path, which %s does not: leave it out, and name owners in %s.", hostOf(address), instead)
	}
}

// ownersOf names the properties for owners, by public host. These hosts are all at the root of
// their URL.
var ownersOf = map[string]string{
	"github.com": "orgs or users", "gitlab.com": "groups or users", "gitea.com": "orgs or users", "bitbucket.org": "workspaces", "dev.azure.com": "orgs",
}

// apiPaths lists paths of APIs, which are allowed in the URL of a host.
var apiPaths = map[string]string{"api/v4": "GitLab", "api/v1": "Gitea", "api/v3": "GitHub", "2.0": "Bitbucket"}

// pathOf returns the path of a URL without slashes around it.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.Trim(u.Path, "/")
}

// secretIn reports whether a URL has user information.
func secretIn(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.User != nil
}

// warnEmpty warns about a connection without any selection.
func (c *checker) warnEmpty(path string, lists ...[]string) {
	for _, l := range lists {
		if len(l) > 0 {
			return
		}
	}
	c.report(path, "It takes no repository; say which ones.")
}

func (c *checker) warnGitLab(path string, n *GitLab) {
	if !n.All || isTooLargeForAll(n) {
		c.warnEmpty(path, n.Users, n.Groups, n.Projects)
	}
}

// warnBitbucket reports a URL, and names of projects and repositories, that do not fit the deployment type.
func (c *checker) warnBitbucket(path string, n *Bitbucket) {
	cloud := n.Deployment == Cloud
	if host := hostOf(n.URL); cloud && host != "bitbucket.org" && !strings.HasSuffix(host, ".bitbucket.org") {
		c.report(path+".deploymentType", "The URL is not that of the cloud; for a Bitbucket Data Center set deploymentType to server.")
	}

	// In the cloud, projects belong to workspaces; on a server they do not.
	form := func(name string, list []string, slashes int, want string) {
		for i, s := range list {
			if strings.Count(s, "/") != slashes {
				c.report(item(childPath(path, name), i), "It should have the form %s for %s.", want, n.Deployment)
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

	switch {
	case cloud:
		c.warnEmpty(path, n.Workspaces, n.Projects, n.Repos)
	case !n.All:
		c.warnEmpty(path, n.Projects, n.Repos)
	}
}

// hostOf returns the host name of a URL, in lower case, or "".
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
