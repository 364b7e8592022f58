package environ

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// newEnvironment returns an Environment with these variables and overrides.
func newEnvironment(process map[string]string, overrides ...config.Override) *Environment {
	return New(Deps{
		File:    func() *config.File { return &config.File{Overrides: overrides} },
		Process: func(name string) (string, bool) { v, ok := process[name]; return v, ok },
		Now:     time.Now,
		Log:     slog.New(slog.DiscardHandler),
	})
}

func TestVariableLookup_overridesWinOverTheEnvironment(t *testing.T) {
	t.Parallel()
	e := newEnvironment(map[string]string{"A": "process", "B": "process", "SECRET": "s3cret"},
		config.Override{Name: "A", Value: "override"},
		config.Override{Name: "EMPTY", Value: ""},
		config.Override{Name: "C", Token: &config.Token{Env: "SECRET"}},
		config.Override{Name: "D", Token: &config.Token{Env: "NOWHERE"}},
	)
	for _, tt := range []struct {
		name, want string
		ok         bool
	}{
		{"A", "override", true},
		{"B", "process", true},
		{"EMPTY", "", true},
		{"C", "s3cret", true},
		{"D", "", false}, // its reference cannot be resolved
		{"E", "", false},
	} {
		if got, ok := e.Lookup(tt.name); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %v; want %q, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// An override that refers to its own name reads the variable of the process.
func TestVariableLookup_overrideMayReferToItsOwnName(t *testing.T) {
	t.Parallel()
	e := newEnvironment(map[string]string{"A": "process"}, config.Override{Name: "A", Token: &config.Token{Env: "A"}})
	if got, ok := e.Lookup("A"); got != "process" || !ok {
		t.Errorf("%q, %v", got, ok)
	}
}

func TestBooleanVariable_readsEachSpelling(t *testing.T) {
	t.Parallel()
	e := newEnvironment(map[string]string{"YES": "true", "ONE": " 1 ", "NO": "false", "ODD": "perhaps", "EMPTY": ""})
	for _, tt := range []struct {
		name       string
		value, set bool
	}{
		{"YES", true, true}, {"ONE", true, true}, {"NO", false, true},
		{"ODD", false, false}, {"EMPTY", false, false}, {"NOWHERE", false, false},
	} {
		if value, set := e.Flag(tt.name); value != tt.value || set != tt.set {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, value, set, tt.value, tt.set)
		}
	}
}

// The error names the unset variable.
func TestSecret_errorNamesTheUnsetVariable(t *testing.T) {
	t.Parallel()
	e := newEnvironment(map[string]string{"EMPTY": ""})
	for _, name := range []string{"NOWHERE", "EMPTY"} {
		if _, err := e.Secret(t.Context(), config.Token{Env: name}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
