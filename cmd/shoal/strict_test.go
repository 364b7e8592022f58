package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/shoalsearch/shoal/cluster"
)

// An unknown word of a command line is refused with the known ones.
func TestCommandLine_refusesUnknownWords(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"key crate":               "did you mean create?",
		"config validate f.json":  "there are apply, check, schema",
		"cluster-key rotate":      "there are new",
		"snapshot list":           "there are restore, save",
		"help searh":              "did you mean search?",
		"sttus":                   "did you mean status?",
		"search":                  "want: shoal search QUERY",
		"search ->next":           "shoal search -- ",
		"search --frobnicate foo": "shoal search -- ",
		"search -m abc x":         "must be an integer",
		"status extra":            "want: shoal status",
	} {
		cmd := newRoot(func(string) string { return "" })
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(strings.Fields(line))
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "strconv") || exitCodeOf(err) != exitFailed {
			t.Errorf("shoal %s: %v, want %q", line, err, says)
		}
	}
	for _, line := range []string{"", "key", "help key", "version", "help"} {
		cmd := newRoot(func(string) string { return "" })
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs(strings.Fields(line))
		if err := cmd.ExecuteContext(t.Context()); err != nil || out.Len() == 0 {
			t.Errorf("shoal %s: %v, %q", line, err, out.String())
		}
	}
}

// A supervisor does not restart a node with a wrong command line.
func TestServe_wrongCommandLineExitsWithoutRestart(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"serve --rate-limit abc", "serve --frobnicate", "serve extra", "serve --replicas 0"} {
		cmd := newRoot(func(string) string { return "" })
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SetArgs(strings.Fields(line))
		if err := cmd.ExecuteContext(t.Context()); err == nil || exitCodeOf(err) != exitConfig {
			t.Errorf("shoal %s: %v, exit code %d", line, err, exitCodeOf(err))
		}
	}
}

// The exit code tells a supervisor whether a restart can help.
func TestExitCode_saysWhetherARestartCanHelp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int
	}{
		{wrapStartFailure(errors.New("the key file is missing")), exitConfig},
		{wrapStartFailure(fmt.Errorf("listen: %w", syscall.EADDRINUSE)), exitFailed},
		{wrapStartFailure(fmt.Errorf("data directory: %w", cluster.ErrInUse)), exitFailed},
		{wrapStartFailure(fmt.Errorf("node.json: %w", syscall.ENOSPC)), exitDisk},
		{wrapStartFailure(fmt.Errorf("raft.db: %w", syscall.EIO)), exitDisk},
		{wrapStartFailure(fmt.Errorf("raft.db: %w", syscall.EACCES)), exitConfig},
		{wrapStartFailure(fmt.Errorf("raft.db: %w", syscall.EROFS)), exitConfig},
		{fmt.Errorf("ended: %w", cluster.ErrRefused), exitConfig},
		{errors.New("anything else"), exitFailed},
	} {
		if got := exitCodeOf(c.err); got != c.code {
			t.Errorf("%v: %d, want %d", c.err, got, c.code)
		}
	}
}

func TestStatusCommand_checkFlagSetsTheExitCode(t *testing.T) {
	t.Parallel()
	for answer, good := range map[string]bool{
		`{"leader":"n","connections":[{"state":"synced"}]}`: true,
		`{"leader":""}`: false,
		`{"leader":"n","connections":[{"state":"failed"}]}`:    false,
		`{"leader":"n","config":{"errors":["bad"]}}`:           false,
		`{"leader":"n","warnings":["something"]}`:              false,
		`{"leader":"n","repos":{"failed":1}}`:                  false,
		`{"leader":"n","failed":[{"kind":"sync","error":""}]}`: false,
		`{"leader":"n","verdict":{"state":"good"}}`:            true,
		`{"leader":"n","verdict":{"state":"small"}}`:           true,
		`{"leader":"n","verdict":{"state":"weak"}}`:            false,
		`{"leader":"n","verdict":{"state":"upgrading"}}`:       false,
		`{"leader":"n","verdict":{"state":"failing"}}`:         false,
	} {
		node := http.NewServeMux()
		node.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
		out, _, err := run(t, node, "status", "--json", "--check")
		if (err == nil) != good || strings.TrimSpace(out) != answer {
			t.Errorf("%s: %v, %q", answer, err, out)
		}
		if _, _, err := run(t, node, "status"); err != nil {
			t.Errorf("%s: %v without --check", answer, err)
		}
	}
}

func TestStatusCommand_beginsWithTheVerdict(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"leader":"n","verdict":{"state":"good","sentence":"Any 1 node may fail now."}}`))
	})
	if out, _, err := run(t, node, "status"); err != nil || !strings.HasPrefix(out, "Any 1 node may fail now.\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// With permissions, owners see the answers of code hosts about them; nobody else does.
func TestStatusCommand_showsPermissionAnswersToOwners(t *testing.T) {
	t.Parallel()
	const hosts = `"unlinked":3,"hosts":[{"host":"github:github.com","people":{"wanted":9,"answered":5,"ended":2,"refused":1,"failing":1,"newest":"2026-11-01T12:00:00Z"},"repos":{"wanted":4}}]`
	for answer, want := range map[string][]string{
		`{"leader":"n","permissions":{"sync":"on",` + hosts + `}}`: {
			"PERMISSIONS", "github:github.com  people        5 of 9    2        1        1        2026-11-01T12:00:00Z  -",
			"github:github.com  repositories  0 of 4", "accounts linked to nobody at a code host: 3",
		},
		`{"leader":"n","permissions":{"sync":"off","hosts":[]}}`: nil,
		`{"leader":"n"}`: nil,
	} {
		node := http.NewServeMux()
		node.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
		out, _, err := run(t, node, "status")
		if err != nil || want == nil && strings.Contains(out, "linked") {
			t.Errorf("%s: %v\n%s", answer, err, out)
		}
		for _, part := range want {
			if !strings.Contains(out, part) {
				t.Errorf("%s: no %q in\n%s", answer, part, out)
			}
		}
	}
}
