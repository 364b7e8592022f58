package host

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host/hosttest"
	"github.com/shoalsearch/shoal/shard/git"
)

// outsideRun is the variable that makes the process list and fetch.
const outsideRun = "SHOAL_TEST_OUTSIDE"

// errand is the input of such a process, and outcome its output.
type errand struct{ URL, Dir string }

type outcome struct {
	Listed  string // names of repositories
	Problem string // error of the listing
	Fetched bool
	Git     string // error of the fetch
}

// outside lists a Gitea and fetches its first repository, with the tools of a node.
func outside(text string) string {
	var e errand
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return err.Error()
	}

	ctx := context.Background()
	secret := func(context.Context, config.Token) (string, error) { return hosttest.Token, nil }
	tools := NewTools(secret, os.LookupEnv, nil, time.Now)
	tools.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	conn := &config.Gitea{URL: e.URL, Token: standToken, Orgs: []string{"acme"}}
	conn.Name = "work"

	var out outcome
	rec := &recorder{}
	h, err := Open(conn, tools)
	if err == nil {
		err = h.List(ctx, rec)
	}
	out.Listed = rec.names()
	if err != nil {
		out.Problem = err.Error()
	}

	// Fetch even if the listing failed.
	remote := git.Remote{URL: e.URL + "/acme/app.git"}
	if len(rec.repos) > 0 {
		remote = rec.repos[0].Remote
	}
	remote.Credential, err = Credential(ctx, conn, remote.URL, tools)
	if err == nil {
		_, err = git.Open(e.Dir).Fetch(ctx, remote, git.FetchOptions{})
	}
	if out.Fetched = err == nil; err != nil {
		out.Git = err.Error()
	}

	told, _ := json.Marshal(out)
	return string(told)
}

// network is a Gitea in a separate network, whose addresses only its proxy knows.
type network struct {
	t     *testing.T
	back  *hosttest.Server
	url   *url.URL // of back
	dir   string
	ca    *authority
	other *authority

	mu     sync.Mutex
	led    []string // what the proxy was asked for
	strays []string // calls to the host that nobody should call
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	repo := hosttest.Repo{ID: 1, Owner: "acme", Name: "app", Branch: "main", Private: true, Git: bareRepository(t)}
	n := &network{t: t, back: hosttest.Start(t, hosttest.Gitea(), repo), dir: t.TempDir(), ca: newAuthority(t), other: newAuthority(t)}
	n.url, _ = url.Parse(n.back.URL)
	return n
}

// behind returns a handler that passes calls below a path to the Gitea.
func (n *network) behind(prefix string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			rest := strings.TrimPrefix(r.In.URL.EscapedPath(), prefix)
			r.Out.URL, _ = url.Parse(n.url.String() + rest)
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			r.Out.Host = n.url.Host
		},
		ErrorLog: quietLog(),
	}
}

// serve serves at an address of this machine until the test ends.
func (n *network) serve(address string, h http.Handler, cert *tls.Certificate) *httptest.Server {
	n.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		n.t.Skipf("this machine has no %s: %v", address, err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = l
	s.Config.ErrorLog = quietLog()
	if cert == nil {
		s.Start()
	} else {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
		s.StartTLS()
	}
	n.t.Cleanup(s.Close)
	return s
}

// proxy starts a proxy to servers by their names in the network. It requires the password if that
// is not "".
func (n *network) proxy(password string, to map[string]string) string {
	n.t.Helper()
	return n.proxyBehind(nil, password, to)
}

// proxyBehind starts a proxy, which uses TLS if it has a certificate.
func (n *network) proxyBehind(cert *tls.Certificate, password string, to map[string]string) string {
	n.t.Helper()
	s := n.serve("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.led = append(n.led, r.Method+" "+r.Host)
		n.mu.Unlock()

		want := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+password))
		if password != "" && r.Header.Get("Proxy-Authorization") != want {
			w.Header().Set("Proxy-Authenticate", `Basic realm="proxy"`)
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}

		at, known := to[r.Host]
		switch {
		case !known:
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodConnect:
			tunnel(w, at)
		default:
			r.URL.Host = at
			(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, ErrorLog: quietLog()}).ServeHTTP(w, r)
		}
	}), cert)
	if password == "" {
		return s.URL
	}
	return strings.Replace(s.URL, "://", "://ann:"+password+"@", 1)
}

// socks starts a SOCKS 5 proxy without a password.
func (n *network) socks(to map[string]string) string {
	n.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			here, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer here.Close()
				n.leadSocks(here, to)
			}()
		}
	}()
	return "socks5://" + l.Addr().String()
}

