package suggest

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/paste"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/query"
)

// findFiles finds the files that a path of another machine likely means: those whose repository and
// path have the longest common end with it.
func (g *targets) findFiles(p *paste.Place) []Target {
	parts := strings.Split(p.Path, "/")
	found, cut := g.filesEnding(parts[len(parts)-1])
	if len(found) == 0 && p.Form == "shell" {
		if found = g.scripts(parts[len(parts)-1]); len(found) > 0 {
			parts = []string{path.Base(found[0].Path)} // it is installed in another directory
		}
	}
	// Many files have this name: use the directory too.
	if cut && len(parts) > 1 {
		if near, _ := g.filesEnding(strings.Join(parts[len(parts)-2:], "/")); len(near) > 0 {
			found = near
		}
	}

	out := bestFits(parts, found, cut)
	if !cut && len(found) > 0 && len(parts) > 1 && revisionOf(&found[0]) == "" && !slices.ContainsFunc(out, func(t Target) bool { return fitsPlace(parts, t.Repository, t.Path) }) {
		// The file may be in an older revision.
		older, cut := g.filesEndingAt("rev:* ", strings.Join(parts[max(0, len(parts)-2):], "/"))
		if was := bestFits(parts, older, cut); len(was) > 0 {
			return was
		}
	}
	return out
}

// filesEnding finds files whose path ends with a text, in the default branches, or else in any
// indexed revision. It reports whether there are more.
func (g *targets) filesEnding(end string) (files []search.File, cut bool) {
	if files, cut = g.filesEndingAt("", end); len(files) == 0 {
		return g.filesEndingAt("rev:* ", end)
	}
	return files, cut
}

// filesEndingAt finds files whose path ends with a text, in the revisions that rev names; "" means
// the default branches. cut reports that there are more.
func (g *targets) filesEndingAt(rev, end string) (files []search.File, cut bool) {
	if rev != "" && strings.Contains(g.filters, "rev:") {
		return nil, false
	}
	return g.filesMatching(rev, "(?:^|/)"+regexp.QuoteMeta(end)+"$")
}

// scripts finds the files of a program that is installed without its extension.
func (g *targets) scripts(name string) []search.File {
	if strings.Contains(name, ".") {
		return nil
	}
	files, _ := g.filesMatching("", "(?:^|/)"+regexp.QuoteMeta(name)+`\.(?:sh|bash|zsh|py|rb|pl|js)$`)
	return files
}

// filesMatching finds files whose path matches an expression. Its query begins with terms, which end
// with a space.
func (g *targets) filesMatching(terms, expr string) (files []search.File, cut bool) {
	r, err := g.s.d.Search.Search(g.ctx, g.viewer, search.Request{Query: filesCommand + terms + g.filters + "file:" + query.QuoteRegexp(expr), Matches: pathFiles})
	if err != nil {
		return nil, false
	}
	return r.Files, len(r.Files) == pathFiles
}

// revisionOf returns a revision that has a file; "" if HEAD has it.
func revisionOf(f *search.File) string {
	rev := ""
	for _, b := range f.Branches {
		short := query.ShortRev(b)
		if short == "HEAD" {
			return ""
		}
		rev = cmp.Or(rev, short)
	}
	return rev
}

// fitsPlace reports whether a file shares more than its name with a pasted path. A file at the root
// has no directory to share. It does not fit if the pasted path has directories between the
// repository and the name: express/lib/router/index.js is not index.js.
func fitsPlace(parts []string, repo, path string) bool {
	if strings.Contains(path, "/") {
		return commonEnd(parts, strings.Split(path, "/")) > 1
	}
	name := repo[strings.LastIndexByte(repo, '/')+1:]
	at := slices.IndexFunc(parts, func(part string) bool { return namesRepository(part, name) })
	return at < 0 || at >= len(parts)-2
}

