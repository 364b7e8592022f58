package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Rules and dashboards that speak of metrics which are not there fail
// silently: every metric that ops/ names is made somewhere in the code.
func TestOperationsFilesNameRealMetrics(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	var code strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		code.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		data, err := os.ReadFile(filepath.Join(root, "ops", file))
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile(`shoal_[a-z_]+`).FindAllString(string(data), -1)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !strings.Contains(code.String(), `"`+strings.TrimSuffix(name, "_bucket")+`"`) {
				t.Errorf("ops/%s names %s, which nothing makes", file, name)
			}
		}
	}
}
