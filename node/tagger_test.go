package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The log and the status warn if ctags has no sandbox or is missing.
func TestCtags_withoutSandboxIsReported(t *testing.T) {
	t.Parallel()
	program := func(features string) string {
		path := filepath.Join(t.TempDir(), "ctags")
		script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in\n*--version*) echo 'Universal Ctags 5.9.0' ;;\n*--list-features*) echo '%s' ;;\nesac\n", features)
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ command, want string }{
		{program("interactive sandbox"), ""},
		{program("interactive"), "ctags reads files outside of a sandbox"},
		{program("sandbox"), "symbols are not indexed: "},
		{filepath.Join(t.TempDir(), "ctags"), "symbols are not indexed: "},
		{"off", ""},
	} {
		var log bytes.Buffer
		tags := newTagger(c.command, 1, slog.New(slog.NewTextHandler(&log, nil)))
		if tags.close != nil {
			tags.close()
		}
		if !strings.HasPrefix(tags.warning, c.want) || (c.want == "") != (tags.warning == "") || (c.want == "") != (log.Len() == 0) {
			t.Errorf("%s: warning %q, log %q; want %q", c.command, tags.warning, log.String(), c.want)
		}
	}
}
