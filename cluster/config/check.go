package config

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/shoalsearch/shoal/glob"
)

// checker collects the errors that a schema cannot express.
type checker struct{ errs Errors }

func (c *checker) add(path, format string, args ...any) {
	c.errs = append(c.errs, Error{path, fmt.Sprintf(format, args...)})
}

// check returns the errors of a file that fits the schema. It collects all of them, so that a user
// can fix a file in one go.
func (f *File) check() Errors {
	c := &checker{}
	for _, conn := range f.Connections {
		c.connection(conn)
	}

	for _, x := range f.Contexts {
		path := child("contexts", x.Name)
		c.globs(path+".include", x.Include)
		c.globs(path+".exclude", x.Exclude)
		c.globs(path+".includeTopics", x.IncludeTopics)
		c.globs(path+".excludeTopics", x.ExcludeTopics)
	}

	// The value of a reference is known only on a node, which checks it there.
	for _, o := range f.Overrides {
		path := child("environmentOverrides", o.Name) + ".value"
		c.token(path, o.Token)
		if strings.ContainsRune(o.Value, 0) {
			c.add(path, "It has a NUL character, which no environment variable can hold; remove it.")
		}
		if err := checkVariable(o.Name, o.Value); o.Token == nil && err != nil {
			c.add(path, "%s", err)
		}
	}

	for i, m := range f.Models {
		c.model(item("models", i), m)
	}

	for i, a := range f.Apps {
		path := item("apps", i)
		c.token(path+".privateKey", a.PrivateKey)

		if a.DeploymentHostname == "" || strings.ContainsAny(a.DeploymentHostname, "/ @") || control(a.DeploymentHostname) {
			c.add(path+".deploymentHostname", "It must be a host name without a scheme or a path, as github.com.")
		}

		if strings.TrimSpace(a.ID) == "" {
			c.add(path+".id", "It must not be empty; it is the id that the host shows for the app.")
		}
	}

	for _, p := range f.IdentityProviders {
		path := child("identityProviders", p.ID)
		c.url(path+".baseUrl", p.BaseURL)
		c.token(path+".clientId", p.ClientID)
		c.token(path+".clientSecret", p.ClientSecret)
		c.token(path+".issuer", p.Issuer)
		c.token(path+".audience", p.Audience)
	}
	return c.errs
}

func (c *checker) connection(conn Connection) {
	s := conn.Shared()
	path := child("connections", s.Name)
	c.globs(path+".revisions.branches", s.Revisions.Branches)
	c.globs(path+".revisions.tags", s.Revisions.Tags)

	switch n := conn.(type) {
	case *GitHub:
		c.host(path, n.URL, n.Token)
		c.globs(path+".topics", n.Topics)
		c.globs(path+".exclude.repos", n.Exclude.Repos)
		c.globs(path+".exclude.topics", n.Exclude.Topics)
		c.size(path+".exclude.size", n.Exclude.Size)

	case *GitLab:
		c.host(path, n.URL, n.Token)
		c.url(path+".webUrl", n.WebURL)
		c.globs(path+".topics", n.Topics)
		c.globs(path+".exclude.projects", n.Exclude.Projects)
		c.globs(path+".exclude.topics", n.Exclude.Topics)
	case *Gitea:
		c.host(path, n.URL, n.Token)
		c.globs(path+".exclude.repos", n.Exclude.Repos)

	case *Gerrit:
		c.host(path, n.URL, n.Token)
		c.pair(path, n.User, n.Token)
		c.globs(path+".projects", n.Projects)
		c.globs(path+".exclude.projects", n.Exclude.Projects)

	case *Bitbucket:
		c.host(path, n.URL, n.Token)
		c.globs(path+".exclude.repos", n.Exclude.Repos)
	case *AzureDevOps:
		c.host(path, n.URL, n.Token)
		c.globs(path+".exclude.repos", n.Exclude.Repos)
		c.globs(path+".exclude.projects", n.Exclude.Projects)
		c.size(path+".exclude.size", n.Exclude.Size)
	case *Git:
		// The path of local repositories is a glob.
		if dir, ok := strings.CutPrefix(n.URL, "file://"); ok {
			c.globs(path+".url", []string{dir})
			if control(n.URL) {
				c.add(path+".url", "It has a control character; remove it.")
			}
			return
		}

		c.url(path+".url", n.URL)
	}
}

