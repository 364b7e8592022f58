package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
)

// lookups are the places where a part of a node reads a variable by its name.
var lookups = regexp.MustCompile(`(?:[lL]ookup|[fF]lag|LookupEnv|seconds|secret|bearerKey|tokenOf)\([^()\n]*"([A-Z][A-Z0-9]+_[A-Z0-9_]+)"|[vV]ariable\w*:?\s*:?=?\s*"([A-Z][A-Z0-9]+_[A-Z0-9_]+)"`)

// A variable that a node reads while it runs is in the table of the
// configuration, and nothing else is: so a file that sets it is told the truth,
// and a value that cannot be read stops the start.
func TestVariablesOfANodeAreInTheTable(t *testing.T) {
	t.Parallel()
	var table []string
	for _, v := range config.Variables() {
		table = append(table, v.Name)
	}

	read := map[string]string{}
	err := filepath.WalkDir(filepath.Join("..", "..", "node"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range lookups.FindAllStringSubmatch(string(text), -1) {
			read[m[1]+m[2]] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if len(read) < 30 {
		t.Errorf("only %d variables are found to be read: %v", len(read), read)
	}
	for name, path := range read {
		if !slices.Contains(table, name) {
			t.Errorf("%s reads %s, which is not in the table of cluster/config/variables.go", path, name)
		}
	}
}
