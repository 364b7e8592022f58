package shard

import "strings"

// category says how early a reader wants to see a file. The documents of a shard are in the order
// of these constants, so that a search that stops early finds the better files.
type category uint8

const (
	plainCode category = iota
	documentation
	generatedCode
	testCode
	vendoredCode
)

// dirCategories maps the name of a directory to what it says about the files below it.
var dirCategories = map[string]dirMask{
	"vendor": vendorDir, "node_modules": vendorDir, "third_party": vendorDir, "thirdparty": vendorDir, "3rdparty": vendorDir,
	"external": vendorDir, "bower_components": vendorDir, "dist": vendorDir, "godeps": vendorDir, ".yarn": vendorDir,

	"test": testDir, "tests": testDir, "testdata": testDir, "__tests__": testDir,
	"testing": testDir, "selftests": testDir, "fixtures": testDir, "e2e": testDir, "mocks": testDir,

	"spec": specDir, "specs": specDir,

	"benchmarks": sampleDir, "samples": sampleDir, "examples": sampleDir, "example": sampleDir,

	"doc": docDir, "docs": docDir, "documentation": docDir, "man": docDir,
}

// dirMask is a set of kinds of directories.
type dirMask uint8

const (
	vendorDir dirMask = 1 << iota
	testDir
	specDir   // tests, if the language calls them specs; otherwise perhaps documentation
	sampleDir // ranked as tests
	docDir
)

// dirsOf returns the kinds of the directories in a path.
func dirsOf(path string) (m dirMask) {
	for {
		i := strings.IndexByte(path, '/')
		if i < 0 {
			return m
		}
		m |= dirCategories[path[:i]]
		path = path[i+1:]
	}
}

// Endings of file names that decide the category. testNames lists those of tests.
var (
	generatedEnds = []string{".min.js", ".min.css", ".pb.go", ".pb.cc", ".pb.h", "_pb2.py", "_pb2_grpc.py", ".g.dart",
		".freezed.dart", ".designer.cs", ".generated.go", "_generated.go", ".gen.go", "_gen.go", ".map", ".lock",
		"_amalgamated.c", "_amalgamated.h", "_amalgamated.cpp", "_amalgamated.hpp", "package-lock.json", "go.sum", "pnpm-lock.yaml", "_shipped", ".snap", ".svg"}
	docEnds = []string{".md", ".rst", ".txt", ".adoc", ".html", ".po", ".pot", ".tex", ".1", ".7"}
)

// categoryOf returns the category of a file by its path alone, because the category decides in
// which order a build reads files.
func categoryOf(path string) category {
	lower := strings.ToLower(path)
	base := lower[strings.LastIndexByte(lower, '/')+1:]
	dirs := dirsOf(lower)

	// The first case that fits decides: a vendored test is vendored.
	switch {
	case dirs&vendorDir != 0:
		return vendoredCode
	case dirs&sampleDir != 0, isTest(path, lower, dirs):
		return testCode
	case hasAnySuffix(base, generatedEnds):
		return generatedCode
	case dirs&docDir != 0, hasAnySuffix(base, docEnds):
		return documentation
	}
	return plainCode
}

// hasAnyPrefix reports whether s begins with one of starts.
func hasAnyPrefix(s string, starts []string) bool {
	for _, p := range starts {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// hasAnySuffix reports whether s ends with one of ends.
func hasAnySuffix(s string, ends []string) bool {
	for _, e := range ends {
		if strings.HasSuffix(s, e) {
			return true
		}
	}
	return false
}

// The results of PathRank, besides 0 for source.
const (
	RankDocs      = int(documentation)
	RankGenerated = int(generatedCode)
	RankTests     = int(testCode)
	RankVendored  = int(vendoredCode)
)

// PathRank returns the rank of a path, the lowest for files that a reader most likely wants to see
// first: source, then documentation, generated files, tests, and vendored files.
func PathRank(path string) int { return int(categoryOf(path)) }
