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

// report adds an error at a path.
func (c *checker) report(path, format string, args ...any) {
	c.errs = append(c.errs, Error{path, fmt.Sprintf(format, args...)})
}

// check returns the errors of a file that fits the schema. It collects all of them, so that a user
// can fix a file in one go.
func (f *File) check() Errors {
	c := &checker{}
	for _, conn := range f.Connections {
		c.checkConnection(conn)
	}

	for _, x := range f.Contexts {
		path := childPath("contexts", x.Name)
		c.checkGlobs(path+".include", x.Include)
		c.checkGlobs(path+".exclude", x.Exclude)
		c.checkGlobs(path+".includeTopics", x.IncludeTopics)
		c.checkGlobs(path+".excludeTopics", x.ExcludeTopics)
	}

	// The value of a reference is known only on a node, which checks it there.
	for _, o := range f.Overrides {
		path := childPath("environmentOverrides", o.Name) + ".value"
		c.checkToken(path, o.Token)
		if strings.ContainsRune(o.Value, 0) {
			c.report(path, "It has a NUL character, which no environment variable can hold; remove it.")
		}
		if err := checkVariable(o.Name, o.Value); o.Token == nil && err != nil {
			c.report(path, "%s", err)
		}
	}

	for i, m := range f.Models {
		c.checkModel(item("models", i), m)
	}

	for i, a := range f.Apps {
		path := item("apps", i)
		c.checkToken(path+".privateKey", a.PrivateKey)

		if a.DeploymentHostname == "" || strings.ContainsAny(a.DeploymentHostname, "/ @") || hasControlCharacter(a.DeploymentHostname) {
			c.report(path+".deploymentHostname", "It must be a host name without a scheme or a path, as github.com.")
		}

		if strings.TrimSpace(a.ID) == "" {
			c.report(path+".id", "It must not be empty; it is the id that the host shows for the app.")
		}
	}

	for _, p := range f.IdentityProviders {
		path := childPath("identityProviders", p.ID)
		c.checkURL(path+".baseUrl", p.BaseURL)
		c.checkToken(path+".clientId", p.ClientID)
		c.checkToken(path+".clientSecret", p.ClientSecret)
		c.checkToken(path+".issuer", p.Issuer)
		c.checkToken(path+".audience", p.Audience)
	}
	return c.errs
}

// checkConnection reports the errors of one connection.
func (c *checker) checkConnection(conn Connection) {
	s := conn.Shared()
	path := childPath("connections", s.Name)
	c.checkGlobs(path+".revisions.branches", s.Revisions.Branches)
	c.checkGlobs(path+".revisions.tags", s.Revisions.Tags)

	switch n := conn.(type) {
	case *GitHub:
		c.checkHost(path, n.URL, n.Token)
		c.checkGlobs(path+".topics", n.Topics)
		c.checkGlobs(path+".exclude.repos", n.Exclude.Repos)
		c.checkGlobs(path+".exclude.topics", n.Exclude.Topics)
		c.checkSize(path+".exclude.size", n.Exclude.Size)

	case *GitLab:
		c.checkHost(path, n.URL, n.Token)
		c.checkURL(path+".webUrl", n.WebURL)
		c.checkGlobs(path+".topics", n.Topics)
		c.checkGlobs(path+".exclude.projects", n.Exclude.Projects)
		c.checkGlobs(path+".exclude.topics", n.Exclude.Topics)
	case *Gitea:
		c.checkHost(path, n.URL, n.Token)
		c.checkGlobs(path+".exclude.repos", n.Exclude.Repos)

	case *Gerrit:
		c.checkHost(path, n.URL, n.Token)
		c.checkUserAndToken(path, n.User, n.Token)
		c.checkGlobs(path+".projects", n.Projects)
		c.checkGlobs(path+".exclude.projects", n.Exclude.Projects)

	case *Bitbucket:
		c.checkHost(path, n.URL, n.Token)
		c.checkGlobs(path+".exclude.repos", n.Exclude.Repos)
	case *AzureDevOps:
		c.checkHost(path, n.URL, n.Token)
		c.checkGlobs(path+".exclude.repos", n.Exclude.Repos)
		c.checkGlobs(path+".exclude.projects", n.Exclude.Projects)
		c.checkSize(path+".exclude.size", n.Exclude.Size)
	case *Git:
		// The path of local repositories is a glob.
		if dir, ok := strings.CutPrefix(n.URL, "file://"); ok {
			c.checkGlobs(path+".url", []string{dir})
			if hasControlCharacter(n.URL) {
				c.report(path+".url", "It has a control character; remove it.")
			}
			return
		}

		c.checkURL(path+".url", n.URL)
	}
}