// leadSocks reads a SOCKS request for a name, and connects to its server.
func (n *network) leadSocks(here net.Conn, to map[string]string) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(here, head); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, here, int64(head[1])); err != nil {
		return
	}
	here.Write([]byte{5, 0})

	request := make([]byte, 5) // version, command, 0, kind of address, length of the name
	if _, err := io.ReadFull(here, request); err != nil || request[3] != 3 {
		return
	}
	rest := make([]byte, int(request[4])+2)
	if _, err := io.ReadFull(here, rest); err != nil {
		return
	}
	name := fmt.Sprintf("%s:%d", rest[:len(rest)-2], binary.BigEndian.Uint16(rest[len(rest)-2:]))
	n.mu.Lock()
	n.led = append(n.led, "SOCKS "+name)
	n.mu.Unlock()

	there, err := net.Dial("tcp", to[name])
	if err != nil {
		return
	}
	defer there.Close()
	here.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	both(here, here, there)
}

// both copies bytes both ways until one side ends.
func both(here net.Conn, from io.Reader, there net.Conn) {
	done := make(chan struct{}, 2)
	go func() { io.Copy(there, from); done <- struct{}{} }()
	go func() { io.Copy(here, there); done <- struct{}{} }()
	<-done
}

// tunnel copies bytes between a hijacked connection and a server.
func tunnel(w http.ResponseWriter, to string) {
	there, err := net.Dial("tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close()
	w.WriteHeader(http.StatusOK)
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	both(here, buffered, there)
}

// run lists and fetches in a separate process.
func (n *network) run(address string, env ...string) (out outcome) {
	n.t.Helper()
	text, err := json.Marshal(errand{address, filepath.Join(n.dir, "mirror.git")})
	if err != nil {
		n.t.Fatal(err)
	}

	cmd := exec.CommandContext(n.t.Context(), os.Args[0])
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, outsideRun + "=" + string(text)}, env...)
	said, err := cmd.CombinedOutput()
	if err != nil || json.Unmarshal(said, &out) != nil {
		n.t.Fatalf("%v: %s", err, said)
	}
	for _, secret := range []string{hosttest.Token, "pr0xy"} {
		if strings.Contains(string(said), secret) {
			n.t.Errorf("a secret is told: %s", said)
		}
	}
	return out
}

// authority issues certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key}
	from := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Acme authority " + t.Name()}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour * 24 * 400), NotAfter: time.Now().Add(time.Hour * 24 * 400), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, from, from, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

// file writes the authority's certificate to a file.
func (a *authority) file(dir string) string {
	path := filepath.Join(dir, "authority.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue issues a certificate for a name or address, valid until a time.
func (a *authority) issue(name string, until time.Time) *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-time.Hour * 24 * 90), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if ip := net.ParseIP(name); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}
}

