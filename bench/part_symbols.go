package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// partSymbols compares indexing with symbols with what universal-ctags alone takes.
func partSymbols(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Symbols of L", Columns: []string{"what", "CPU", "wall", "on disk"}}
	tree, err := r.corpora.tree(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := r.corpora.large(ctx)
	if err != nil {
		return nil, err
	}
	conn := map[string]connection{"L": {"type": "git", "url": "file://" + repo}}
	plain, without, err := r.index(ctx, "plain", "off", 1, conn)
	if err != nil {
		return nil, err
	}
	if err := plain.stop(); err != nil {
		return nil, err
	}
	s, with, err := r.index(ctx, "symbols", "ctags", 1, conn)
	if err != nil {
		return nil, err
	}
	if err := s.stop(); err != nil {
		return nil, err
	}
	alone, err := measure(ctx, tree, nil, "ctags", "--quiet", "--options=NONE", "-R", "--output-format=json", "--fields=*", "-f", "/dev/null", ".")
	if err != nil {
		return nil, err
	}
	text, err := textBytes(ctx, tree)
	if err != nil {
		return nil, err
	}
	p.row("without symbols", without.own+without.git, without.wall, bytesize(without.disk))
	p.row("with symbols", with.own+with.git, with.wall, bytesize(with.disk))
	p.row("universal-ctags alone", alone.CPU, alone.Wall, "")
	p.note("Symbols cost %s of CPU on top of the text (children included), ctags alone takes %s.", cell(with.own+with.git-without.own-without.git), cell(alone.CPU))
	p.note("The node's own CPU for symbols: %.3g × that of ctags alone (target 0.15). On disk: %.3g × text more (target 0.05).",
		float64(with.own-without.own)/float64(alone.CPU), float64(with.disk-without.disk)/float64(text))
	return p, nil
}

// partRelevance searches bare names that are defined in exactly one file and
// used in five or more, and looks where the defining file stands.
func partRelevance(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Relevance: where the defining file of a name stands", Columns: []string{"repository", "names", "first place", "MRR"}}
	repo, err := r.corpora.large(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := r.corpora.tree(ctx)
	if err != nil {
		return nil, err
	}
	names, err := definedOnce(ctx, tree, 300)
	if err != nil {
		return nil, err
	}
	s, _, err := r.index(ctx, "relevance", "ctags", 1, map[string]connection{"L": {"type": "git", "url": "file://" + repo}})
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.symbolsReady(ctx, names[0].name); err != nil {
		return nil, err
	}
	first, sum := 0, 0.0
	for _, n := range names {
		a, _, err := s.search(ctx, Query{Text: n.name}.body(200, false))
		if err != nil {
			return nil, err
		}
		at := -1
		for i, f := range a.Files {
			if f.FileName.Text == n.file {
				at = i
				break
			}
		}
		if at == 0 {
			first++
		} else {
			top := ""
			if len(a.Files) > 0 {
				top = a.Files[0].FileName.Text
			}
			p.note("%s: defined in %s, which stands at %d; first is %s", n.name, n.file, at+1, top)
		}
		if at >= 0 {
			sum += 1 / float64(at+1)
		}
	}
	p.row("Linux", len(names), fmt.Sprintf("%.1f %%", 100*float64(first)/float64(len(names))), sum/float64(len(names)))
	return p, nil
}

// symbolsReady waits until a name is found as a symbol: symbols follow the text.
func (s *server) symbolsReady(ctx context.Context, name string) error {
	return poll(ctx, time.Hour, 200*time.Millisecond, "the symbols", func() bool {
		a, _, err := s.search(ctx, Query{Text: "sym:^" + name + "$", Regexp: true}.body(10, false))
		return err == nil && a.Stats.FileCount > 0
	})
}

type definition struct{ name, file string }

// definedOnce returns names of functions, types and macros that
// universal-ctags finds in exactly one file and that occur in at least five,
// picked evenly over the sorted names.
func definedOnce(ctx context.Context, tree string, n int) ([]definition, error) {
	u, err := measure(ctx, tree, nil, "ctags", "--quiet", "--options=NONE", "-R", "--languages=C", "--kinds-C=fsd", "--output-format=json", "-f", "-", "kernel", "mm", "fs", "net", "block", "lib", "include")
	if err != nil {
		return nil, err
	}
	files := map[string]map[string]bool{}
	scan := bufio.NewScanner(bytes.NewReader(u.Out))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var tag struct{ Name, Path string }
		if json.Unmarshal(scan.Bytes(), &tag) != nil || len(tag.Name) < 6 || strings.HasPrefix(tag.Name, "__anon") {
			continue
		}
		if files[tag.Name] == nil {
			files[tag.Name] = map[string]bool{}
		}
		files[tag.Name][filepath.ToSlash(filepath.Clean(tag.Path))] = true
	}
	uses, err := filesWithWord(tree)
	if err != nil {
		return nil, err
	}
	var all []definition
	for name, in := range files {
		if len(in) != 1 || uses[name] < 5 {
			continue
		}
		for file := range in {
			all = append(all, definition{name, file})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no names defined once in %s", tree)
	}
	slices.SortFunc(all, func(a, b definition) int { return strings.Compare(a.name, b.name) })
	var picked []definition
	for i := 0; i < len(all); i += max(1, len(all)/n) {
		picked = append(picked, all[i])
	}
	return picked[:min(n, len(picked))], nil
}

// filesWithWord counts the C files that hold each identifier.
func filesWithWord(tree string) (map[string]int, error) {
	word := regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]{5,}`)
	count := map[string]int{}
	err := walkText(tree, func(text []byte) {
		seen := map[string]bool{}
		for _, w := range word.FindAll(text, -1) {
			if !seen[string(w)] {
				seen[string(w)] = true
				count[string(w)]++
			}
		}
	})
	return count, err
}
