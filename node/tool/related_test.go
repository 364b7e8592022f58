package tool

import "testing"

func TestCodeOwners_areReadFromTheFile(t *testing.T) {
	t.Parallel()
	const text = `# comment
*            @all
*.js         @web @ui  # inline
/docs/       @docs
docs/*       @flat
apps/        @apps
/build/logs/ @logs
apps/github
[Section]
^[Optional] @x
`
	for path, want := range map[string]string{
		"main.go":              "@all",
		"a/b.js":               "@web @ui",
		"docs/a.md":            "@flat",
		"docs/in/a.md":         "@docs",
		"x/apps/y.go":          "@apps",
		"apps/github/a.go":     "",
		"build/logs/a.txt":     "@logs",
		"src/build/logs/a.txt": "@all",
	} {
		if got, _ := ownersIn([]byte(text), path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
