package main

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted matches the words in backquotes of CONTRIBUTING, which may span lines.
var quoted = regexp.MustCompile("`[^`]+`")

// elsewhere are names in CONTRIBUTING that need not be in the tree, with the reason.
var elsewhere = map[string]string{
	"testing/synctest": "a package of the library",
	"testdata/fuzz":    "made by the first finding of a fuzz target",
}

// Every file, directory, make target and Go name in CONTRIBUTING.md must exist, so that its steps
// stay true when something moves.
func TestContributing_namesOnlyExistingThings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}

	names := declared(sources(t))
	checked := 0
	for _, word := range quoted.FindAllString(string(text), -1) {
		word = strings.Join(strings.Fields(strings.Trim(word, "`")), " ")
		kind, ok := namesIt(word, string(makefile), names)
		if kind == "" {
			continue // an example, as `package: verb object`
		}
		checked++
		if !ok {
			t.Errorf("CONTRIBUTING.md names the %s %q, which is not there", kind, word)
		}
	}
	if checked < 40 {
		t.Errorf("only %d names were found in CONTRIBUTING.md: the test no longer reads it rightly", checked)
	}
}

// namesIt returns what kind of thing a word of CONTRIBUTING names, and whether it exists; "" if
// it cannot be checked.
func namesIt(word, makefile string, names map[string]bool) (kind string, ok bool) {
	if target, is := strings.CutPrefix(word, "make "); is {
		return "make target", regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).MatchString(makefile)
	}
	switch {
	case strings.HasPrefix(word, "go test ./"):
		dir, _, _ := strings.Cut(strings.TrimPrefix(word, "go test ./"), " ")
		return "package", matches(dir)
	case strings.ContainsAny(word, " ~"):
		return "", false
	case strings.Contains(word, "NAME"):
		return "directory", matches(filepath.Dir(word))
	case strings.Contains(word, "/"), isFileName(word):
		return "file", matches(word) || elsewhere[word] != ""
	case regexp.MustCompile(`^[A-Za-z]\w*(\.[A-Z]\w*)?$`).MatchString(word):
		_, last, qualified := strings.Cut(word, ".")
		if !qualified {
			last = word
		}
		return "Go name", names[last] || matches(last)
	}
	return "", false
}

// isFileName reports whether a word without a slash has the extension of a file in this
// repository.
func isFileName(word string) bool {
	switch filepath.Ext(word) {
	case ".go", ".md", ".json", ".mjs":
		return true
	}
	return false
}

// matches reports whether a path or glob is in the tree, below the root or any package.
func matches(path string) bool {
	root := filepath.Join("..", "..")
	for _, dir := range []string{"", "*", "*/*", "*/*/*"} {
		if found, _ := filepath.Glob(filepath.Join(root, dir, path)); len(found) > 0 {
			return true
		}
	}
	return false
}

// declared returns all names of types, functions, methods, variables and fields.
func declared(all []source) map[string]bool {
	names := map[string]bool{}
	for _, s := range all {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.Field:
				if n.Tag != nil && n.Tag.Kind == token.STRING { // the name in JSON
					if m := regexp.MustCompile(`json:"(\w+)`).FindStringSubmatch(n.Tag.Value); m != nil {
						names[m[1]] = true
					}
				}
				for _, name := range n.Names {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	return names
}

// A page for users names no test; the list of its tests is in the tested package.
func TestUserDocumentation_namesNoTests(t *testing.T) {
	t.Parallel()
	for _, glob := range []string{"*.md", "*/*.md"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", "docs", glob))
		if err != nil || len(pages) < 5 {
			t.Fatalf("%d pages, %v", len(pages), err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if name := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`).Find(text); name != nil {
				t.Errorf("%s names %s: put it into promises, or beside the tests of its package", page, name)
			}
		}
	}
}
