package config

import (
	"slices"
	"strings"
)

// Effects says of everything in a file what it does in this version.
type Effects struct {
	Works  []Error `json:"works"`    // has an effect; the message is the kind of a connection, or empty
	None   []Error `json:"noEffect"` // accepted without an effect; the message says why
	Unsafe []Error `json:"unsafe"`   // has an effect that opens something

	ignored []string // paths
}

// byEnvironment says what enforcing permissions depends on.
const byEnvironment = "PERMISSION_SYNC_ENABLED decides what is hidden. true: code hosts say who sees what is not public. Not set: only those whom an owner grants it see it. false on every node: nothing is hidden."

// Explain tells the effects of a file, of which data are the bytes that f was
// parsed from.
func Explain(data []byte, f *File) Effects {
	root, errs := read(data)
	if errs != nil {
		return Effects{} // f would not be there
	}

	var e Effects
	e.None = f.ignored()
	for _, x := range e.None {
		e.ignored = append(e.ignored, x.Path)
	}
	e.object("", nil, plain(root))

	for _, o := range f.Overrides {
		e.override(o)
	}
	for _, c := range f.Connections {
		e.connection(c)
	}
	for _, p := range f.IdentityProviders {
		e.provider(p)
	}

	if f.Settings.EnablePublicAccess {
		e.unsafe("settings.enablePublicAccess", openAccess)
	}
	return e
}

// open reports whether the members of an object are listed one by one, by its keys.
func open(keys []string) bool {
	switch depth := len(keys); {
	case keys[0] == "settings", keys[0] == "identityProviders":
		return depth == 1
	case keys[0] == "connections", keys[0] == "contexts":
		return depth <= 2 || keys[depth-1] == "exclude"
	}
	return false
}

// object lists the properties of an object that work. Overrides are told apart by their
// names, elsewhere.
func (e *Effects) object(path string, keys []string, v any) {
	// An object is told as a whole, but for those whose members mean something each.
	for name, value := range sorted(v) {
		at, keys := child(path, name), append(keys[:len(keys):len(keys)], name)
		_, isObject := value.(map[string]any)
		switch {
		case at == "$schema":
			e.None = append(e.None, Error{at, "It is for editors."})
		case at == "environmentOverrides", slices.Contains(e.ignored, at):
		case isObject && open(keys):
			e.object(at, keys, value)
		default:
			e.Works = append(e.Works, Error{Path: at})
		}
	}
}

func (e *Effects) unsafe(path, why string) { e.Unsafe = append(e.Unsafe, Error{path, why}) }

const openAccess = "Everybody who reaches the API can read all indexed code, without a key."

func (e *Effects) override(o Override) {
	path := child("environmentOverrides", o.Name)
	if why := withoutEffect(o.Name); why != "" {
		e.None = append(e.None, Error{path, why})
		return
	}

	// What is set to open something, or shows a secret, is told beside what works.
	e.Works = append(e.Works, Error{Path: path})
	if o.Name == "FORCE_ENABLE_ANONYMOUS_ACCESS" && o.Value == "true" {
		e.unsafe(path, openAccess)
	}
	if o.Token == nil && (strings.HasSuffix(o.Name, "_TOKEN") || strings.HasSuffix(o.Name, "_KEY")) {
		e.unsafe(path, "The secret stands in the file; use a reference to an environment variable (type token).")
	}
}

// provider says what lets strangers in, or shows a secret.
func (e *Effects) provider(p IdentityProvider) {
	path := child("identityProviders", p.ID)
	if strings.HasPrefix(p.BaseURL, "http://") {
		e.unsafe(path+".baseUrl", "The secret of the client, or the tokens of people, cross the network in clear: it is not https.")
	}
}

func (e *Effects) connection(c Connection) {
	path := child("connections", c.Shared().Name)

	// None of these is an error: a directory may be meant, and a network be one's own.
	address, token := c.Access()
	if secretIn(address) {
		e.unsafe(path+".url", "It holds a user name or a password, which everyone who may read this file sees.")
	}

	if token != nil && strings.HasPrefix(address, "http://") {
		e.unsafe(path+".token", "It crosses the network in clear: the url is not https.")
	}

	if strings.HasPrefix(address, "file://") {
		e.unsafe(path+".url", "Whoever may write a directory that it matches publishes what lies there.")
	}
}
