package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// decode converts a tree that fits the schema to a File.
func decode(tree any) (*File, Errors) {
	root, _ := tree.(map[string]any)
	d := &decoder{f: &File{Settings: DefaultSettings()}}

	d.decodeSettings(asObject(root["settings"]))

	// Sort by name, so that equal files give equal lists on every node. Models and apps keep their
	// order, because the first one is the default.
	for name, v := range sortedPairs(root["connections"]) {
		d.decodeConnection(name, v)
	}

	for name, v := range sortedPairs(root["contexts"]) {
		c := Context{Name: name}
		d.decodeInto(v, childPath("contexts", name), &c)
		d.f.Contexts = append(d.f.Contexts, c)
	}

	for name, v := range sortedPairs(root["environmentOverrides"]) {
		d.decodeOverride(name, asObject(v)["value"])
	}

	models, _ := root["models"].([]any)
	for i, v := range models {
		d.decodeModel(v, item("models", i))
	}

	apps, _ := root["apps"].([]any)
	for i, v := range apps {
		a := App{DeploymentHostname: "github.com"}
		d.decodeInto(v, item("apps", i), &a)
		d.f.Apps = append(d.f.Apps, a)
	}

	d.identityProviders(root["identityProviders"])
	return d.f, d.errs
}

// decoder fills the File, and collects errors that the schema could not find.
type decoder struct {
	f    *File
	errs Errors
}

// asObject returns v as an object, or nil if v has another type.
func asObject(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// sortedPairs iterates over an object by key.
func sortedPairs(v any) func(yield func(string, any) bool) {
	m := asObject(v)
	return func(yield func(string, any) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// decodeInto fills a struct from a value. After the schema only one error is possible: a whole
// number of more than 64 bits.
func (d *decoder) decodeInto(v any, path string, out any) {
	// Convert by JSON, because the fields' tags have the property names.
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, out)
	}

	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		d.errs = append(d.errs, Error{path + "." + wrong.Field, "The number is too large; write one of at most 18 digits."})
	case err != nil:
		d.errs = append(d.errs, Error{path, fmt.Sprintf("It cannot be read: %v.", err)})
	}
}

