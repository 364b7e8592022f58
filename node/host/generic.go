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
	"unicode"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/shard/git"
)

// genericType is the codeHostType of repositories without a known host.
const genericType = "genericGitHost"

// generic is a connection of kind git: one address, or local directories.
type generic struct{ url string }

// Listing is the repositories of a connection of kind git, sorted by name,
// names unique.
type Listing struct {
	Repos    []Repo
	Complete bool    // nothing could be missing: only then may what is absent be let go
	Warnings []Issue // what was left out or renamed
}

func (l *Listing) warn(code Code, format string, args ...any) {
	l.Warnings = append(l.Warnings, Issue{Code: code, Text: fmt.Sprintf(format, args...)})
}

// unread notes that a directory could not be looked at: what it holds may be missing.
func (l *Listing) unread(err error) {
	l.Complete = false
	l.warn(PartialListing, "a directory could not be read (%v), so what was listed below it before stays: let the user that the node runs as read it, or leave it out of the glob", err)
}

// Repos lists the repository at an address after asking whether it is there,
// or the repositories in the directories that a file:// glob matches.
func (g *generic) Repos(ctx context.Context) (Listing, error) {
	if pattern, ok := (&config.Git{URL: g.url}).Directory(); ok {
		return listDirectories(ctx, pattern)
	}

	// One address is one repository. Nobody lists it, so it is asked itself whether it is there.
	repo, err := repoAt(g.url)
	if err != nil {
		return Listing{}, err
	}

	// A copy with the credential, for the question alone: what is listed is kept in the catalog,
	// without secrets.
	remote := repo.Remote
	remote.Credential = userOf(g.url)
	if err := git.Probe(ctx, remote, git.FetchOptions{}); err != nil {
		return Listing{}, err
	}
	// Complete: what this connection had before under another address may go.
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

// nameOf joins host and path to the name of a repository, if both can be shown
// to people as they are.
func nameOf(host, p string) (string, bool) {
	p = strings.TrimSuffix(strings.Trim(path.Clean("/"+p), "/"), ".git")
	p = strings.Trim(p, "/")
	if host == "" || p == "" || !isHost(host) || !printable(p) {
		return "", false
	}
	return strings.ToLower(host) + "/" + p, true
}

// isHost reports whether s is a name or an address of a machine, perhaps with
// a port.
func isHost(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:[]", r)
	}) < 0
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
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

	// What has no scheme is user@host:path, or a path of this machine.
	host, p, ok := strings.Cut(origin, ":")
	if !ok || strings.Contains(host, "/") || len(host) < 2 || strings.HasPrefix(p, ":") { // a path; one letter is a drive; two colons are a program
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
	// The part before the first sign of a glob: links must not lead out of it.
	within, plain := config.FixedDirectory(pattern)
	l := Listing{Complete: true}

	// One directory is meant by its name: that it is none fails, where a glob would only pass over
	// it.
	if plain != "" {
		local, err := git.OpenLocal(ctx, plain, within)
		if err != nil {
			return Listing{}, err
		}
		l.Repos = name([]found{identify(local)}, &l)
		return l, nil
	}

	// A directory that cannot be read makes the listing incomplete, so that nothing is let go for
	// it.
	dirs, err := match(ctx, pattern, &l)
	if err != nil {
		return Listing{}, err
	}
	if len(dirs) == 0 {
		l.warn(TargetEmpty, "no directory matches %s", pattern)
	}
	repos, err := openAll(ctx, dirs, within, &l)
	if err != nil {
		return Listing{}, err
	}

	l.Repos = name(repos, &l)
	return l, nil
}

// openAll opens the repositories among the directories that a glob matches.
// What is none is warned of; what could not be looked at makes the listing
// incomplete.
func openAll(ctx context.Context, dirs []string, within string, l *Listing) (repos []found, err error) {
	var others []string
	for _, dir := range dirs {
		local, err := git.OpenLocal(ctx, dir, within)
		switch {
		case err == nil:
			repos = append(repos, identify(local))

		// What is known to be none, or to be another's, is not missing.
		case errors.Is(err, git.ErrOutside):
			l.warn(NotRepository, "%s was left out: %v", dir, err)
		case errors.Is(err, fs.ErrNotExist):
			others = append(others, dir)

		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default:
			l.unread(fmt.Errorf("%s: %w", dir, err))
		}
	}

	if n := len(others); n > 0 {
		l.warn(NotRepository, "%d of the matching directories are not the root of a git repository, for example %s", n, others[0])
	}
	return repos, nil
}