// checkUserAndToken reports a user without a token, or the reverse.
func (c *checker) checkUserAndToken(path, user string, t *Token) {
	switch {
	case t != nil && user == "":
		c.report(path+".user", "It is required where there is a token; add the user name of the account.")
	case t == nil && user != "":
		c.report(path+".token", "It is required where there is a user; add the HTTP password of the account.")
	}
}

func (c *checker) checkHost(path, url string, t *Token) {
	c.checkURL(path+".url", url)
	c.checkToken(path+".token", t)
}

// checkURL rejects text that fits the pattern of the schema but is not a URL with a host.
func (c *checker) checkURL(path, text string) {
	if text == "" {
		return
	}
	if hasControlCharacter(text) {
		c.report(path, "It has a control character; remove it.")
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
		c.report(path, "It must be a URL: %s.", reason)
	case u.Hostname() == "":
		c.report(path, "It must be a URL with a host name.")
	}
}

// checkToken rejects text that is not the name of a variable. It is often the secret itself.
func (c *checker) checkToken(path string, t *Token) {
	if t != nil && (strings.ContainsRune(t.Env, '=') || strings.ContainsFunc(t.Env, unicode.IsSpace) || hasControlCharacter(t.Env)) {
		c.report(path+".env", "It must be the name of an environment variable, without = and blanks; the secret itself does not belong here.")
	}
}

// checkGlobs checks a list of patterns. A single pattern in a url has no index.
func (c *checker) checkGlobs(path string, patterns []string) {
	// Reject control characters separately: in a message with the glob they are invisible.
	for i, p := range patterns {
		at := item(path, i)
		if strings.HasSuffix(path, ".url") {
			at = path
		}

		if hasControlCharacter(p) {
			c.report(at, "It has a control character; remove it.")
		} else if err := glob.Check(p); err != nil {
			c.report(at, "The glob is malformed: %s.", err)
		}
	}
}

func (c *checker) checkSize(path string, s Size) {
	if s.Min != nil && s.Max != nil && *s.Min > *s.Max {
		c.report(path+".min", "It is larger than max, so every repository would be left out; exchange the two.")
	}
}

// checkModel reports the errors of one language model.
func (c *checker) checkModel(path string, m Model) {
	c.checkURL(path+".baseUrl", m.BaseURL)
	if strings.TrimSpace(m.Model) == "" {
		c.report(path+".model", "It must not be empty; it is the name under which the provider knows the model.")
	}

	for _, part := range []struct{ name, value string }{{"region", m.Region}, {"resourceName", m.ResourceName}} {
		if err := requireLabel(part.value); err != nil {
			c.report(childPath(path, part.name), "%s", err)
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
		c.checkToken(childPath(path, t.name), t.token)
	}

	c.checkKeyTexts(path+".headers", m.Headers)
	c.checkKeyTexts(path+".queryParams", m.QueryParams)
}

// checkKeyTexts checks headers or query parameters. Names of headers ignore letter case.
func (c *checker) checkKeyTexts(path string, list []KeyText) {
	// A line break in a value could add another header.
	seen := make(map[string]string)
	for _, k := range list {
		at := childPath(path, k.Key)
		c.checkToken(at, k.Token)
		if hasControlCharacter(k.Value) {
			c.report(at, "It has a line break or another control character; remove it.")
		}

		lower := strings.ToLower(k.Key)
		if twin, ok := seen[lower]; ok && strings.HasSuffix(path, "headers") {
			c.report(at, "It is the same header as %s; remove one of the two.", twin)
		}
		seen[lower] = k.Key
	}
}

// hasControlCharacter reports whether s has a control character other than a tab.
func hasControlCharacter(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && unicode.IsControl(r) })
}
