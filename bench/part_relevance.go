package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The bounds of the part on relevance.
const (
	relevanceNames = 300 // of each repository
	relevanceFails = 20  // of each repository are named
	relevanceUses  = 5   // files that hold a name at least
)

// subject is a repository whose names are searched, and its files.
type subject struct{ name, repo, tree string }

// partRelevance searches bare names that are defined in exactly one file and
// used in five or more, and looks where the defining file stands: with symbols
// and, as right after a push, without. The repositories are L and those that lie
// or are linked in <dir>/relevance.
func partRelevance(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Relevance: where the defining file of a name stands", Columns: []string{"repository", "names", "first place", "MRR", "first place without symbols", "MRR without"}}
	subjects, err := r.subjects(ctx)
	if err != nil {
		return nil, err
	}

	for _, s := range subjects {
		names, err := definedOnce(ctx, s.tree, relevanceNames)
		if err != nil {
			return nil, err
		}

		row := []any{s.name, len(names)}

		// Without symbols too: they come after the text, and people search at once.
		for _, ctags := range []string{"ctags", "off"} {
			places, err := r.places(ctx, s, ctags, names)
			if err != nil {
				return nil, err
			}

			first, sum := 0, 0.0
			for i, pl := range places {
				if pl.at == 1 {
					first++
				} else if ctags != "off" && i-first < relevanceFails {
					p.note("%s in %s: defined in %s, which stands at %d; first is %s", names[i].name, s.name, names[i].file, pl.at, pl.first)
				}

				// A file that is not there counts as nothing, and not as the last one.
				if pl.at > 0 {
					sum += 1 / float64(pl.at)
				}
			}

			row = append(row, fmt.Sprintf("%.1f %%", 100*float64(first)/float64(len(names))), fmt.Sprintf("%.4f", sum/float64(len(names))))
		}

		p.row(row...)
	}

	p.note("Names of functions, types and macros with at least six letters, picked evenly; the bare word, in any case, 200 matches asked for. Target: 98 %% and 0.99.")
	return p, nil
}

// subjects lists the repositories with their trees.
func (r *run) subjects(ctx context.Context) ([]subject, error) {
	repo, err := r.corpora.large(ctx)
	if err != nil {
		return nil, err
	}

	tree, err := r.corpora.tree(ctx)
	if err != nil {
		return nil, err
	}

	// More repositories are linked by who runs it: names in C alone say little of others.
	list := []subject{{"Linux", repo, tree}}
	more, err := filepath.Glob(filepath.Join(r.Dir, "relevance", "*"))
	if err != nil {
		return nil, err
	}

	for _, link := range more {
		repo, err := filepath.EvalSymlinks(link)
		if err != nil {
			return nil, err
		}

		name := strings.TrimSuffix(filepath.Base(link), ".git")

		// One checkout for ctags, of the newest commit only.
		tree := filepath.Join(r.Dir, "relevance-"+name)
		if ok, err := exists(tree); err != nil {
			return nil, err
		} else if !ok {
			if _, err := measure(ctx, r.Dir, nil, "git", "clone", "-q", "--shared", "--depth=1", "file://"+repo, tree); err != nil {
				return nil, err
			}
		}

		list = append(list, subject{name, repo, tree})
	}

	return list, nil
}

// standing is where a file stands in an answer, from 1; 0 when it is not there.
type standing struct {
	at    int
	first string // file
}

// places asks for each name.
func (r *run) places(ctx context.Context, in subject, ctags string, names []definition) ([]standing, error) {
	s, _, err := r.index(ctx, "relevance", ctags, 1, map[string]connection{"L": {"type": "git", "url": "file://" + in.repo}})
	if err != nil {
		return nil, err
	}
	defer s.stop()

	// Packed files are ordered otherwise than fresh ones: people search the former.
	if err := s.settled(ctx); err != nil {
		return nil, err
	}
	if ctags != "off" {
		if err := s.symbolsReady(ctx, symbolsTimeLarge, names[0].name); err != nil {
			return nil, err
		}
	}

	var out []standing
	for _, n := range names {
		a, _, err := s.search(ctx, Query{Text: n.name}.body(200, false))
		if err != nil {
			return nil, err
		}

		// The first stands for all of its kind: what came in its place is told in a note.
		var place standing
		for i, f := range a.Files {
			if i == 0 {
				place.first = f.FileName.Text
			}
			if f.FileName.Text == n.file {
				place.at = i + 1
				break
			}
		}

		out = append(out, place)
	}

	return out, nil
}

