package api

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// A user of the socket in the data directory is an administrator. At the port a key is needed.
func TestOperatorSocket_makesItsUserAnAdministratorWithoutAKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, &fake{}, func(o *Options) { o.DataDir = dir })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return auth.DialSocket(ctx, dir)
	}}}
	resp, err := client.Get("http://shoal/api/keys")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("by the socket: %d", resp.StatusCode)
	}
	if resp, _ := askAs(t, s, "", "GET", "/api/keys", ""); resp.StatusCode != 401 {
		t.Errorf("by the port: %d", resp.StatusCode)
	}
}

// The metrics address only serves metrics.
func TestMetricsListener_servesNothingElse(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{guests: true}, func(o *Options) { o.MetricsListen = "127.0.0.1:0" })
	for path, want := range map[string]int{"/metrics": 200, "/livez": 200, "/readyz": 200, "/api/repos": 404, "/": 404, "/api/status": 404} {
		resp, err := http.Get("http://" + s.MetricsAddr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
		}
	}
}

// Metrics count all repositories and name connections. At both addresses they need a key, but for an
// address on loopback while no connection enforces permissions.
func TestMetrics_needAKeyButOnLoopbackWithoutPermissions(t *testing.T) {
	t.Parallel()
	for _, ip := range []string{"127.0.0.1", "0.0.0.0"} {
		for _, enforces := range []bool{false, true} {
			p := (&fake{guests: true}).parts()
			p.enforces = func() bool { return enforces }
			s := start(t, p, func(o *Options) { o.Listen, o.MetricsListen = ip+":0", ip+":0" })
			for key, refused := range map[string]int{metricsKey: 200, ownerKey: 200, memberKey: 403, "": 403, metricsKey[1:]: 401} {
				want := refused
				if ip == "127.0.0.1" && !enforces {
					want = 200
				}
				for name, addr := range map[string]net.Addr{"the API": s.Addr(), "metrics": s.MetricsAddr()} {
					if resp, body := askAt(t, addr, key, "GET", "/metrics", ""); resp.StatusCode != want {
						t.Errorf("the address of %s on %s, enforced %t, key %.8q: %d %.200s, want %d", name, ip, enforces, key, resp.StatusCode, body, want)
					}
				}
			}
			for _, path := range []string{"/livez", "/readyz"} {
				if resp, _ := askAt(t, s.MetricsAddr(), "", "GET", path, ""); resp.StatusCode != 200 {
					t.Errorf("%s at the address of metrics on %s, enforced %t: %d", path, ip, enforces, resp.StatusCode)
				}
			}
		}
	}
}

// A key with the role metrics opens metrics, and nothing else: every other route that wants a
// credential refuses it, a page by leading to the sign-in.
func TestMetricsKey_opensOnlyMetrics(t *testing.T) {
	t.Parallel()
	p := (&fake{guests: true}).parts()
	p.enforces = func() bool { return true }
	s := start(t, p, func(*Options) {})
	asked := 0
	for _, r := range allRoutes(s) {
		if r.access == accessOpen || r.access == accessMetrics || r.framed {
			continue
		}
		asked++
		if resp, body := askAs(t, s, metricsKey, r.method, strings.NewReplacer("{", "", "}", "", "*", "x").Replace(r.name), ""); resp.StatusCode != 401 && resp.Request.URL.Path != "/login" {
			t.Errorf("%s %s: %d %.200s", r.method, r.name, resp.StatusCode, body)
		}
	}
	if asked < 100 {
		t.Errorf("%d routes asked", asked)
	}
}

