package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
)

func listBranches(b browse.Reader) Tool {
	return Tool{
		Name: "list_branches", Title: "List branches and tags",
		About: "Lists branches or tags of a repository, newest first, with their commits.",
		Params: []Param{
			repoParam,
			{Name: "query", Kind: String, About: "part of the name, in any case"},
			{Name: "kind", Kind: String, Words: []string{"branches", "tags", "all"}, Default: "branches"},
			{Name: "contains", Kind: String, About: "commit that they have"},
			pageParam, perPage(50),
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runListBranches(ctx, v, b, a)
		},
	}
}

// runListBranches runs a call of list_branches.
func runListBranches(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) (string, error) {
	req := browse.RefsRequest{
		Repo:    a.Text("repo"),
		Query:   a.Text("query"),
		Page:    a.Number("page"),
		PerPage: a.Number("perPage"),

		Contains: a.Text("contains"),
	}

	kind := a.Text("kind")

	// Branches and tags are two listings; page and perPage apply to both.
	var branches, tags *browse.RefsResponse
	var err error
	if kind != "tags" {
		branches, err = b.Branches(ctx, v, req)
		if err != nil {
			return "", err
		}
	}

	if kind != "branches" {
		tags, err = b.Tags(ctx, v, req)
		if err != nil {
			return "", err
		}
	}

	return refsText(a, branches, tags), nil
}

// refsText writes branches and tags. One of them may be nil.
func refsText(a *Args, branches, tags *browse.RefsResponse) string {
	var out strings.Builder

	// Each list gets half of the room, so that many branches leave room for tags.
	room := a.room()
	if branches != nil && tags != nil {
		room /= 2
	}

	lists := slices.DeleteFunc([]refList{{"branch", branches}, {"tag", tags}}, func(l refList) bool { return l.r == nil })
	covered := lists[0].r.Coverage()
	shown, total, fit, over := 0, 0, 0, 0
	for _, list := range lists {
		covered = covered.And(list.r.Coverage())
		written := writeRefs(&out, list.noun, list.r, room)
		if left := len(list.r.Refs) - written; left > 0 {
			over += left
			fit = min(cmp.Or(fit, written), written)
		}

		// Both lists have the same page number; the longer list decides about the last page.
		shown = max(shown, len(list.r.Refs))
		total = max(total, list.r.Total)
	}

	// The next page continues the list that was cut first. It may repeat entries of the other.
	var e end
	e.covers(a, covered, words{coverage.Late: "what was not reached within 2 seconds"})
	if over > 0 {
		e.noRoom(a, "entry", fit, fit+over)
	} else {
		e.pages(a, shown, total)
	}
	return out.String() + e.String()
}

// refList is a list of branches or of tags.
type refList struct {
	noun string
	r    *browse.RefsResponse
}

// writeRefs writes branches or tags, one per line, in at most room bytes. It returns how many.
func writeRefs(out *strings.Builder, noun string, r *browse.RefsResponse, room int) (written int) {
	begin := out.Len()
	if r.Late {
		out.WriteString("At least ") // what was not looked at is not counted
	}
	fmt.Fprintf(out, "%s of %s", count(r.Total, noun), r.Repo)
	if r.Contains != "" {
		fmt.Fprintf(out, " with %.12s in the history", r.Contains)
	}
	out.WriteString(", newest first")
	// Name it in the first line: the branch may be on another page.
	if r.DefaultBranch != "" && noun == "branch" {
		fmt.Fprintf(out, "; default %s", r.DefaultBranch)
	}
	out.WriteByte('\n')

	for i := range r.Refs {
		line := refLine(&r.Refs[i])
		// Write at least one entry: a page without any would be requested again and again.
		if out.Len()-begin+len(line) > room && i > 0 {
			return i
		}
		out.WriteString(line)
	}
	return len(r.Refs)
}

// refLine describes a branch or tag on one line.
func refLine(b *browse.RefInfo) string {
	line := fmt.Sprintf("%s %.12s %s", label(b.Name), b.Commit, b.CommittedAt.UTC().Format("2006-01-02"))
	if b.Default {
		line += " default"
	}
	// Searches of all repositories cover indexed revisions. Others are searched only with repo and
	// ref.
	if b.Indexed {
		line += " indexed"
	}
	return line + "\n"
}
