package tool

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
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
	tag    string // the first tag that contains it, where beside or below names it
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
	group, _ := call.NewGroup(ctx, detailsAtATime)
	for i := range commits {
		group.Go(func() error {
			c := &commits[i]
			r, err := b.Diff(ctx, v, browse.DiffRequest{Repo: a.Text("repo"), Base: c.Hash + "~1", Head: c.Hash, Stat: true, Message: true})
			if err == nil && len(r.Files) > 0 { // the first commit of all has nothing before it
				texts[i] = newDetail(a, r, len(commits) > fullDetails, shown[c.Hash])
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
func newDetail(a *Args, r *browse.DiffResponse, brief bool, shown []string) detail {
	since := firstRelease(r.FirstTag, pathsOfDiff(a, r))
	switch {
	case since == "no tag":
		since = "in no tag"
	case since != "":
		since = "since " + since
	}
	most := filesOfCommit
	if brief {
		most = filesOfMany
	}

	// Who looks for a change of the code asks which commit made it, not what else that commit changed.
	text := ""
	if a.Has("changes") || a.Has("changesRegex") || a.Has("lines") {
		if len(r.Files) > 1 {
			text = count(len(r.Files), "file")
		}
	} else {
		text = changedFiles(a, r, most, brief, shown)
	}

	d := detail{}
	if since != "" {
		d.tag = r.FirstTag.Name
	}
	switch {
	case !brief && since != "" && text != "":
		d.below = "    " + since + ": " + text + "\n"
	case !brief && since+text != "":
		d.below = "    " + since + text + "\n"
	case brief && a.Has("lines"):
		d.beside = lead("; ", since)
	case brief:
		d.beside = lead("; ", since) + lead("; ", text)
	}
	return d
}

// changedFiles names the first files that a commit changed, those of the caller's path before others. Each
// directory is written once.
func changedFiles(a *Args, r *browse.DiffResponse, most int, brief bool, shown []string) string {
	name := func(f *browse.DiffFile) string { return cmp.Or(f.NewPath, f.OldPath) }
	asked := strings.Trim(a.Text("path"), "/")
	rank := func(f *browse.DiffFile) int {
		if asked != "" && name(f) != asked && !strings.HasPrefix(name(f), asked+"/") {
			return 1
		}
		return 0
	}
	files := slices.Clone(r.Files)
	slices.SortStableFunc(files, func(x, y browse.DiffFile) int { return rank(&x) - rank(&y) })

	var named []string
	left, dir := 0, ""
	for i := range files {
		f := &files[i]
		switch {
		case slices.Contains(shown, name(f)), brief && name(f) == asked:
		case len(named) < most:
			text := fileLabel(name(f))
			own, base := path.Split(text)
			switch {
			case own == dir && own != "":
				text = base
			case own == "" && dir != "":
				text = "./" + base // not of the directory before it
			}
			dir = own
			named = append(named, fmt.Sprintf("%s +%d -%d", text, f.Added, f.Removed))
		default:
			left++
		}
	}
	if left > 0 {
		named = append(named, count(left, "more file"))
	}
	return strings.Join(named, ", ")
}

// lead writes a text behind a separator; "" for no text.
func lead(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}