func TestHostHeader_isAcceptedOnlyForKnownNames(t *testing.T) {
	t.Parallel()
	local := newHostRule(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7700}, always("http://code.example:7700"), nil)
	public := newHostRule(&net.TCPAddr{IP: net.IPv4(10, 9, 9, 1), Port: 7700}, always("https://code.example"), []string{"mirror.example", "other.example:8080"})
	for _, c := range []struct {
		rule         hostRule
		host, origin string
		knows, same  bool
	}{
		{local, "127.0.0.1:7700", "", true, true},
		{local, "localhost:7700", "http://localhost:7700", true, true},
		{local, "127.0.0.1:7700", "http://localhost:7700", true, true},
		{local, "127.0.0.1:7700", "http://localhost:3000", true, false}, // another program on this host
		{local, "code.example:7700", "http://code.example:7700", true, true},
		{local, "evil.example", "", false, true},
		{local, "10.0.0.1", "", false, true},
		{local, "127.0.0.1:7700", "http://evil.example", true, false},
		{local, "127.0.0.1:7700", "null", true, false},
		{local, "", "", true, true}, // a load balancer's health check in HTTP/1.0
		{local, "", "http://evil.example", false, false},

		{public, "10.9.9.1:7700", "", true, true},
		{public, "[fe80::1]:7700", "", true, true},
		{public, "code.example", "https://code.example", true, true},
		{public, "CODE.example:443", "", true, true},
		{public, "mirror.example:7700", "", true, true},
		{public, "other.example:8080", "", true, true},
		{public, "other.example:9090", "", false, true},
		{public, "evil.example:7700", "http://evil.example:7700", false, true},
		{public, "10.9.9.1:7700", "http://10.9.9.1:7700", true, true},
		{public, "10.9.9.1:7700", "http://localhost:7700", true, false},
		{newHostRule(&net.TCPAddr{IP: net.IPv4(10, 9, 9, 1)}, always(""), []string{"*"}), "any.example", "", true, true},
	} {
		if got := c.rule.allowsHost(c.host, c.origin); got != c.knows {
			t.Errorf("host %q, origin %q: known %t, want %t", c.host, c.origin, got, c.knows)
		}
		if got := c.rule.sameSite(c.host, c.origin); got != c.same {
			t.Errorf("host %q, origin %q: same site %t, want %t", c.host, c.origin, got, c.same)
		}
	}
}