// Symbols follow the text: how long that takes at most.
const (
	symbolsTime      = 2 * time.Minute
	symbolsTimeLarge = 15 * time.Minute // of L, on a machine that others use
)

// symbolsReady waits until a symbol is found by a name, or an expression for one.
func (s *server) symbolsReady(ctx context.Context, limit time.Duration, name string) error {
	var last error
	err := poll(ctx, limit, 200*time.Millisecond, fmt.Sprintf("%q to be a symbol", name), func() bool {
		a, _, err := s.search(ctx, Query{Text: "sym:^" + name + "$", Regexp: true}.body(10, false))
		last = err
		return err == nil && a.Stats.FileCount > 0
	})
	if err != nil {
		return fmt.Errorf("%w (%v; is universal-ctags on PATH? log: %s.log)", err, last, s.dir)
	}
	return nil
}

// definition is a name and the file that defines it.
type definition struct{ name, file string }

// defining are the kinds of universal-ctags whose names people look for: what is
// called, instantiated or implemented, not what only holds a value. Methods of
// Python are its members.
var defining = []string{"class", "classMethod", "def", "enum", "func", "function", "generator", "interface", "macro", "method", "methodSpec", "mixin", "module",
	"object", "protocol", "singletonMethod", "struct", "subroutine", "talias", "trait", "type", "typealias", "typedef", "typespec", "union"}

// sources are the extensions of the files whose names are looked at.
var sources = []string{".c", ".h", ".cc", ".cpp", ".hpp", ".go", ".py", ".java", ".js", ".ts", ".tsx", ".jsx", ".rb", ".rs", ".php", ".cs", ".kt", ".scala", ".pl", ".lua"}

// definedOnce returns names of functions, types and macros that
// universal-ctags finds in exactly one file and that occur in at least five,
// picked evenly over the sorted names.
func definedOnce(ctx context.Context, tree string, n int) ([]definition, error) {
	u, err := measure(ctx, tree, nil, "ctags", "--quiet", "--options=NONE", "-R", "--map-C=+.h", "--fields=+K", "--output-format=json", "-f", "-", ".")
	if err != nil {
		return nil, err
	}

	// By name, the files that define it: of more than one no place is right.
	files := map[string]map[string]bool{}
	scan := bufio.NewScanner(bytes.NewReader(u.Out))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var tag struct{ Name, Path, Kind string }
		if json.Unmarshal(scan.Bytes(), &tag) != nil || tag.Name == "" || word.FindString(tag.Name) != tag.Name || strings.HasPrefix(tag.Name, "__anon") ||
			!slices.Contains(defining, tag.Kind) && (tag.Kind != "member" || filepath.Ext(tag.Path) != ".py") || !slices.Contains(sources, filepath.Ext(tag.Path)) {
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

	// Used elsewhere as well: the defining file has to be found among the others.
	var all []definition
	for name, in := range files {
		if len(in) != 1 || uses[name] < relevanceUses {
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

	// Evenly over the sorted names: no letter counts more.
	var picked []definition
	for i := range min(n, len(all)) {
		picked = append(picked, all[i*len(all)/min(n, len(all))])
	}
	return picked, nil
}

// word is a name that is looked at.
var word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]{5,}`)

// filesWithWord counts the source files that hold each identifier.
func filesWithWord(tree string) (map[string]int, error) {
	count := map[string]int{}
	root, err := filepath.EvalSymlinks(tree)
	if err != nil {
		return nil, err
	}

	// What is too large is no text for the product either.
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !slices.Contains(sources, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || len(text) > maxText {
			return err
		}

		seen := map[string]bool{}
		for _, w := range word.FindAll(text, -1) {
			if !seen[string(w)] {
				seen[string(w)] = true
				count[string(w)]++
			}
		}
		return nil
	})

	return count, err
}
