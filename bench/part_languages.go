package bench

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// navLanguage is a language whose definitions and references are compared
// with universal-ctags and ripgrep.
type navLanguage struct {
	name  string // as universal-ctags and the API call it
	kinds string // of ctags: what is left out because the product leaves it out
	exts  []string
}

// addLanguages adds rows for languages that have no compiler here that could
// be asked: definitions against universal-ctags, references against every
// line that ripgrep finds the name in.
func (r *run) addLanguages(ctx context.Context, p *Part) error {
	linux, err := r.corpora.tree(ctx)
	if err != nil {
		return err
	}

	// A part of the tree that has both languages, and is small enough for ctags to be quick.
	tree := filepath.Join(linux, "tools")
	repo, err := r.corpora.repository(ctx, tree, filepath.Join(r.Dir, "codenav-tools.git"))
	if err != nil {
		return err
	}

	s, _, err := r.index(ctx, "codenav-tools", "ctags", 1, map[string]connection{"tools": {"type": "git", "url": "file://" + repo}})
	if err != nil {
		return err
	}
	defer s.stop()

	if err := s.symbolsReady(ctx, symbolsTime, "evsel__open_per_cpu"); err != nil {
		return err
	}
	for _, l := range []navLanguage{{"C", "-p", []string{".c", ".h"}}, {"Python", "-iI", []string{".py"}}} {
		if err := s.compareLanguage(ctx, p, tree, l); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// compareLanguage compares 200 names that are used in at most 60 lines.
func (s *server) compareLanguage(ctx context.Context, p *Part, tree string, l navLanguage) error {
	tags, err := ctagsPlaces(ctx, tree, l.name, l.kinds)
	if err != nil {
		return err
	}

	for name, at := range tags { // scripts without an extension are not asked about
		maps.DeleteFunc(at, func(p place, _ bool) bool { return !slices.Contains(l.exts, filepath.Ext(p.file)) })
		if len(at) == 0 {
			delete(tags, name)
		}
	}

	// Short names are words of every comment, and anonymous ones are ctags' own.
	names := slices.Sorted(maps.Keys(tags))
	names = slices.DeleteFunc(names, func(n string) bool { return len(n) < 4 || !isWord(n) || strings.HasPrefix(n, "__anon") })
	var defs, refs confusion
	asked := 0
	for i := 0; i < len(names) && asked < 200; i += max(1, len(names)/260) {
		name := names[i]
		want, err := wordLines(ctx, tree, name, l.exts)
		if err != nil {
			return err
		}

		// A name that is used everywhere says nothing of how well uses are found.
		if len(want) > 60 {
			continue
		}
		asked++

		got, err := s.lines(ctx, "/api/find_definitions", name, l.exts)
		if err != nil {
			return err
		}

		defs.add(got, tags[name])
		maps.DeleteFunc(want, func(at place, _ bool) bool { return tags[name][at] })
		if got, err = s.lines(ctx, "/api/find_references", name, l.exts); err != nil {
			return err
		}
		refs.add(got, want)
	}

	p.row(fmt.Sprintf("find_definitions, %s, %d names", l.name, asked), "universal-ctags over the tree", defs.want, defs.precision(), defs.recall())
	p.row(fmt.Sprintf("find_references, %s, %d names", l.name, asked), "lines with the name, by ripgrep, less definitions", refs.want, refs.precision(), refs.recall())
	return nil
}

func isWord(name string) bool {
	return strings.IndexFunc(name, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) < 0
}

// wordLines are the lines of a tree that have a word, as ripgrep finds them.
func wordLines(ctx context.Context, tree, word string, exts []string) (places, error) {
	args := []string{"--no-ignore", "--hidden", "-nwF", "--no-heading", "--null"}
	for _, e := range exts {
		args = append(args, "-g", "*"+e)
	}

	u, err := measure(ctx, tree, nil, "rg", append(args, "-e", word, ".")...)
	if err != nil {
		return nil, err
	}

	all := places{}
	for row := range strings.Lines(string(u.Out)) {
		file, rest, ok := strings.Cut(row, "\x00")
		var line int
		if _, err := fmt.Sscanf(rest, "%d:", &line); !ok || err != nil {
			continue // the second line of a text that ripgrep takes for one
		}
		all[place{filepath.Clean(file), line}] = true
	}

	return all, nil
}
