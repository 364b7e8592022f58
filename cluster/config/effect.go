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
}

// inert are the properties that are accepted for the sake of files that were
// written for the reference, and do nothing here. A star stands for one name.
// Whoever gives one an effect takes its row away.
var inert = []struct{ path, why string }{
	{"$schema", "It is for editors."},
}

// byEnvironment says what enforcing permissions depends on.
const byEnvironment = "What is not public is hidden from everybody but those it is granted to. Code hosts are asked who may read it only where PERMISSION_SYNC_ENABLED=true; where every node has it false nothing is hidden."

// Explain tells the effects of a file, of which data are the bytes that f was
// parsed from.
func Explain(data []byte, f *File) Effects {
	root, errs := read(data)
	if errs != nil {
		return Effects{} // f would not be there
	}

	var e Effects
	e.object("", plain(root))

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

// open are the objects whose members are listed one by one, by their paths.
func open(path string) bool {
	depth := strings.Count(path, ".") + 1
	switch top, _, _ := strings.Cut(path, "."); {
	case path == "":
		return true
	case top == "settings", top == "identityProviders":
		return depth == 1
	case top == "connections", top == "contexts":
		return depth <= 2
	}
	return false
}

// object sorts the properties of an object into those that work and those that
// do nothing. Overrides are told apart by their names, elsewhere.
func (e *Effects) object(path string, v any) {
	// An object is told as a whole, but for those whose members mean something each.
	for name, value := range sorted(v) {
		at := child(path, name)
		row := slices.IndexFunc(inert, func(r struct{ path, why string }) bool { return alike(r.path, at) })

		switch {
		case at == "environmentOverrides":
		case row >= 0:
			e.None = append(e.None, Error{at, inert[row].why})
		case open(at):
			e.object(at, value)
		default:
			e.Works = append(e.Works, Error{Path: at})
		}
	}
}

// alike compares a path with one that has stars.
func alike(pattern, path string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(path, ".")
	return len(want) == len(have) && !slices.ContainsFunc(want, func(w string) bool {
		h := have[0]
		have = have[1:]
		return w != "*" && w != h
	})
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
