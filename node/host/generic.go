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

// generic lists a connection of kind git: one URL, or local directories.
type generic struct{ url string }

// Listing lists the repositories of a connection of kind git, sorted by name. Names are unique.
type Listing struct {
	Repos    []Repo
	Complete bool    // nothing is missing; only then may absent repositories be removed
	Warnings []Issue // repositories left out or renamed
}

func (l *Listing) warn(code Code, format string, args ...any) {
	l.Warnings = append(l.Warnings, Issue{Code: code, Text: fmt.Sprintf(format, args...)})
}

// addUnreadable records that a directory could not be read, so repositories may be missing.
func (l *Listing) addUnreadable(err error) {
	l.Complete = false
	l.warn(PartialListing, "a directory could not be read (%v), so what was listed below it before stays: let the user that the node runs as read it, or leave it out of the glob", err)
}

// Repos lists the repository at a URL, after checking that it exists, or the repositories in the
// directories that a file:// glob matches.
func (g *generic) Repos(ctx context.Context) (Listing, error) {
	if pattern, ok := (&config.Git{URL: g.url}).Directory(); ok {
		return listDirectories(ctx, pattern)
	}

	// A single URL has no list, so ask the repository itself.
	repo, err := repoAt(g.url)
	if err != nil {
		return Listing{}, err
	}

	// Use the credential only for this check. The listed remote goes into the catalog, without
	// secrets.
	remote := repo.Remote
	remote.Credential = credentialOf(g.url)
	if err := git.Probe(ctx, remote, git.FetchOptions{}); err != nil {
		return Listing{}, err
	}
	// Complete: repositories of a former URL of the connection may be removed.
	return Listing{Repos: []Repo{repo}, Complete: true}, nil
}

// repoAt returns the repository at an http or https URL. Its name is host, port and path without
// .git. Its remote has no user.
func repoAt(address string) (Repo, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return Repo{}, errors.New("the url of the connection cannot be read") // err could contain a password
	}
	name, ok := nameOf(u.Host, u.Path)
	if !ok {
		return Repo{}, fmt.Errorf("the url of the connection, %s://%s, names no repository: the path is missing", u.Scheme, u.Host)
	}
	u.User = nil
	return Repo{Name: name, DisplayName: name, Remote: git.Remote{URL: u.String()}, HostType: genericType}, nil
}

// nameOf joins host and path to a repository's name. It returns false if either is not fit to be
// shown.
func nameOf(host, p string) (string, bool) {
	p = strings.TrimSuffix(strings.Trim(path.Clean("/"+p), "/"), ".git")
	p = strings.Trim(p, "/")
	if host == "" || p == "" || !isHost(host) || !printable(p) {
		return "", false
	}
	return strings.ToLower(host) + "/" + p, true
}

// isHost reports whether s is a host name or an address, with or without a port.
func isHost(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:[]", r)
	}) < 0
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// credentialOf returns the user and password of a URL, or an empty credential.
func credentialOf(address string) git.Credential {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return git.Credential{}
	}
	password, _ := u.User.Password()
	return git.Credential{User: u.User.Username(), Password: password}
}

// nameOfOrigin returns the name of a local repository by its origin, in any form that git accepts:
// a URL, or user@host:path. It returns false for a local origin or one without a usable name.
func nameOfOrigin(origin string) (string, bool) {
	if strings.Contains(origin, "://") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "file" {
			return "", false
		}
		return nameOf(u.Host, u.Path)
	}

	// Without a scheme it is user@host:path, or a local path.
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

// localRepo is a local repository with the name that its origin gives it.
type localRepo struct {
	local git.Local
	name  string // from its origin; "" if it has none
}

// listDirectories lists the repositories of a file:// pattern.
func listDirectories(ctx context.Context, pattern string) (Listing, error) {
	// Links must not lead out of the fixed part of the pattern.
	within, plain := config.FixedDirectory(pattern)
	l := Listing{Complete: true}

	// A single directory that is not a repository is an error. With a glob it would be skipped.
	if plain != "" {
		local, err := git.OpenLocal(ctx, plain, within)
		if err != nil {
			return Listing{}, err
		}
		l.Repos = nameRepos([]localRepo{identify(local)}, &l)
		return l, nil
	}

	// If a directory cannot be read, the listing is incomplete, so that nothing is removed.
	dirs, err := matchDirs(ctx, pattern, &l)
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

	l.Repos = nameRepos(repos, &l)
	return l, nil
}

