package tool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/manifest"
)

func dependencies(s symbols.Searcher, b browse.Reader) Tool {
	return Tool{
		Name: "dependencies", Title: "Find who uses a library",
		About: "Tells from manifests and lock files who uses a library. Shows `line: name version kind` by file. Without `package`, tells what a repository uses.",
		Params: []Param{
			{Name: "package", Kind: String, About: "as zod, @scope, org.junit.jupiter:junit-jupiter, actions/checkout"},
			anyRepoParam, pathParam,
			{Name: "locked", Kind: Boolean, Default: true, About: "lock files too"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runDependencies(ctx, v, s, b, a)
		},
	}
}

// mostManifests is the largest number of matches in manifests that one call reads.
const mostManifests = 50_000

// runDependencies runs a call of dependencies.
func runDependencies(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	d := &dependence{Args: a}
	if a.Text("package") == "" && a.Text("repo") == "" && a.List("repo") == nil {
		return "", call.Fail(call.ErrInvalid, "package or repo is required")
	}
	r, err := s.Search(ctx, v, search.Request{Query: d.query(), Whole: true, Regexp: true, Matches: mostManifests})
	if err != nil {
		return "", err
	}
	// The path or the repository may not exist.
	if len(r.Files) == 0 && a.Text("repo") != "" {
		if _, err := b.Repo(ctx, v, a.Text("repo")); err != nil {
			return "", err
		}
		if err := pathIsThere(ctx, v, b, a); err != nil {
			return "", err
		}
	}
	for i := range r.Files {
		d.read(&r.Files[i])
	}
	if r.Coverage.Has(coverage.NameOnly) {
		r.Coverage = d.readKept(ctx, v, s, b, r.Coverage)
	}
	return d.text(r), nil
}

// mostKept is the largest number of files indexed only by name that one answer reads.
const mostKept = 10

// readKept reads manifests that are indexed only by name: lock files are often too large for the
// index. The answer names those that it did not read.
func (d *dependence) readKept(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, c coverage.Coverage) coverage.Coverage {
	kept, err := s.Search(ctx, v, search.Request{Query: `lang:skipped type:file file:"` + manifest.Paths + `" ` + d.within(), Matches: 1000})
	if err != nil {
		return c
	}
	mention := regexp.MustCompile(manifest.Mention(d.Text("package")))
	for i := range kept.Files {
		f := &kept.Files[i]
		if i >= mostKept {
			d.broken = append(d.broken, of(d.Args, f.Repository)+fileLabel(f.Path))
			continue
		}
		src, err := b.Source(ctx, v, browse.SourceRequest{Repo: f.Repository, Path: f.Path})
		switch {
		case err != nil:
			d.broken = append(d.broken, of(d.Args, f.Repository)+fileLabel(f.Path))
		case mention.Match(src.Content):
			f.Content = src.Content
			d.read(f)
		}
	}
	// An incomplete list of such files does not prove that there are no others.
	if !kept.Coverage.Exhaustive() {
		return c
	}
	return c.Without(coverage.NameOnly)
}

// dependence is one call of dependencies.
type dependence struct {
	*Args
	files  []dependent
	broken []string // files that were not read, those that cannot be parsed with why
}

// dependent is a manifest with the uses of libraries in it.
type dependent struct {
	repo, path  string
	exact, part []manifest.Use
}

// query finds the files that may name the library.
func (d *dependence) query() string {
	parts := []string{`file:"` + manifest.Paths + `"`}
	if name := d.Text("package"); name != "" {
		parts = []string{`dep:"` + strings.NewReplacer(`"`, ".", `\`, ".").Replace(name) + `"`}
	}
	return strings.Join(append(parts, d.within()), " ")
}

// within returns the query filters for the repository and the path.
func (d *dependence) within() string {
	var parts []string
	repos := d.List("repo")
	if repo := d.Text("repo"); repo != "" {
		repos = []string{repo}
	}
	if repos != nil {
		parts = append(parts, `reposet:"`+strings.Join(repos, ",")+`"`)
	}
	if dir := strings.Trim(strings.TrimPrefix(d.Text("path"), "./"), "/"); dir != "" && dir != "." {
		parts = append(parts, `file:^`+strings.ReplaceAll(regexp.QuoteMeta(dir), " ", `\x20`)+`(?:/|$)`)
	}
	return strings.Join(parts, " ")
}

// read adds the uses in a file. Uses in a lock file do not count as the repository's own, because
// its manifest lists those.
func (d *dependence) read(f *search.File) {
	uses, err := manifest.Read(f.Path, f.Content)
	if err != nil {
		d.broken = append(d.broken, of(d.Args, f.Repository)+fileLabel(f.Path)+" ("+cut(label(err.Error()), 0, 0)+")")
		return
	}
	in := dependent{repo: f.Repository, path: f.Path}
	asked := d.Text("package")
	for _, u := range uses {
		if u.Kind == manifest.Locked && (!d.Flag("locked") || asked == "") {
			continue
		}
		switch fits := manifest.Fits(asked, u.Name); {
		case asked == "", fits == manifest.Exact:
			in.exact = append(in.exact, u)
		case fits == manifest.Part:
			in.part = append(in.part, u)
		}
	}
	if in.exact != nil || in.part != nil {
		d.files = append(d.files, in)
	}
}

// names counts the uses of each name.
func names(files []dependent, of func(dependent) []manifest.Use) map[string]int {
	n := map[string]int{}
	for _, f := range files {
		for _, u := range of(f) {
			n[u.Name]++
		}
	}
	return n
}

// text writes the answer.
func (d *dependence) text(r *search.Response) string {
	exact := func(f dependent) []manifest.Use { return f.exact }
	part := func(f dependent) []manifest.Use { return f.part }
	// Names that only contain the requested one matter if no name equals it.
	of, others := exact, names(d.files, part)
	if len(names(d.files, exact)) == 0 {
		of, others = part, nil
	}
	d.files = slices.DeleteFunc(d.files, func(f dependent) bool { return len(of(f)) == 0 })
	slices.SortFunc(d.files, func(x, y dependent) int {
		return cmp.Or(cmp.Compare(x.repo, y.repo), cmp.Compare(x.path, y.path))
	})

	var out strings.Builder
	out.WriteString(d.head(r, of))
	e := end{found: len(d.files) > 0}
	shown := writeBlocks(d.Args, &out, d.blocks(of), &e, func(i int) string {
		return d.with("repo", d.files[i].repo, "path", d.files[i].path)
	})
	if left := len(d.files) - shown; left > 0 {
		e.leaves(fmt.Sprintf("%s; narrow with repo, path or locked", count(left, "file")))
	}
	if len(others) > 0 {
		e.leaves("names that have it as a part: " + label(strings.Join(most(others, 8), ", ")))
	}
	if d.broken != nil {
		e.unlooked = append(e.unlooked, "manifests: "+strings.Join(d.broken[:min(3, len(d.broken))], ", ")+moreThan(3, len(d.broken)))
	}
	e.lacks(d.Args, r.Coverage, "")
	return out.String() + e.String()
}

// moreThan returns " and N more" for the names of a list that are not shown.
func moreThan(named, all int) string {
	if all <= named {
		return ""
	}
	return fmt.Sprintf(" and %d more", all-named)
}

// most lists the n keys with the largest counts, each with its count unless that is 1.
func most(counts map[string]int, n int) (all []string) {
	keys := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(counts[y]-counts[x], cmp.Compare(x, y))
	})
	for _, key := range keys[:min(n, len(keys))] {
		if counts[key] > 1 {
			key += fmt.Sprintf(" (%d)", counts[key])
		}
		all = append(all, key)
	}
	if more := len(keys) - n; more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	return all
}

// head says how many uses there are, and of which versions.
func (d *dependence) head(r *search.Response, of func(dependent) []manifest.Use) string {
	uses, repos, versions := 0, map[string]bool{}, map[string]int{}
	for _, f := range d.files {
		repos[f.repo] = true
		for _, u := range of(f) {
			uses++
			if u.Version != "" {
				versions[label(u.Version)]++
			}
		}
	}
	asked, where := label(d.Text("package")), searched(r.Coverage)
	if d.broken != nil {
		where = " in what was read."
	}
	switch {
	case uses == 0 && asked == "":
		return "No manifest names a library" + where
	case uses == 0:
		return "No manifest or lock file names " + asked + where
	case asked == "":
		return fmt.Sprintf("%s in %s", count(uses, "library use"), count(len(d.files), "file"))
	}
	text := fmt.Sprintf("%s is named %s in %s of %s", asked, times(uses), count(len(d.files), "file"), count(len(repos), "repository"))
	if len(versions) > 0 {
		text += "; versions " + strings.Join(most(versions, 6), ", ")
	}
	return text
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// blocks writes the uses by file. Each line repeats its version, because a model may read a line
// alone.
func (d *dependence) blocks(of func(dependent) []manifest.Use) []block {
	blocks := make([]block, len(d.files))
	last := ""
	for i, f := range d.files {
		b := &blocks[i]
		b.head = fileLabel(f.path) + "\n"
		if d.Text("repo") == "" && f.repo != last {
			b.head = "[" + f.repo + "]\n" + b.head
		}
		last = f.repo
		for _, u := range of(f) {
			line := fmt.Sprintf("%d: %s", u.Line, label(u.Name))
			for _, word := range []string{u.Version, u.Kind} {
				if word != "" {
					line += " " + cut(label(word), 0, 0)
				}
			}
			b.lines = append(b.lines, line+"\n")
		}
	}
	return blocks
}
