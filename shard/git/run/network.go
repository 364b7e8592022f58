package run

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Proxy is the proxy that the environment of the process names for an address,
// nil where none stands before it. HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in
// either case, mean what they mean to Go; ALL_PROXY stands in for the first two.
// Git is told what comes out, as each version of curl reads NO_PROXY in its own
// way.
func Proxy(u *url.URL) (*url.URL, error) {
	named := httpproxy.FromEnvironment()
	all := firstSet("ALL_PROXY", "all_proxy")
	if named.HTTPProxy == "" {
		named.HTTPProxy = all
	}
	if named.HTTPSProxy == "" {
		named.HTTPSProxy = all
	}
	return named.ProxyFunc()(u)
}

// Proxied is Proxy in the words of git, and what in it is secret. No proxy is
// said by an empty address.
func Proxied(u *url.URL) (address string, secrets []string, err error) {
	proxy, err := Proxy(u)
	if err != nil || proxy == nil {
		return "", nil, err
	}

	// To Go the proxy finds the host by its name in either case.
	if proxy.Scheme == "socks5" {
		proxy.Scheme = "socks5h"
	}

	if password, ok := proxy.User.Password(); ok {
		secrets = Forms(proxy.User.Username(), password)
	}
	return proxy.String(), secrets, nil
}

// authorities are the variables by which git trusts those who the process
// trusts: of the libraries that curl is built with, not each reads those of the
// process. What is named for git alone wins.
func authorities() (env []string) {
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		env = append(env, "GIT_PROXY_SSL_CAINFO="+file)
		if os.Getenv("GIT_SSL_CAINFO") == "" {
			env = append(env, "GIT_SSL_CAINFO="+file)
		}
	}

	// Git takes one directory.
	dirs := filepath.SplitList(os.Getenv("SSL_CERT_DIR"))
	if len(dirs) > 0 && os.Getenv("GIT_SSL_CAPATH") == "" {
		env = append(env, "GIT_SSL_CAPATH="+dirs[0])
	}
	return env
}

// Forms are a name and a password in each form in which git or curl could print
// them.
func Forms(user, password string) []string {
	return []string{
		url.UserPassword(user, password).String(),
		password,
		url.QueryEscape(password),
		url.PathEscape(password),
	}
}

// firstSet is the first of some variables that is not empty.
func firstSet(names ...string) string {
	for _, name := range names {
		if v := strings.TrimSpace(os.Getenv(name)); v != "" {
			return v
		}
	}
	return ""
}
