package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Configurations as people write them, with comments and trailing commas, are accepted. The
// output says what each one lists, what has no effect, and what is wrong with refused ones.
// examples.txt has them by name, examples.golden.txt the output of config check --explain.
func TestConfigCheck_printsTheGoldenOutputForEachExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "examples.txt"))
	if err != nil {
		t.Fatal(err)
	}

	heading := regexp.MustCompile(`(?m)^=== (.+)\n`)
	names, bodies := heading.FindAllStringSubmatch(string(text), -1), heading.Split(string(text), -1)[1:]
	if len(names) < 50 {
		t.Fatalf("%d examples", len(names))
	}

	path := filepath.Join(t.TempDir(), "file")
	var said strings.Builder
	for i, body := range bodies {
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		said.WriteString(names[i][0] + strings.ReplaceAll(explained(t, path), path, "FILE"))
	}

	golden := filepath.Join("testdata", "examples.golden.txt")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(said.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	wanted, got := heading.Split(string(want), -1)[1:], heading.Split(said.String(), -1)[1:]
	for i := range got {
		if i >= len(wanted) || got[i] != wanted[i] {
			t.Errorf("%s:\n%s", names[i][1], got[i])
		}
	}
}

// explained returns the command's output for a file.
func explained(t *testing.T, path string) string {
	t.Helper()
	var out, diag bytes.Buffer
	cmd := newRoot(func(string) string { return "" })
	cmd.SetOut(&out)
	cmd.SetErr(&diag)
	cmd.SetArgs([]string{"config", "check", "--explain", path})
	err := cmd.ExecuteContext(t.Context())
	if refused := out.Len() == 0; refused != (err == exitCode(1)) {
		t.Errorf("%v, printed:\n%s", err, diag.String())
	}
	return out.String() + diag.String()
}
