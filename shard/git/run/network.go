package run

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Proxy returns the proxy that the environment of the process names for an address; nil if there is
// none. HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in either case, mean what they mean to Go; ALL_PROXY
// replaces the first two if they are missing. Git gets the result, because versions of curl read
// NO_PROXY differently.
func Proxy(u *url.URL) (*url.URL, error) {
	named := httpproxy.FromEnvironment()
	all := firstVariable("ALL_PROXY", "all_proxy")
	if named.HTTPProxy == "" {
		named.HTTPProxy = all
	}
	if named.HTTPSProxy == "" {
		named.HTTPSProxy = all
	}
	return named.ProxyFunc()(u)
}

// Proxied returns the proxy as git expects it, and the secrets in it. An empty address means no
// proxy.
func Proxied(u *url.URL) (address string, secrets []string, err error) {
	proxy, err := Proxy(u)
	if err != nil || proxy == nil {
		return "", nil, err
	}

	// In Go, the proxy resolves the host name in either case.
	if proxy.Scheme == "socks5" {
		proxy.Scheme = "socks5h"
	}

	if password, ok := proxy.User.Password(); ok {
		secrets = Forms(proxy.User.Username(), password)
	}
	return proxy.String(), secrets, nil
}

// caVariables returns variables that make git trust the certificate authorities that this process
// trusts, because not every build of curl reads SSL_CERT_FILE and SSL_CERT_DIR. If GIT_SSL_CAINFO
// or GIT_SSL_CAPATH is set, it does not replace that.
func caVariables() (env []string) {
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		env = append(env, "GIT_PROXY_SSL_CAINFO="+file)
		if os.Getenv("GIT_SSL_CAINFO") == "" {
			env = append(env, "GIT_SSL_CAINFO="+file)
		}
	}

	// Git accepts only one directory.
	dirs := filepath.SplitList(os.Getenv("SSL_CERT_DIR"))
	if len(dirs) > 0 && os.Getenv("GIT_SSL_CAPATH") == "" {
		env = append(env, "GIT_SSL_CAPATH="+dirs[0])
	}
	return env
}

// Forms returns a password, and a user with the password, in each encoding in which git or curl may
// print them.
func Forms(user, password string) []string {
	return []string{
		url.UserPassword(user, password).String(),
		password,
		url.QueryEscape(password),
		url.PathEscape(password),
	}
}

// firstVariable returns the value of the first variable that is not empty.
func firstVariable(names ...string) string {
	for _, name := range names {
		if v := strings.TrimSpace(os.Getenv(name)); v != "" {
			return v
		}
	}
	return ""
}
