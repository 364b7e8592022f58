package main

import (
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

// checkMachine checks what a start needs on this machine: the configuration file, the ports, the
// certificate, git. It returns the first error.
func (f *serveFlags) checkMachine(ctx context.Context) error {
	for _, check := range []func(context.Context) error{f.checkConfig, f.checkPorts, f.checkCertificate, checkGit} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkConfig refuses an invalid configuration file if no other configuration can be in force: if the
// data directory is new and there is no --join.
func (f *serveFlags) checkConfig(context.Context) error {
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

// checkPorts checks that the API's addresses are free, by listening for a moment.
func (f *serveFlags) checkPorts(ctx context.Context) error {
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

// checkCertificate checks that the certificate and its key can be loaded.
func (f *serveFlags) checkCertificate(context.Context) error {
	if f.tlsCert == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey); err != nil {
		return fmt.Errorf("--tls-cert %s, --tls-key %s: %w", f.tlsCert, f.tlsKey, err)
	}
	return nil
}

func checkGit(context.Context) error {
	if _, err := exec.LookPath("git"); err != nil {
		return fmt.Errorf("git is not on PATH, and nothing can be fetched without it: install it: %w", err)
	}
	return nil
}
