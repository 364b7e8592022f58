package hosttest

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// Real is a real server that answers in place of this package.
type Real struct {
	URL   string // without a trailing slash
	Token string // with access to everything

	// Have creates these repositories and deletes all others. Before and each Do call it.
	Have func(repos []Repo)

	pass http.Handler // passes calls to it
}

// Before starts a server in front of a real one, like a proxy. The server has its own faults, call
// count and token. It replaces its own token by the real server's, and leaves others unchanged.
func Before(t testing.TB, d *Deployment, real Real, repos ...Repo) *Server {
	t.Helper()
	target, err := url.Parse(real.URL)
	if err != nil {
		t.Fatal(err)
	}

	real.Have(repos)
	s := Start(t, d, repos...)
	s.real = &real
	real.pass = s.proxyTo(target)
	return s
}

// ofGit reports whether a call is from git.
func ofGit(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/info/refs") || strings.HasSuffix(r.URL.Path, "/git-upload-pack")
}

// proxyTo returns a handler that passes calls to the real server.
func (s *Server) proxyTo(target *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Path = strings.TrimPrefix(p.In.URL.Path, s.Deployment.prefix)
			p.Out.URL.RawPath = strings.TrimPrefix(p.In.URL.RawPath, s.Deployment.prefix)
			p.SetURL(target)

			s.mu.Lock()
			token := s.token
			s.mu.Unlock()
			if s.Deployment.authorized(p.In, token) {
				p.Out.Header.Set("Authorization", "token "+s.real.Token)
			}
			if s.Deployment.opens(p.In, token) {
				p.Out.SetBasicAuth(Account, s.real.Token)
			}
		},

		// Tests have their own clock.
		ModifyResponse: func(res *http.Response) error {
			res.Header.Del("Date")
			return nil
		},

		// Callers cancel some calls on purpose, so do not log errors.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}
