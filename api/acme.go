package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/shoalsearch/shoal/clock"
)

// ACME names the authority from which a node gets the certificate of its API. Whoever names an
// authority accepts its terms.
type ACME struct {
	Directory string // address of the authority; "" for none
	Domain    string // the node's only domain name
	Email     string // where the authority can reach the operator; may be ""
}

// The first and the longest pause after a failed request for a certificate. Each failure doubles
// the pause, because authorities limit how many requests may fail.
const (
	acmeFirstPause = time.Minute
	acmeMaxPause   = time.Hour
)

// authorized is a certificate that an authority issues to this node. The authority connects to
// the node by its domain name and reads the answer to its challenge from the TLS handshake
// (TLS-ALPN-01), so each node needs a domain name of its own. The keys stay in the data directory,
// never in the catalog.
type authorized struct {
	manager *autocert.Manager
	domain  string
	log     *slog.Logger

	pair    atomic.Pointer[tls.Certificate]
	lastErr atomic.Pointer[error] // why the last failed request for a certificate failed
}

func newAuthorized(o *Options) *authorized {
	return &authorized{domain: o.ACME.Domain, log: o.Log, manager: &autocert.Manager{
		Prompt:     autocert.AcceptTOS,
		Cache:      autocert.DirCache(filepath.Join(o.DataDir, "acme")),
		HostPolicy: autocert.HostWhitelist(o.ACME.Domain),
		Client:     &acme.Client{DirectoryURL: o.ACME.Directory, UserAgent: "shoal"},
		Email:      o.ACME.Email,
	}}
}

// config returns a TLS configuration that answers challenges of the authority, and uses the stored
// certificate for all other connections. A connection never makes the node request a certificate.
func (a *authorized) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1", acme.ALPNProto},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
				return a.manager.GetCertificate(hello)
			}
			if pair := a.pair.Load(); pair != nil {
				return pair, nil
			}
			return nil, errors.New("the authority has issued no certificate yet")
		},
	}
}

func (a *authorized) current() *tls.Certificate { return a.pair.Load() }

func (a *authorized) advice() string {
	why := "the first request has not ended yet"
	if err := a.lastErr.Load(); err != nil {
		why = strings.Join(strings.Fields((*err).Error()), " ") // on one line
	}
	return "get one for " + a.domain + " from --acme-directory: " + why
}

// run gets the certificate and its renewals until ctx ends.
func (a *authorized) run(ctx context.Context) {
	retryPause := time.Duration(0) // 0 after a success
	for {
		pause := certificateInterval
		if err := a.load(); err != nil {
			retryPause = min(cmp.Or(2*retryPause, acmeFirstPause), acmeMaxPause)
			pause = retryPause
			a.lastErr.Store(&err)
			a.log.Error("no certificate of the API is issued", "domain", a.domain, "again in", pause, "err", err)
		} else {
			retryPause = 0
		}
		if !clock.Wait(ctx, pause) {
			return
		}
	}
}

// load stores the manager's certificate. The manager requests one from the authority if it has
// none, and renews it in time.
func (a *authorized) load() error {
	// The manager keeps one certificate for each type of key. Always ask for ECDSA.
	pair, err := a.manager.GetCertificate(&tls.ClientHelloInfo{
		ServerName: a.domain, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
		SupportedCurves: []tls.CurveID{tls.CurveP256}, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	})
	if err != nil {
		return explainChallengeError(err)
	}
	if old := a.pair.Swap(pair); old == nil || !old.Leaf.Equal(pair.Leaf) {
		a.log.Info("certificate of the API", "domain", a.domain, "serial", pair.Leaf.SerialNumber.Text(16), "ends", pair.Leaf.NotAfter.UTC())
	}
	return nil
}

// explainChallengeError adds the usual cause to the error for a failed challenge. The library drops
// the authority's own explanation. Other errors stay unchanged.
func explainChallengeError(err error) error {
	if strings.Contains(err.Error(), "no viable challenge type") {
		return fmt.Errorf("%w; the authority cannot look up the name, or does not reach this node at port 443 of it", err)
	}
	return err
}
