package api

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/acme"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// away is an authority that refuses everybody, and how often it was asked.
func away(t *testing.T) (directory string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "no", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// A node without a certificate says so, and nobody who connects makes it ask for one.
func TestACME_handshakeWithoutACertificateFailsAndRequestsNone(t *testing.T) {
	t.Parallel()
	directory, asked := away(t)
	registry := prometheus.NewRegistry()
	s := start(t, &fake{guests: true}, func(o *Options) {
		o.DataDir, o.Registerer = t.TempDir(), registry
		o.ACME = ACME{Directory: directory, Domain: "search-1.example.com"}
	})
	a := s.doors.certificate.(*authorized)
	eventually(t, func() bool { return asked.Load() != 0 })
	before := asked.Load()
	for _, name := range []string{"search-1.example.com", "other.example.com", ""} {
		if _, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{ServerName: name, InsecureSkipVerify: true}); err == nil {
			t.Errorf("%q: a handshake without a certificate", name)
		}
	}
	if _, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{ServerName: a.domain, InsecureSkipVerify: true, NextProtos: []string{acme.ALPNProto}}); err == nil {
		t.Error("a challenge that nobody set is answered")
	}
	if got := asked.Load(); got != before {
		t.Errorf("connections made the node ask %d times more", got-before)
	}
	if got := metricOf(t, registry, "shoal_certificate_expires_timestamp_seconds"); got != 0 {
		t.Errorf("the metric of its end is %v", got)
	}
	status, err := certified{&fake{}, a, time.Now}.Status(t.Context(), catalog.Viewer{Role: catalog.RoleOwner})
	if err != nil || !strings.Contains(strings.Join(status.Warnings, " "), "has no certificate") {
		t.Errorf("%+v, %v", status, err)
	}
}

// The certificate of an earlier start is used while the authority is away.
func TestACME_usesTheSavedCertificateWhileTheAuthorityIsDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	directory, _ := away(t)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certify(t, cert, key, 7)
	certText, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	keyText, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		t.Fatal(err)
	}
	domain := pair.Leaf.DNSNames[0]
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "acme"), 0o700), os.WriteFile(filepath.Join(dir, "acme", domain), append(keyText, certText...), 0o600)); err != nil {
		t.Fatal(err)
	}

	s := start(t, &fake{guests: true}, func(o *Options) {
		o.DataDir, o.ACME = dir, ACME{Directory: directory, Domain: domain}
	})
	eventually(t, func() bool { return s.doors.certificate.current() != nil })
	for _, name := range []string{domain, "other.example.com", ""} {
		c, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if got := c.ConnectionState(); got.PeerCertificates[0].SerialNumber.Int64() != 7 || got.NegotiatedProtocol != "" {
			t.Errorf("%q: %+v", name, got)
		}
		c.Close()
	}
}

// An authority that cannot connect to the node says so, but the library does not.
func TestACME_saysWhyAnAuthorityRefuses(t *testing.T) {
	t.Parallel()
	for text, hint := range map[string]bool{"unable to satisfy: no viable challenge type found": true, "403 no": false} {
		if got := explainChallengeError(errors.New(text)).Error(); strings.Contains(got, "port 443") != hint || !strings.HasPrefix(got, text) {
			t.Error(got)
		}
	}
}

// A node asks an authority that refuses it less and less often.
func TestACME_backsOffWhileTheAuthorityRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		// Nobody listens, and no name is looked up: it fails at once.
		a := newAuthorized(&Options{DataDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil)), ACME: ACME{Directory: "http://127.0.0.1:1", Domain: "nodots"}})
		go a.run(t.Context())
		time.Sleep(24 * time.Hour) // in the time of the bubble
		synctest.Wait()
		if n := strings.Count(log.String(), "no certificate of the API is issued"); n < 24 || n > 32 {
			t.Errorf("it was asked %d times in a day", n)
		}
		if got := a.advice(); !strings.Contains(got, "get one for nodots from --acme-directory: ") {
			t.Error(got)
		}
	})
}
