package environ

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// environment is one of a process with these variables, and of a configuration
// with these overrides.
func environment(process map[string]string, overrides ...config.Override) *Environment {
	return New(Deps{
		File:    func() *config.File { return &config.File{Overrides: overrides} },
		Process: func(name string) (string, bool) { v, ok := process[name]; return v, ok },
		Now:     time.Now,
		Log:     slog.New(slog.DiscardHandler),
	})
}

func TestAnOverrideWinsOverTheProcess(t *testing.T) {
	t.Parallel()
	e := environment(map[string]string{"A": "process", "B": "process", "SECRET": "s3cret"},
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
		{"D", "", false}, // what it refers to is not there
		{"E", "", false},
	} {
		if got, ok := e.Lookup(tt.name); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %v; want %q, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

// An override that refers to its own name means the variable of the process.
func TestAnOverrideMayReferToItself(t *testing.T) {
	t.Parallel()
	e := environment(map[string]string{"A": "process"}, config.Override{Name: "A", Token: &config.Token{Env: "A"}})
	if got, ok := e.Lookup("A"); got != "process" || !ok {
		t.Errorf("%q, %v", got, ok)
	}
}

func TestAFlagIsTrueFalseOrUnset(t *testing.T) {
	t.Parallel()
	e := environment(map[string]string{"YES": "true", "ONE": " 1 ", "NO": "false", "ODD": "perhaps", "EMPTY": ""})
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

// The error of a token names its variable, which tells an operator what to set.
func TestATokenThatIsNotSetIsNamed(t *testing.T) {
	t.Parallel()
	e := environment(map[string]string{"EMPTY": ""})
	for _, name := range []string{"NOWHERE", "EMPTY"} {
		if _, err := e.Secret(t.Context(), config.Token{Env: name}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