// Requests that a page of another site can make a browser send are refused. Health checks work
// with any host name.
func TestCrossSiteRequests_areRefused(t *testing.T) {
	t.Parallel()
	s := start(t, &fake{guests: true})
	for _, c := range []struct {
		path, host string
		header     map[string]string
		want       int
	}{
		{"/api/repos", "evil.example", nil, 421},
		{"/readyz", "balancer.example", nil, 200},
		{"/api/repos", "", map[string]string{"Origin": "http://localhost:1"}, 403},
		{"/api/repos", "", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403},
		{"/", "", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"/api/repos", "", map[string]string{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200},
	} {
		req, err := http.NewRequest("GET", "http://"+s.Addr().String()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		for k, v := range c.header {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%+v: %d %s", c, resp.StatusCode, body)
		}
		if got := resp.Header.Get("Cross-Origin-Resource-Policy"); got != "same-origin" {
			t.Errorf("%+v: Cross-Origin-Resource-Policy %q", c, got)
		}
	}
}

// The API and the metrics address speak TLS. A renewed certificate works without a restart.
func TestTLS_usesARenewedCertificateWithoutARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certify(t, cert, key, 1)
	registry := prometheus.NewRegistry()
	s := start(t, &fake{guests: true}, func(o *Options) {
		o.TLSCert, o.TLSKey = cert, key
		o.MetricsListen, o.Registerer = "127.0.0.1:0", registry
	})
	serial := func() int64 {
		t.Helper()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		var serial int64
		for _, address := range []string{s.Addr().String() + "/api/repos", s.MetricsAddr().String() + "/metrics"} {
			resp, err := client.Get("https://" + address)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != 200 {
				t.Fatalf("%s: status %d", address, resp.StatusCode)
			}
			serial = resp.TLS.PeerCertificates[0].SerialNumber.Int64()
		}
		return serial
	}
	if got := serial(); got != 1 {
		t.Errorf("certificate %d", got)
	}

	// During half of a renewal the old pair stays.
	if err := os.WriteFile(cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.doors.certificate.(*fileCertificate).reload()
	if got := serial(); got != 1 {
		t.Errorf("with half a renewal: certificate %d", got)
	}
	certify(t, cert, key, 2)
	s.doors.certificate.(*fileCertificate).reload()
	if got := serial(); got != 2 {
		t.Errorf("renewed: certificate %d", got)
	}

	leaf := s.doors.certificate.current().Leaf
	if got := metricOf(t, registry, "shoal_certificate_expires_timestamp_seconds"); got != float64(leaf.NotAfter.Unix()) {
		t.Errorf("the metric of its end is %v, want %d", got, leaf.NotAfter.Unix())
	}

	if _, err := newServer((&fake{}).parts(), Options{Listen: "127.0.0.1:0", TLSCert: cert}); err == nil {
		t.Error("a certificate without a key is taken")
	}
}

// Owners see when the certificate expires. A warning comes two weeks before, or in the last
// quarter of a short lifetime.
func TestCertificate_warnsOwnersBeforeItExpires(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		lasts, left time.Duration
		want        string
	}{
		"a year, 15 days left":       {365 * day, 15 * day, ""},
		"a year, 13 days left":       {365 * day, 13 * day, "ends at 2026-01-15 03:04:05 (UTC): renew cert.pem"},
		"a day, 7 hours left":        {day, 7 * time.Hour, ""},
		"a day, 5 hours left":        {day, 5 * time.Hour, "ends at 2026-01-02 08:04:05 (UTC)"},
		"90 days, ended an hour ago": {90 * day, -time.Hour, "has ended at 2026-01-02 02:04:05 (UTC)"},
	} {
		end := now.Add(c.left)
		pair := &tls.Certificate{Leaf: &x509.Certificate{NotBefore: end.Add(-c.lasts), NotAfter: end}}
		s := certified{&fake{}, &fileCertificate{cert: "cert.pem", pair: pair}, func() time.Time { return now }}
		before, err := s.state.Status(t.Context(), catalog.Operator())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Status(t.Context(), catalog.Operator())
		if err != nil {
			t.Fatal(err)
		}
		more := r.Warnings[len(before.Warnings):]
		if !r.CertificateEnds.Equal(end) || (c.want == "") != (len(more) == 0) || !strings.Contains(strings.Join(more, ""), c.want) {
			t.Errorf("%s: it ends at %s, warnings %q", name, r.CertificateEnds, more)
		}
		if care := strings.Contains(r.Verdict.Sentence, "the certificate of this node"); care != (c.want != "") {
			t.Errorf("%s: the verdict is %+v", name, r.Verdict)
		}
		if r, err := s.Status(t.Context(), catalog.Viewer{}); err != nil || r.CertificateEnds != before.CertificateEnds || len(r.Warnings) != len(before.Warnings) {
			t.Errorf("%s: a guest is told %+v, %v", name, r.CertificateEnds, err)
		}
	}
}

// A timer reads the files again, even without connections.
func TestCertificate_isReloadedOnATimer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certify(t, cert, key, 1)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c, err := openFiles(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		go c.run(t.Context())
		certify(t, cert, key, 2)
		time.Sleep(certificateInterval + time.Second)
		if got := c.current().Leaf.SerialNumber.Int64(); got != 2 {
			t.Errorf("the certificate is %d", got)
		}
		for _, want := range []string{"level=INFO", "serial=1", "serial=2", "ends=20"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %s: %s", want, log.String())
			}
		}
	})
}

// metricOf returns the value of a metric without labels.
func metricOf(t *testing.T, from prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// certify writes a self-signed certificate and its key.
func certify(t *testing.T, cert, key string, serial int64) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"search-1.example.com"}}
	signed, err := x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
