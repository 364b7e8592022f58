package configure

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Over the network, an owner may use only what the operator's files use or the operator allows. The
// operator may use anything.
func TestApplyConfig_limitsWhatOwnersMayReference(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "shoal.json")
	gitea := func(variable string) string {
		return `{"connections": {"c": {"type": "gitea", "url": "https://git.example.com", "token": {"env": "` + variable + `"}, "orgs": ["o"]}}}`
	}
	if err := os.WriteFile(path, []byte(gitea("OF_THE_FILE")), 0o600); err != nil {
		t.Fatal(err)
	}
	allowed, err := config.ParseAllowance([]string{"ALLOWED_*"}, nil)
	if err != nil {
		t.Fatal(err)
	}

	a := &fakeAgreement{state: catalog.New(), synced: make(chan struct{})}
	close(a.synced)
	log := slog.New(slog.DiscardHandler)
	c := &Configurer{Deps{Catalog: a, File: NewFile(&Found{path: path}, a, log, time.Now), Allowed: allowed, Log: log}}

	owner, err := account.AsOwner(catalog.Viewer{Role: catalog.RoleOwner, KeyID: "k"})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		by       account.Owner
		variable string
		refused  bool
	}{
		{owner, "SECRET", true},
		{owner, "OF_THE_FILE", false},
		{owner, "ALLOWED_ONE", false},
		{account.Operator(), "SECRET", false},
		{owner, "OTHER", true},
		{owner, "SECRET", false}, // it is in force
		{owner, "OF_THE_FILE", false},
		{owner, "SECRET", true}, // now it is no longer in force
	} {
		before := string(a.View().Config().Raw)
		_, err := c.ApplyConfig(t.Context(), step.by, ApplyConfigRequest{Text: []byte(gitea(step.variable))})
		switch {
		case !step.refused && err != nil:
			t.Errorf("%s by %q: %v", step.variable, step.by.Name(), err)
		case step.refused && (!errors.Is(err, call.ErrForbidden) || !strings.Contains(err.Error(), "--config-env") || string(a.View().Config().Raw) != before):
			t.Errorf("%s by %q: %v, in force %s", step.variable, step.by.Name(), err, a.View().Config().Raw)
		}
	}
}
