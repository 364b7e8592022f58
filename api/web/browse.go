package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/query"
)

// place is a page of a repository at a revision, as an address below /browse/ names it.
type place struct {
	Repo, Rev  string // Rev "" is HEAD
	Kind, Path string // Kind is that after /-/ in the address: tree, blob, ...

	Branch  string    // default branch; "" if unknown
	Indexed bool      // the index has the revision; otherwise searches read git
	Refs    []refLink // other revisions to choose from
}

// refLink is a link to the same place in another revision.
type refLink struct {
	Name, URL string
	Indexed   bool
}

// searchLimit limits searches from the page to its repository and revision.
func (l place) searchLimit() *layout.In {
	in := layout.In{Name: l.Repo, Query: "reposet:" + query.Quote(l.Repo)}
	if l.Rev != "" {
		in.Name, in.Query = in.Name+"@"+l.Rev, in.Query+" rev:"+query.Quote(l.Rev)
	}
	return &in
}

// Anew returns the address of the place without its revision, for a form that adds one.
func (l place) Anew() string { return address(l.Repo, "", l.Kind, l.Path) }

// maxPickedRefs limits the branches, and the tags, that a reader can choose from.
const maxPickedRefs = 12

// refs returns links to the same place in the newest branches and tags. It leaves out those that cannot
// be read.
func (p *revisions) refs(ctx context.Context, v catalog.Viewer, l place) []refLink {
	var out []refLink
	for _, list := range []func(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error){p.reader.Branches, p.reader.Tags} {
		r, err := list(ctx, v, browse.RefsRequest{Repo: l.Repo, PerPage: maxPickedRefs})
		if err != nil {
			continue
		}
		for _, ref := range r.Refs {
			out = append(out, refLink{ref.Name, address(l.Repo, cmp.Or(ref.Ref, ref.Name), l.Kind, l.Path), ref.Indexed})
		}
	}
	return out
}

// At returns the page of another kind, or of another path, at the same revision.
func (l place) At(kind, path string) string { return address(l.Repo, l.Rev, kind, path) }

// crumb is a directory above the place, with its page.
type crumb struct{ Name, URL string }

// Crumbs returns the directories above the place, from the root down, and the place itself.
func (l place) Crumbs() []crumb {
	if l.Path == "" {
		return nil
	}

	parts := strings.Split(l.Path, "/")
	out := make([]crumb, len(parts))
	for i, name := range parts {
		// The last part is the place itself, which is a file unless the page is of kind tree.
		kind := "tree"
		if i == len(parts)-1 && l.Kind != "tree" {
			kind = "blob"
		}

		out[i] = crumb{name, l.At(kind, strings.Join(parts[:i+1], "/"))}
	}
	return out
}

// Revision returns the name of the revision for display.
func (l place) Revision() string {
	return cmp.Or(l.Rev, l.Branch, "HEAD")
}

// kinds maps the kind in an address, after /-/, to its page.
func (p *reading) kinds() map[string]func(context.Context, *layout.Visit, place) error {
	return map[string]func(context.Context, *layout.Visit, place) error{
		"tree": p.sources.tree, "blob": p.sources.file, "blame": p.revisions.blame, "raw": p.sources.raw,
		"commits": p.revisions.commits, "commit": p.revisions.commit, "compare": p.revisions.compare, "branches": p.revisions.branches, "tags": p.revisions.branches, "find": p.find, "symbols": p.symbols, "names": p.names, "dependencies": p.dependencies, "commits.atom": p.revisions.feed,
	}
}

// browse shows a page of a repository, by the kind in the address.
func (p *reading) browse(ctx context.Context, v *layout.Visit) error {
	l, err := p.place(ctx, v, browseUnder)
	if err != nil {
		return err
	}

	show, ok := p.kinds()[l.Kind]
	if !ok {
		return call.Fail(call.ErrNotFound, "A repository has no page %q.", l.Kind)
	}

	v.In = l.searchLimit()

	// Only these kinds of pages offer other revisions, and only if they are drawn whole.
	if v.Part == "" && slices.Contains([]string{"tree", "blob", "blame", "commits", "compare"}, l.Kind) {
		l.Refs = p.revisions.refs(ctx, v.Viewer, l)
	}

	err = show(ctx, v, l)

	// The repository exists, so if HEAD is unknown, nothing was pushed yet.
	if errors.Is(err, call.ErrRef) && v.Part == "" && l.Rev == "" && l.Path == "" {
		return v.ShowError(http.StatusOK, err.Error()+". Its files are here once somebody pushes some.", 0)
	}
	return asUnknownPage(p.orMissing(ctx, v, l, err))
}

