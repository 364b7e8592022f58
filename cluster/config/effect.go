package config

import (
	"slices"
	"strings"
)

// Effects tells for each property of a file whether it has an effect.
type Effects struct {
	Works  []Error `json:"works"`    // has an effect; the message is the kind of a connection, or ""
	None   []Error `json:"noEffect"` // accepted without effect; the message tells why
	Unsafe []Error `json:"unsafe"`   // its effect weakens security

	ignored []string // paths
}

// byEnvironment explains on what the enforcement of permissions depends.
const byEnvironment = "PERMISSION_SYNC_ENABLED decides what is hidden. true: code hosts say who sees what is not public. Not set: only those whom an owner grants it see it. false on every node: nothing is hidden."

// Explain returns the effects of a file. f must be parsed from data.
func Explain(data []byte, f *File) Effects {
	root, errs := parseText(data)
	if errs != nil {
		return Effects{} // cannot happen: f was parsed from data
	}

	var e Effects
	e.None = f.ignoredProperties()
	for _, x := range e.None {
		e.ignored = append(e.ignored, x.Path)
	}
	e.addObject("", nil, toPlain(root))

	for _, o := range f.Overrides {
		e.addOverride(o)
	}
	for _, c := range f.Connections {
		e.addConnection(c)
	}
	for _, p := range f.IdentityProviders {
		e.addProvider(p)
	}

	if f.Settings.EnablePublicAccess {
		e.addUnsafe("settings.enablePublicAccess", openAccess)
	}
	return e
}

// listsMembers reports whether Explain lists the members of an object one by one. keys is its path.
func listsMembers(keys []string) bool {
	switch depth := len(keys); {
	case keys[0] == "settings", keys[0] == "identityProviders":
		return depth == 1
	case keys[0] == "connections", keys[0] == "contexts":
		return depth <= 2 || keys[depth-1] == "exclude"
	}
	return false
}

// addObject lists the properties of an object that work. Overrides are listed elsewhere, by their
// names.
func (e *Effects) addObject(path string, keys []string, v any) {
	// List an object as a whole, unless its members have effects of their own.
	for name, value := range sortedPairs(v) {
		at, keys := childPath(path, name), append(keys[:len(keys):len(keys)], name)
		_, isObject := value.(map[string]any)
		switch {
		case at == "$schema":
			e.None = append(e.None, Error{at, "It is for editors."})
		case at == "environmentOverrides", slices.Contains(e.ignored, at):
		case isObject && listsMembers(keys):
			e.addObject(at, keys, value)
		default:
			e.Works = append(e.Works, Error{Path: at})
		}
	}
}

func (e *Effects) addUnsafe(path, why string) { e.Unsafe = append(e.Unsafe, Error{path, why}) }

const openAccess = "Everybody who reaches the API can read all indexed code, without a key."

// addOverride adds an override to those that work or that have no effect, and maybe to the unsafe ones.
func (e *Effects) addOverride(o Override) {
	path := childPath("environmentOverrides", o.Name)
	if why := whyNoEffect(o.Name); why != "" {
		e.None = append(e.None, Error{path, why})
		return
	}

	// Also report overrides that weaken security or contain a secret.
	e.Works = append(e.Works, Error{Path: path})
	if o.Name == "FORCE_ENABLE_ANONYMOUS_ACCESS" && o.Value == "true" {
		e.addUnsafe(path, openAccess)
	}
	if o.Token == nil && (strings.HasSuffix(o.Name, "_TOKEN") || strings.HasSuffix(o.Name, "_KEY")) {
		e.addUnsafe(path, "The secret stands in the file; use a reference to an environment variable (type token).")
	}
}

// addProvider reports an identity provider that sends secrets unencrypted.
func (e *Effects) addProvider(p IdentityProvider) {
	path := childPath("identityProviders", p.ID)
	if strings.HasPrefix(p.BaseURL, "http://") {
		e.addUnsafe(path+".baseUrl", "The secret of the client, or the tokens of people, cross the network in clear: it is not https.")
	}
}

// addConnection adds what is unsafe in a connection.
func (e *Effects) addConnection(c Connection) {
	path := childPath("connections", c.Shared().Name)

	// These are warnings, not errors: a directory may be public on purpose, and a network private.
	address, token := c.Access()
	if secretIn(address) {
		e.addUnsafe(path+".url", "It holds a user name or a password, which everyone who may read this file sees.")
	}

	if token != nil && strings.HasPrefix(address, "http://") {
		e.addUnsafe(path+".token", "It crosses the network in clear: the url is not https.")
	}

	if strings.HasPrefix(address, "file://") {
		e.addUnsafe(path+".url", "Whoever may write a directory that it matches publishes what lies there.")
	}
}
