package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// The limits of the details about commits.
const (
	fullDetails    = 5  // commits of an answer up to which each has a line of its own with its files
	mostDetails    = 20 // and up to which it has any
	filesOfCommit  = 5
	filesOfMany    = 2 // where there are more than fullDetails
	detailTime     = 2 * time.Second
	detailsAtATime = 4
)

// detail is what an answer tells of a commit besides its line: the files that it changed, and the first
// tag that contains it. Callers usually ask for these next.
type detail struct {
	beside string // on the line of the commit
	below  string // lines below it
}

// detailsOf returns details of a few commits, by hash. shown has the files of each commit that the answer
// names already. It leaves out what it cannot find in time.
func detailsOf(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args, commits []browse.CommitInfo, shown map[string][]string) map[string]detail {
	if len(commits) > mostDetails || a.Has("body") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, detailTime)
	defer cancel()

	texts := make([]detail, len(commits))
	group := errgroup.Group{}
	group.SetLimit(detailsAtATime)
	for i := range commits {
		group.Go(func() error {
			c := &commits[i]
			r, err := b.Diff(ctx, v, browse.DiffRequest{Repo: a.Text("repo"), Base: c.Hash + "~1", Head: c.Hash, Stat: true, Message: true})
			if err == nil && len(r.Files) > 0 { // the first commit of all has nothing before it
				texts[i] = newDetail(a, r, c.Refs, len(commits) > fullDetails, shown[c.Hash])
			}
			return nil
		})
	}
	_ = group.Wait() // no task returns an error

	details := map[string]detail{}
	for i := range commits {
		details[commits[i].Hash] = texts[i]
	}
	return details
}

// newDetail writes the detail of one commit.
func newDetail(a *Args, r *browse.DiffResponse, refs string, brief bool, shown []string) detail {
	since := sinceTag(r.FirstTag, refs)
	most := filesOfCommit
	if brief {
		most = filesOfMany
	}

	var files []string
	left := 0
	for i := range r.Files {
		f := &r.Files[i]
		path := cmp.Or(f.NewPath, f.OldPath)
		switch {
		case slices.Contains(shown, path), brief && path == a.Text("path"):
		case len(files) < most:
			files = append(files, fmt.Sprintf("+%d -%d %s", f.Added, f.Removed, fileLabel(path)))
		default:
			left++
		}
	}
	if left > 0 {
		files = append(files, count(left, "more file"))
	}

	switch text := strings.Join(files, ", "); {
	case !brief && since != "" && text != "":
		return detail{below: "    " + since + ": " + text + "\n"}
	case !brief && since+text != "":
		return detail{below: "    " + since + text + "\n"}
	case brief && a.Has("lines"):
		return detail{beside: lead("; ", since)}
	case brief:
		return detail{beside: lead("; ", since) + lead("; ", text)}
	}
	return detail{}
}

// lead writes a text behind a separator; "" for no text.
func lead(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

// sinceTag names the first tag that contains a commit, and the first releases if that is none. It is ""
// if the line of the commit shows that tag, or if none is known.
func sinceTag(t *browse.FirstTag, refs string) string {
	switch {
	case t == nil, t.Late && t.Name == "":
		return ""
	case t.Name == "":
		return "in no tag"
	case t.Release != "" && t.Whole != "":
		return fmt.Sprintf("since %s (releases %s, %s)", label(t.Name), label(t.Release), label(t.Whole))
	case t.Release != "" || t.Whole != "":
		return fmt.Sprintf("since %s (release %s)", label(t.Name), label(cmp.Or(t.Release, t.Whole)))
	case slices.Contains(strings.Split(refs, ", "), "tag: "+t.Name):
		return ""
	}
	return "since " + label(t.Name)
}