// outward returns an external address of this machine, for which a proxy is used unless NO_PROXY
// names it.
func outward(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Skip(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	t.Skip("this machine has no address but its own")
	return ""
}

// Lists and fetches with real sockets, in a separate process with an operator's environment.
func TestProxiesAndCertificates_areUsedToListAndFetch(t *testing.T) {
	t.Parallel()
	const name = "code.example" // only the proxy knows it
	good := time.Now().Add(time.Hour * 24 * 30)

	// A setting creates the network. It returns the host's URL and the environment of the process.
	plain := func(n *network) string {
		return strings.TrimPrefix(n.serve("127.0.0.1:0", n.behind(""), nil).URL, "http://")
	}
	secured := func(n *network, cert *tls.Certificate) string {
		return strings.TrimPrefix(n.serve("127.0.0.1:0", n.behind(""), cert).URL, "https://")
	}
	refusing := func(n *network) string { return n.proxy("", nil) }

	for _, c := range []struct {
		name    string
		setting func(n *network) (address string, env []string)
		led     string   // a call through the proxy; "none": no call
		api     []string // parts of the listing's error; nil: it succeeds
		git     []string // parts of the fetch's error; nil: it succeeds
	}{
		{name: "straight", led: "none", setting: func(n *network) (string, []string) { return "http://" + plain(n), nil }},
		{name: "below a path", led: "none", setting: func(n *network) (string, []string) {
			return n.serve("127.0.0.1:0", n.behind("/tools/git"), nil).URL + "/tools/git", nil
		}},
		{name: "an address of IPv6", led: "none", setting: func(n *network) (string, []string) {
			return n.serve("[::1]:0", n.behind(""), nil).URL, nil
		}},
		{name: "an address of IPv6, with TLS", led: "none", setting: func(n *network) (string, []string) {
			s := n.serve("[::1]:0", n.behind(""), n.ca.issue("::1", good))
			return s.URL, []string{"SSL_CERT_FILE=" + n.ca.file(n.dir)}
		}},
		{name: "HTTP_PROXY", led: "GET " + name, setting: func(n *network) (string, []string) {
			return "http://" + name, []string{"HTTP_PROXY=" + n.proxy("", map[string]string{name: plain(n)})}
		}},
		{name: "http_proxy", led: "GET " + name, setting: func(n *network) (string, []string) {
			return "http://" + name, []string{"http_proxy=" + n.proxy("", map[string]string{name: plain(n)})}
		}},
		{name: "HTTPS_PROXY", led: "CONNECT " + name + ":443", setting: func(n *network) (string, []string) {
			p := n.proxy("", map[string]string{name + ":443": secured(n, n.ca.issue(name, good))})
			return "https://" + name, []string{"HTTPS_PROXY=" + p, "SSL_CERT_FILE=" + n.ca.file(n.dir)}
		}},
		{name: "ALL_PROXY", led: "CONNECT " + name + ":443", setting: func(n *network) (string, []string) {
			p := n.proxy("", map[string]string{name + ":443": secured(n, n.ca.issue(name, good))})
			return "https://" + name, []string{"ALL_PROXY=" + p, "SSL_CERT_FILE=" + n.ca.file(n.dir)}
		}},
		{name: "a proxy that is asked with TLS", led: "CONNECT " + name + ":443", setting: func(n *network) (string, []string) {
			p := n.proxyBehind(n.ca.issue("127.0.0.1", good), "pr0xy", map[string]string{name + ":443": secured(n, n.ca.issue(name, good))})
			return "https://" + name, []string{"HTTPS_PROXY=" + p, "SSL_CERT_FILE=" + n.ca.file(n.dir)}
		}},
		{name: "a proxy of SOCKS 5", led: "SOCKS " + name + ":443", setting: func(n *network) (string, []string) {
			p := n.socks(map[string]string{name + ":443": secured(n, n.ca.issue(name, good))})
			return "https://" + name, []string{"HTTPS_PROXY=" + p, "SSL_CERT_FILE=" + n.ca.file(n.dir)}
		}},
		{name: "a proxy with a password", led: "CONNECT " + name + ":443", setting: func(n *network) (string, []string) {
			p := n.proxy("pr0xy", map[string]string{name + ":443": secured(n, n.ca.issue(name, good))})
			return "https://" + name, []string{"https_proxy=" + p, "SSL_CERT_FILE=" + n.ca.file(n.dir)}
		}},
		{
			name: "a proxy that refuses the password", led: "CONNECT " + name + ":443",
			setting: func(n *network) (string, []string) {
				p := strings.Replace(n.proxy("another", nil), "another", "pr0xy", 1)
				return "https://" + name, []string{"HTTPS_PROXY=" + p}
			},
			api: []string{"proxy", "user and a password", "HTTPS_PROXY"}, git: []string{"proxy", "user and a password", "HTTPS_PROXY"},
		},
		{
			name: "a proxy that refuses the password, without TLS", led: "GET " + name,
			setting: func(n *network) (string, []string) {
				p := strings.Replace(n.proxy("another", nil), "another", "pr0xy", 1)
				return "http://" + name, []string{"HTTP_PROXY=" + p}
			},
			api: []string{"proxy", "user and a password", "HTTP_PROXY"}, git: []string{"proxy", "user and a password", "HTTP_PROXY"},
		},
		{
			name: "a proxy that does not lead there", led: "CONNECT " + name + ":443",
			setting: func(n *network) (string, []string) {
				return "https://" + name, []string{"HTTPS_PROXY=" + refusing(n)}
			},
			api: []string{"proxy", "status 403"}, git: []string{"403"},
		},
		{name: "NO_PROXY with an address", led: "none", setting: func(n *network) (string, []string) {
			ip := outward(n.t)
			s := n.serve(ip+":0", n.behind(""), nil)
			return s.URL, []string{"HTTP_PROXY=" + refusing(n), "NO_PROXY=other.example," + ip}
		}},
		{name: "NO_PROXY with an address and a port", led: "none", setting: func(n *network) (string, []string) {
			s := n.serve(outward(n.t)+":0", n.behind(""), nil)
			return s.URL, []string{"HTTP_PROXY=" + refusing(n), "NO_PROXY=" + strings.TrimPrefix(s.URL, "http://")}
		}},
		{name: "NO_PROXY with a network", led: "none", setting: func(n *network) (string, []string) {
			ip := outward(n.t)
			s := n.serve(ip+":0", n.behind(""), nil)
			return s.URL, []string{"HTTP_PROXY=" + refusing(n), "NO_PROXY=" + ip[:strings.Index(ip, ".")] + ".0.0.0/8"}
		}},
		{name: "no_proxy for all", led: "none", setting: func(n *network) (string, []string) {
			s := n.serve(outward(n.t)+":0", n.behind(""), nil)
			return s.URL, []string{"HTTP_PROXY=" + refusing(n), "no_proxy=*"}
		}},
		{name: "a proxy, and a host of this machine", led: "none", setting: func(n *network) (string, []string) {
			return "http://" + plain(n), []string{"HTTP_PROXY=" + refusing(n), "ALL_PROXY=" + refusing(n)}
		}},
		{name: "an authority of one's own", led: "none", setting: func(n *network) (string, []string) {
			return "https://" + secured(n, n.ca.issue("127.0.0.1", good)), []string{"SSL_CERT_FILE=" + n.ca.file(n.dir)}
		}},
		{name: "a directory of authorities of one's own", led: "none", setting: func(n *network) (string, []string) {
			dir := n.t.TempDir()
			n.ca.file(dir)
			if out, err := exec.Command("openssl", "rehash", dir).CombinedOutput(); err != nil {
				n.t.Skipf("openssl rehash: %v: %s", err, out)
			}
			return "https://" + secured(n, n.ca.issue("127.0.0.1", good)), []string{"SSL_CERT_DIR=" + dir}
		}},
		{
			name: "an authority that nobody named", led: "none",
			setting: func(n *network) (string, []string) {
				return "https://" + secured(n, n.ca.issue("127.0.0.1", good)), []string{"SSL_CERT_FILE=" + n.other.file(n.dir)}
			},
			api: []string{"unknown authority", "SSL_CERT_FILE"}, git: []string{"certificate", "SSL_CERT_FILE"},
		},
		{
			name: "a certificate that has ended", led: "none",
			setting: func(n *network) (string, []string) {
				return "https://" + secured(n, n.ca.issue("127.0.0.1", time.Now().Add(-time.Hour*24))), []string{"SSL_CERT_FILE=" + n.ca.file(n.dir)}
			},
			api: []string{"is good from", "renew the certificate", "set the clock"}, git: []string{"certificate", "out of date"},
		},
		{
			name: "a certificate for another name", led: "none",
			setting: func(n *network) (string, []string) {
				return "https://" + secured(n, n.ca.issue("other.example", good)), []string{"SSL_CERT_FILE=" + n.ca.file(n.dir)}
			},
			api: []string{"for another name", "connection work"}, git: []string{"certificate", "for another name"},
		},
		{
			name: "https where http is spoken", led: "none",
			setting: func(n *network) (string, []string) { return "https://" + plain(n), nil },
			api:     []string{"speaks http", "connection work"}, git: []string{"TLS"},
		},
		{
			name: "a way to another host", led: "none",
			setting: func(n *network) (string, []string) {
				elsewhere := n.serve("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					n.mu.Lock()
					defer n.mu.Unlock()
					if r.Header.Get("Authorization") != "" || strings.Contains(r.URL.Path, "/api/") {
						n.strays = append(n.strays, r.Method+" "+r.URL.Path)
					}
					w.Header().Set("WWW-Authenticate", "Basic")
					w.WriteHeader(http.StatusUnauthorized)
				}), nil)
				s := n.serve("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, elsewhere.URL+r.URL.RequestURI(), http.StatusFound)
				}), nil)
				return s.URL, nil
			},
			api: []string{"redirects to http://127.0.0.1:", "set the url of connection work"}, git: []string{"password"},
		},
		{
			name: "nobody there", led: "none",
			setting: func(n *network) (string, []string) {
				s := n.serve("127.0.0.1:0", n.behind(""), nil)
				s.Close()
				return s.URL, nil
			},
			api: []string{"cannot be reached", "refused"}, git: []string{"Failed to connect"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNetwork(t)
			address, env := c.setting(n)
			out := n.run(address, env...)

			if len(c.api) == 0 && (out.Problem != "" || out.Listed != listedBelow(address)) || !fits(out.Problem, c.api) {
				t.Errorf("listed %q: %s; want %q", out.Listed, out.Problem, c.api)
			}
			if out.Fetched == (len(c.git) > 0) || !fits(out.Git, c.git) {
				t.Errorf("fetched %v: %s; want %q", out.Fetched, out.Git, c.git)
			}

			n.mu.Lock()
			defer n.mu.Unlock()
			byProxy := func(led string) bool { return led == c.led }
			if c.led == "none" && len(n.led) > 0 || c.led != "none" && !slices.ContainsFunc(n.led, byProxy) {
				t.Errorf("the proxy was asked for %q, want %s", n.led, c.led)
			}
			if len(n.strays) > 0 {
				t.Errorf("the other host was asked %q", n.strays)
			}
		})
	}
}

// quietLog returns a logger that discards, for servers whose clients break connections.
func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }

// listedBelow returns the repository's name in the network, as the recorder has it.
func listedBelow(address string) string {
	u, _ := url.Parse(address)
	return strings.TrimPrefix(u.Path+"/acme/app", "/")
}

// fits reports whether a text contains all parts. Without parts the text must be empty.
func fits(text string, parts []string) bool {
	if len(parts) == 0 {
		return text == ""
	}
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}
