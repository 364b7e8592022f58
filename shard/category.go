package shard

import "strings"

// category sorts paths by how likely a reader wants to see them first. The
// order of the constants is the order of documents in a shard, so that a
// search which stops early has seen the better ones.
type category uint8

const (
	plainCode category = iota
	documentation
	generatedCode
	testCode
	vendoredCode
)

// Parts of paths that give a category away.
var (
	vendorDirs = []string{"vendor/", "node_modules/", "third_party/", "thirdparty/", "3rdparty/", "external/",
		"bower_components/", "dist/", "godeps/", ".yarn/"}
	testDirs = []string{"test/", "tests/", "testdata/", "__tests__/", "spec/", "specs/", "testing/", "selftests/",
		"fixtures/", "e2e/", "mocks/", "benchmarks/", "samples/", "examples/", "example/"}
	docDirs      = []string{"doc/", "docs/", "documentation/", "man/"}
	testMarks    = []string{"_test.", ".test.", ".spec.", "_spec.", "_mock.", "-test."}
	testStarts   = []string{"test_", "test-"}
	generateEnds = []string{".min.js", ".min.css", ".pb.go", ".pb.cc", ".pb.h", "_pb2.py", "_pb2_grpc.py", ".g.dart",
		".freezed.dart", ".designer.cs", ".generated.go", "_generated.go", ".gen.go", "_gen.go", ".map", ".lock",
		"package-lock.json", "go.sum", "pnpm-lock.yaml", "_shipped", ".snap", ".svg"}
	docEnds = []string{".md", ".rst", ".txt", ".adoc", ".html", ".po", ".pot", ".tex", ".1", ".7"}
)

// categoryOf judges a path by its words alone: it must be known before any
// content is read, because it orders the reading.
func categoryOf(path string) category {
	lower := strings.ToLower(path)
	base := lower[strings.LastIndexByte(lower, '/')+1:]
	switch {
	case underAny(lower, vendorDirs):
		return vendoredCode
	case underAny(lower, testDirs), containsAny(base, testMarks), prefixAny(base, testStarts):
		return testCode
	case suffixAny(base, generateEnds):
		return generatedCode
	case underAny(lower, docDirs), suffixAny(base, docEnds):
		return documentation
	}
	return plainCode
}

// underAny tells whether the path has one of the directories.
func underAny(path string, dirs []string) bool {
	for _, d := range dirs {
		if strings.HasPrefix(path, d) || strings.Contains(path, "/"+d) {
			return true
		}
	}
	return false
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

func prefixAny(s string, starts []string) bool {
	for _, p := range starts {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func suffixAny(s string, ends []string) bool {
	for _, e := range ends {
		if strings.HasSuffix(s, e) {
			return true
		}
	}
	return false
}
