package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// For each variable of a file the output says what a node does with it, and for each secret
// whether it is set. Values are not printed.
func TestConfigCheck_explainsEachVariableOfAnEnvironmentFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shoal.json")
	text := `{"connections": {"a": {"type": "github", "orgs": ["acme"], "token": {"env": "GITHUB_TOKEN"}},
		"b": {"type": "gitlab", "groups": ["acme"], "token": {"env": "GITLAB_TOKEN"}},
		"c": {"type": "gitea", "orgs": ["acme"], "token": {"googleCloudSecret": "projects/p/secrets/s/versions/latest"}}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := newRoot(func(string) string { return "" })
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs([]string{"config", "check", file, "--env", filepath.Join("testdata", "variables.env")})
	if err := cmd.ExecuteContext(t.Context()); err != exitCode(1) {
		t.Errorf("two variables would stop a node: %v", err)
	}

	got := bytes.ReplaceAll(out.Bytes(), []byte(file), []byte("FILE"))
	golden := filepath.Join("testdata", "variables.golden.txt")
	if *rewrite {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v, the command prints:\n%s", err, got)
	}
}
