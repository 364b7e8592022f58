package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/shoalsearch/shoal/cluster/config"
)

// tryOut checks the things on this machine without which a start would fail or be useless: the
// configuration file, the ports, the certificate, the key for metrics, git.
func (f *serveFlags) tryOut(ctx context.Context) error {
	for _, try := range []func(context.Context) error{f.tryConfig, f.tryPorts, f.tryCertificate, f.tryMetricsKey, tryGit} {
		if err := try(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tryConfig refuses an invalid configuration file if no other configuration can be in force: in a
// new data directory without --join.
func (f *serveFlags) tryConfig(context.Context) error {
	_, err := os.Stat(filepath.Join(f.dataDir, "node.json"))
	if fresh := errors.Is(err, fs.ErrNotExist); !fresh || f.config == "" || f.join != "" {
		return nil
	}
	text, err := os.ReadFile(f.config)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if _, err := config.Parse(text); err != nil {
		return fmt.Errorf("--config %s: %w", f.config, err)
	}
	return nil
}

// tryPorts checks that the ports are free by listening for a moment.
func (f *serveFlags) tryPorts(ctx context.Context) error {
	for _, a := range []struct{ flag, addr string }{{"--listen", f.listen}, {"--metrics-listen", f.metricsListen}} {
		if a.addr == "" {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", a.addr)
		if err != nil {
			return fmt.Errorf("%s: %w", a.flag, err)
		}
		if err := l.Close(); err != nil {
			return fmt.Errorf("%s: %w", a.flag, err)
		}
	}
	return nil
}

// tryCertificate checks that the certificate and its key can be loaded.
func (f *serveFlags) tryCertificate(context.Context) error {
	if f.tlsCert == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey); err != nil {
		return fmt.Errorf("--tls-cert %s, --tls-key %s: %w", f.tlsCert, f.tlsKey, err)
	}
	return nil
}

// leastMetricsKey is the shortest key for metrics, in bytes.
const leastMetricsKey = 16

// tryMetricsKey checks that the key for metrics can be read and is long enough.
func (f *serveFlags) tryMetricsKey(context.Context) error {
	if f.metricsKey == "" {
		return nil
	}
	text, err := os.ReadFile(f.metricsKey)
	if err == nil && len(bytes.TrimSpace(text)) < leastMetricsKey {
		err = fmt.Errorf("%s: want at least %d bytes: openssl rand -hex 32 makes them", f.metricsKey, leastMetricsKey)
	}
	if err != nil {
		return fmt.Errorf("--metrics-key-file: %w", err)
	}
	return nil
}

func tryGit(context.Context) error {
	if _, err := exec.LookPath("git"); err != nil {
		return fmt.Errorf("git is not on PATH, and nothing can be fetched without it: install it: %w", err)
	}
	return nil
}
