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

// explain returns the text that tells the model about an error and what to do next. Every name in a
// hint comes from a listing made for the same viewer, so a hint reveals nothing that the viewer may
// not see.
func explain(ctx context.Context, l browse.Reader, v catalog.Viewer, t *Tool, a *Args, err error) string {
	// An unexpected error stays in the log: its text may name files and hosts of the cluster.
	message := "The tool failed for a reason that is in the node's log. Try once more, then another way."
	var e *call.Error
	if errors.As(err, &e) {
		message = sentence(e.Message)
	}

	// The most frequent mistakes of models, each with a call that finds the right value.
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
		// An invalid pattern is often plain text that contains brackets.
		literal := a.with("pattern", regexp.QuoteMeta(a.Text("pattern")))
		return message + " There are no look-arounds and no back-references. To find it as it stands: " + literal + "."
	case errors.Is(err, call.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		// The text of a deadline does not say what to do; the hint below does.
		message = "The call took too long."
	case errors.Is(err, context.Canceled):
		return "The call was cancelled."
	}

	// Kinds of errors that several tools share have their own hint.
	if k := call.KindOf(err); k != nil && k.Hint != "" {
		return message + " " + k.Hint
	}
	return message
}

// sentence makes a message end in a full stop, unless it is a question.
func sentence(message string) string {
	message = strings.TrimRight(message, ". ")
	if strings.HasSuffix(message, "?") {
		return message
	}
	return message + "."
}

// pathHint says how to find the right path if a file is missing or is a directory. It returns "" if
// the message already suggests one.
func pathHint(a *Args, message string) string {
	if strings.HasSuffix(message, "?") {
		return ""
	}

	repo := a.Text("repo")

	// Use the same ref: at another one, the path may be right.
	at := map[string]any{"repo": repo, "path": strings.Trim(a.Text("path"), "/")}
	if ref := a.Text("ref"); ref != "" {
		at["ref"] = ref
	}
	switch {
	// These three errors have one kind; only the text distinguishes them.
	case strings.HasSuffix(message, "is a directory, not a file."):
		return " See what is in it with list_tree " + quote(at) + "."
	case strings.HasSuffix(message, "is a file, not a directory."):
		return " Read it with read_file " + quote(at) + "."
	}

	// glob finds a file whose directory was wrong. For a wrong name, glob gives its own hints.
	pattern := "**/" + path.Base(a.Text("path"))
	return " Find the path with glob " + quote(map[string]any{"repo": repo, "pattern": pattern}) + "."
}

// mostNames is the largest number of repositories that a suggestion is chosen from.
const mostNames = 2000

// repoNames lists repositories that the viewer may see whose name contains part; all of them if
// none does.
func repoNames(ctx context.Context, l browse.Reader, v catalog.Viewer, part string) []string {
	var names []string
	for page := 1; len(names) < mostNames; page++ {
		// The listing is for the viewer, so a hidden repository is never suggested.
		r, err := l.Repos(ctx, v, browse.ReposRequest{Query: part, Page: page, PerPage: 100})
		if err != nil {
			// Without suggestions the caller still gets the error itself.
			return nil
		}

		// No name contains the text: start again with all names.
		if r.Total == 0 && part != "" {
			part, page = "", 0
			continue
		}

		for i := range r.Repos {
			names = append(names, r.Repos[i].Name)
		}

		// An empty page is the last: repositories may be deleted meanwhile.
		if len(r.Repos) == 0 || len(names) >= r.Total {
			break
		}
	}
	return names
}

// plainRepo returns the repository's name in a copied address: a URL or git@host:acme/app.
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

// oneEndingIn returns the only repository whose name ends in the given parts, ignoring case. It
// returns "" if there are none or several.
func oneEndingIn(name string, names []string) string {
	found := ""
	for _, full := range names {
		// Require a slash before the ending: app does not mean acme/webapp.
		ends := strings.HasSuffix(strings.ToLower(full), "/"+strings.ToLower(name))
		if !ends && !strings.EqualFold(full, name) {
			continue
		}

		// If two names match, choose neither: an answer about the wrong one would look right.
		if found != "" {
			return ""
		}
		found = full
	}
	return found
}

// suggestRepos suggests similar names of repositories, and the corrected call for the most similar.
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

// nearRepos returns the names most similar to a text, the best first. It compares the last part of
// each name, then as many last parts as the text has.
func nearRepos(text string, names []string, most int) []string {
	type scored struct {
		name        string
		last, parts int
	}
	text = strings.ToLower(text)
	last := path.Base(text)
	depth := strings.Count(text, "/") + 1
	// Allow a third of the letters to be wrong, but at least two, because names may be short.
	bound := max(2, len(last)/3)

	var found []scored
	for _, name := range names {
		low := strings.ToLower(name)
		s := scored{
			name:  name,
			last:  paths.Distance(last, path.Base(low)),
			parts: paths.Distance(text, lastParts(low, depth)),
		}

		// A name that contains the text counts like one wrong letter.
		if strings.Contains(path.Base(low), last) {
			s.last = min(s.last, 1)
		}

		if s.last <= bound || s.parts <= bound {
			found = append(found, s)
		}
	}

	// Finally by name, so that the same question gets the same answer.
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

// lastParts returns the last n parts of a path.
func lastParts(name string, n int) string {
	at := len(name)
	for ; n > 0 && at > 0; n-- {
		at = strings.LastIndexByte(name[:at], '/')
	}
	return name[at+1:]
}
