package hosttest

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// Real is a real server, which answers in place of one of this package.
type Real struct {
	URL   string // without a slash at the end
	Token string // that opens all of it

	// Have makes it have these repositories and no others. It is called with the
	// world that a test begins with, and after each change of it.
	Have func(repos []Repo)

	pass http.Handler // has it answer
}

// Before starts a server that stands before a real one until the test ends, as a
// proxy does. Faults, the count of calls and the token are its own; who brings its
// token is led on with that of the real server, and all others with what they brought.
func Before(t testing.TB, d *Deployment, real Real, repos ...Repo) *Server {
	t.Helper()
	target, err := url.Parse(real.URL)
	if err != nil {
		t.Fatal(err)
	}

	real.Have(repos)
	s := Start(t, d, repos...)
	s.real = &real
	real.pass = s.passTo(target)
	return s
}

// ofGit reports whether a call is one of git.
func ofGit(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/info/refs") || strings.HasSuffix(r.URL.Path, "/git-upload-pack")
}

// passTo passes calls on to the real server, which is at an address.
func (s *Server) passTo(target *url.URL) http.Handler {
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

		// The clock of a test is seldom that of the machine.
		ModifyResponse: func(res *http.Response) error {
			res.Header.Del("Date")
			return nil
		},

		// Whoever asks gives up some calls on purpose; that is nothing to write down.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}
