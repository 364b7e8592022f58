package oauth

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what a client may say of itself.
const (
	maxRedirects    = 20
	maxRedirect     = 512
	maxRedirectsAll = 2048 // all together
)

// refusedSchemes run or show something in the browser that is sent there, or in the
// system behind it. All that begin with ms- and search- are too.
var refusedSchemes = []string{
	"javascript", "data", "vbscript", "file", "filesystem", "blob", "about", "view-source", "ws", "wss", "ftp", "mailto", "tel", "intent", "chrome", "edge", "resource", "jar", "shell", "mk", "its", "mhtml", "hcp", "help", "res", "ldap", "ldaps", "smb", "ssh", "telnet", "vnc", "rdp", "x-apple-helpbasic",
}

// goodRedirect tells whether a client may be sent to an address at all: https,
// a program's own scheme, or http to the reader's own machine.
func goodRedirect(uri string) bool {
	// No sign that is read in different ways, or that would end an attribute or a header.
	if uri == "" || len(uri) > maxRedirect || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\\\"<>^`{|}#", r) }) {
		return false
	}

	u, err := url.Parse(uri)
	// A name before the host makes an address look like one of another site.
	if err != nil || u.Scheme == "" || u.User != nil {
		return false
	}

	switch scheme := strings.ToLower(u.Scheme); {
	// Without TLS only to the reader's own machine: on no network the code could be read.
	case scheme == "http":
		_, ok := loopback(uri)
		return ok
	case scheme == "https":
		// Letters of ASCII only: others look like them.
		return u.Hostname() != "" && u.Opaque == "" && strings.Trim(strings.ToLower(u.Host), "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") == ""
	// All others are a program's own, and nobody knows which there are.
	case slices.Contains(refusedSchemes, scheme), strings.HasPrefix(scheme, "ms-"), strings.HasPrefix(scheme, "search-"):
		return false
	}
	return true
}

// goodRedirects keeps those that a client may be sent to, as many as there is
// room for.
func goodRedirects(all []string) (kept []string) {
	room := maxRedirectsAll
	// The first ones, as they stand: which of them matters, nobody here knows.
	for _, uri := range all {
		if goodRedirect(uri) && !slices.Contains(kept, uri) && len(kept) < maxRedirects && len(uri) <= room {
			kept, room = append(kept, uri), room-len(uri)
		}
	}
	return kept
}

// loopback takes the port out of an address on the reader's own machine. A
// program there listens on whatever port is free, so that the port tells
// nothing; the name and the rest have to be the same letters.
//
//	http://localhost:8123/callback  ->  http://localhost/callback
func loopback(uri string) (portless string, ok bool) {
	// By name and by number, each for itself: they may be different programs.
	for _, host := range []string{"http://localhost", "http://127.0.0.1", "http://[::1]"} {
		rest, is := strings.CutPrefix(uri, host)
		if !is {
			continue
		}

		if digits, has := strings.CutPrefix(rest, ":"); has {
			end := strings.IndexAny(digits, "/?")
			if end < 0 {
				end = len(digits)
			}

			// A port has one spelling, so that what is compared is the same address.
			if port, err := strconv.ParseUint(digits[:end], 10, 16); err != nil || port == 0 || digits[0] == '0' {
				return "", false
			}
			rest = digits[end:]
		}

		return host + rest, rest == "" || rest[0] == '/' || rest[0] == '?'
	}
	return "", false
}

// matchRedirect tells whether a client that named some addresses may be sent
// to one: it is one of them, letter by letter, but for the port of a loopback
// address.
func matchRedirect(named []string, asked string) bool {
	// Once more, since what was named may be from a time with other rules.
	if !goodRedirect(asked) {
		return false
	}

	local, isLocal := loopback(asked)
	return slices.ContainsFunc(named, func(uri string) bool {
		// To the letter, as RFC 9700 demands: by looser rules codes have come into other hands.
		if uri == asked {
			return true
		}
		other, ok := loopback(uri)
		return isLocal && ok && local == other
	})
}

// redirectHost is how people tell where an address leads: its host and port,
// or the scheme of a program's own.
func redirectHost(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "https" || u.Scheme == "http":
		return u.Host
	}
	return u.Scheme + ":"
}

// redirectSource is what a page may send its form to, in a Content-Security-Policy,
// so that the browser follows the answer to an address.
func redirectSource(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "'none'"
	case (u.Scheme == "https" || u.Scheme == "http") && !strings.Contains(u.Host, "["): // there is no way to write such a number there
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

// with adds parameters to a redirect address.
func with(redirect string, values url.Values) string {
	// An address may have parameters of its own, which stay.
	separator := "?"
	if strings.Contains(redirect, "?") {
		separator = "&"
	}
	return redirect + separator + values.Encode()
}
