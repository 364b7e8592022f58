package tool

import (
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/node/coverage"
)

// end is the last line of an answer: that it is complete, or what it lacks and
// the call that goes on. Without a coverage nothing is complete.
type end struct {
	coverage coverage.Coverage // by the layer that did the work
	left     []string          // what was left out, each with how to get it
	unlooked []string          // what was not searched
	hint     string            // another call that tells more; "" for none
	file     bool              // it lacks nothing to the end of a file
	found    bool              // what was asked for: files that are kept by name only are then told in brief
}

// String writes the line. Nothing else writes that an answer is complete.
func (e *end) String() string {
	lacking := ""
	if e.left != nil {
		lacking = " Left out: " + strings.Join(e.left, ". Left out: ") + "."
	}
	// Where something was left out both are told; else this one alone.
	if e.unlooked != nil {
		lacking += " Not searched: " + strings.Join(e.unlooked, ". Not searched: ") + "."
	}

	// Repositories that could not be indexed lack nothing that a call could get.
	failed := e.coverage.Gap(coverage.Failed).Count
	but := fmt.Sprintf(" but for %s that could not be indexed; list_repos tells why.", count(failed, "repository"))
	text := strings.TrimPrefix(lacking, " ")
	switch {
	case failed > 0 && lacking != "":
		text += " All" + but
	case failed > 0:
		text = "Complete" + but
	case lacking == "" && !e.coverage.Complete():
		text = "Not searched: " + unknownPart + "."
	case lacking == "" && e.file:
		text = "End of file."
	case lacking == "":
		text = "Complete."
	}

	// Last, for what is lacking matters more than what else could be asked.
	if e.hint != "" {
		text += " " + e.hint
	}
	return text
}

// unknownPart is what nobody searched who tells of it.
const unknownPart = "a part of what was asked for; try again in a few seconds"

// searched ends a sentence that nothing was found, where that is said of a part alone.
func searched(c coverage.Coverage) string {
	if c.Has(coverage.Late, coverage.Lost, coverage.Pending, coverage.Unknown) {
		return " in what was searched."
	}
	return "."
}

// leaves adds what was left out; "" for nothing.
func (e *end) leaves(text string) {
	if text != "" {
		e.left = append(e.left, text)
	}
}

// lacks adds what a search did not find or did not look at. more is the call
// that raises the limit, "" where that is of no use.
func (e *end) lacks(a *Args, c coverage.Coverage, more string) {
	// A higher limit first: it loses nothing, while a narrower question may miss what was sought.
	less := narrower(a.tool)
	if more != "" {
		less = "continue with " + more + ", or " + less
	}
	e.covers(a, c, words{coverage.Limit: "more files match than these; " + less})
	e.unlooked = append(e.unlooked, a.unmatched...)
}

// words say what a gap of a kind is in the answer of a tool, and what can be done.
type words map[coverage.Kind]string

// covers takes what an answer covers, and adds each gap: in the words of the tool, or in
// those for all tools.
func (e *end) covers(a *Args, c coverage.Coverage, own words) {
	e.coverage = c
	for _, g := range c.Gaps() {
		switch {
		case g.Kind == coverage.Failed: // told by String
		case g.Kind == coverage.Limit && own[g.Kind] != "":
			e.left = append(e.left, own[g.Kind])
		case own[g.Kind] != "":
			e.unlooked = append(e.unlooked, own[g.Kind])
		default:
			e.unlooked = append(e.unlooked, e.unsearched(a, g))
		}
	}
}

// unsearched names something that was not searched, and what can be done: unlike what was
// left out, no other call may have it.
func (e *end) unsearched(a *Args, g coverage.Gap) string {
	switch g.Kind {
	// The limit is no help here: the same work would end at the same time.
	case coverage.Late:
		return fmt.Sprintf("what was not reached within 5 seconds; %s, or use a longer literal", narrower(a.tool))
	case coverage.Lost:
		return fmt.Sprintf("%d of %d parts of the index did not answer; try again in a few seconds", g.Count, g.Of)
	case coverage.Pending:
		return fmt.Sprintf("%s not indexed yet", count(g.Count, "repository"))

	// The index knows few revisions of each repository, a mirror knows all: with repo it is asked.
	case coverage.Revision, coverage.NoRevision:
		where := "with repo it is searched wherever it exists"
		if a.tool.Name == "search" {
			where = "grep with repo searches it wherever it exists" // words are ranked by the index alone
		}
		return fmt.Sprintf("%q is not indexed in %d of %d repositories; %s", g.Ref, g.Count, g.Of, where)

	// Named with its cause: an operator without ctags looks for a fault otherwise.
	case coverage.Symbols:
		return symbolsText(a, g)
	case coverage.NameOnly:
		return keptOnce(a, g, e.found)
	case coverage.Shallow:
		return "older commits: the remote is a shallow repository and does not have them"
	}
	return unknownPart
}

// symbolsText names files whose symbols are not known.
func symbolsText(a *Args, g coverage.Gap) string {
	text := "symbols of " + count(g.Count, "file")
	if len(g.Files) > 0 {
		text += ", as " + of(a, g.Files[0].Repo) + label(g.Files[0].Path)
	}
	return text + " (they come after the text; without ctags on the nodes there are none); grep finds text"
}

// keptOnce is keptText, or where the answer about a symbol before this one has it
// already, that these are the same files.
func keptOnce(a *Args, g coverage.Gap, brief bool) string {
	files := keptText(a, g, true)
	if a.told[files] {
		return "the same files"
	}
	if a.told != nil {
		a.told[files] = true
	}
	return keptText(a, g, brief)
}

// keptText names files that are kept by name only; at length, why they are and how
// to read one.
func keptText(a *Args, g coverage.Gap, brief bool) string {
	// Where something was found elsewhere, one name tells what kind of files they are.
	if brief && g.Count > 1 && len(g.Files) > 0 {
		first := g.Files[0]
		return fmt.Sprintf("%s kept by name only, as %s%s", count(g.Count, "file"), of(a, first.Repo), fileLabel(first.Path))
	}

	// Nothing was found: then the answer may stand in one of these files, and why they are kept so
	// matters.
	var names []string
	for _, f := range g.Files {
		name := of(a, f.Repo) + fileLabel(f.Path)
		if !brief {
			name += " (" + f.Why + ")"
		}
		names = append(names, name)
	}

	if names == nil {
		return count(g.Count, "file") + " kept by name only"
	}
	text := "kept by name only: " + strings.Join(names, ", ") + moreThan(len(names), g.Count)
	switch {
	case brief:
		return text
	// With repo, grep also reads some of the files kept by name only, from the mirror.
	case a.Text("repo") == "":
		return text + "; grep with repo reads the first of them"
	}

	// The search was in that repository already; what is left is to read.
	first := g.Files[0]
	return text + "; " + callOf("read_file", "repo", first.Repo, "path", first.Path) + " reads it"
}
