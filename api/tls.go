package api

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateInterval is how long a certificate is used before its files are
// looked at again.
const certificateInterval = 10 * time.Second

// serverTLS is how the API speaks TLS with the files of a certificate and its
// key, which are read again when they change; nil where none are named.
func serverTLS(cert, key string, now func() time.Time, log *slog.Logger) (*tls.Config, error) {
	if cert == "" && key == "" {
		return nil, nil
	}
	c := &certificate{cert: cert, key: key, now: now, log: log}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("certificate of the API: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: c.get}, nil
}

// certificate is one that is renewed on disk by others.
type certificate struct {
	cert, key string
	now       func() time.Time
	log       *slog.Logger

	mu     sync.Mutex // guards the fields below
	pair   *tls.Certificate
	looked time.Time
	stamp  [2]time.Time // when the files were written that pair came from
}

// get is of [tls.Config]. While the files on disk do not go together the last
// good pair stays in use: whoever renews it writes one after the other.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Sub(c.looked) >= certificateInterval {
		if err := c.load(); err != nil {
			c.log.Error("the certificate of the API could not be read again: the old one stays", "cert", c.cert, "key", c.key, "err", err)
		}
	}
	return c.pair, nil
}

// load reads the files where they have changed. Callers hold the lock, or are alone.
func (c *certificate) load() error {
	// Noted first: files that cannot be read are looked at once an interval, and not for
	// each connection.
	c.looked = c.now()

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
	if c.pair != nil && stamp == c.stamp {
		return nil
	}

	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.pair, c.stamp = &pair, stamp
	return nil
}
