package browse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard/git"
)

// pathOf returns the path in a commit that a caller means. Answers show bytes that are not UTF-8
// or are invisible in a written form, so callers send that form back. If exactly one file or
// directory has this written form, pathOf returns its real path.
func (s *site) pathOf(ctx context.Context, commit, p string) string {
	if !paths.Alike(p) {
		return p
	}
	if _, err := s.mirror.Stat(ctx, commit, p); err == nil {
		return p
	}

	want := paths.Written(paths.Characters(strings.Trim(p, "/")))
	depth := strings.Count(want, "/") + 1
	meant := map[string]bool{}
	_, err := s.mirror.Files(ctx, commit, func(other string) bool {
		if at := firstParts(other, depth); paths.Written(at) == want {
			meant[at] = true
		}
		return false
	})
	if err != nil || len(meant) != 1 {
		return p
	}
	for at := range meant {
		p = at
	}
	return p
}

// firstParts returns the first n elements of a path, or all of it.
func firstParts(p string, n int) string {
	for i := range len(p) {
		if p[i] == '/' {
			if n--; n == 0 {
				return p[:i]
			}
		}
	}
	return p
}

// resolve returns the commit that a ref names. A ref may carry a date, as in git:
// main@{2026-01-31} was main at that time, @{2 weeks ago} was HEAD. The error of an unknown ref
// suggests others.
func (s *site) resolve(ctx context.Context, ref string) (string, error) {
	if name, date, ok := cutDate(ref); ok {
		at, ok := parseDate(date, s.now(), true)
		if !ok {
			return "", call.Fail(call.ErrRef, "%.80q: write a date as 2026-01-31 or 2 weeks ago", ref)
		}

		commit, err := s.commitOf(ctx, name, at)
		return commit.Hash, err
	}

	// Git's error has only the ref's name; explainRef adds the repository and similar names.
	commit, err := s.mirror.Resolve(ctx, s.fullRevision(ref))
	if err != nil {
		return "", s.explainRef(ctx, err, ref, call.ErrRef)
	}
	return commit, nil
}

// fullRevision returns the ref with the full name of the branch it means. If a branch and a tag have
// the same name, git takes the tag. But if only the branch is indexed, revision takes the branch,
// because search results link to it by that name.
func (s *site) fullRevision(ref string) string {
	end := strings.IndexAny(ref, "~^")
	if end < 0 {
		end = len(ref)
	}
	name := ref[:end]
	indexed := func(full string) bool {
		return slices.ContainsFunc(s.repo.Revisions, func(r catalog.Revision) bool { return r.Name == full })
	}
	branch := indexed("refs/heads/"+name) || name == s.repo.DefaultBranch && indexed("HEAD")
	if name == "" || !branch || indexed("refs/tags/"+name) {
		return ref
	}
	return "refs/heads/" + ref
}

// resolveRange resolves a ref, or a range of refs. excluded is the commit whose history is left out;
// "" for a single ref.
func (s *site) resolveRange(ctx context.Context, ref string) (commit, excluded string, err error) {
	from, to, ok := CutRange(ref)
	if !ok {
		commit, err = s.resolve(ctx, ref)
		return commit, "", err
	}
	if err := CheckRange(ref); err != nil {
		return "", "", err
	}

	if excluded, err = s.resolve(ctx, from); err != nil {
		return "", "", err
	}
	commit, err = s.resolve(ctx, to)
	return commit, excluded, err
}

// CutRange splits a range of refs A..B. An omitted side means HEAD.
func CutRange(ref string) (from, to string, ok bool) { return strings.Cut(ref, "..") }

// CheckRange refuses a range with three dots. Git would list the commits of either side, which is
// hardly what a caller wants.
func CheckRange(ref string) error {
	from, to, ok := CutRange(ref)
	if !ok || !strings.HasPrefix(to, ".") {
		return nil
	}
	return call.Fail(call.ErrInvalid, "%.80q has three dots: write %.80q for the commits that %.80q has and %.80q has not", ref,
		from+".."+to[1:], cmp.Or(to[1:], "HEAD"), cmp.Or(from, "HEAD"))
}

