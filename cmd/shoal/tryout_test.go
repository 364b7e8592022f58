package main

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A start that cannot succeed changes neither the data directory nor the cluster.
func TestServe_checksTheMachineBeforeItTouchesData(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte(`{"connections": {"a": {"type": "nothing"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")

	for name, c := range map[string]struct {
		set  func(f *serveFlags)
		says string
		code int
	}{
		"port":        {func(f *serveFlags) { f.listen = busy.Addr().String() }, "--listen: ", exitFailed},
		"metrics":     {func(f *serveFlags) { f.metricsListen = busy.Addr().String() }, "--metrics-listen: ", exitFailed},
		"certificate": {func(f *serveFlags) { f.tlsCert, f.tlsKey = bad, bad }, "--tls-cert " + bad, exitConfig},
		"git":         {func(*serveFlags) { t.Setenv("PATH", dir) }, "git is not on PATH", exitConfig},
		"config":      {func(f *serveFlags) { f.config = bad }, "--config " + bad, exitConfig},
	} {
		t.Setenv("PATH", path)
		data := filepath.Join(t.TempDir(), "data")
		f := &serveFlags{}
		newServeCommand(func(string) string { return "" }, f)
		f.dataDir, f.listen, f.clusterListen, f.gossipListen = data, "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
		c.set(f)
		if err := f.check(); err != nil {
			t.Fatal(err)
		}
		_, _, err := f.open(t.Context(), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), c.says) || exitCodeOf(wrapStartFailure(err)) != c.code {
			t.Errorf("%s: %v, exit code %d", name, err, exitCodeOf(wrapStartFailure(err)))
		}
		if _, err := os.Stat(data); err == nil {
			t.Errorf("%s: the data directory was made", name)
		}
	}
}

// If a configuration may be in force, a file with mistakes does not stop a node.
func TestServe_refusesAnInvalidConfigurationFileOnlyAtTheFirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte(`{"connections": 7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		join, identity string
		refused        bool
	}{
		"a new node alone":      {"", "", true},
		"a new node that joins": {"10.0.0.1:7702", "", false},
		"a node that was there": {"", "{}", false},
	} {
		data := t.TempDir()
		if c.identity != "" {
			if err := os.WriteFile(filepath.Join(data, "node.json"), []byte(c.identity), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f := &serveFlags{config: bad, dataDir: data, join: c.join}
		if err := f.checkConfig(t.Context()); (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
