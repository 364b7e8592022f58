package manifest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestManifestFormats_returnTheUsedPackages reads a file of each format. A section of the samples
// is a path, a content, and the uses in it.
func TestManifestFormats_returnTheUsedPackages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/formats.txt")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[*format]bool{}
	for _, section := range strings.Split(string(text), "== ")[1:] {
		path, rest, _ := strings.Cut(section, "\n")
		var content, want []string
		for line := range strings.Lines(rest) {
			if use, ok := strings.CutPrefix(line, "=> "); ok {
				want = append(want, strings.TrimSpace(use))
			} else {
				content = append(content, line)
			}
		}
		f := formatOf(path)
		if f == nil {
			t.Fatalf("%s is of no format", path)
		}
		tried[f] = true

		uses, err := Read(path, []byte(strings.Join(content, "")))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		var got []string
		for _, u := range uses {
			line := fmt.Sprint(u.Line, " ", u.Name, " ", u.Version, " ", u.Kind)
			got = append(got, strings.TrimSpace(strings.Join(strings.Fields(line), " ")))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", path, got, want)
		}
	}
	for i := range formats {
		if !tried[&formats[i]] {
			t.Errorf("testdata/formats.txt has no file of the format %s", formats[i].files)
		}
	}
}

func TestPackageName_matchesExactlyOrInPart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		asked, name string
		want        Match
	}{
		{"zod", "zod", Exact},
		{"zod", "zod-form-data", None},
		{"typing-extensions", "Typing_Extensions", Exact},
		{"github.com/a/b", "github.com/a/b/v3", Exact},
		{"@trpc", "@trpc/server", Part},
		{"junit-jupiter", "org.junit.jupiter:junit-jupiter", Part},
		{"org.junit.jupiter", "org.junit.jupiter:junit-jupiter", Part},
		{"org.junit.jupiter:junit-jupiter", "org.junit.jupiter:junit-jupiter", Exact},
		{"jupiter", "org.junit.jupiter:junit-jupiter", None},
	} {
		if got := Fits(tt.asked, tt.name); got != tt.want {
			t.Errorf("Fits(%q, %q) = %v, want %v", tt.asked, tt.name, got, tt.want)
		}
		if tt.want != None && !regexp.MustCompile(Mention(tt.asked)).MatchString(tt.name) {
			t.Errorf("Mention(%q) does not find %q", tt.asked, tt.name)
		}
	}
}

// TestReadManifest_reportsABrokenFile shows that a broken file is told of, in time and without a
// panic.
func TestReadManifest_reportsABrokenFile(t *testing.T) {
	t.Parallel()
	for path, text := range map[string]string{
		"package.json":    `{"dependencies": {`,
		"Cargo.toml":      "[dependencies\nx = 1",
		"pnpm-lock.yaml":  "a: [\nb: - c",
		"go.mod":          "require (\n x",
		"pom.xml":         "<project><",
		"composer.json":   strings.Repeat("[", 1<<20),
		"Pipfile":         "a = " + strings.Repeat("[", 1<<20),
		"packages.config": strings.Repeat("<a>", 1<<20),
	} {
		if uses, err := Read(path, []byte(text)); err == nil {
			t.Errorf("%s: no error, and the uses %v", path, uses)
		}
	}
	// A few lines of aliases may stand for billions of values.
	bomb := "dependencies: &a0 [x, x]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("k%d: &a%d [*a%d, *a%d]\n", i, i+1, i, i)
	}
	if _, err := Read("Chart.yaml", []byte(bomb)); err != nil {
		t.Error(err)
	}
}

func FuzzReadManifest_neverPanics(f *testing.F) {
	text, err := os.ReadFile("testdata/formats.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, section := range strings.Split(string(text), "== ")[1:] {
		path, content, _ := strings.Cut(section, "\n")
		f.Add(path, []byte(content))
	}
	f.Fuzz(func(t *testing.T, path string, text []byte) {
		if !Known(path) {
			return
		}
		uses, err := Read(path, text)
		for _, u := range uses {
			if err != nil || u.Name == "" || u.Line < 0 || u.Line > 1+strings.Count(string(text), "\n") {
				t.Errorf("%s: %+v %v", path, u, err)
			}
		}
	})
}