// openAll opens the repositories among the matched directories. Other directories give a warning.
// An unreadable one makes the listing incomplete.
func openAll(ctx context.Context, dirs []string, within string, l *Listing) (repos []localRepo, err error) {
	var others []string
	for _, dir := range dirs {
		local, err := git.OpenLocal(ctx, dir, within)
		switch {
		case err == nil:
			repos = append(repos, identify(local))

		// A directory that is certainly no repository, or outside, is not missing.
		case errors.Is(err, git.ErrOutside):
			l.warn(NotRepository, "%s was left out: %v", dir, err)
		case errors.Is(err, fs.ErrNotExist):
			others = append(others, dir)

		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default:
			l.addUnreadable(fmt.Errorf("%s: %w", dir, err))
		}
	}

	if n := len(others); n > 0 {
		l.warn(NotRepository, "%d of the matching directories are not the root of a git repository, for example %s", n, others[0])
	}
	return repos, nil
}

// maxMatches is the maximum of directories that a glob may match.
const maxMatches = 1_000_000

// matchDirs returns the directories that a glob matches, sorted. It does not look into .git
// directories. If it cannot read a directory, it marks l as incomplete.
func matchDirs(ctx context.Context, pattern string, l *Listing) ([]string, error) {
	globs, err := glob.Compile(glob.Exact, pattern)
	if err != nil {
		return nil, err
	}
	base, _ := config.FixedDirectory(pattern)
	if _, err := os.ReadDir(base); err != nil {
		return nil, fmt.Errorf("look into %s: %w", base, err)
	}

	w := &walk{globs: globs}
	if err := w.visit(ctx, base, nil); err != nil {
		return nil, err
	}
	if w.failed != nil {
		l.addUnreadable(w.failed)
	}
	slices.Sort(w.dirs)
	return w.dirs, nil
}

// walk collects the matching directories, following symbolic links.
type walk struct {
	globs  glob.Globs
	dirs   []string
	failed error // error of the first unreadable directory; the walk continues
}

// visit adds a directory and those below it, if they match. above are its parents: it skips a link
// to one of them, which would never end.
func (w *walk) visit(ctx context.Context, dir string, above []fs.FileInfo) error {
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
		if err := w.visit(ctx, path.Join(dir, e.Name()), append(above, info)); err != nil {
			return err
		}
	}
	return nil
}

// identify returns a local repository with the name of its origin.
func identify(l git.Local) localRepo {
	f := localRepo{local: l}
	f.name, _ = nameOfOrigin(l.OriginURL)
	return f
}

// nameRepos gives each repository a unique name: that of its origin, or local/<directory>. If
// several have the same origin, the first by path gets its name. The others are named by local/ and
// as many directories of their path as needed. The same directories always get the same names.
func nameRepos(repos []localRepo, l *Listing) []Repo {
	dirByName := map[string]string{} // directories by name
	var out []Repo
	add := func(f localRepo, name string) {
		dirByName[name] = f.local.Root
		out = append(out, Repo{
			Name: name, DisplayName: name, HostType: genericType,
			Remote: git.Remote{URL: git.LocalURL(f.local.Root)},
		})
	}

	// Name repositories with an origin first, the first of each name.
	var rest []localRepo
	claims := map[string]localRepo{} // by name
	for _, f := range repos {
		first, clash := dirByName[f.name]
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
		add(f, localName(f.local.Root, dirByName))
	}

	// The origin of a repository is no proof, so each also gets a name of its own. Assign those
	// last, so that they change no other name.
	for i := range out {
		if f, ok := claims[out[i].Name]; ok {
			out[i].OwnName = localName(f.local.Root, dirByName)
			dirByName[out[i].OwnName] = f.local.Root
		}
	}

	slices.SortFunc(out, func(a, b Repo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// plainDirs are directory names that say nothing, so the parent's name is added: local/app/src. A
// name that ended in .git, such as git.git, needs no parent.
var plainDirs = []string{"repo", "git", "bare", "src"}

// localName returns local/ and the shortest unused end of the path that identifies the repository.
func localName(root string, dirByName map[string]string) string {
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

	// Take as few of the last directories as needed: local/app, local/team/app.
	parts := strings.Split(strings.Trim(root, "/"), "/")

	name, least := "", 1
	if plain && len(parts) > 1 && slices.Contains(plainDirs, parts[len(parts)-1]) {
		least = 2
	}

	for n := least; n <= len(parts); n++ {
		name = "local/" + strings.Join(parts[len(parts)-n:], "/")
		if _, ok := dirByName[name]; !ok {
			return name
		}
	}

	for i := 2; ; i++ { // app and app.git in the same directory
		numbered := fmt.Sprintf("%s-%d", name, i)
		if _, ok := dirByName[numbered]; !ok {
			return numbered
		}
	}
}