// UnmarshalJSON implements json.Unmarshaler. It reads each form of a reference to a secret.
func (t *Token) UnmarshalJSON(data []byte) error {
	var form struct{ Env, GoogleCloudSecret, CloudSecret string }
	if err := json.Unmarshal(data, &form); err != nil {
		return err
	}
	*t = Token{Env: form.Env, GoogleCloud: form.GoogleCloudSecret + form.CloudSecret}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (t Token) MarshalJSON() ([]byte, error) {
	if t.Env != "" {
		return json.Marshal(map[string]string{"env": t.Env})
	}
	return json.Marshal(map[string]string{"googleCloudSecret": t.GoogleCloud})
}

// decodeSettings overwrites the defaults by the settings in the file.
func (d *decoder) decodeSettings(m map[string]any) {
	s := &d.f.Settings
	duration := func(name string, to *time.Duration) {
		if n, ok := m[name].(json.Number); ok {
			*to = durationOfMillis(n)
		}
	}
	count := func(name string, to *int) {
		if n, ok := m[name].(json.Number); ok {
			*to = int(clampedInt(n, math.MaxInt32))
		}
	}

	if n, ok := m["maxFileSize"].(json.Number); ok {
		s.MaxFileSize = clampedInt(n, 1<<40)
	}

	count("maxTrigramCount", &s.MaxTrigramCount)

	duration("reindexIntervalMs", &s.ReindexInterval)
	duration("resyncConnectionIntervalMs", &s.ResyncConnectionInterval)
	duration("resyncConnectionPollingIntervalMs", &s.ResyncConnectionPollingInterval)
	duration("reindexRepoPollingIntervalMs", &s.ReindexRepoPollingInterval)

	count("maxConnectionSyncJobConcurrency", &s.MaxConnectionSyncJobs)
	count("maxRepoIndexingJobConcurrency", &s.MaxRepoIndexingJobs)
	count("maxRepoGarbageCollectionJobConcurrency", &s.MaxRepoGarbageCollectionJobs)
	count("maxAccountPermissionSyncJobConcurrency", &s.MaxAccountPermissionSyncJobs)
	count("maxRepoPermissionSyncJobConcurrency", &s.MaxRepoPermissionSyncJobs)

	duration("repoGarbageCollectionGracePeriodMs", &s.RepoGarbageCollectionGrace)
	duration("repoIndexTimeoutMs", &s.RepoIndexTimeout)

	// If a file has both names of a setting, the one without experiment_ wins, so read it last.
	duration("experiment_repoDrivenPermissionSyncIntervalMs", &s.RepoDrivenPermissionInterval)
	duration("experiment_userDrivenPermissionSyncIntervalMs", &s.UserDrivenPermissionInterval)
	duration("repoDrivenPermissionSyncIntervalMs", &s.RepoDrivenPermissionInterval)
	duration("userDrivenPermissionSyncIntervalMs", &s.UserDrivenPermissionInterval)

	s.EnablePublicAccess, _ = m["enablePublicAccess"].(bool)

	for _, old := range deprecated {
		if _, ok := m[old.name]; ok {
			d.f.Warnings = append(d.f.Warnings, Error{childPath("settings", old.name), old.message})
		}
	}
}

// deprecated lists settings that still work but give a warning.
var deprecated = [...]struct{ name, message string }{
	{"enablePublicAccess", "It is deprecated; set the environment variable FORCE_ENABLE_ANONYMOUS_ACCESS instead."},
	{"experiment_repoDrivenPermissionSyncIntervalMs", "It is deprecated; use repoDrivenPermissionSyncIntervalMs instead."},
	{"experiment_userDrivenPermissionSyncIntervalMs", "It is deprecated; use userDrivenPermissionSyncIntervalMs instead."},
}

// durationOfMillis returns n milliseconds as a duration, at most a hundred years.
func durationOfMillis(n json.Number) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	ms, err := n.Float64()
	if err != nil || ms > float64(most/time.Millisecond) {
		return most
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// clampedInt returns n as a whole number, at most maxValue.
func clampedInt(n json.Number, maxValue int64) int64 {
	f, err := n.Float64()
	if err != nil || f > float64(maxValue) {
		return maxValue
	}
	return int64(f)
}

// decodeConnection decodes a connection, with the defaults of its kind.
func (d *decoder) decodeConnection(name string, v any) {
	path := childPath("connections", name)

	// Set the defaults of the kind, then overwrite them by the file.
	kind, _ := asObject(v)["type"].(string)
	c := newConnection(Kind(kind))
	d.decodeInto(v, path, c)

	// Set the defaults that depend on other properties of the file.
	switch c := c.(type) {
	case *GitLab:
		if c.WebURL == "" {
			c.WebURL = c.URL
		}
	case *Bitbucket:
		if c.GitUser == "" {
			c.GitUser = c.User
		}
	}

	raw, _ := json.Marshal(v) // cannot fail: v is a tree of plain values
	c.Shared().Name, c.Shared().Raw = name, string(raw)
	d.f.Connections = append(d.f.Connections, c)
}

// newConnection returns a connection with the defaults of its kind. The schema has rejected unknown
// kinds.
func newConnection(kind Kind) Connection {
	switch kind {
	case KindGitHub:
		return &GitHub{URL: "https://github.com"}
	case KindGitLab:
		return &GitLab{URL: "https://gitlab.com"}
	case KindGitea:
		return &Gitea{URL: "https://gitea.com"}

	// There is no public Gerrit that could be the default.
	case KindGerrit:
		return &Gerrit{}
	case KindBitbucket:
		return &Bitbucket{URL: "https://api.bitbucket.org/2.0", Deployment: Cloud}
	case KindAzureDevOps:
		return &AzureDevOps{URL: "https://dev.azure.com"}
	}
	return &Git{}
}

// decodeOverride adds an override of an environment variable.
func (d *decoder) decodeOverride(name string, v any) {
	o := Override{Name: name}
	switch n := v.(type) {
	case map[string]any:
		o.Token = new(Token)
		d.decodeInto(n, childPath("environmentOverrides", name)+".value", o.Token)
	case string:
		o.Value = n
	default: // a number or boolean, as printed
		o.Value = fmt.Sprint(n)
	}
	d.f.Overrides = append(d.f.Overrides, o)
}

// decodeModel adds a language model, with the defaults of its provider.
func (d *decoder) decodeModel(v any, path string) {
	// These are Sourcebot's defaults. Properties in the file overwrite them.
	var m Model
	switch asObject(v)["provider"] {
	case string(Azure):
		m.APIVersion, m.ReasoningEffort, m.ReasoningSummary = "preview", "medium", "auto"
	case string(OpenAI):
		m.ReasoningEffort, m.ReasoningSummary = "medium", "auto"
	case string(OpenAICompatible):
		m.ReasoningTag = "think"
	}

	d.decodeInto(v, path, &m)
	m.Headers = d.decodeKeyTexts(asObject(v)["headers"], childPath(path, "headers"))
	m.QueryParams = d.decodeKeyTexts(asObject(v)["queryParams"], childPath(path, "queryParams"))
	d.f.Models = append(d.f.Models, m)
}

// decodeKeyTexts reads headers or query parameters. Values are text or references to secrets.
func (d *decoder) decodeKeyTexts(v any, path string) []KeyText {
	// Sort them, so that requests are equal on every node.
	var out []KeyText
	for key, v := range sortedPairs(v) {
		k := KeyText{Key: key}
		if s, ok := v.(string); ok {
			k.Value = s
		} else {
			k.Token = new(Token)
			d.decodeInto(v, childPath(path, key), k.Token)
		}
		out = append(out, k)
	}
	return out
}

// identityProviders reads both forms: an object with named providers, and the deprecated list,
// where the provider's type is the name.
func (d *decoder) identityProviders(v any) {
	list, ok := v.([]any)
	if ok {
		d.f.Warnings = append(d.f.Warnings, Error{"identityProviders", "A list is deprecated; use an object with a name for each provider."})
	}

	// Only in an object, a type of provider may appear twice, under two names.
	seen := make(map[string]bool)
	for i, v := range list {
		p := IdentityProvider{}
		d.decodeInto(v, item("identityProviders", i), &p)
		p.ID = p.Provider

		if seen[p.ID] {
			d.errs = append(d.errs, Error{item("identityProviders", i), fmt.Sprintf("In a list each provider can be there once, and %s is there already; use an object with a name for each.", p.ID)})
		}

		seen[p.ID] = true
		d.f.IdentityProviders = append(d.f.IdentityProviders, p)
	}

	for name, v := range sortedPairs(v) {
		p := IdentityProvider{ID: name}
		d.decodeInto(v, childPath("identityProviders", name), &p)
		d.f.IdentityProviders = append(d.f.IdentityProviders, p)
	}

	// Sort both forms by id, whatever the order in the file.
	slices.SortStableFunc(d.f.IdentityProviders, func(a, b IdentityProvider) int { return strings.Compare(a.ID, b.ID) })
}
