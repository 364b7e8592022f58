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

// place is what an address below /browse names.
type place struct {
	Repo, Rev  string // Rev "" is HEAD
	Kind, Path string

	Branch  string // that HEAD means; "" where it is not known
	Indexed bool   // the index has the revision; else what is searched in it is read from git
	Refs    []refLink
}

// refLink is the same place in another revision.
type refLink struct {
	Name, URL string
	Indexed   bool
}

// in is the repository at the revision of the place, for a search from its page.
func (l place) in() *layout.In {
	in := layout.In{Name: l.Repo, Query: "reposet:" + query.Quote(l.Repo)}
	if l.Rev != "" {
		in.Name, in.Query = in.Name+"@"+l.Rev, in.Query+" rev:"+query.Quote(l.Rev)
	}
	return &in
}

// Anew is the place without its revision, for a form that names one.
func (l place) Anew() string { return address(l.Repo, "", l.Kind, l.Path) }

// pickedRefs is how many branches, and how many tags, can be chosen in place.
const pickedRefs = 12

// refs is the newest branches and tags, as the same place in each. Where they
// cannot be read, there are none to choose from.
func (p *revisions) refs(ctx context.Context, v catalog.Viewer, l place) []refLink {
	var out []refLink
	for _, list := range []func(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error){p.reader.Branches, p.reader.Tags} {
		r, err := list(ctx, v, browse.RefsRequest{Repo: l.Repo, PerPage: pickedRefs})
		if err != nil {
			continue
		}
		for _, ref := range r.Refs {
			out = append(out, refLink{ref.Name, address(l.Repo, cmp.Or(ref.Ref, ref.Name), l.Kind, l.Path), ref.Indexed})
		}
	}
	return out
}

// At is the page of another kind, or of another path, of the same revision.
func (l place) At(kind, path string) string { return address(l.Repo, l.Rev, kind, path) }

// Crumb is a directory above the place, with its page.
type crumb struct{ Name, URL string }

// Crumbs is the way from the root to the place.
func (l place) Crumbs() []crumb {
	if l.Path == "" {
		return nil
	}

	parts := strings.Split(l.Path, "/")
	out := make([]crumb, len(parts))
	for i, name := range parts {
		// The last part is the place itself, and a file only where the page shows one.
		kind := "tree"
		if i == len(parts)-1 && l.Kind != "tree" {
			kind = "blob"
		}

		out[i] = crumb{name, l.At(kind, strings.Join(parts[:i+1], "/"))}
	}
	return out
}

// Revision is the name of the revision for people.
func (l place) Revision() string {
	return cmp.Or(l.Rev, l.Branch, "HEAD")
}

// kinds is the table of the pages of a repository, by what their addresses have
// behind /-/.
func (p *reading) kinds() map[string]func(context.Context, *layout.Visit, place) error {
	return map[string]func(context.Context, *layout.Visit, place) error{
		"tree": p.sources.tree, "blob": p.sources.file, "blame": p.revisions.blame, "raw": p.sources.raw,
		"commits": p.revisions.commits, "commit": p.revisions.commit, "compare": p.revisions.compare, "branches": p.revisions.branches, "tags": p.revisions.branches, "find": p.find, "symbols": p.symbols, "names": p.names, "commits.atom": p.revisions.feed,
	}
}

// browse is every page of a repository: the kind of the address decides.
func (p *reading) browse(ctx context.Context, v *layout.Visit) error {
	l, err := p.place(ctx, v, browseUnder)
	if err != nil {
		return err
	}

	show, ok := p.kinds()[l.Kind]
	if !ok {
		return call.Fail(call.ErrNotFound, "A repository has no page %q.", l.Kind)
	}

	v.In = l.in()

	// Only these pages offer another revision, and a script that asks for a part draws none of it.
	if v.Part == "" && slices.Contains([]string{"tree", "blob", "blame", "commits", "compare"}, l.Kind) {
		l.Refs = p.revisions.refs(ctx, v.Viewer, l)
	}

	err = show(ctx, v, l)

	// HEAD is no revision only where nothing was pushed yet: the repository is there.
	if errors.Is(err, call.ErrRef) && v.Part == "" && l.Rev == "" && l.Path == "" {
		return v.ShowError(http.StatusOK, err.Error()+". Its files are here once somebody pushes some.", 0)
	}
	return noRevision(p.orMissing(ctx, v, l, err))
}

// noRevision makes a page that does not exist of a revision that does not.
func noRevision(err error) error {
	if e, bad := errors.AsType[*call.Error](err); bad && errors.Is(err, call.ErrRef) {
		return call.Fail(call.ErrNotFound, "%s", e.Message)
	}
	return err
}

// place reads an address below a prefix. A name of a repository may hold an @: of all ways to
// read one, that with the longest name of a repository that the viewer may see
// is meant.
func (p *reading) place(ctx context.Context, v *layout.Visit, under string) (place, error) {
	head, rest, deep := strings.Cut(strings.TrimPrefix(v.Path, under), "/-/")
	kind, path, _ := strings.Cut(rest, "/")
	if !deep {
		kind, path = "tree", ""
	}

	l := place{Kind: kind, Rev: v.Query.Get("ref")}

	// A link of the other product, where blame is a view of a file, not a page of its own.
	if kind == "blob" && v.Query.Get("blame") == "true" {
		l.Kind = "blame"
	}

	var err error
	var info *browse.RepoInfo
	// Unescaped after the cut at /-/, so that a name that has these signs, escaped, is not cut.
	if l.Path, err = url.PathUnescape(path); err != nil {
		return l, call.Fail(call.ErrNotFound, "The address cannot be read.")
	}
	l.Path = strings.Trim(l.Path, "/")

	// The whole of it first, then up to the last @, then up to the one before.
	for end := len(head); ; {
		name, bad := url.PathUnescape(strings.TrimSuffix(head[:end], "/"))
		at := strings.LastIndexByte(head[:end], '@')

		repo := (*browse.RepoInfo)(nil)
		// Only that there is no such name lets the next be tried: if a node that is asked fails,
		// another repository would be shown.
		if bad == nil {
			if repo, err = p.reader.Repo(ctx, v.Viewer, name); err != nil && !errors.Is(err, call.ErrRepoNotFound) {
				return l, err
			}
			err = nil
		}

		// Without an @ left it is a name in any case: the page says that there is no such repository.
		if bad == nil && (at < 0 || repo != nil) {
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

	// No name of git holds a zero byte, and the page of a file is cut at marks that have one.
	if err != nil || strings.ContainsRune(l.Repo+l.Rev+l.Path, 0) {
		return l, call.Fail(call.ErrNotFound, "The address cannot be read.")
	}

	// The same place has one address.
	if l.Rev == "HEAD" {
		l.Rev = ""
	}

	if info != nil {
		l.Branch, l.Indexed = info.DefaultBranch, indexed(info, l.Rev)
	}
	return l, nil
}

// indexed reports whether the index has a revision of a repository.
func indexed(repo *browse.RepoInfo, rev string) bool {
	for _, r := range repo.Revisions {
		if rev == "" && r.Name == "HEAD" || rev != "" && (r.Name == rev || query.ShortRev(r.Name) == rev || len(rev) >= 7 && strings.HasPrefix(r.Commit, rev)) {
			return true
		}
	}
	return rev != "" && rev == repo.DefaultBranch && !repo.IndexedAt.IsZero()
}