// maxMatches is how many directories a glob may match.
const maxMatches = 1_000_000

// match expands a glob to directories, sorted. What cannot be read makes the
// listing incomplete; the insides of .git directories are not looked at.
func match(ctx context.Context, pattern string, l *Listing) ([]string, error) {
	globs, err := glob.Compile(glob.Exact, pattern)
	if err != nil {
		return nil, err
	}
	base, _ := config.FixedDirectory(pattern)
	if _, err := os.ReadDir(base); err != nil {
		return nil, fmt.Errorf("look into %s: %w", base, err)
	}

	w := &walk{globs: globs}
	if err := w.dir(ctx, base, nil); err != nil {
		return nil, err
	}
	if w.failed != nil {
		l.unread(w.failed)
	}
	slices.Sort(w.dirs)
	return w.dirs, nil
}

// walk collects the directories that match, also by symbolic links.
type walk struct {
	globs  glob.Globs
	dirs   []string
	failed error // of the first directory that cannot be read; the walk passes over it
}

// dir walks a directory. above are those it lies in: a link to one of them leads nowhere new.
func (w *walk) dir(ctx context.Context, dir string, above []fs.FileInfo) error {
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || slices.ContainsFunc(above, func(a fs.FileInfo) bool { return os.SameFile(a, info) }) {
		return nil
	}
	if w.globs.Match(dir) {
		w.dirs = append(w.dirs, dir)
	}
	switch {
	case len(w.dirs) > maxMatches:
		return fmt.Errorf("the glob matches more than %d directories", maxMatches)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !w.globs.Below(dir):
		return nil
	}

	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && w.failed == nil {
		w.failed = err
	}
	for _, e := range entries {
		if e.Name() == ".git" || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if err := w.dir(ctx, path.Join(dir, e.Name()), append(above, info)); err != nil {
			return err
		}
	}
	return nil
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

	// First those that say who they are, the first of each name.
	var rest []found
	claims := map[string]found{} // by name
	for _, f := range repos {
		first, clash := taken[f.name]
		switch {
		case f.name == "":
			rest = append(rest, f)
		case clash:
			rest = append(rest, f)
			l.warn(NameTaken, "%s and %s both come from %s: the second is named by its directory", first, f.local.Root, f.name)
		default:
			add(f, f.name)
			claims[f.name] = f
		}
	}

	for _, f := range rest {
		add(f, localName(f.local.Root, taken))
	}

	// What a repository says of itself is no proof: each has a name to fall back
	// on. It comes after all others are named, which do not depend on it so.
	for i := range out {
		if f, ok := claims[out[i].Name]; ok {
			out[i].OwnName = localName(f.local.Root, taken)
			taken[out[i].OwnName] = f.local.Root
		}
	}

	slices.SortFunc(out, func(a, b Repo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// plainDirs are names of directories that many repositories have: they say
// nothing without the one above. git.git is the repository of that name.
var plainDirs = []string{"repo", "git", "bare", "src"}

// localName is local/ and the shortest end of the path that is not taken and
// says something.
func localName(root string, taken map[string]string) string {
	root = strings.TrimSuffix(filepath.ToSlash(root), "/")

	plain := true
	if trimmed := strings.TrimSuffix(root, ".git"); trimmed != root && path.Base(trimmed) != "/" && !strings.HasSuffix(trimmed, "/") {
		root, plain = trimmed, false
	}

	root = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(root, "?"))

	// As few of the last directories as make the name unique: local/app, local/team/app.
	parts := strings.Split(strings.Trim(root, "/"), "/")

	name, least := "", 1
	if plain && len(parts) > 1 && slices.Contains(plainDirs, parts[len(parts)-1]) {
		least = 2
	}

	for n := least; n <= len(parts); n++ {
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
