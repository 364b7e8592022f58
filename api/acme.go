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

// ACME is where a node gets the certificate of its API. Its terms are accepted by naming it.
type ACME struct {
	Directory string // address of the authority; "" for none
	Domain    string // the one name of the node
	Email     string // for the authority; may be ""
}

// The pauses between attempts to get a certificate. Authorities bound how many may fail.
const (
	acmeFirstPause = time.Minute
	acmeMostPause  = time.Hour
)

// authorized is a certificate that an authority issues to this node. The authority connects to
// the node by its domain and finds the answer to its challenge in the handshake (TLS-ALPN-01),
// so each node has a name of its own. The keys stay in the data directory, never in the catalog.
type authorized struct {
	manager *autocert.Manager
	domain  string
	log     *slog.Logger

	pair atomic.Pointer[tls.Certificate]
	lack atomic.Pointer[error] // why there is none, or no newer one
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

// config answers challenges, and uses the one certificate for everything else: a connection never
// makes the node request another certificate.
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
	if err := a.lack.Load(); err != nil {
		why = strings.Join(strings.Fields((*err).Error()), " ") // on one line
	}
	return "get one for " + a.domain + " from --acme-directory: " + why
}

// run gets the certificate and its successors until ctx ends.
func (a *authorized) run(ctx context.Context) {
	failed := time.Duration(0)
	for {
		pause := certificateInterval
		if err := a.get(); err != nil {
			failed = min(cmp.Or(2*failed, acmeFirstPause), acmeMostPause)
			pause = failed
			a.lack.Store(&err)
			a.log.Error("no certificate of the API is issued", "domain", a.domain, "again in", pause, "err", err)
		} else {
			failed = 0
		}
		if !clock.Wait(ctx, pause) {
			return
		}
	}
}

// get takes the certificate that the manager has, keeps renewed, or asks for now.
func (a *authorized) get() error {
	// As a client that takes a small key, so that there is one certificate and not two.
	pair, err := a.manager.GetCertificate(&tls.ClientHelloInfo{
		ServerName: a.domain, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
		SupportedCurves: []tls.CurveID{tls.CurveP256}, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	})
	if err != nil {
		return unreached(err)
	}
	if old := a.pair.Swap(pair); old == nil || !old.Leaf.Equal(pair.Leaf) {
		a.log.Info("certificate of the API", "domain", a.domain, "serial", pair.Leaf.SerialNumber.Text(16), "ends", pair.Leaf.NotAfter.UTC())
	}
	return nil
}

// unreached adds the usual cause to an error. The library drops the words of the authority.
func unreached(err error) error {
	if strings.Contains(err.Error(), "no viable challenge type") {
		return fmt.Errorf("%w; the authority cannot look up the name, or does not reach this node at port 443 of it", err)
	}
	return err
}
