package tool

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
)

// tally has the totals of a group.
type tally struct {
	name           string
	files, matches int
	last           int // file that was counted last
}

// groups writes the totals of each group, the largest first.
func (g *grepping) groups(r *search.GrepResponse) string {
	tallies := g.tallies(r.Files)
	matches := 0
	for _, t := range tallies {
		matches += t.matches
	}

	var out strings.Builder
	// Write the number of groups if it differs from the number of files.
	fmt.Fprintf(&out, "%s in %s", count(matches, "match"), count(len(r.Files), "file"))
	switch g.group {
	case "directory":
		fmt.Fprintf(&out, " of %s", count(len(tallies), "directory"))
	case "repo":
		fmt.Fprintf(&out, " of %s", count(len(tallies), "repository"))
	case "match":
		// Groups by matched text do not name files, so name a single file here.
		if len(r.Files) == 1 {
			fmt.Fprintf(&out, " (%s)", of(g.Args, r.Files[0].Repo)+label(r.Files[0].Path))
		}
		fmt.Fprintf(&out, ", %s", count(len(tallies), "different text"))
	}
	out.WriteByte('\n')

	e := g.ending(true)
	if left := rangesOf(r.Files) - matches; g.group == "match" && left > 0 {
		e.leaves(count(left, "match") + ", on lines that are cut or too many")
	}
	// With groups, limit and offset are numbers of groups.
	rest := tallies[min(g.offset, len(tallies)):]
	most := len(rest)
	if g.Has("limit") {
		most = g.limit
	}
	for i, t := range rest {
		name := cut(t.name, 0, 0)
		line := fmt.Sprintf("%s: %d in %d\n", name, t.matches, t.files)
		if g.group == "file" || g.group == "match" && t.files == 1 {
			line = fmt.Sprintf("%s: %d\n", name, t.matches)
		}

		// The groups are sorted, so those left out are smaller.
		full := out.Len()+len(line) > g.room() && i > 0
		if full || i == most {
			left := count(len(rest)-i, g.groupNoun())
			e.left = append(e.left, fmt.Sprintf("%s with fewer; continue with %s", left, g.with("offset", g.offset+i)))
			break
		}
		out.WriteString(line)
	}
	e.lacks(g.Args, r.Coverage, "")
	return out.String() + e.String()
}

// groupNoun returns the noun for a group in the answer.
func (g *grepping) groupNoun() string {
	switch g.group {
	case "repo":
		return "repository"
	case "directory":
		return "directory"
	case "match":
		return "text"
	}
	return "file"
}

// tallies sums up files by directory, repository, or matched text.
func (g *grepping) tallies(files []search.GrepFile) []tally {
	sums := newSums()
	if g.group == "match" {
		g.sumTexts(files, sums)
	} else {
		for i := range files {
			sums.add(g.groupOf(&files[i]), i, files[i].Matches)
		}
	}

	// Equal totals are sorted by name, so that offset continues in the same order.
	all := sums.all
	slices.SortStableFunc(all, func(x, y tally) int {
		return cmp.Or(cmp.Compare(y.matches, x.matches), cmp.Compare(x.name, y.name))
	})
	return all
}

// sums finds tallies by name. The files of a group are not adjacent, because they are sorted by
// rank.
type sums struct {
	all []tally
	at  map[string]int
}

func newSums() *sums { return &sums{at: map[string]int{}} }

// add counts matches in a file, given by its number. Matches of one group in one file must be added
// consecutively.
func (s *sums) add(name string, file, matches int) {
	k, ok := s.at[name]
	if !ok {
		k = len(s.all)
		s.at[name] = k
		s.all = append(s.all, tally{name: name, last: -1})
	}

	t := &s.all[k]
	t.matches += matches
	if t.last != file {
		t.files, t.last = t.files+1, file
	}
}

// sumTexts counts each matched text. It runs the expression again, because a search does not return
// what a capture group matched.
func (g *grepping) sumTexts(files []search.GrepFile, sums *sums) {
	expr, err := regexp.Compile("(?m)" + g.pattern)
	if err != nil {
		return // what cannot be compiled was refused before
	}

	for i := range files {
		for _, run := range runsOfLines(files[i].Lines) {
			found := expr.FindAllSubmatchIndex(run, -1)
			for _, at := range found {
				sums.add(textLabel(textOf(run, at)), i, 1)
			}

			// The expression may need text outside the line, such as the \r before a line break.
			if found == nil {
				sums.add(textLabel(run), i, 1)
			}
		}
	}
}

// runsOfLines joins consecutive lines, because a match may span several.
func runsOfLines(lines []browse.Line) (runs [][]byte) {
	for i, line := range lines {
		if i > 0 && lines[i-1].Number == line.Number-1 {
			last := &runs[len(runs)-1]
			*last = append(append(*last, '\n'), line.Text...)
			continue
		}
		runs = append(runs, bytes.Clone(line.Text))
	}
	return runs
}

// textOf returns the text of the first capture group that matched, or the whole match if there is
// none. at has the submatch indexes of package regexp.
func textOf(run []byte, at []int) []byte {
	for k := 2; k < len(at); k += 2 {
		if at[k] >= 0 {
			return run[at[k]:at[k+1]]
		}
	}
	return run[at[0]:at[1]]
}

// textLabel writes a matched text on one line.
func textLabel(text []byte) string {
	if len(text) == 0 {
		return `""`
	}
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		lines[i] = label(lines[i])
	}
	return strings.Join(lines, `\n`)
}

// groupOf returns the group of a file. A directory group is at most two levels below the searched
// path.
func (g *grepping) groupOf(f *search.GrepFile) string {
	if g.group == "repo" {
		return f.Repo
	}

	name := fileLabel(f.Path)
	if g.group == "directory" {
		// All files share the directories above the searched path, so they are left out.
		base := strings.Trim(g.Text("path"), "/")
		below := strings.TrimPrefix(path.Dir(name), base)
		parts := strings.SplitN(strings.TrimPrefix(below, "/"), "/", 3)
		levels := parts[:min(len(parts), 2)]
		name = path.Join(append([]string{base}, levels...)...)
		if name == "" {
			name = "." // the root has no name
		}
	}

	// Directories of different repositories are different groups.
	if g.Text("repo") == "" {
		name = f.Repo + " " + name
	}
	return name
}
