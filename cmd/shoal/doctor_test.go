package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// doctor prints one line with advice for each problem of the host.
func TestDoctor_advisesOnEachProblemOfTheMachine(t *testing.T) {
	t.Parallel()
	sound := func() hostFacts {
		return hostFacts{
			dir:      "/data",
			lookPath: func(p string) (string, error) { return "/bin/" + p, nil },
			version: func(_ context.Context, p string) (string, error) {
				return map[string]string{"/bin/git": "git version 2.47.0", "/bin/ctags": "Universal Ctags 6.0"}[p], nil
			},
			files: func() (uint64, error) { return 65536, nil },
			disk:  func(string) (uint64, uint64, error) { return 50, 100, nil },
			clock: func() (bool, error) { return true, nil },
		}
	}
	for name, tt := range map[string]struct {
		change func(*hostFacts)
		what   string // part of the expected problem; "" = none
		advice string
	}{
		"sound": {func(*hostFacts) {}, "", ""},
		"no git": {func(h *hostFacts) {
			h.lookPath = func(p string) (string, error) { return "/bin/" + p, missing(p, "git") }
		}, "git", "install git"},
		"no ctags": {func(h *hostFacts) {
			h.lookPath = func(p string) (string, error) { return "/bin/" + p, missing(p, "ctags") }
		}, "ctags", "universal-ctags"},
		"another ctags": {func(h *hostFacts) {
			h.version = func(context.Context, string) (string, error) { return "git version and Exuberant Ctags", nil }
		}, "ctags", "universal-ctags"},
		"few descriptors": {func(h *hostFacts) { h.files = func() (uint64, error) { return 1024, nil } }, "open files", "LimitNOFILE"},
		"a full disk":     {func(h *hostFacts) { h.disk = func(string) (uint64, uint64, error) { return 5, 100, nil } }, "data directory", "make room"},
		"no directory":    {func(h *hostFacts) { h.disk = func(string) (uint64, uint64, error) { return 0, 0, errors.New("gone") } }, "data directory", "--data-dir"},
		"a free clock":    {func(h *hostFacts) { h.clock = func() (bool, error) { return false, nil } }, "clock", "time service"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := sound()
			tt.change(&h)
			bad := ""
			for _, f := range h.check(t.Context()) {
				if f.Advice != "" {
					bad += f.What
					if !strings.Contains(f.Advice, tt.advice) {
						t.Errorf("%s: advice %q, want %q in it", f.What, f.Advice, tt.advice)
					}
				}
			}
			if bad != tt.what {
				t.Errorf("not good: %q, want %q", bad, tt.what)
			}
		})
	}
}

func missing(program, which string) error {
	if program == which {
		return errors.New("not found")
	}
	return nil
}

// The exit code tells whether action is needed, and each warning of the cluster is printed.
func TestDoctor_printsClusterWarningsAndSetsTheExitCode(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer string // "" = no node answers
		want   []string
		code   error
	}{
		"good":      {`{"leader": "n1", "verdict": {"state": "good", "sentence": "Any 1 node may fail now."}}`, []string{"good  cluster: Any 1 node may fail now."}, nil},
		"upgrading": {`{"leader": "n1", "verdict": {"state": "upgrading", "sentence": "The upgrade is not finished."}}`, []string{"look  cluster: The upgrade is not finished.", "shoal upgrade next"}, exitCode(1)},
		"weak":      {`{"leader": "n1", "verdict": {"state": "weak", "sentence": "No node may fail now."}}`, []string{"look  cluster: No node may fail now.", "shoal status"}, exitCode(1)},
		"a warning": {`{"leader": "n1", "verdict": {"state": "good", "sentence": "Any 1 node may fail now."}, "warnings": ["the disk of n2 is nearly full"]}`, []string{"look  warning: the disk of n2"}, exitCode(1)},
		"no leader": {`{"verdict": {"state": "good", "sentence": "x"}}`, []string{"look  cluster: a connection"}, exitCode(1)},
		"no node":   {"", []string{"look  cluster: ", "--url"}, exitCode(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.answer == "" {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = w.Write([]byte(tt.answer))
			}))
			defer s.Close()
			var out bytes.Buffer
			cmd := newDoctor(func(string) string { return "" })
			cmd.SetOut(&out)
			err := reportFindings(cmd.OutOrStdout(), false, checkCluster(t.Context(), &client{base: s.URL, http: s.Client()}))
			if err != tt.code {
				t.Errorf("error %v, want %v", err, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("printed %q, want %q in it", out.String(), want)
				}
			}
		})
	}
}
