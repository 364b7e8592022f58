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

	Branch  string // of HEAD; "" if unknown
	Indexed bool   // the index has the revision; otherwise searches read git
	Refs    []refLink
}

// refLink is the same place in another revision.
type refLink struct {
	Name, URL string
	Indexed   bool
}

// in returns the repository and revision for a search from the page.
func (l place) in() *layout.In {
	in := layout.In{Name: l.Repo, Query: "reposet:" + query.Quote(l.Repo)}
	if l.Rev != "" {
		in.Name, in.Query = in.Name+"@"+l.Rev, in.Query+" rev:"+query.Quote(l.Rev)
	}
	return &in
}

// Anew returns the address of the place without its revision, for a form with one.
func (l place) Anew() string { return address(l.Repo, "", l.Kind, l.Path) }

// pickedRefs limits the branches, and the tags, to choose from.
const pickedRefs = 12

// refs returns links to the same place in the newest branches and tags; none if they cannot be
// read.
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

// At returns the page of another kind, or of another path, at the same revision.
func (l place) At(kind, path string) string { return address(l.Repo, l.Rev, kind, path) }

// crumb is a directory above the place, with its page.
type crumb struct{ Name, URL string }

// Crumbs returns the directories from the root to the place.
func (l place) Crumbs() []crumb {
	if l.Path == "" {
		return nil
	}

	parts := strings.Split(l.Path, "/")
	out := make([]crumb, len(parts))
	for i, name := range parts {
		// The last part is the place itself; only pages of files end in a file.
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

	v.In = l.in()

	// Only these pages offer other revisions, and a part requested by a script does not show
	// them.
	if v.Part == "" && slices.Contains([]string{"tree", "blob", "blame", "commits", "compare"}, l.Kind) {
		l.Refs = p.revisions.refs(ctx, v.Viewer, l)
	}

	err = show(ctx, v, l)

	// HEAD is missing only if nothing was pushed yet; the repository exists.
	if errors.Is(err, call.ErrRef) && v.Part == "" && l.Rev == "" && l.Path == "" {
		return v.ShowError(http.StatusOK, err.Error()+". Its files are here once somebody pushes some.", 0)
	}
	return noRevision(p.orMissing(ctx, v, l, err))
}

// noRevision turns the error for an unknown revision into one for an unknown page.
func noRevision(err error) error {
	if e, bad := errors.AsType[*call.Error](err); bad && errors.Is(err, call.ErrRef) {
		return call.Fail(call.ErrNotFound, "%s", e.Message)
	}
	return err
}

// place parses an address below a prefix. Repository names may contain an @: of all readings, the
// one with the longest visible repository name wins.
func (p *reading) place(ctx context.Context, v *layout.Visit, under string) (place, error) {
	head, rest, deep := strings.Cut(strings.TrimPrefix(v.Path, under), "/-/")
	kind, path, _ := strings.Cut(rest, "/")
	if !deep {
		kind, path = "tree", ""
	}

	l := place{Kind: kind, Rev: v.Query.Get("ref")}

	// Sourcebot shows a blame as a view of a file.
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

	// Try the whole text first, then up to the last @, then up to the one before.
	for end := len(head); ; {
		name, bad := url.PathUnescape(strings.TrimSuffix(head[:end], "/"))
		at := strings.LastIndexByte(head[:end], '@')

		repo := (*browse.RepoInfo)(nil)
		// Only an unknown repository lets the next reading be tried. After any other error the
		// next one could show the wrong repository.
		if bad == nil {
			if repo, err = p.reader.Repo(ctx, v.Viewer, name); err != nil && !errors.Is(err, call.ErrRepoNotFound) {
				return l, err
			}
			err = nil
		}

		// Without an @ left, take it as a name: the page says that it does not exist.
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

	// git names have no zero byte, and pages of files are split at marks that contain one.
	if err != nil || strings.ContainsRune(l.Repo+l.Rev+l.Path, 0) {
		return l, call.Fail(call.ErrNotFound, "The address cannot be read.")
	}

	// Each place has one address.
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
