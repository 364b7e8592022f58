package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/shoalsearch/shoal/shard/git"
)

// genericType is the codeHostType of repositories without a known host.
const genericType = "genericGitHost"

// generic is a connection of kind git: one address, or local directories.
type generic struct{ url string }

// Repos lists the repository at an address after asking whether it is there,
// or the repositories in the directories that a file:// glob matches.
func (g *generic) Repos(ctx context.Context) (Listing, error) {
	if pattern, ok := strings.CutPrefix(g.url, "file://"); ok {
		return listDirectories(ctx, pattern)
	}
	repo, err := repoAt(g.url)
	if err != nil {
		return Listing{}, err
	}
	remote := repo.Remote
	remote.Credential = userOf(g.url)
	if err := git.Probe(ctx, remote, git.FetchOptions{}); err != nil {
		return Listing{}, err
	}
	return Listing{Repos: []Repo{repo}, Complete: true}, nil
}

// repoAt names the repository at an http or https address: host, port and
// path without .git. The remote it gives has no user in it.
func repoAt(address string) (Repo, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return Repo{}, errors.New("the url of the connection cannot be read") // err would show a password
	}
	name, ok := nameOf(u.Host, u.Path)
	if !ok {
		return Repo{}, fmt.Errorf("the url of the connection, %s://%s, names no repository: the path is missing", u.Scheme, u.Host)
	}
	u.User = nil
	return Repo{Name: name, DisplayName: name, Remote: git.Remote{URL: u.String()}, HostType: genericType}, nil
}

// nameOf joins host and path to the name of a repository.
func nameOf(host, p string) (string, bool) {
	p = strings.TrimSuffix(strings.Trim(path.Clean("/"+p), "/"), ".git")
	p = strings.Trim(p, "/")
	if host == "" || p == "" {
		return "", false
	}
	return strings.ToLower(host) + "/" + p, true
}

// userOf is the user and password in an address.
func userOf(address string) git.Credential {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return git.Credential{}
	}
	password, _ := u.User.Password()
	return git.Credential{User: u.User.Username(), Password: password}
}

// nameOfOrigin names a local repository by where it was cloned from, in any
// form that git takes: an address, or user@host:path.
func nameOfOrigin(origin string) (string, bool) {
	if strings.Contains(origin, "://") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "file" {
			return "", false
		}
		return nameOf(u.Host, u.Path)
	}
	host, p, ok := strings.Cut(origin, ":")
	if !ok || strings.Contains(host, "/") || len(host) < 2 { // a path; one letter is a drive
		return "", false
	}
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	if unescaped, err := url.PathUnescape(p); err == nil {
		p = unescaped
	}
	return nameOf(host, p)
}

// found is a local repository with the names it could have, best first.
type found struct {
	local git.Local
	name  string // by its origin; empty when there is none
}

