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

// certificateInterval is how often the files of a certificate are looked at.
const certificateInterval = 10 * time.Second

// certificateSoon is how long before its end a certificate is warned of.
const certificateSoon = 14 * 24 * time.Hour

// certificate is that of the API, which others renew on disk.
type certificate struct {
	cert, key string // files
	log       *slog.Logger

	mu    sync.Mutex // guards the fields below
	pair  *tls.Certificate
	stamp [2]time.Time // when the files were written that pair came from
}

// openCertificate reads a certificate and its key; nil where none are named.
func openCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	c := &certificate{cert: cert, key: key, log: log}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("certificate of the API: %w", err)
	}
	return c, nil
}

// config is how the API speaks TLS.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pair
}

// ends is when the certificate in use ends.
func (c *certificate) ends() time.Time { return c.current().Leaf.NotAfter }

// run takes a renewed certificate until ctx ends.
func (c *certificate) run(ctx context.Context) {
	for clock.Wait(ctx, certificateInterval) {
		c.renew()
	}
}

// renew looks at the files. While they do not go together the last good pair stays in use:
// whoever renews it writes one after the other.
func (c *certificate) renew() {
	if err := c.load(); err != nil {
		c.log.Error("the certificate of the API could not be read again: the old one stays", "cert", c.cert, "key", c.key, "ends", c.ends(), "err", err)
	}
}

// load reads the files where they have changed.
func (c *certificate) load() error {
	// Modification times, of the certificate and of its key.
	var stamp [2]time.Time
	for i, file := range []string{c.cert, c.key} {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		stamp[i] = info.ModTime()
	}

	// Reading and checking a pair costs more than to look at two files.
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

// certified is the state of a node, with the end of the certificate of its API.
type certified struct {
	state
	certificate *certificate
	now         func() time.Time
}

// Status tells owners when the certificate ends, and warns of it in time.
func (c certified) Status(ctx context.Context, v catalog.Viewer) (*node.StatusResponse, error) {
	out, err := c.state.Status(ctx, v)
	if err != nil || v.Role != catalog.RoleOwner {
		return out, err
	}
	leaf := c.certificate.current().Leaf
	out.CertificateEnds = leaf.NotAfter.UTC()

	// A short certificate is renewed late in its time.
	left := leaf.NotAfter.Sub(c.now())
	if left < min(certificateSoon, leaf.NotAfter.Sub(leaf.NotBefore)/4) {
		when := "ends at "
		if left <= 0 {
			when = "has ended at "
		}
		out.Warnings = append(out.Warnings, "the certificate of this node's API "+when+out.CertificateEnds.Format(time.DateTime)+
			" (UTC): renew "+c.certificate.cert+", which is read again when it changes")
	}
	return out, nil
}
