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

// refusedSchemes run or show something in the browser that is sent there.
var refusedSchemes = []string{
	"javascript", "data", "vbscript", "file", "filesystem", "blob", "about", "view-source", "ws", "wss", "ftp", "mailto", "tel", "intent", "chrome", "edge", "resource", "jar",
}

// goodRedirect tells whether a client may be sent to an address at all: https,
// a program's own scheme, or http to the reader's own machine.
func goodRedirect(uri string) bool {
	if uri == "" || len(uri) > maxRedirect || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\\\"<>^`{|}#", r) }) {
		return false
	}

	u, err := url.Parse(uri)
	if err != nil || u.Scheme == "" || u.User != nil {
		return false
	}

	switch scheme := strings.ToLower(u.Scheme); {
	case scheme == "http":
		_, ok := loopback(uri)
		return ok
	case scheme == "https":
		return u.Hostname() != "" && u.Opaque == "" && strings.Trim(strings.ToLower(u.Host), "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") == ""
	case slices.Contains(refusedSchemes, scheme):
		return false
	}
	return true
}

// goodRedirects keeps those that a client may be sent to, as many as there is
// room for.
func goodRedirects(all []string) (kept []string) {
	room := maxRedirectsAll
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
	if !goodRedirect(asked) {
		return false
	}
	local, isLocal := loopback(asked)
	return slices.ContainsFunc(named, func(uri string) bool {
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
	separator := "?"
	if strings.Contains(redirect, "?") {
		separator = "&"
	}
	return redirect + separator + values.Encode()
}