// listDirectories lists the repositories of a file:// pattern.
func listDirectories(ctx context.Context, pattern string) (Listing, error) {
	if p, err := url.PathUnescape(pattern); err == nil {
		pattern = p
	}
	pattern = filepath.Clean(pattern)
	l := Listing{Complete: true}
	if !strings.ContainsAny(pattern, `*?[{\`) {
		local, err := git.OpenLocal(ctx, pattern)
		if err != nil {
			return Listing{}, err
		}
		l.Repos = name([]found{identify(local)}, &l)
		return l, nil
	}
	if !doublestar.ValidatePathPattern(pattern) {
		return Listing{}, fmt.Errorf("the glob %s is malformed", pattern)
	}
	dirs, err := match(pattern, &l)
	if err != nil {
		return Listing{}, err
	}
	var repos []found
	var others []string
	for _, dir := range dirs {
		local, err := git.OpenLocal(ctx, dir)
		switch {
		case err == nil:
			repos = append(repos, identify(local))
		case errors.Is(err, fs.ErrNotExist):
			others = append(others, dir)
		case ctx.Err() != nil:
			return Listing{}, context.Cause(ctx)
		default:
			l.Complete = false
			l.Warnings = append(l.Warnings, fmt.Sprintf("%s was left out: %v", dir, err))
		}
	}
	if n := len(others); n > 0 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("%d of the matching paths are not the root of a git repository, for example %s", n, others[0]))
	}
	l.Repos = name(repos, &l)
	return l, nil
}

// maxMatches is how many directories a glob may match.
const maxMatches = 1_000_000

// match expands a glob to directories, sorted. What cannot be read makes the
// listing incomplete; the insides of .git directories are not looked at.
func match(pattern string, l *Listing) ([]string, error) {
	base, glob := doublestar.SplitPattern(filepath.ToSlash(pattern))
	if _, err := os.ReadDir(base); err != nil {
		return nil, fmt.Errorf("look into %s: %w", base, err)
	}
	var dirs []string
	tree := &watched{FS: os.DirFS(base)}
	err := doublestar.GlobWalk(tree, glob, func(p string, d fs.DirEntry) error {
		if d.Name() == ".git" {
			return doublestar.SkipDir
		}
		full := filepath.Join(base, p)
		if info, err := os.Stat(full); err == nil && info.IsDir() { // also by a symlink
			dirs = append(dirs, full)
		}
		if len(dirs) > maxMatches {
			return fmt.Errorf("the glob matches more than %d directories", maxMatches)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if tree.failed != nil {
		l.Complete = false
		l.Warnings = append(l.Warnings, fmt.Sprintf("a directory could not be read, so repositories may be missing: %v", tree.failed))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// watched remembers the first directory that could not be read: the walk
// itself goes on as if it were empty.
type watched struct {
	fs.FS
	failed error
}

// ReadDir lists a directory.
func (w *watched) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && w.failed == nil {
		if info, e := fs.Stat(w.FS, name); e != nil || info.IsDir() {
			w.failed = err
		}
	}
	return entries, err
}

func identify(l git.Local) found {
	f := found{local: l}
	f.name, _ = nameOfOrigin(l.OriginURL)
	return f
}

// name gives every repository a name of its own: that of its origin, else
// local/<directory>. Of several with the same name the first by path has it;
// the others are named local/ and as much of their path as makes them
// different. The same directories always get the same names.
func name(repos []found, l *Listing) []Repo {
	taken := map[string]string{} // name to directory
	var out []Repo
	add := func(f found, name string) {
		taken[name] = f.local.Root
		out = append(out, Repo{
			Name: name, DisplayName: name, HostType: genericType,
			Remote: git.Remote{URL: git.LocalURL(f.local.Root)},
		})
	}
	var rest []found
	for _, f := range repos {
		first, clash := taken[f.name]
		switch {
		case f.name == "":
			rest = append(rest, f)
		case clash:
			rest = append(rest, f)
			l.Warnings = append(l.Warnings, fmt.Sprintf("%s and %s both come from %s: the second is named by its directory", first, f.local.Root, f.name))
		default:
			add(f, f.name)
		}
	}
	for _, f := range rest {
		add(f, localName(f.local.Root, taken))
	}
	slices.SortFunc(out, func(a, b Repo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// localName is local/ and the shortest end of the path that is not taken.
func localName(root string, taken map[string]string) string {
	root = strings.TrimSuffix(filepath.ToSlash(root), "/")
	if trimmed := strings.TrimSuffix(root, ".git"); path.Base(trimmed) != "/" && !strings.HasSuffix(trimmed, "/") {
		root = trimmed
	}
	parts := strings.Split(strings.Trim(root, "/"), "/")
	name := ""
	for n := 1; n <= len(parts); n++ {
		name = "local/" + strings.Join(parts[len(parts)-n:], "/")
		if _, ok := taken[name]; !ok {
			return name
		}
	}
	for i := 2; ; i++ { // app and app.git side by side
		numbered := fmt.Sprintf("%s-%d", name, i)
		if _, ok := taken[numbered]; !ok {
			return numbered
		}
	}
}
