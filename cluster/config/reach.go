package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/glob"
)

// Reach is something on the nodes' machines that a file uses: a secret and where it is sent, or a
// local directory.
type Reach struct {
	Path   string // JSON path of the property
	Secret string // environment variable, or name of a Google Cloud secret; "" for a directory
	Target string // origin of the server that gets the secret, or another description of its receiver
	Use    string // property of an identity provider; "" for other references
	Root   string // cleaned path of local repositories, may be a glob; "" for a secret
}

// Reaches returns what a valid file uses on the nodes' machines, by path. f must be parsed from
// data.
func Reaches(data []byte, f *File) []Reach {
	root, errs := parseText(data)
	if errs != nil {
		return nil
	}

	r := &reaching{f: f, root: asObject(toPlain(root))}
	for section, items := range sortedPairs(r.root) {
		r.collectSection(section, items)
	}
	for i, m := range f.Models {
		r.collectImplied(item("models", i), m)
	}
	for _, c := range f.Connections {
		if git, ok := c.(*Git); ok {
			if dir, ok := git.Directory(); ok {
				r.reaches = append(r.reaches, Reach{Path: childPath("connections", c.Shared().Name) + ".url", Root: dir})
			}
		}
	}
	return r.reaches
}

// reaching collects the result of Reaches.
type reaching struct {
	f       *File
	root    map[string]any
	reaches []Reach
}

// collectSection collects the references in the items of a top-level property.
func (r *reaching) collectSection(section string, items any) {
	for key, v := range sortedPairs(items) {
		path := childPath(section, key)
		r.collectReferences(path, "", v, r.targetOf(section, key, path, asObject(v)))
	}
	list, _ := items.([]any)
	for i, v := range list {
		path := item(section, i)
		r.collectReferences(path, "", v, r.targetOf(section, "", path, asObject(v)))
	}
}

// collectReferences collects every reference to a secret below a path. It recognizes references by
// their form, so that it also finds those of new properties.
func (r *reaching) collectReferences(path, key string, v any, target string) {
	list, _ := v.([]any)
	for i, v := range list {
		r.collectReferences(item(path, i), key, v, target)
	}

	// In headers and parameters, any name is allowed, so these are not references.
	open := key == "headers" || key == "queryParams"
	for name, v := range sortedPairs(v) {
		text, isText := v.(string)
		if isText && !open && (name == "env" || name == "googleCloudSecret" || name == "cloudSecret") {
			use := Reach{Path: path, Secret: text, Target: target}
			// Browsers see a client's id, but not its secret. So distinguish id and secret.
			if strings.HasPrefix(path, "identityProviders") {
				use.Use = key
			}
			r.reaches = append(r.reaches, use)
			continue
		}
		r.collectReferences(childPath(path, name), name, v, target)
	}
}

// targetOf returns where the secrets of an item are sent.
func (r *reaching) targetOf(section, key, path string, it map[string]any) string {
	text := func(name string) string { s, _ := it[name].(string); return s }
	switch section {
	case "connections":
		address, _ := r.f.Connection(key).Access()
		return originOf(address)
	case "models":
		return r.modelTarget(Provider(text("provider")), text("baseUrl"), text("resourceName"))
	case "apps":
		return "https://" + strings.ToLower(cmp.Or(text("deploymentHostname"), "github.com"))

	// The issuer itself is in a variable, so use that variable's name.
	case "identityProviders":
		for _, by := range sortedPairs(it["issuer"]) {
			return fmt.Sprintf("the issuer in %v", by)
		}
		if base := text("baseUrl"); base != "" {
			return originOf(base)
		}
		return text("provider")
	}
	return path
}

// modelTarget returns where the requests for a model are sent.
func (r *reaching) modelTarget(p Provider, base, resource string) string {
	if base != "" {
		return originOf(base)
	}
	if p != Azure {
		return string(p)
	}
	for _, o := range r.f.Overrides {
		if o.Name == "AZURE_RESOURCE_NAME" {
			resource = cmp.Or(resource, o.Value)
		}
	}
	return strings.TrimSpace(string(p) + " " + resource)
}

// collectImplied collects the variables that a model without a key uses by default, if they are sent
// elsewhere than to the provider itself.
func (r *reaching) collectImplied(path string, m Model) {
	target := r.modelTarget(m.Provider, m.BaseURL, m.ResourceName)
	if target == string(m.Provider) {
		return
	}
	for _, name := range m.Variables() {
		written := slices.ContainsFunc(r.f.Overrides, func(o Override) bool { return o.Name == name && o.Token == nil })
		if !written {
			r.reaches = append(r.reaches, Reach{Path: path, Secret: name, Target: target})
		}
	}
}

// providerVariables lists the variables with the keys of each provider.
var providerVariables = map[Provider][]string{
	AmazonBedrock:         {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"},
	Anthropic:             {"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"},
	Azure:                 {"AZURE_API_KEY"},
	DeepSeek:              {"DEEPSEEK_API_KEY"},
	GoogleGenerativeAI:    {"GOOGLE_GENERATIVE_AI_API_KEY"},
	GoogleVertexAnthropic: {"GOOGLE_APPLICATION_CREDENTIALS"},
	GoogleVertex:          {"GOOGLE_APPLICATION_CREDENTIALS"},
	Mistral:               {"MISTRAL_API_KEY"},
	OpenAI:                {"OPENAI_API_KEY"},
	OpenRouter:            {"OPENROUTER_API_KEY"},
	XAI:                   {"XAI_API_KEY"},
}

// Variables returns the variables that hold the key of the model, if the file names none.
func (m *Model) Variables() []string {
	switch {
	case m.Token != nil, m.AuthToken != nil, m.Credentials != nil:
		return nil
	case m.AccessKeyID != nil && m.AccessKeySecret != nil && m.SessionToken != nil:
		return nil
	}
	return providerVariables[m.Provider]
}

// originOf returns scheme, host and port of a URL in a canonical form.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
	return scheme + "://" + host
}

