package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// defining makes a repository whose files each define a name with orca.
func defining(t *testing.T, dir string, files int) (names []string) {
	t.Helper()
	contents := map[string]string{}
	for i := range files {
		name := fmt.Sprintf("f%02d.c", i)
		contents[name] = fmt.Sprintf("int orca%d(int a) { return a; }\n", i) + strings.Repeat("/* deep sea */\n", 300)
		names = append(names, "local/r:"+name)
	}
	nodetest.NewRepo(t, filepath.Join(dir, "r"), contents)
	return names
}

// wrapped returns a program that runs ctags with a line of shell.
func wrapped(t *testing.T, line string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ctags")
	text := "#!/bin/sh\ncase \"$*\" in *--_interactive*) ;; *) exec ctags \"$@\";; esac\n" + line + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// The symbols of a repository of many shards are published together. The first are written much
// earlier than that: longer than unnamed files are kept.
func TestSymbolFiles_surviveAPublicationLongerThanTheGracePeriod(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := defining(t, dir, 16)
	slow := wrapped(t, `ctags "$@" | while IFS= read -r line; do sleep 0.1; printf "%s\n" "$line"; done`)
	n := nodetest.Start(t, nodetest.Config{File: local(dir), Edit: func(o *node.Options) { o.Ctags, o.SliceBytes = slow, 4<<10 }})
	n.Wait("the symbols", found(n, "sym:orca", names...))
}

// A node that stops between text and symbols builds the symbols at the next start.
func TestSymbols_areBuiltAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := defining(t, dir, 3)
	hold := filepath.Join(t.TempDir(), "hold")
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	slow := wrapped(t, "while [ -e "+hold+" ]; do sleep 0.05; done\nexec ctags \"$@\"")
	n := nodetest.Start(t, nodetest.Config{File: local(dir), Edit: func(o *node.Options) { o.Ctags = slow }})
	n.Wait("the text", found(n, "orca", names...))
	n.Stop()
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	n.Start()
	n.Wait("the symbols", found(n, "sym:orca", names...))
}
