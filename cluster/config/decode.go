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

// decode makes a File from a tree that fits the schema.
func decode(tree any) (*File, Errors) {
	root, _ := tree.(map[string]any)
	d := &decoder{f: &File{Settings: DefaultSettings()}}

	d.settings(object(root["settings"]))

	// By name, so that equal files make equal lists at every node. Models and apps keep the
	// order of the file, which means something: the first is the default.
	for name, v := range sorted(root["connections"]) {
		d.connection(name, v)
	}

	for name, v := range sorted(root["contexts"]) {
		c := Context{Name: name}
		d.into(v, child("contexts", name), &c)
		d.f.Contexts = append(d.f.Contexts, c)
	}

	for name, v := range sorted(root["environmentOverrides"]) {
		d.override(name, object(v)["value"])
	}

	models, _ := root["models"].([]any)
	for i, v := range models {
		d.model(v, item("models", i))
	}

	apps, _ := root["apps"].([]any)
	for i, v := range apps {
		a := App{DeploymentHostname: "github.com"}
		d.into(v, item("apps", i), &a)
		d.f.Apps = append(d.f.Apps, a)
	}

	d.identityProviders(root["identityProviders"])
	return d.f, d.errs
}

// decoder fills the File, and collects what the schema could not find.
type decoder struct {
	f    *File
	errs Errors
}

