package node

import (
	"log/slog"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/environ"
)

// The first of the variable's two names with a valid value counts, and an override of the file
// wins over the environment.
func TestPermissionSetting_overrideWinsOverEnvironment(t *testing.T) {
	t.Parallel()
	const name, former = "PERMISSION_SYNC_ENABLED", "EXPERIMENT_EE_PERMISSION_SYNC_ENABLED"
	for _, tt := range []struct {
		process   map[string]string
		overrides []config.Override
		want      catalog.PermissionSync
	}{
		{nil, nil, catalog.PermissionSyncUnset},
		{map[string]string{name: ""}, nil, catalog.PermissionSyncUnset},
		{map[string]string{name: "true"}, nil, catalog.PermissionSyncOn},
		{map[string]string{name: "false"}, nil, catalog.PermissionSyncOff},
		{map[string]string{former: "true"}, nil, catalog.PermissionSyncOn},
		{map[string]string{name: "false", former: "true"}, nil, catalog.PermissionSyncOff},
		{map[string]string{name: "false"}, []config.Override{{Name: name, Value: "true"}}, catalog.PermissionSyncOn},
	} {
		n := &Node{env: environ.New(environ.Deps{
			File:    func() *config.File { return &config.File{Overrides: tt.overrides} },
			Process: func(name string) (string, bool) { v, ok := tt.process[name]; return v, ok },
			Now:     time.Now,
			Log:     slog.New(slog.DiscardHandler),
		})}
		if got := n.wantedPermissionSync(); got != tt.want {
			t.Errorf("%v, %v: %v, want %v", tt.process, tt.overrides, got, tt.want)
		}
	}
}

// A node's --base-url wins over AUTH_URL of the file, which wins over AUTH_URL of the process.
// Invalid values do not count.
func TestBaseURL_flagWinsOverFileOverEnvironment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ flag, file, process, want string }{
		{"", "", "", "http://own"},
		{"", "", "http://process/", "http://process"},
		{"", "http://file//", "http://process", "http://file"},
		{"http://flag", "http://file", "http://process", "http://flag"},
		{"", "not one", "http://process", "http://own"},
		{"", "http://user:secret@host", "", "http://own"},
		{"", "https://host/?x", "", "http://own"},
		{"", "ftp://host", "", "http://own"},
	} {
		overrides := []config.Override{{Name: "AUTH_URL", Value: tt.file}}
		if tt.file == "" {
			overrides = nil
		}
		n := &Node{opt: Options{BaseURL: tt.flag, OwnURL: "http://own"}, env: environ.New(environ.Deps{
			File:    func() *config.File { return &config.File{Overrides: overrides} },
			Process: func(name string) (string, bool) { return tt.process, name == "AUTH_URL" },
			Now:     time.Now,
			Log:     slog.New(slog.DiscardHandler),
		})}
		if got := n.BaseURL(); got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
