package main

import "strings"

// area is a part of the product that one person can know well. A package belongs to the area with
// the longest matching prefix.
type area struct {
	name     string
	before   int // lines at the commit 9a45aff, counted in the same way
	prefixes []string
}

// helpers and benchmarks are counted, but do not belong to the product.
const (
	helpers    = "test helpers"
	benchmarks = "benchmarks"
)

var areas = []area{
	{"engine", 24313, []string{"shard", "trigram"}},
	{"git reading", 13026, []string{"shard/git"}},
	{"cluster", 21132, []string{"cluster"}},
	{"hosts, jobs", 11857, []string{"node/host", "node/job", "node/environ"}},
	{"search, browse", 12814, []string{"node/search", "node/symbols", "node/browse", "node/suggest", "node/paste", "node/paths", "node/coverage", "glob"}},
	{"the rest of node", 11410, []string{"node", "clock"}},
	{"pages", 10490, []string{"api/web", "api/settings", "api/people", "api/layout", "api/browser"}},
	{"ask, models", 9002, []string{"node/ask", "node/model", "node/thread"}},
	{"api", 9321, []string{"api"}},
	{"tools", 8563, []string{"node/tool", "api/mcp"}},
	{"people, permissions", 7164, []string{"node/account", "node/signin", "node/oauth", "node/seal", "api/auth"}},
	{"commands", 5401, []string{"cmd"}},
	{benchmarks, 6355, []string{"bench", "cmd/shoal-bench"}},
	{helpers, 4234, nil},
}

// areaOf returns the area of a package. A package called ...test helps tests.
func areaOf(dir string) string {
	if strings.HasSuffix(dir, "test") {
		return helpers
	}

	best, length := "other", 0
	for _, a := range areas {
		for _, prefix := range a.prefixes {
			if (dir == prefix || strings.HasPrefix(dir, prefix+"/")) && len(prefix) > length {
				best, length = a.name, len(prefix)
			}
		}
	}
	return best
}
