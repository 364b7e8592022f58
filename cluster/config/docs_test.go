package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The example on the page about sign-in is valid, and all of it works.
func TestSignInPage_exampleConfigurationParsesWithoutWarnings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/how-to/sign-in.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	f, err := Parse([]byte(example))
	if err != nil || len(f.IdentityProviders) != 2 || len(f.Warnings) > 0 {
		t.Fatalf("%v, %+v", err, f)
	}
	if e := Explain([]byte(example), f); len(e.Works) != 2 || len(e.None) > 0 || len(e.Unsafe) > 0 {
		t.Errorf("%+v", e)
	}
}

// The examples on the pages about code hosts are valid and give no warning.
func TestHostPages_exampleConfigurationsParseWithoutWarnings(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/hosts/*.md")
	if err != nil || len(pages) < 6 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		kind := strings.TrimSuffix(filepath.Base(page), ".md")
		if kind == "network" || kind == "refused" {
			continue // a page about all hosts
		}
		examples := strings.Split(string(text), "```json\n")[1:]
		if len(examples) < 2 {
			t.Errorf("%s has %d examples", page, len(examples))
		}
		for _, example := range examples {
			example, _, _ = strings.Cut(example, "```")
			f, err := Parse([]byte(example))
			if err != nil {
				t.Errorf("%s: %v in\n%s", page, err, example)
				continue
			}
			for _, c := range f.Connections {
				if string(c.Kind()) != kind {
					t.Errorf("%s has an example of %s", page, c.Kind())
				}
			}
			if len(f.Warnings) > 0 {
				t.Errorf("%s: %v in\n%s", page, f.Warnings, example)
			}
		}
	}
}
