package oauth

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits of redirect URLs.
const (
	maxRedirects    = 20
	maxRedirect     = 512
	maxRedirectsAll = 2048 // bytes of all URLs of a client
)

// refusedSchemes run or show something in the browser or the operating system. All that begin with
// ms- and search- are refused, too.
var refusedSchemes = []string{
	"javascript", "data", "vbscript", "file", "filesystem", "blob", "about", "view-source", "ws", "wss", "ftp", "mailto", "tel", "intent", "chrome", "edge", "resource", "jar", "shell", "mk", "its", "mhtml", "hcp", "help", "res", "ldap", "ldaps", "smb", "ssh", "telnet", "vnc", "rdp", "x-apple-helpbasic",
}

// goodRedirect reports whether a client may have a redirect URL: https, a program's own scheme, or
// http to the person's own machine.
func goodRedirect(uri string) bool {
	// Refuse characters that programs read differently, or that could end an attribute or header.
	if uri == "" || len(uri) > maxRedirect || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\\\"<>^`{|}#", r) }) {
		return false
	}

	u, err := url.Parse(uri)
	// User information can disguise the host.
	if err != nil || u.Scheme == "" || u.User != nil {
		return false
	}

	switch scheme := strings.ToLower(u.Scheme); {
	// Without TLS, only the local machine is allowed, where no network can see the code.
	case scheme == "http":
		_, ok := withoutLoopbackPort(uri)
		return ok
	case scheme == "https":
		// ASCII only: other letters look alike.
		return u.Hostname() != "" && u.Opaque == "" && strings.Trim(strings.ToLower(u.Host), "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") == ""
	// Any other scheme may be a program's own.
	case slices.Contains(refusedSchemes, scheme), strings.HasPrefix(scheme, "ms-"), strings.HasPrefix(scheme, "search-"):
		return false
	}
	return true
}

// goodRedirects returns the acceptable URLs, within the limits.
func goodRedirects(all []string) (kept []string) {
	room := maxRedirectsAll
	// Keep the first ones: nobody here knows which matter.
	for _, uri := range all {
		if goodRedirect(uri) && !slices.Contains(kept, uri) && len(kept) < maxRedirects && len(uri) <= room {
			kept, room = append(kept, uri), room-len(uri)
		}
	}
	return kept
}

// withoutLoopbackPort removes the port of a URL on the person's own machine, because a program there uses any
// free port.
//
//	http://localhost:8123/callback  ->  http://localhost/callback
func withoutLoopbackPort(uri string) (portless string, ok bool) {
	// Names and numbers are distinct: they may be different programs.
	for _, host := range []string{"http://localhost", "http://127.0.0.1", "http://[::1]"} {
		rest, isHost := strings.CutPrefix(uri, host)
		if !isHost {
			continue
		}

		if digits, has := strings.CutPrefix(rest, ":"); has {
			end := strings.IndexAny(digits, "/?")
			if end < 0 {
				end = len(digits)
			}

			// Accept only one spelling of a port.
			if port, err := strconv.ParseUint(digits[:end], 10, 16); err != nil || port == 0 || digits[0] == '0' {
				return "", false
			}
			rest = digits[end:]
		}

		return host + rest, rest == "" || rest[0] == '/' || rest[0] == '?'
	}
	return "", false
}

// matchRedirect reports whether a client with these URLs may use a redirect URL: it must equal one
// of them, except for the port of a loopback URL.
func matchRedirect(named []string, asked string) bool {
	// Check again: older registrations had other rules.
	if !goodRedirect(asked) {
		return false
	}

	local, isLocal := withoutLoopbackPort(asked)
	return slices.ContainsFunc(named, func(uri string) bool {
		// Compare exactly, as RFC 9700 demands: looser rules have leaked codes.
		if uri == asked {
			return true
		}
		other, ok := withoutLoopbackPort(uri)
		return isLocal && ok && local == other
	})
}

// redirectHost returns what tells people where a URL leads: host and port, or a program's own
// scheme.
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

// formActionSource returns a URL's source for the directive form-action of a Content-Security-Policy,
// so that the browser follows the redirect.
func formActionSource(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "'none'"
	case (u.Scheme == "https" || u.Scheme == "http") && !strings.Contains(u.Host, "["): // a policy cannot contain an IPv6 address
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

// withParameters appends parameters to a redirect URL.
func withParameters(redirect string, values url.Values) string {
	separator := "?"
	if strings.Contains(redirect, "?") {
		separator = "&"
	}
	return redirect + separator + values.Encode()
}
