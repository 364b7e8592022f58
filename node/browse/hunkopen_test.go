package browse

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/lex"
)

// Hunks of random changes say what a reader of both whole files knows to be open at their starts.
func TestHunks_sayWhatIsOpenOnBothSides(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(46, 1))
	lines := map[string][]string{
		"c":  {"int x;", "/*", "*/", "/* one */", "use \"/*\";", "// */", "", "\tx = 1; /* more", " * text", "}"},
		"py": {"x = 1", `"""`, "'''", `"""one"""`, "# \"\"\"", "", "    text if any", `y = """`, "'x'", "z(\"'''\")"},
		"rs": {"let x = 1;", "/* /*", "*/", "r#\"", "\"#", "// r#\"", "", "'a'", "fn f() {", "}"},
	}
	some := func(ext string, n int) (out []string) {
		for range n {
			out = append(out, lines[ext][rnd.IntN(len(lines[ext]))])
		}
		return out
	}

	// A third of the files begins with its first change far down, others change all over.
	before, after := map[string][]string{}, map[string][]string{}
	for i := range 90 {
		ext := []string{"c", "py", "rs"}[i%3]
		name := fmt.Sprintf("f%d.%s", i, ext)
		old := some(ext, 20+rnd.IntN(120))
		now := slices.Clone(old)
		for range 1 + rnd.IntN(5) {
			at := rnd.IntN(len(now))
			if rnd.IntN(3) > 0 {
				now = slices.Replace(now, at, min(len(now), at+rnd.IntN(4)), some(ext, rnd.IntN(4))...)
			} else {
				now[at] = " " + now[at]
			}
		}
		before[name], after[name] = old, append(now, "end")
	}
	dir := filepath.Join(t.TempDir(), "source.git")
	gitRun(t, "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	var in strings.Builder
	for n, files := range []map[string][]string{before, after} {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter Ann <ann@example.org> %d +0000\ndata 5\nBegin\n", 1700000000+n)
		for name, text := range files {
			body := strings.Join(text, "\n") + "\n"
			in.WriteString("M 100644 inline " + name + "\ndata " + strconv.Itoa(len(body)) + "\n" + body + "\n")
		}
		in.WriteString("\n")
	}
	gitRun(t, in.String(), "-C", dir, "fast-import", "--quiet")
	gitRun(t, "", "-C", dir, "branch", "old", "main~1")
	m := git.Open(filepath.Join(t.TempDir(), "1.git"))
	t.Cleanup(func() { m.Close() })
	if _, err := m.Fetch(t.Context(), git.Remote{URL: git.LocalURL(dir)}, git.FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	s := &site{mirror: m, repo: &catalog.Repo{ID: 1, Name: "example.org/app", Revisions: []catalog.Revision{{Name: "HEAD"}, {Name: "refs/heads/old"}}}}

	// The twin reads all lines before a hunk.
	open := func(l *lex.Lang, text []string, first, n int) lex.State {
		if n == 0 {
			first++ // git names the line before
		}
		return l.After([]byte(strings.Join(text[:first-1], "\n")+"\n"), 0)
	}
	hunks, opened := 0, 0
	for _, context := range []int{-1, 3, 10} {
		for _, blanks := range []bool{false, true} {
			d, err := ask(t, s, diffOperation, DiffRequest{Base: "old", Head: "main", Context: context, IgnoreBlanks: blanks, Page: 1, PerPage: 100})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range d.Files {
				l := lex.For(f.Language)
				if f.Language == "" {
					t.Fatalf("%s has no language", f.NewPath)
				}
				for _, h := range f.Hunks {
					old, now := open(l, before[f.OldPath], h.OldStart, h.OldLines), open(l, after[f.NewPath], h.NewStart, h.NewLines)
					if h.OldOpen != old || h.NewOpen != now {
						t.Errorf("context %d, blanks ignored %v, %s @@ -%d +%d: open %#x %#x, want %#x %#x", context, blanks, f.NewPath, h.OldStart, h.NewStart, h.OldOpen, h.NewOpen, old, now)
					}
					if hunks++; old|now != 0 {
						opened++
					}
				}
			}
		}
	}
	if hunks < 500 || opened < 100 {
		t.Errorf("only %d hunks, of which %d begin within a comment or a text", hunks, opened)
	}
}
