package shard

import "testing"

func TestCategoryOf_isDerivedFromThePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]category{
		"main.c": plainCode, "attest/main.c": plainCode, "latest": plainCode, "tests": plainCode, "a/contest/x.go": plainCode,
		"tests/main.c": testCode, "a/Tests/main.c": testCode, "a/b/testdata/c/d.txt": testCode, "a/x_test.go": testCode,
		"vendor/x.go": vendoredCode, "a/vendor/tests/x.go": vendoredCode, "tests/node_modules/x.js": vendoredCode, ".yarn/x": vendoredCode,
		"Documentation/x.c": documentation, "a/man/x": documentation, "manual/x.c": plainCode, "README.md": documentation,
		"docs/x.pb.go": generatedCode, "go.sum": generatedCode, "extras/x_amalgamated.hpp": generatedCode, "a//docs/x.c": documentation, "/doc/x.c": documentation,
	} {
		if got := categoryOf(path); got != want {
			t.Errorf("%s: category %d, want %d", path, got, want)
		}
	}
}