// asUnknownPage turns the error for an unknown revision into one for an unknown page. It returns other
// errors unchanged.
func asUnknownPage(err error) error {
	if e, ok := errors.AsType[*call.Error](err); ok && errors.Is(err, call.ErrRef) {
		return call.Fail(call.ErrNotFound, "%s", e.Message)
	}
	return err
}

// place parses the address of a visit below a prefix. A repository name may contain an @, which also
// stands before a revision. The longest name of a repository that the viewer may see wins.
func (p *reading) place(ctx context.Context, v *layout.Visit, prefix string) (place, error) {
	head, rest, hasKind := strings.Cut(strings.TrimPrefix(v.Path, prefix), "/-/")
	kind, path, _ := strings.Cut(rest, "/")
	if !hasKind {
		kind, path = "tree", ""
	}

	l := place{Kind: kind, Rev: v.Query.Get("ref")}

	// In addresses of Sourcebot a blame is a file with blame=true.
	if kind == "blob" && v.Query.Get("blame") == "true" {
		l.Kind = "blame"
	}

	var err error
	var info *browse.RepoInfo
	// Unescape after the cut at /-/, so that an escaped /-/ in a name is not cut.
	if l.Path, err = url.PathUnescape(path); err != nil {
		return l, call.Fail(call.ErrNotFound, "The address cannot be read.")
	}
	l.Path = strings.Trim(l.Path, "/")

	// Try the whole text as a repository name, then the text before the last @, and so on.
	for end := len(head); ; {
		name, nameErr := url.PathUnescape(strings.TrimSuffix(head[:end], "/"))
		at := strings.LastIndexByte(head[:end], '@')

		repo := (*browse.RepoInfo)(nil)
		// Try a shorter name only if the repository is unknown. After any other error a shorter name
		// could show the wrong repository.
		if nameErr == nil {
			if repo, err = p.reader.Repo(ctx, v.Viewer, name); err != nil && !errors.Is(err, call.ErrRepoNotFound) {
				return l, err
			}
			err = nil
		}

		// Without a further @ take the text as the name: the page says that it does not exist.
		if nameErr == nil && (at < 0 || repo != nil) {
			l.Repo, info = name, repo
			if end < len(head) {
				l.Rev, err = url.PathUnescape(strings.TrimSuffix(head[end+1:], "/"))
			}
			break
		}

		if at < 0 {
			return l, call.Fail(call.ErrNotFound, "The address cannot be read.")
		}
		end = at
	}

	// Refuse a zero byte: no name in git has one, and streamFile splits pages at marks that have one.
	if err != nil || strings.ContainsRune(l.Repo+l.Rev+l.Path, 0) {
		return l, call.Fail(call.ErrNotFound, "The address cannot be read.")
	}

	if l.Rev == "HEAD" { // each place has one address
		l.Rev = ""
	}

	if info != nil {
		l.Branch, l.Indexed = info.DefaultBranch, hasIndexed(info, l.Rev)
	}
	return l, nil
}

// hasIndexed reports whether the index has a revision of a repository: HEAD for "", a branch or tag by
// its full or short name, or a commit by at least seven digits.
func hasIndexed(repo *browse.RepoInfo, rev string) bool {
	for _, r := range repo.Revisions {
		if rev == "" && r.Name == "HEAD" || rev != "" && (r.Name == rev || query.ShortRev(r.Name) == rev || len(rev) >= 7 && strings.HasPrefix(r.Commit, rev)) {
			return true
		}
	}
	return rev != "" && rev == repo.DefaultBranch && !repo.IndexedAt.IsZero()
}
