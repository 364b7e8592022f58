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

// Reach is one thing of the nodes' machines that a file uses: a secret and the place
// that it goes to, or a local directory.
type Reach struct {
	Path   string // of the property
	Secret string // environment variable, or name of a secret of Google; "" for a directory
	Target string // origin of the server that gets the secret, or what else takes it
	Use    string // property of an identity provider; "" elsewhere
	Root   string // cleaned path of local repositories, which may be a glob; "" for a secret
}

// Reaches lists what a valid file uses of the nodes' machines, by path. data are the bytes
// that f was parsed from.
func Reaches(data []byte, f *File) []Reach {
	root, errs := read(data)
	if errs != nil {
		return nil
	}

	r := &reaching{f: f, root: object(plain(root))}
	for section, items := range sorted(r.root) {
		r.section(section, items)
	}
	for i, m := range f.Models {
		r.implied(item("models", i), m)
	}
	for _, c := range f.Connections {
		if git, ok := c.(*Git); ok {
			if dir, ok := git.Directory(); ok {
				r.out = append(r.out, Reach{Path: child("connections", c.Shared().Name) + ".url", Root: dir})
			}
		}
	}
	return r.out
}

// reaching collects the list of Reaches.
type reaching struct {
	f    *File
	root map[string]any
	out  []Reach
}

// section lists the references in the items of a top-level property.
func (r *reaching) section(section string, items any) {
	for key, v := range sorted(items) {
		path := child(section, key)
		r.references(path, "", v, r.target(section, key, path, object(v)))
	}
	list, _ := items.([]any)
	for i, v := range list {
		path := item(section, i)
		r.references(path, "", v, r.target(section, "", path, object(v)))
	}
}

// references lists every reference to a secret below a path. A property is found by its
// form, so that none can be forgotten here.
func (r *reaching) references(path, key string, v any, target string) {
	list, _ := v.([]any)
	for i, v := range list {
		r.references(item(path, i), key, v, target)
	}

	// Headers and parameters may have any name, that of a reference too.
	open := key == "headers" || key == "queryParams"
	for name, v := range sorted(v) {
		text, isText := v.(string)
		if isText && !open && (name == "env" || name == "googleCloudSecret" || name == "cloudSecret") {
			use := Reach{Path: path, Secret: text, Target: target}
			// The id of a client is shown to browsers, its secret is not: each keeps its use.
			if strings.HasPrefix(path, "identityProviders") {
				use.Use = key
			}
			r.out = append(r.out, use)
			continue
		}
		r.references(child(path, name), name, v, target)
	}
}

// target returns where the secrets of an item go.
func (r *reaching) target(section, key, path string, it map[string]any) string {
	text := func(name string) string { s, _ := it[name].(string); return s }
	switch section {
	case "connections":
		address, _ := r.f.Connection(key).Access()
		return origin(address)
	case "models":
		return r.modelTarget(Provider(text("provider")), text("baseUrl"), text("resourceName"))
	case "apps":
		return "https://" + strings.ToLower(cmp.Or(text("deploymentHostname"), "github.com"))

	// What an issuer is stands in a variable: its name says as much.
	case "identityProviders":
		for _, by := range sorted(it["issuer"]) {
			return fmt.Sprintf("the issuer in %v", by)
		}
		if base := text("baseUrl"); base != "" {
			return origin(base)
		}
		return text("provider")
	}
	return path
}

// modelTarget is where the requests of a model go.
func (r *reaching) modelTarget(p Provider, base, resource string) string {
	if base != "" {
		return origin(base)
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

// implied lists the variables that a model without a key takes, where it sends them to
// another place than the provider's own.
func (r *reaching) implied(path string, m Model) {
	target := r.modelTarget(m.Provider, m.BaseURL, m.ResourceName)
	if target == string(m.Provider) {
		return
	}
	for _, name := range m.Variables() {
		written := slices.ContainsFunc(r.f.Overrides, func(o Override) bool { return o.Name == name && o.Token == nil })
		if !written {
			r.out = append(r.out, Reach{Path: path, Secret: name, Target: target})
		}
	}
}

// providerVariables are the variables that hold the keys of a provider.
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

// Variables returns the variables that hold the key of the model where the file names none.
func (m *Model) Variables() []string {
	switch {
	case m.Token != nil, m.AuthToken != nil, m.Credentials != nil:
		return nil
	case m.AccessKeyID != nil && m.AccessKeySecret != nil && m.SessionToken != nil:
		return nil
	}
	return providerVariables[m.Provider]
}

// origin is scheme, host and port of an address, in one form.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return address
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	host = strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[scheme])
	return scheme + "://" + host
}

