package symbols

import (
	"path"
	"strings"

	"github.com/shoalsearch/shoal/shard"
)

// The categories of files in a repository, in the order in which readers want results.
const (
	placeSource = iota
	placeDocs
	placeTests
	placeDeps  // what others wrote
	placeTools // what helps to make the product
	placeGenerated
)

// placeRank returns the category of a path.
func placeRank(path string) int {
	// The directories may lower the rank further.
	switch placed := placeOfDirs(path); shard.PathRank(path) {
	case shard.RankGenerated:
		return placeGenerated
	case shard.RankVendored:
		return placeDeps
	case shard.RankTests:
		return max(placeTests, placed)
	case shard.RankDocs:
		return max(placeDocs, placed)
	default:
		return placed
	}
}

// placeOfDirs categorizes a path by its directories alone.
func placeOfDirs(path string) int {
	dirs := strings.Split(strings.ToLower(path), "/")
	dirs = dirs[:len(dirs)-1]
	for i, dir := range dirs {
		switch dir {
		case "deps":
			return placeDeps
		case "tools", "scripts", "contrib", "hack", "demo", "demos":
			return placeTools
		case "testutil", "testutils", "testhelper", "testhelpers":
			return placeTests
		case "utils", "util", "misc":
			// Deeper in the tree, such directories belong to the product.
			if i == 0 {
				return placeTools
			}
		}

		if strings.HasSuffix(dir, "_test") || strings.HasSuffix(dir, "_tests") || strings.HasSuffix(dir, "-tests") {
			return placeTests
		}
	}
	return placeSource
}

// headerRank sorts headers after source files.
func headerRank(p string) int {
	switch path.Ext(p) {
	case ".h", ".hh", ".hpp", ".hxx", ".inc", ".pyi":
		return 1
	}
	return 0
}

// programRank orders main functions by how likely the program is the one that gives the repository
// its name:
//
//	0  main.go  src/main.rs  cmd/prometheus/main.go  src/redis.c    the product itself
//	1  cmd/rqlited/main.go  weaviate-server/main.go                 its server
//	2  src/server.c  server/main.go                                 a server
//	3  all others
func programRank(repository, p string) int {
	name := strings.ToLower(path.Base(repository))
	p = strings.ToLower(p)
	stem := strings.TrimSuffix(path.Base(p), path.Ext(p))

	// The parent of src has the program's name.
	dir := path.Dir(p)
	if path.Base(dir) == "src" {
		dir = path.Dir(dir)
	}
	if dir == "." && stem == "main" {
		return 0
	}

	rank := 3
	for _, called := range []string{stem, path.Base(dir)} {
		suffix, own := strings.CutPrefix(called, name)
		switch {
		case own && suffix == "":
			return 0
		case own && (suffix == "d" || strings.TrimLeft(suffix, "-_") == "server"):
			rank = min(rank, 1)
		case called == "server" || called == "daemon":
			rank = min(rank, 2)
		}
	}
	return rank
}