// namesRepository reports whether a directory of a pasted path has the name of a repository. A
// directory of a package cache has a version after it.
func namesRepository(dir, name string) bool {
	plain, _, _ := strings.Cut(dir, "@")
	return strings.EqualFold(plain, name) || strings.HasPrefix(strings.ToLower(dir), strings.ToLower(name)+"-")
}

// bestFits returns the files that fit the parts of a pasted path best. A name alone only fits if
// one file has it.
func bestFits(parts []string, found []search.File, cut bool) []Target {
	best := 0
	var out []Target
	for i := range found {
		f := &found[i]
		score := likeness(parts, f.Repository, f.Path)
		if score == 0 && len(parts) > 2 || score == 0 && (len(found) > 1 || cut) || score < best {
			continue
		}
		if score > best {
			best, out = score, nil
		}
		out = append(out, Target{Kind: FileTarget, Repository: f.Repository, Revision: revisionOf(f), Path: f.Path, Language: f.Language})
	}
	return out
}

// likeness rates how well a file fits the parts of a pasted path; 0 if only the name fits. It
// is highest if the whole path of the file fits, with parts of the repository's name before it:
//
//	home/x/redis/src/dict.c   github.com/redis/redis  src/dict.c   all of the path, and the repository
//	site-packages/flask/app.py  .../flask  src/flask/app.py        two parts, and the repository's name
func likeness(parts []string, repo, path string) int {
	file := strings.Split(path, "/")
	n := commonEnd(parts, file)
	score := 10 * (n - 1)
	sameCase := strings.HasSuffix("/"+path, "/"+parts[len(parts)-1])
	if n == len(parts) {
		score += 5
		if sameCase {
			score++
		}
		return score
	}

	rest := parts[:len(parts)-n]
	if n == len(file) {
		score += 10 * commonEnd(rest, strings.Split(repo, "/"))
		// A file at the root has no directory that could differ.
		if n > 1 {
			score += 5
		}
	}
	for _, dir := range file[:len(file)-n] {
		if slices.Contains(rest, dir) {
			score++
		}
	}
	name := repo[strings.LastIndexByte(repo, '/')+1:]
	if pkg := packageIn(parts); pkg != "" {
		switch {
		case slices.ContainsFunc(file[:len(file)-1], func(dir string) bool { return endsPackage(pkg, dir) }):
			score += ofPackage + 1
		case endsPackage(pkg, name), namesRepository(pkg, name):
			score += ofPackage
		case n <= 2:
			return 0
		}
	}
	if slices.ContainsFunc(parts[:len(parts)-1], func(dir string) bool { return namesRepository(dir, name) }) {
		score += 4
	}
	return score
}

// ofPackage rates a file of the package that a path names, above one more part that fits.
const ofPackage = 12

// packageIn returns the name of the package in a path of a package cache, without its version:
// index.crates.io/grep-matcher-0.1.5/src/lib.rs. It returns "" for other paths.
func packageIn(parts []string) string {
	for _, dir := range slices.Backward(parts[:len(parts)-1]) {
		if m := versioned.FindStringSubmatch(dir); m != nil {
			return m[1]
		}
	}
	return ""
}

// versioned matches a directory of a package with its version.
var versioned = regexp.MustCompile(`^([\pL\pN_.-]*[\pL\pN_])[-@]v?[0-9]+\.[0-9]`)

// endsPackage reports whether a directory or a repository has the name of a package, or the last part
// of it: crates/matcher is grep-matcher.
func endsPackage(pkg, name string) bool {
	pkg, name = strings.ToLower(pkg), strings.ToLower(name)
	return pkg == name || strings.HasSuffix(pkg, "-"+name)
}

// commonEnd counts the parts that two lists share at the end, in any case.
func commonEnd(a, b []string) (n int) {
	for n < len(a) && n < len(b) && strings.EqualFold(a[len(a)-1-n], b[len(b)-1-n]) {
		n++
	}
	return n
}