// Directory is the cleaned path of a file:// address, which may be a glob; ok is false for
// any other address.
func (c *Git) Directory() (pattern string, ok bool) {
	pattern, ok = strings.CutPrefix(c.URL, "file://")
	if p, err := url.PathUnescape(pattern); err == nil {
		pattern = p
	}
	return filepath.Clean(pattern), ok
}

// FixedDirectory returns the directory that all matches of a path lie in: its part before
// the first sign of a glob. plain is the whole path where there is no sign.
func FixedDirectory(pattern string) (dir, plain string) {
	start, all := glob.Start(pattern)
	if all {
		plain = start
	}
	return cmp.Or(start[:max(strings.LastIndexByte(start, '/'), 0)], "/"), plain
}

// Allowance is what the operator lets a configuration use that comes over the network.
// The zero value allows nothing beyond what the operator's own files use.
type Allowance struct {
	secrets []allowedSecret
	roots   []string // cleaned, absolute
}

// allowedSecret is one entry of --config-env.
type allowedSecret struct{ names, hosts glob.Globs }

// ParseAllowance reads the values of --config-env and --config-roots:
//
//	GITEA_TOKEN                   a variable, at any host; * stands for any letters
//	GITEA_*@git.example.com       variables, at one host; a host may be a glob
//	projects/p/secrets/s/**       secrets of Google, in the same two forms
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

// Refuse returns an error for each use that neither the operator's lists nor the
// operator's own files have. resolve follows the symbolic links of a directory.
func (a Allowance) Refuse(uses, own []Reach, resolve func(dir string) string) (errs Errors) {
	for _, u := range uses {
		switch {
		case u.Root != "" && !a.root(u.Root, own, resolve):
			errs = append(errs, Error{u.Path, fmt.Sprintf("Local repositories in %s are not allowed in a configuration that comes over the network. The operator allows them by --config-roots, or applies the file on a node's host.", show(u.Root))})
		case u.Root == "" && !a.secret(u, own):
			errs = append(errs, Error{u.Path, fmt.Sprintf("The secret in %s may not go to %s by a configuration that comes over the network. The operator allows it by --config-env, or applies the file on a node's host.", u.Secret, u.Target)})
		}
	}
	return errs.sorted()
}

func (a Allowance) secret(u Reach, own []Reach) bool {
	u.Path = ""
	if slices.ContainsFunc(own, func(o Reach) bool { o.Path = ""; return o == u }) {
		return true
	}

	// A host may stand in the list with its port or without.
	host, name := u.Target, u.Target
	if where, err := url.Parse(u.Target); err == nil && where.Host != "" {
		host, name = where.Host, where.Hostname()
	}
	return slices.ContainsFunc(a.secrets, func(s allowedSecret) bool {
		return s.names.Match(u.Secret) && (s.hosts.Match(host) || s.hosts.Match(name))
	})
}

func (a Allowance) root(pattern string, own []Reach, resolve func(string) string) bool {
	// A link below a root may lead out of it.
	dir, plain := FixedDirectory(pattern)
	dir = cmp.Or(plain, dir)
	inside := func(root string) bool {
		below := func(dir, root string) bool {
			return strings.HasPrefix(dir+"/", strings.TrimSuffix(root, "/")+"/")
		}
		return below(dir, root) && below(resolve(dir), resolve(root))
	}

	// Another pattern may reach more, but one directory of a pattern is part of it.
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
