package search

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
		case "tools", "scripts", "contrib", "hack":
			return placeTools
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