// object is v as an object; nil when v is none or is not there.
func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// sorted goes through an object in the order of its keys.
func sorted(v any) func(yield func(string, any) bool) {
	m := object(v)
	return func(yield func(string, any) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// into fills a struct from a value. The only failure that the schema lets
// through is a whole number of more than 64 bits.
func (d *decoder) into(v any, path string, out any) {
	// By way of JSON, for the tags of the fields say their names.
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

// UnmarshalJSON reads each form of a reference to a secret.
func (t *Token) UnmarshalJSON(data []byte) error {
	var form struct{ Env, GoogleCloudSecret, CloudSecret string }
	if err := json.Unmarshal(data, &form); err != nil {
		return err
	}
	*t = Token{Env: form.Env, GoogleCloud: form.GoogleCloudSecret + form.CloudSecret}
	return nil
}

// MarshalJSON writes the reference.
func (t Token) MarshalJSON() ([]byte, error) {
	if t.Env != "" {
		return json.Marshal(map[string]string{"env": t.Env})
	}
	return json.Marshal(map[string]string{"googleCloudSecret": t.GoogleCloud})
}

// settings overwrites the defaults with what the file gives.
func (d *decoder) settings(m map[string]any) {
	s := &d.f.Settings
	duration := func(name string, to *time.Duration) {
		if n, ok := m[name].(json.Number); ok {
			*to = millis(n)
		}
	}
	count := func(name string, to *int) {
		if n, ok := m[name].(json.Number); ok {
			*to = int(whole(n, math.MaxInt32))
		}
	}

	if n, ok := m["maxFileSize"].(json.Number); ok {
		s.MaxFileSize = whole(n, 1<<40)
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

	// Where a file has both names of a setting, the one without experiment_
	// comes later and counts.
	duration("experiment_repoDrivenPermissionSyncIntervalMs", &s.RepoDrivenPermissionInterval)
	duration("experiment_userDrivenPermissionSyncIntervalMs", &s.UserDrivenPermissionInterval)
	duration("repoDrivenPermissionSyncIntervalMs", &s.RepoDrivenPermissionInterval)
	duration("userDrivenPermissionSyncIntervalMs", &s.UserDrivenPermissionInterval)

	s.EnablePublicAccess, _ = m["enablePublicAccess"].(bool)

	for _, old := range deprecated {
		if _, ok := m[old.name]; ok {
			d.f.Warnings = append(d.f.Warnings, Error{child("settings", old.name), old.message})
		}
	}
}

// deprecated are the settings that work and give a warning.
var deprecated = [...]struct{ name, message string }{
	{"enablePublicAccess", "It is deprecated; set the environment variable FORCE_ENABLE_ANONYMOUS_ACCESS instead."},
	{"experiment_repoDrivenPermissionSyncIntervalMs", "It is deprecated; use repoDrivenPermissionSyncIntervalMs instead."},
	{"experiment_userDrivenPermissionSyncIntervalMs", "It is deprecated; use userDrivenPermissionSyncIntervalMs instead."},
}

// millis is a duration of n milliseconds, at most a hundred years.
func millis(n json.Number) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	ms, err := n.Float64()
	if err != nil || ms > float64(most/time.Millisecond) {
		return most
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// whole is n cut to a whole number, at most most.
func whole(n json.Number, most int64) int64 {
	f, err := n.Float64()
	if err != nil || f > float64(most) {
		return most
	}
	return int64(f)
}

func (d *decoder) connection(name string, v any) {
	path := child("connections", name)

	// The defaults of the kind, then the file over them.
	kind, _ := object(v)["type"].(string)
	c := newConnection(Kind(kind))
	d.into(v, path, c)

	// Defaults that depend on what the file gives.
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

	raw, _ := json.Marshal(v) // a tree of plain values cannot fail
	c.Shared().Name, c.Shared().Raw = name, string(raw)
	d.f.Connections = append(d.f.Connections, c)
}

// newConnection is a connection with the defaults of its kind that need nothing else.
// The schema has refused other kinds before.
func newConnection(kind Kind) Connection {
	switch kind {
	case KindGitHub:
		return &GitHub{URL: "https://github.com"}
	case KindGitLab:
		return &GitLab{URL: "https://gitlab.com"}
	case KindGitea:
		return &Gitea{URL: "https://gitea.com"}

	// Every Gerrit is somebody's own: there is no address to guess.
	case KindGerrit:
		return &Gerrit{}
	case KindBitbucket:
		return &Bitbucket{URL: "https://api.bitbucket.org/2.0", Deployment: Cloud}
	case KindAzureDevOps:
		return &AzureDevOps{URL: "https://dev.azure.com"}
	}
	return &Git{}
}

// override adds an override of an environment variable.
func (d *decoder) override(name string, v any) {
	o := Override{Name: name}
	switch n := v.(type) {
	case map[string]any:
		o.Token = new(Token)
		d.into(n, child("environmentOverrides", name)+".value", o.Token)
	case string:
		o.Value = n
	default: // a number or a boolean, as it prints
		o.Value = fmt.Sprint(n)
	}
	d.f.Overrides = append(d.f.Overrides, o)
}

// model adds a language model, with the defaults of its provider.
func (d *decoder) model(v any, path string) {
	// Those of a provider that the reference has them for; what the file gives wins.
	var m Model
	switch object(v)["provider"] {
	case string(Azure):
		m.APIVersion, m.ReasoningEffort, m.ReasoningSummary = "preview", "medium", "auto"
	case string(OpenAI):
		m.ReasoningEffort, m.ReasoningSummary = "medium", "auto"
	case string(OpenAICompatible):
		m.ReasoningTag = "think"
	}

	d.into(v, path, &m)
	m.Headers = d.keyed(object(v)["headers"], child(path, "headers"))
	m.QueryParams = d.keyed(object(v)["queryParams"], child(path, "queryParams"))
	d.f.Models = append(d.f.Models, m)
}

// keyed reads headers or query parameters, whose values are texts or references
// to secrets.
func (d *decoder) keyed(v any, path string) []KeyText {
	// Sorted: requests have their headers in the same order at every node.
	var out []KeyText
	for key, v := range sorted(v) {
		k := KeyText{Key: key}
		if s, ok := v.(string); ok {
			k.Value = s
		} else {
			k.Token = new(Token)
			d.into(v, child(path, key), k.Token)
		}
		out = append(out, k)
	}
	return out
}

// identityProviders reads both forms: an object with a name for each provider,
// and the deprecated list, where the name is that of the provider.
func (d *decoder) identityProviders(v any) {
	list, ok := v.([]any)
	if ok {
		d.f.Warnings = append(d.f.Warnings, Error{"identityProviders", "A list is deprecated; use an object with a name for each provider."})
	}

	// By a name of its own a provider can be there twice; a list has none.
	seen := make(map[string]bool)
	for i, v := range list {
		p := IdentityProvider{}
		d.into(v, item("identityProviders", i), &p)
		p.ID = p.Provider

		if seen[p.ID] {
			d.errs = append(d.errs, Error{item("identityProviders", i), fmt.Sprintf("In a list each provider can be there once, and %s is there already; use an object with a name for each.", p.ID)})
		}

		seen[p.ID] = true
		d.f.IdentityProviders = append(d.f.IdentityProviders, p)
	}

	for name, v := range sorted(v) {
		p := IdentityProvider{ID: name}
		d.into(v, child("identityProviders", name), &p)
		d.f.IdentityProviders = append(d.f.IdentityProviders, p)
	}

	// Both forms in one order, whatever the order of the file.
	slices.SortStableFunc(d.f.IdentityProviders, func(a, b IdentityProvider) int { return strings.Compare(a.ID, b.ID) })
}
