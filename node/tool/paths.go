package tool

import (
	"strings"

	"github.com/shoalsearch/shoal/node/paths"
)

// Parameters that select files.
var (
	pathParam    = Param{Name: "path", Kind: String, About: "directory or file, from the root"}
	includeParam = Param{Name: "include", Kind: Strings, About: "globs: *.go at any depth, src/**/*.ts from path on"}
	excludeParam = Param{Name: "exclude", Kind: Strings, About: "globs, as vendor or *.pb.go"}
	testsParam   = Param{Name: "tests", Kind: String, Words: []string{"include", "exclude", "only"}, Default: "include"}
)

// pathsOf returns the path filter of the arguments.
func pathsOf(a *Args) paths.Filter {
	f := paths.Filter{Dir: a.Text("path"), Include: a.List("include"), Exclude: a.List("exclude"), Repos: a.List("repo")}
	if tests := a.Text("tests"); tests != "include" {
		f.Tests = tests
	}
	return f
}

// narrower names the parameters of a tool that narrow a search.
func narrower(t *Tool) string {
	var names []string
	for _, name := range []string{"repo", "path", "include", "pattern"} {
		if contains(t.names(), name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "narrow with " + strings.Join(names, ", ")
}
