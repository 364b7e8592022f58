package paste

import (
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Kind is the kind of page an address names.
type Kind string

// Kinds of addresses.
const (
	Repository Kind = "repository"
	File       Kind = "file" // or a directory
	Commit     Kind = "commit"
	Compare    Kind = "compare"
	Module     Kind = "module" // repository and directory, both in Rest
)

// Address is a page of a code host, or of this service.
type Address struct {
	Kind Kind
	Repo string // with the host, as repositories are named here
	// Rest is the revision and the path, or both revisions of Compare. A branch may have slashes,
	// so the text does not tell where the revision ends.
	Rest string
	Rev  string // set if the address separates it from the path; then Rest is the path
	Line int    // 0 for none
	End  int    // 0 for one line

	Host string // with its port
	Here string // path, query and fragment, for a page of this service
}

// addressText matches an address in a text, without brackets, quotes and the full stop of a
// sentence.
var addressText = regexp.MustCompile(`(?:https?://|git@|ssh://)[^\s"'<>()\[\]{}` + "`" + `]+`)

// findAddresses finds addresses of pages. An address with a line number at the end is a frame of a
// browser.
func (r *reader) findAddresses() []Address {
	var out []Address
	for _, m := range addressText.FindAllStringIndex(r.text, maxOthers) {
		text := strings.TrimRight(r.text[m[0]:m[1]], ".,;:!?")
		if a, ok := AddressOf(text); ok && !lineBehind.MatchString(beforeFragment(text)) && r.claimRange(m[0], m[0]+len(text)) {
			out = append(out, a)
		}
	}
	return out
}

// module matches the path of a repository or package as in an import: no scheme, perhaps a
// version.
var module = regexp.MustCompile(`^(?:import |go get |require )?["'` + "`" + `]?((?:[a-z0-9-]+\.)+[a-z]{2,}(?:/[\w.~-]+){2,})(?:@[\w.+-]+)?["'` + "`" + `]?;?$`)

// moduleAddress returns the whole text as an address if it is an import path.
func (r *reader) moduleAddress() []Address {
	m := module.FindStringSubmatch(strings.TrimSpace(r.text))
	if m == nil {
		return nil
	}
	return []Address{{Kind: Module, Rest: m[1]}}
}

func beforeFragment(text string) string {
	text, _, _ = strings.Cut(text, "#")
	return text
}

var lineBehind = regexp.MustCompile(`:[0-9]+(?::[0-9]+)?$`)

// AddressOf parses the address of a page. It knows address forms but no hosts.
func AddressOf(text string) (Address, bool) {
	// git@host:owner/repo.git, as in a git remote
	if rest, ok := strings.CutPrefix(text, "git@"); ok {
		text = "ssh://git@" + strings.Replace(rest, ":", "/", 1)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return Address{}, false
	}

	a := Address{Host: strings.ToLower(u.Host), Here: u.EscapedPath()}
	if u.RawQuery != "" {
		a.Here += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		a.Here += "#" + u.EscapedFragment()
	}
	a.readLines(u)

	p := strings.Trim(path.Clean("/"+u.Path), "/")
	for _, shape := range shapes {
		if m := shape.expr.FindStringSubmatch(p); m != nil && (shape.host == "" || shape.host == a.Host) {
			shape.setFields(&a, m, u.Query())
			a.Repo = strings.TrimSuffix(a.Repo, ".git")
			return a, a.Repo != a.Host
		}
	}
	return a, p != ""
}

// shape is a form of address of one kind of host. To add one, add a row to shapes.
type shape struct {
	expr      *regexp.Regexp // matches the path without slashes at its ends
	host      string         // "" for any
	setFields func(a *Address, m []string, q url.Values)
}

var shapes = []shape{
	// raw.githubusercontent.com/owner/repo/rev/path
	{re(`^([^/]+/[^/]+)/(.+)$`), "raw.githubusercontent.com", func(a *Address, m []string, _ url.Values) {
		a.file("github.com/"+m[1], strings.TrimPrefix(strings.TrimPrefix(m[2], "refs/heads/"), "refs/tags/"))
	}},

	// Azure: org/project/_git/repo?path=/a&version=GBmain, org/project/_git/repo/commit/sha; an
	// old server puts tfs/ in front, which is not part of the name
	{re(`^(?:tfs/)?(?:(.+)/)?_git/([^/]+)(?:/commit/([0-9a-f]+))?$`), "", func(a *Address, m []string, q url.Values) {
		a.Repo = join(a.Host, m[1], m[2])
		switch version := q.Get("version"); {
		case m[3] != "":
			a.Kind, a.Rest = Commit, m[3]
		case q.Get("path") == "":
			a.Kind = Repository
		default:
			a.file(a.Repo, strings.Trim(q.Get("path"), "/"))
			// The first two letters name the kind: branch, tag or commit. Without a version it is
			// HEAD.
			a.Rev = "HEAD"
			if len(version) > 2 {
				a.Rev = version[2:]
			}
		}
	}},

	// This service: browse/repo@rev/-/blob/path
	{re(`^(?:~/)?browse/(.+?)(?:@([^@]+?))?(?:/-/([a-z]+)(?:/(.*))?)?$`), "", func(a *Address, m []string, _ url.Values) {
		a.Kind, a.Repo, a.Rev, a.Rest = Repository, m[1], strings.ReplaceAll(m[2], "%2F", "/"), m[4]
		if m[3] == "blob" || m[3] == "tree" || m[3] == "blame" || m[3] == "raw" {
			a.Kind = File
		}
		if m[3] == "commit" || m[3] == "compare" {
			a.Kind = Kind(m[3])
		}
	}},

	// Bitbucket Server: projects/P/repos/r/browse/path?at=refs/heads/x, projects/P/repos/r/commits/sha
	{re(`^(?:(.*)/)?(?:projects|users)/([^/]+)/repos/([^/]+)(?:/(browse|raw|commits)(?:/(.*))?)?$`), "", func(a *Address, m []string, q url.Values) {
		a.Kind, a.Repo = Repository, join(a.Host, m[1], m[2], m[3])
		switch {
		case m[4] == "commits" && m[5] != "":
			a.Kind, a.Rest = Commit, m[5]
		case m[5] != "":
			a.file(a.Repo, m[5])
			a.Rev = strings.TrimPrefix(strings.TrimPrefix(q.Get("at"), "refs/heads/"), "refs/tags/")
			if a.Rev == "" {
				a.Rev = "HEAD"
			}
		}
	}},

	// Gerrit: [plugins/gitiles/]repo/+/refs/heads/main/path
	{re(`^(?:plugins/gitiles/)?(.+?)/\+(?:log|blame|show)?/(.+)$`), "", func(a *Address, m []string, _ url.Values) {
		rest := strings.TrimPrefix(strings.TrimPrefix(m[2], "refs/heads/"), "refs/tags/")
		a.fileOrCommit(join(a.Host, m[1]), rest)
	}},

	// GitLab: group/sub/repo/-/blob/rev/path
	{re(`^(.+?)/-/(blob|tree|raw|blame|commits)/(.+)$`), "", func(a *Address, m []string, _ url.Values) { a.file(join(a.Host, m[1]), m[3]) }},
	{re(`^(.+?)/-/commit/([0-9a-f]+)`), "", func(a *Address, m []string, _ url.Values) { a.set(Commit, join(a.Host, m[1]), m[2]) }},
	{re(`^(.+?)/-/compare/(.+)$`), "", func(a *Address, m []string, _ url.Values) { a.set(Compare, join(a.Host, m[1]), m[2]) }},

	// Gitea: owner/repo/src/branch/main/path
	{re(`^(.+?)/(?:src|raw|blame|media|rendered)/(?:branch|tag|commit)/(.+)$`), "", func(a *Address, m []string, _ url.Values) { a.file(join(a.Host, m[1]), m[2]) }},

	// GitHub: owner/repo/blob/rev/path
	{re(`^(.+?)/(?:commit|commits|pull/[0-9]+/commits)/([0-9a-f]{7,64})$`), "", func(a *Address, m []string, _ url.Values) { a.set(Commit, join(a.Host, m[1]), m[2]) }},
	{re(`^([^/]+/[^/]+)/(?:blob|tree|raw|blame|edit|commits)/(.+)$`), "", func(a *Address, m []string, _ url.Values) { a.file(join(a.Host, m[1]), m[2]) }},
	{re(`^([^/]+/[^/]+)/compare/(.+)$`), "", func(a *Address, m []string, _ url.Values) { a.set(Compare, join(a.Host, m[1]), m[2]) }},

	// Bitbucket Cloud: workspace/repo/src/rev/path
	{re(`^([^/]+/[^/]+)/src/(.+)$`), "", func(a *Address, m []string, _ url.Values) { a.file(join(a.Host, m[1]), m[2]) }},

	// The repository itself, perhaps one of its pages: owner/repo/issues
	{re(`^([^/]+/[^/]+?)/(?:issues|pull|pulls|wiki|releases|actions|tags|branches|merge_requests|-)(?:/.*)?$`), "", func(a *Address, m []string, _ url.Values) { a.set(Repository, join(a.Host, m[1]), "") }},
	{re(`^(.+)$`), "", func(a *Address, m []string, _ url.Values) { a.set(Repository, join(a.Host, m[1]), "") }},
}

func (a *Address) set(kind Kind, repo, rest string) { a.Kind, a.Repo, a.Rest = kind, repo, rest }

func (a *Address) file(repo, rest string) { a.set(File, repo, rest) }

// fileOrCommit sets a file, or a commit if the text is only a hash.
func (a *Address) fileOrCommit(repo, rest string) {
	a.file(repo, rest)
	if onlyHash.MatchString(rest) {
		a.Kind = Commit
	}
}

// join joins the non-empty parts with slashes.
func join(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "/")
}

// fragment matches lines as hosts write them: L10-L20, L10C1-L20C2, lines-10:20, 10-20.
var fragment = regexp.MustCompile(`^(?:L|l|n|lines-)?([0-9]{1,7})(?:C[0-9]+)?(?:[-:,]L?([0-9]{1,7})(?:C[0-9]+)?)?$`)

// readLines reads the lines from the fragment of an address, or from its query as Azure writes them.
func (a *Address) readLines(u *url.URL) {
	first, last := u.Query().Get("line"), u.Query().Get("lineEnd")
	if m := fragment.FindStringSubmatch(u.Fragment); m != nil {
		first, last = m[1], m[2]
	}
	a.Line, _ = strconv.Atoi(first) // 0 for none
	if a.End, _ = strconv.Atoi(last); a.End <= a.Line {
		a.End = 0
	}
}
