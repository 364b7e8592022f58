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

// certificateInterval is the pause between two checks for a renewed certificate.
const certificateInterval = 10 * time.Second

// certificateWarning is how long before its expiry a certificate causes a warning.
const certificateWarning = 14 * 24 * time.Hour

// certificate is the certificate of the API, which may be renewed while the node runs.
type certificate interface {
	config() *tls.Config       // of the API's listeners
	current() *tls.Certificate // nil before the first one is issued
	run(ctx context.Context)   // loads renewed certificates until ctx ends
	advice() string            // what the operator should do before the certificate expires
}

// expiryOf returns when a certificate expires; the start of Unix time while there is none.
func expiryOf(c certificate) time.Time {
	if pair := c.current(); pair != nil {
		return pair.Leaf.NotAfter
	}
	return time.Unix(0, 0)
}

// openCertificate opens the certificate that the options name; nil for plain HTTP.
func openCertificate(opt *Options) (certificate, error) {
	if opt.ACME.Directory != "" {
		return newAuthorized(opt), nil
	}
	if opt.TLSCert == "" && opt.TLSKey == "" {
		return nil, nil
	}
	return openFiles(opt.TLSCert, opt.TLSKey, opt.Log)
}

// fileCertificate is a certificate in files, which another program renews.
type fileCertificate struct {
	cert, key string // paths of the files
	log       *slog.Logger

	mu    sync.Mutex // guards the fields below
	pair  *tls.Certificate
	stamp [2]time.Time // modification times of the files of pair
}

// openFiles reads the files of a certificate and its key.
func openFiles(cert, key string, log *slog.Logger) (*fileCertificate, error) {
	c := &fileCertificate{cert: cert, key: key, log: log}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("certificate of the API: %w", err)
	}
	return c, nil
}

// config returns the TLS configuration of the API.
func (c *fileCertificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

func (c *fileCertificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pair
}

func (c *fileCertificate) advice() string {
	return "renew " + c.cert + ", which is read again when it changes"
}

// run loads changed files until ctx ends. If it cannot read them, the last valid pair stays in use:
// while a renewal writes one file after the other, they do not match.
func (c *fileCertificate) run(ctx context.Context) {
	for clock.Wait(ctx, certificateInterval) {
		c.reload()
	}
}

func (c *fileCertificate) reload() {
	if err := c.load(); err != nil {
		c.log.Error("the certificate of the API could not be read again: the old one stays", "cert", c.cert, "key", c.key, "ends", expiryOf(c), "err", err)
	}
}

// load reads the files if their modification times have changed.
func (c *fileCertificate) load() error {
	var stamp [2]time.Time
	for i, file := range []string{c.cert, c.key} {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		stamp[i] = info.ModTime()
	}

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

// certified adds the API's certificate to the state of a node.
type certified struct {
	state
	certificate certificate
	now         func() time.Time
}

// Status returns the node's status. For owners it adds when the certificate expires, and a warning
// before that and while there is no certificate.
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

	// A short-lived certificate is renewed less than two weeks before its end: warn in its last quarter.
	left := leaf.NotAfter.Sub(c.now())
	if left < min(certificateWarning, leaf.NotAfter.Sub(leaf.NotBefore)/4) {
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
