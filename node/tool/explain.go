package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paths"
)

// explain turns a failure into a sentence that tells the model what to do
// next. What the viewer may not see is never hinted at: every name in a hint
// comes from a listing made for the same viewer.
func explain(ctx context.Context, l browse.Reader, v catalog.Viewer, t *Tool, a *Args, err error) string {
	// What was not expected stays in the log: its text may name files and hosts of the cluster.
	message := "The tool failed for a reason that is in the node's log. Try once more, then another way."
	var e *call.Error
	if errors.As(err, &e) {
		message = sentence(e.Message)
	}

	// The most frequent mistakes of models, each with the call that finds what was meant.
	repo := a.Text("repo")
	switch {
	case errors.Is(err, call.ErrRepoNotFound):
		return message + suggestRepos(ctx, l, v, a)
	case errors.Is(err, call.ErrFileNotFound):
		return message + pathHint(a, message)
	case errors.Is(err, call.ErrRef) && strings.Contains(message, "is a range of commits"):
		return message // which names what to write
	case errors.Is(err, call.ErrRef):
		there := quote(map[string]any{"repo": repo})
		return message + " See the branches with list_branches " + there + ", or leave ref out for the default branch."

	case errors.Is(err, call.ErrQuery) && strings.Contains(message, string(syntax.ErrInvalidRepeatSize)):
		return message + " A count is at most 1000, also of what repeats within another; more is written as x{0,1000}x{0,800}."
	case errors.Is(err, call.ErrQuery):
		// A pattern that does not parse is often plain text with brackets in it.
		literal := a.with("pattern", regexp.QuoteMeta(a.Text("pattern")))
		return message + " There are no look-arounds and no back-references. To find it as it stands: " + literal + "."
	case errors.Is(err, call.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		// The deadline's own text says nothing of what to do; the hint below does.
		message = "The call took too long."
	case errors.Is(err, context.Canceled):
		return "The call was cancelled."
	}

	// The kinds that several tools have in common say themselves what to do.
	if k := call.KindOf(err); k != nil && k.Hint != "" {
		return message + " " + k.Hint
	}
	return message
}

// sentence ends a message as a sentence; a question is one.
func sentence(message string) string {
	message = strings.TrimRight(message, ". ")
	if strings.HasSuffix(message, "?") {
		return message
	}
	return message + "."
}

// pathHint says how to find the right path where a file is missing or is a directory; ""
// where the message itself asks whether another one is meant.
func pathHint(a *Args, message string) string {
	if strings.HasSuffix(message, "?") {
		return ""
	}

	repo := a.Text("repo")

	// At the same ref: at another one the path may well be what the caller thinks.
	at := map[string]any{"repo": repo, "path": strings.Trim(a.Text("path"), "/")}
	if ref := a.Text("ref"); ref != "" {
		at["ref"] = ref
	}
	switch {
	// One kind of error has three causes, which only its text tells apart.
	case strings.HasSuffix(message, "is a directory, not a file."):
		return " See what is in it with list_tree " + quote(at) + "."
	case strings.HasSuffix(message, "is a file, not a directory."):
		return " Read it with read_file " + quote(at) + "."
	}

	// A wrong directory is found so; for a wrong name glob has hints of its own.
	pattern := "**/" + path.Base(a.Text("path"))
	return " Find the path with glob " + quote(map[string]any{"repo": repo, "pattern": pattern}) + "."
}

// mostNames bounds how many repositories are looked at for one that is meant.
const mostNames = 2000

// repoNames lists repositories that the viewer may see: those with a text in
// their name or, where there are none, all.
func repoNames(ctx context.Context, l browse.Reader, v catalog.Viewer, part string) []string {
	var names []string
	for page := 1; len(names) < mostNames; page++ {
		// The listing is the viewer's: what it does not have cannot be suggested.
		r, err := l.Repos(ctx, v, browse.ReposRequest{Query: part, Page: page, PerPage: 100})
		if err != nil {
			// A hint is an addition: the failure that it belongs to is told anyway.
			return nil
		}

		// Nothing has the text: begin again, with all.
		if r.Total == 0 && part != "" {
			part, page = "", 0
			continue
		}

		for i := range r.Repos {
			names = append(names, r.Repos[i].Name)
		}

		// An empty page ends it too: repositories may go away while the pages are read.
		if len(r.Repos) == 0 || len(names) >= r.Total {
			break
		}
	}
	return names
}

// plainRepo is the name of a repository in an address that somebody copied: a URL, or
// the form of ssh.
func plainRepo(name string) string {
	if _, address, ok := strings.Cut(name, "://"); ok {
		_, behind, user := strings.Cut(address, "@")
		if name = address; user {
			name = behind
		}
	} else if _, address, ok := strings.Cut(name, "@"); ok {
		name = strings.Replace(address, ":", "/", 1) // git@host:acme/app
	}
	name = strings.TrimSuffix(strings.Trim(name, "/"), ".git")
	return strings.TrimSuffix(name, "/")
}

// oneEndingIn is the only one of some repositories whose name ends in the given
// parts, in any case; "" where there is none or more than one.
func oneEndingIn(name string, names []string) string {
	found := ""
	for _, full := range names {
		// With a slash before it: app is not meant by acme/webapp.
		ends := strings.HasSuffix(strings.ToLower(full), "/"+strings.ToLower(name))
		if !ends && !strings.EqualFold(full, name) {
			continue
		}

		// Of two that end so neither is taken: an answer about the wrong one would look right.
		if found != "" {
			return ""
		}
		found = full
	}
	return found
}

// suggestRepos names repositories that could be meant, with the call for the nearest.
func suggestRepos(ctx context.Context, l browse.Reader, v catalog.Viewer, a *Args) string {
	name := a.Text("repo")
	names := repoNames(ctx, l, v, path.Base(plainRepo(name)))
	if len(names) == 0 {
		return " No repository is indexed yet that you may see."
	}
	if near := nearRepos(plainRepo(name), names, 3); near != nil {
		return fmt.Sprintf(" Did you mean %s? list_repos shows all. Mended: %s", strings.Join(near, ", "), a.with("repo", near[0]))
	}
	return " list_repos shows all."
}

// nearRepos picks the repositories whose names are most like a text, the best
// first. A name is compared by its last part, then by as many of its last
// parts as the text has: how the rest is called does not matter.
func nearRepos(text string, names []string, most int) []string {
	type scored struct {
		name        string
		last, parts int
	}
	text = strings.ToLower(text)
	last := path.Base(text)
	depth := strings.Count(text, "/") + 1
	// A third of the letters may be wrong; of short names two, or nothing would ever be near.
	bound := max(2, len(last)/3)

	var found []scored
	for _, name := range names {
		low := strings.ToLower(name)
		s := scored{
			name:  name,
			last:  paths.Distance(last, path.Base(low)),
			parts: paths.Distance(text, lastParts(low, depth)),
		}

		// A name that has the text in it is as near as one wrong letter.
		if strings.Contains(path.Base(low), last) {
			s.last = min(s.last, 1)
		}

		if s.last <= bound || s.parts <= bound {
			found = append(found, s)
		}
	}

	// By name in the end, so that the same question has the same answer.
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(
			cmp.Compare(a.last, b.last),
			cmp.Compare(a.parts, b.parts),
			strings.Compare(a.name, b.name),
		)
	})

	var out []string
	for _, s := range found[:min(most, len(found))] {
		out = append(out, s.name)
	}
	return out
}

// lastParts is the last n parts of a path.
func lastParts(name string, n int) string {
	at := len(name)
	for ; n > 0 && at > 0; n-- {
		at = strings.LastIndexByte(name[:at], '/')
	}
	return name[at+1:]
}
