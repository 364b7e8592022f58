package symbols

import (
	"path"
	"strings"

	"github.com/shoalsearch/shoal/shard"
)

// The places of a repository, in the order in which who asks for a name wants to
// see them.
const (
	placeSource = iota
	placeDocs
	placeTests
	placeDeps  // what others wrote
	placeTools // what helps to make the product
	placeGenerated
)

// placeRank is the place of a path.
func placeRank(path string) int {
	// What the directories say may put it further down still.
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

// placeOfDirs judges a path by its directories alone.
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
			// Further down they are parts of the product.
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

// headerRank puts declarations for others behind the source itself.
func headerRank(p string) int {
	switch path.Ext(p) {
	case ".h", ".hh", ".hpp", ".hxx", ".inc", ".pyi":
		return 1
	}
	return 0
}

// programRank orders the places where programs begin by how likely a program is the
// one that its repository is named after:
//
//	0  main.go  src/main.rs  cmd/prometheus/main.go  src/redis.c    the product itself, in its own repository
//	1  cmd/rqlited/main.go  weaviate-server/main.go                 its server
//	2  src/server.c  server/main.go                                 a server
//	3  the others
func programRank(repository, p string) int {
	name := strings.ToLower(path.Base(repository))
	p = strings.ToLower(p)
	stem := strings.TrimSuffix(path.Base(p), path.Ext(p))

	// What is in src is called like that which src is in.
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