// explainRef turns a git error about a ref into a call.Error. missing is the kind for a ref that
// does not exist.
func (s *site) explainRef(ctx context.Context, err error, ref string, missing error) error {
	switch {
	case errors.Is(err, git.ErrEmpty):
		return call.Fail(missing, "Repository %q has no commits", s.repo.Name)
	case errors.Is(err, git.ErrAmbiguous):
		return call.Fail(call.ErrRef, "%q begins more than one commit id of %q: write more of it", ref, s.repo.Name)

	case errors.Is(err, git.ErrBadRef) && strings.Contains(ref, ".."):
		from, to, _ := CutRange(ref)
		return call.Fail(call.ErrRef, "%.80q is a range of commits, and one is wanted: %.80q or %.80q", ref, cmp.Or(from, "HEAD"), cmp.Or(strings.TrimLeft(to, "."), "HEAD"))
	case errors.Is(err, git.ErrBadRef):
		return call.Fail(call.ErrRef, "%.80q is not a valid name of a branch, tag or commit", ref)
	case errors.Is(err, git.ErrNoRef):
		return call.Fail(missing, "Repository %q has no branch, tag or commit %q%s", s.repo.Name, ref, s.suggestRefs(ctx, ref))
	}

	return err
}

// cutDate splits a ref with a date into its name and the date.
func cutDate(ref string) (name, date string, ok bool) {
	name, rest, ok := strings.Cut(ref, "@{")
	date, closed := strings.CutSuffix(rest, "}")
	return name, date, ok && closed && date != "" && !strings.Contains(date, "@{")
}

// suggestRefs suggests refs of a similar name.
func (s *site) suggestRefs(ctx context.Context, ref string) string {
	branches, err := s.mirror.Branches(ctx)
	if err != nil {
		return ""
	}
	tags, _ := s.mirror.Tags(ctx)

	// Search branches and tags together: people mix them up.
	var names []string
	for _, r := range append(branches, tags...) {
		names = append(names, r.Name)
	}

	if near := nearest(ref, names, 3); len(near) > 0 {
		return "; did you mean " + quoteList(near) + "?"
	}

	// No name is similar: suggest the default branch.
	if branch, _ := s.mirror.DefaultBranch(ctx); branch != "" {
		return fmt.Sprintf("; its default branch is %q", branch)
	}
	return ""
}

// explainError turns a git error about a path into a call.Error, with similar paths.
func (s *site) explainError(ctx context.Context, err error, commit, p string) error {
	switch {
	case errors.Is(err, git.ErrIsDir):
		return call.Fail(call.ErrFileNotFound, "%s in repository %q is a directory, not a file", paths.Quoted(p), s.repo.Name)
	case errors.Is(err, git.ErrNotDir):
		if sub := s.submoduleError(ctx, commit, p); sub != nil {
			return sub
		}
		return call.Fail(call.ErrFileNotFound, "%s in repository %q is a file, not a directory", paths.Quoted(p), s.repo.Name)

	// Git allows no such names, so suggesting similar ones would mislead.
	case errors.Is(err, git.ErrBadPath):
		return call.Fail(call.ErrFileNotFound, "File %.80q not found in repository %q: write paths from its root; none of their parts can be one or two dots", p, s.repo.Name)
	case errors.Is(err, git.ErrNoPath), errors.Is(err, fs.ErrNotExist):
		if sub := s.submoduleError(ctx, commit, p); sub != nil {
			return sub
		}
		return call.Fail(call.ErrFileNotFound, "File %s not found in repository %q at %.12s%s", paths.Quoted(p), s.repo.Name, commit, s.suggestPaths(ctx, commit, p))
	}

	return err
}

