package tool

import (
	"strings"

	"github.com/shoalsearch/shoal/node/paths"
)

// Parameters that say which files are meant.
var (
	pathParam    = Param{Name: "path", Kind: String, About: "directory or file, from the root"}
	includeParam = Param{Name: "include", Kind: Strings, About: "globs: *.go at any depth, src/**/*.ts from path on"}
	excludeParam = Param{Name: "exclude", Kind: Strings, About: "globs, as vendor or *.pb.go"}
	testsParam   = Param{Name: "tests", Kind: String, Words: []string{"include", "exclude", "only"}, Default: "include"}
)

// pathsOf is the filter that the arguments describe.
func pathsOf(a *Args) paths.Filter {
	f := paths.Filter{Dir: a.Text("path"), Include: a.List("include"), Exclude: a.List("exclude"), Repos: a.List("repo")}
	if tests := a.Text("tests"); tests != "include" {
		f.Tests = tests
	}
	return f
}

// narrower says by which parameters of a tool less is found.
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
