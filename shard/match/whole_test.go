package match

import "testing"

func TestCompile_usesATextListForAlternativesOfTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expr  string
		texts int // number of texts in the list; 0 if there is no list
	}{
		{`\A(?:cmd/main\.go|cmd/main_test\.go|cmd/tool\.go|go\.mod)\z`, 4},
		{`\Ago\.mod\z`, 0}, // is a literal
		{`\A(?:a|ab|abc)\z`, 3},
		{`\A[a-c]x?\z`, 6},
		{`\A(?:é|ü)\z`, 0}, // has a class beyond ASCII
		{`\A(?:a|)\z`, 0},
		{`\A(?i:a|bc)\z`, 0},
		{`\A.+\z`, 0},
		{`\A[ab]{13}\z`, 0}, // are too many
		{`\A(?:a|b)`, 0},
	} {
		m, err := Compile(c.expr, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.texts) != c.texts {
			t.Errorf("%s: a list of %d, want %d", c.expr, len(m.texts), c.texts)
		}
		for _, text := range []string{"", "a", "ab", "abc", "abx", "cx", "é", "go.mod", "cmd/main.go", "cmd/main_test.go", "cmd/main.gox", "cmd/main.go\n", "aaaaaaaaaaaaa"} {
			check(t, c.expr, false, []byte(text))
		}
	}
}