// checkExisted returns an error if neither the commit nor its history has the path. It returns
// nil if the path exists, existed, or may have existed.
func (s *site) checkExisted(ctx context.Context, commit, p string) error {
	if strings.Trim(p, "/.") == "" {
		return nil
	}
	_, missing := s.mirror.Stat(ctx, commit, p)
	if missing == nil || errors.Is(missing, git.ErrBadPath) {
		return s.explainError(ctx, missing, commit, p)
	}

	shallow, err := s.mirror.Shallow()
	if err != nil || shallow {
		return err
	}
	gone, err := s.mirror.Gone(ctx, commit, p)
	if err != nil || gone.Late || gone.Last != "" {
		return err
	}
	return s.explainError(ctx, missing, commit, p)
}

// submoduleError returns an error if the path is a submodule; nil otherwise.
func (s *site) submoduleError(ctx context.Context, commit, p string) error {
	e, err := s.mirror.Stat(ctx, commit, p)
	if err != nil || e.Kind != git.Submodule {
		return nil
	}
	return call.Fail(call.ErrFileNotFound, "%s in repository %q is a submodule: another repository at commit %.12s, whose files are not in this one", paths.Quoted(p), s.repo.Name, e.OID)
}

// suggestPaths suggests files: of the same name elsewhere, or else of a similar name nearby.
func (s *site) suggestPaths(ctx context.Context, commit, p string) string {
	// Files of the same name first, then similar names in the nearest directory.
	base := strings.ToLower(path.Base(p))
	same, err := s.mirror.Files(ctx, commit, func(other string) bool {
		return strings.ToLower(path.Base(other)) == base
	})
	if err != nil {
		return ""
	}

	var names []string
	for _, e := range same {
		names = append(names, e.Path)
	}

	if len(names) == 0 {
		names = s.similarSiblings(ctx, commit, p)
	}
	if len(names) == 0 {
		return ""
	}

	slices.SortFunc(names, func(a, b string) int { return SharedEnd(b, p) - SharedEnd(a, p) })
	return "; did you mean " + quoteList(names[:min(3, len(names))]) + "?"
}

// similarSiblings returns names similar to p in the deepest existing directory of p.
func (s *site) similarSiblings(ctx context.Context, commit, p string) []string {
	// Mistakes are mostly in the last element, so start with its directory.
	dir := path.Dir(strings.Trim(p, "/"))
	for ; dir != "."; dir = path.Dir(dir) {
		if e, err := s.mirror.Stat(ctx, commit, dir); err == nil && e.Kind == git.Dir {
			break
		}
	}

	// Reading more entries is not worth the time of an error.
	entries, _, _ := s.mirror.List(ctx, commit, strings.TrimPrefix(dir, "."), git.ListOptions{Max: 10_000})
	var names []string
	for _, e := range entries {
		names = append(names, e.Path)
	}
	return nearest(p, names, 3)
}

// SharedEnd returns how many path elements a and b share at their end.
func SharedEnd(a, b string) int {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < len(x) && n < len(y) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return n
}

func quoteList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = paths.Quoted(n)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

// nearest returns the names most like a text, best first: names that contain it or are contained
// in it, then misspellings of at most a third of its length.
func nearest(text string, names []string, maxNames int) []string {
	type scored struct {
		name  string
		score int
	}

	want := strings.ToLower(text)
	var found []scored
	for _, name := range names {
		low := strings.ToLower(name)
		switch {
		case want == "" || low == "":
		// A lower score is better: the same name, the end of a path, a part of it, a misspelling.
		case low == want:
			found = append(found, scored{name, 0})
		case strings.HasSuffix(low, "/"+want) || strings.HasSuffix(want, "/"+low):
			found = append(found, scored{name, 1})
		case len(want) > 1 && strings.HasPrefix(low, want) || len(want) > 2 && strings.Contains(low, want) || len(low) > 2 && strings.Contains(want, low):
			found = append(found, scored{name, 2 + max(len(low)-len(want), len(want)-len(low))})

		default:
			bound := len(want) / 3
			if d := paths.Near(want, low, bound); d <= bound {
				found = append(found, scored{name, 1000 + d})
			}
		}
	}

	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(a.score-b.score, strings.Compare(a.name, b.name))
	})

	var out []string
	for _, f := range found[:min(maxNames, len(found))] {
		out = append(out, f.name)
	}
	return out
}
