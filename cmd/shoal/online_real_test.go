package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/host/giteatest"
)

// `config check --online` at a real server: what it lists and skips, and a refused token.
func TestConfigCheck_onlineListsARealGitea(t *testing.T) {
	t.Parallel()
	s := giteatest.Start(t)
	s.Org("acme")
	s.Repo("acme", "open", giteatest.Options{})
	s.Repo("acme", "vault", giteatest.Options{Private: true})
	s.Repo("acme", "old", giteatest.Options{})
	s.Edit("acme/old", map[string]any{"archived": true})

	file := filepath.Join(t.TempDir(), "shoal.json")
	text := fmt.Sprintf(`{"connections": {"work": {"type": "gitea", "url": %q, "token": {"env": "T"}, "orgs": ["acme", "nobody"], "exclude": {"archived": true}}}}`, s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	online := func(token string) (string, error) {
		cmd := newRoot(func(name string) string { return map[string]string{"T": token}[name] })
		var printed bytes.Buffer
		cmd.SetOut(&printed)
		cmd.SetErr(io.Discard)
		cmd.SetArgs([]string{"config", "check", file, "--online"})
		err := cmd.ExecuteContext(t.Context())
		return printed.String(), err
	}

	out, _ := online(s.Token)
	for _, want := range []string{"/acme/open\n", "/acme/vault (private)\n", "orgs/nobody"} {
		if !strings.Contains(out, want) {
			t.Errorf("with a good token:\n%swant %s", out, want)
		}
	}
	if strings.Contains(out, "/acme/old\n") || strings.Contains(out, s.Token) {
		t.Errorf("what is left out is listed, or the token is told:\n%s", out)
	}

	wrong := strings.Repeat("0", 40)
	out, err := online(wrong)
	if err == nil || !strings.Contains(out, "work: the host does not list: ") || strings.Contains(out, wrong) {
		t.Errorf("with a token that is refused: %v\n%s", err, out)
	}
}