// Directory returns the cleaned path of a file:// URL, which may be a glob. ok is false for any
// other URL.
func (c *Git) Directory() (pattern string, ok bool) {
	pattern, ok = strings.CutPrefix(c.URL, "file://")
	if p, err := url.PathUnescape(pattern); err == nil {
		pattern = p
	}
	return filepath.Clean(pattern), ok
}

// FixedDirectory returns the directory that contains all matches of a path: its part before the
// first glob character. plain is the whole path if it has no glob character.
func FixedDirectory(pattern string) (dir, plain string) {
	start, all := glob.Start(pattern)
	if all {
		plain = start
	}
	return cmp.Or(start[:max(strings.LastIndexByte(start, '/'), 0)], "/"), plain
}

// Allowance is what the operator allows in a configuration that comes over the network. The zero
// value allows only what the operator's own files use.
type Allowance struct {
	secrets []allowedSecret
	roots   []string // absolute, cleaned
}

// allowedSecret is one entry of --config-env.
type allowedSecret struct{ names, hosts glob.Globs }

// ParseAllowance parses the values of --config-env and --config-roots:
//
//	GITEA_TOKEN                   a variable, at any host; * matches any letters
//	GITEA_*@git.example.com       variables, at one host; a host may be a glob
//	projects/p/secrets/s/**       Google Cloud secrets, in the same two forms
func ParseAllowance(env, roots []string) (Allowance, error) {
	var a Allowance
	var errs []error
	for _, entry := range env {
		name, host, bound := strings.Cut(entry, "@")
		if !bound {
			host = "**"
		}
		names, err := glob.Compile(glob.Exact, name)
		hosts, err2 := glob.Compile(glob.Fold, host)
		if err = errors.Join(err, err2); err != nil || name == "" || host == "" || strings.ContainsAny(entry, "= \t") {
			errs = append(errs, fmt.Errorf("--config-env %q: want the name of a variable, or NAME@HOST", entry))
		}
		a.secrets = append(a.secrets, allowedSecret{names, hosts})
	}
	for _, dir := range roots {
		if !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("--config-roots %q: want an absolute directory", dir))
		}
		a.roots = append(a.roots, filepath.Clean(dir))
	}
	return a, errors.Join(errs...)
}

// Refuse returns an error for each use that neither the operator's lists nor the operator's own
// files allow. resolve must follow the symbolic links of a directory.
func (a Allowance) Refuse(uses, own []Reach, resolve func(dir string) string) (errs Errors) {
	for _, u := range uses {
		switch {
		case u.Root != "" && !a.allowsDirectory(u.Root, own, resolve):
			errs = append(errs, Error{u.Path, fmt.Sprintf("Local repositories in %s are not allowed in a configuration that comes over the network. The operator allows them by --config-roots, or applies the file on a node's host.", formatValue(u.Root))})
		case u.Root == "" && !a.allowsSecret(u, own):
			errs = append(errs, Error{u.Path, fmt.Sprintf("The secret in %s may not go to %s by a configuration that comes over the network. The operator allows it by --config-env, or applies the file on a node's host.", u.Secret, u.Target)})
		}
	}
	return errs.normalized()
}

// allowsSecret reports whether the use of a secret is allowed.
func (a Allowance) allowsSecret(u Reach, own []Reach) bool {
	u.Path = ""
	if slices.ContainsFunc(own, func(o Reach) bool { o.Path = ""; return o == u }) {
		return true
	}

	// An entry may name a host with or without its port.
	host, name := u.Target, u.Target
	if where, err := url.Parse(u.Target); err == nil && where.Host != "" {
		host, name = where.Host, where.Hostname()
	}
	return slices.ContainsFunc(a.secrets, func(s allowedSecret) bool {
		return s.names.Match(u.Secret) && (s.hosts.Match(host) || s.hosts.Match(name))
	})
}

// allowsDirectory reports whether a local directory is allowed.
func (a Allowance) allowsDirectory(pattern string, own []Reach, resolve func(string) string) bool {
	// A symbolic link below a root may lead out of it.
	dir, plain := FixedDirectory(pattern)
	dir = cmp.Or(plain, dir)
	inside := func(root string) bool {
		below := func(dir, root string) bool {
			return strings.HasPrefix(dir+"/", strings.TrimSuffix(root, "/")+"/")
		}
		return below(dir, root) && below(resolve(dir), resolve(root))
	}

	// Compare patterns for equality, but allow a single directory that a pattern matches.
	for _, o := range own {
		if o.Root == pattern {
			return true
		}
		g, err := glob.Compile(glob.Exact, o.Root)
		if start, _ := FixedDirectory(o.Root); err == nil && plain != "" && g.Match(plain) && inside(start) {
			return true
		}
	}
	return slices.ContainsFunc(a.roots, inside)
}
