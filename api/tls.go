package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
)

// certificateInterval is how often the certificate's files are checked.
const certificateInterval = 10 * time.Second

// certificateSoon is how long before its expiry a certificate causes a warning.
const certificateSoon = 14 * 24 * time.Hour

// certificate is that of the API.
type certificate interface {
	config() *tls.Config       // how the API speaks TLS
	current() *tls.Certificate // nil before there is one
	run(ctx context.Context)   // takes renewed ones until ctx ends
	advice() string            // what to do before it ends
}

// ends returns when a certificate expires, or the start of Unix time without a certificate.
func ends(c certificate) time.Time {
	if pair := c.current(); pair != nil {
		return pair.Leaf.NotAfter
	}
	return time.Unix(0, 0)
}

// certificateOf returns the certificate that the options ask for; nil for plain HTTP.
func certificateOf(opt *Options) (certificate, error) {
	if opt.ACME.Directory != "" {
		return newAuthorized(opt), nil
	}
	if opt.TLSCert == "" && opt.TLSKey == "" {
		return nil, nil
	}
	return openCertificate(opt.TLSCert, opt.TLSKey, opt.Log)
}

// filed is a certificate that others renew on disk.
type filed struct {
	cert, key string // files
	log       *slog.Logger

	mu    sync.Mutex // guards the fields below
	pair  *tls.Certificate
	stamp [2]time.Time // modification times of the files of pair
}

// openCertificate reads a certificate and its key.
func openCertificate(cert, key string, log *slog.Logger) (*filed, error) {
	c := &filed{cert: cert, key: key, log: log}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("certificate of the API: %w", err)
	}
	return c, nil
}

// config returns the TLS configuration of the API.
func (c *filed) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

func (c *filed) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pair
}

func (c *filed) advice() string { return "renew " + c.cert + ", which is read again when it changes" }

// run loads renewed files until ctx ends.
func (c *filed) run(ctx context.Context) {
	for clock.Wait(ctx, certificateInterval) {
		c.renew()
	}
}

// renew checks the files. While they do not match, the last good pair stays: a renewal writes one
// file after the other.
func (c *filed) renew() {
	if err := c.load(); err != nil {
		c.log.Error("the certificate of the API could not be read again: the old one stays", "cert", c.cert, "key", c.key, "ends", ends(c), "err", err)
	}
}

// load reads the files if they have changed.
func (c *filed) load() error {
	var stamp [2]time.Time
	for i, file := range []string{c.cert, c.key} {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		stamp[i] = info.ModTime()
	}

	// Checking modification times is cheaper than reading the pair.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair != nil && stamp == c.stamp {
		return nil
	}

	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.pair, c.stamp = &pair, stamp
	c.log.Info("certificate of the API", "cert", c.cert, "serial", pair.Leaf.SerialNumber.Text(16), "ends", pair.Leaf.NotAfter.UTC())
	return nil
}

// certified is the state of a node that also shows the API's certificate.
type certified struct {
	state
	certificate certificate
	now         func() time.Time
}

// Status tells owners when the certificate expires, and warns in time.
func (c certified) Status(ctx context.Context, v catalog.Viewer) (*node.StatusResponse, error) {
	out, err := c.state.Status(ctx, v)
	if err != nil || v.Role != catalog.RoleOwner {
		return out, err
	}
	pair := c.certificate.current()
	if pair == nil {
		out.Warnings = append(out.Warnings, "the API of this node has no certificate and answers by the operator's socket alone: "+c.certificate.advice())
		return out, nil
	}
	leaf := pair.Leaf
	out.CertificateEnds = leaf.NotAfter.UTC()

	// A short-lived certificate is renewed late, so warn in its last quarter.
	left := leaf.NotAfter.Sub(c.now())
	if left < min(certificateSoon, leaf.NotAfter.Sub(leaf.NotBefore)/4) {
		when := "ends at "
		if left <= 0 {
			when = "has ended at "
		}
		out.Warnings = append(out.Warnings, "the certificate of this node's API "+when+out.CertificateEnds.Format(time.DateTime)+
			" (UTC): "+c.certificate.advice())
		out.Verdict = out.Verdict.With("the certificate of this node " + when + out.CertificateEnds.Format(time.DateOnly))
	}
	return out, nil
}