// pair reports a user without a token, or the reverse.
func (c *checker) pair(path, user string, t *Token) {
	switch {
	case t != nil && user == "":
		c.add(path+".user", "It is required where there is a token; add the user name of the account.")
	case t == nil && user != "":
		c.add(path+".token", "It is required where there is a user; add the HTTP password of the account.")
	}
}

func (c *checker) host(path, url string, t *Token) {
	c.url(path+".url", url)
	c.token(path+".token", t)
}

// url rejects text that fits the pattern of the schema but is not a URL with a host.
func (c *checker) url(path, text string) {
	if text == "" {
		return
	}
	if control(text) {
		c.add(path, "It has a control character; remove it.")
		return
	}

	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The error of url.Parse repeats the URL before the reason.
		reason := err.Error()
		if i := strings.LastIndex(reason, "\": "); i >= 0 {
			reason = reason[i+3:]
		}
		c.add(path, "It must be a URL: %s.", reason)
	case u.Hostname() == "":
		c.add(path, "It must be a URL with a host name.")
	}
}

// token rejects text that is not the name of a variable. It is often the secret itself.
func (c *checker) token(path string, t *Token) {
	if t != nil && (strings.ContainsRune(t.Env, '=') || strings.ContainsFunc(t.Env, unicode.IsSpace) || control(t.Env)) {
		c.add(path+".env", "It must be the name of an environment variable, without = and blanks; the secret itself does not belong here.")
	}
}

// globs checks a list of patterns. A single pattern in a url has no index.
func (c *checker) globs(path string, patterns []string) {
	// Reject control characters separately: in a message with the glob they are invisible.
	for i, p := range patterns {
		at := item(path, i)
		if strings.HasSuffix(path, ".url") {
			at = path
		}

		if control(p) {
			c.add(at, "It has a control character; remove it.")
		} else if err := glob.Check(p); err != nil {
			c.add(at, "The glob is malformed: %s.", err)
		}
	}
}

func (c *checker) size(path string, s Size) {
	if s.Min != nil && s.Max != nil && *s.Min > *s.Max {
		c.add(path+".min", "It is larger than max, so every repository would be left out; exchange the two.")
	}
}

func (c *checker) model(path string, m Model) {
	c.url(path+".baseUrl", m.BaseURL)
	if strings.TrimSpace(m.Model) == "" {
		c.add(path+".model", "It must not be empty; it is the name under which the provider knows the model.")
	}

	for _, part := range []struct{ name, value string }{{"region", m.Region}, {"resourceName", m.ResourceName}} {
		if err := wantLabel(part.value); err != nil {
			c.add(child(path, part.name), "%s", err)
		}
	}

	// Someone may have written the secret itself here. So messages name the path, not the value.
	for _, t := range []struct {
		name  string
		token *Token
	}{
		{"token", m.Token}, {"authToken", m.AuthToken}, {"accessKeyId", m.AccessKeyID},
		{"accessKeySecret", m.AccessKeySecret}, {"sessionToken", m.SessionToken}, {"credentials", m.Credentials},
	} {
		c.token(child(path, t.name), t.token)
	}

	c.keyed(path+".headers", m.Headers)
	c.keyed(path+".queryParams", m.QueryParams)
}

// keyed checks headers or query parameters. Names of headers ignore letter case.
func (c *checker) keyed(path string, list []KeyText) {
	// A line break in a value could add another header.
	seen := make(map[string]string)
	for _, k := range list {
		at := child(path, k.Key)
		c.token(at, k.Token)
		if control(k.Value) {
			c.add(at, "It has a line break or another control character; remove it.")
		}

		lower := strings.ToLower(k.Key)
		if twin, ok := seen[lower]; ok && strings.HasSuffix(path, "headers") {
			c.add(at, "It is the same header as %s; remove one of the two.", twin)
		}
		seen[lower] = k.Key
	}
}

// control reports whether s has a control character other than a tab.
func control(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && unicode.IsControl(r) })
}
