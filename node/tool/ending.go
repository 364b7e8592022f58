package tool

import (
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/node/coverage"
)

// end is the last line of an answer. It says that the answer is complete, or what is missing and
// which call continues. An answer without a coverage is never called complete.
type end struct {
	coverage coverage.Coverage // by the layer that did the work
	left     []string          // what was left out, each with how to get it
	unlooked []string          // what was not searched
	hint     string            // another call that tells more; "" for none
	file     bool              // it lacks nothing to the end of a file
	found    bool              // what was asked for: files that are kept by name only are then told in brief
}

// String returns the line. Only this function writes that an answer is complete.
func (e *end) String() string {
	lacking := ""
	if e.left != nil {
		lacking = " Left out: " + strings.Join(e.left, ". Left out: ") + "."
	}
	// An answer may both leave something out and not have searched something.
	if e.unlooked != nil {
		lacking += " Not searched: " + strings.Join(e.unlooked, ". Not searched: ") + "."
	}

	// No call returns anything from repositories that could not be indexed.
	failed := e.coverage.Gap(coverage.Failed).Count
	but := fmt.Sprintf(" but for %s that could not be indexed; list_repos tells why.", count(failed, "repository"))
	text := strings.TrimPrefix(lacking, " ")
	switch {
	case failed > 0 && e.coverage.Nothing():
		text = strings.TrimPrefix(lacking+fmt.Sprintf(" Nothing was searched: %s could not be indexed; list_repos tells why.", count(failed, "repository")), " ")
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

	// The hint comes last: what is missing matters more.
	if e.hint != "" {
		text += " " + e.hint
	}
	return text
}

// unknownPart describes a gap whose cause is unknown.
const unknownPart = "a part of what was asked for; try again in a few seconds"

// searched ends the sentence that nothing was found. It says so if only a part was searched.
func searched(c coverage.Coverage) string {
	if c.Has(coverage.Late, coverage.Lost, coverage.Pending, coverage.Unknown) {
		return " in what was searched."
	}
	return "."
}

// leaves adds something that was left out, unless text is "".
func (e *end) leaves(text string) {
	if text != "" {
		e.left = append(e.left, text)
	}
}

// lacks adds the gaps of a search. more is the call with a higher limit; "" if that would not help.
func (e *end) lacks(a *Args, c coverage.Coverage, more string) {
	// Advise the higher limit first: a narrower query may miss what was sought.
	less := narrower(a.tool)
	if more != "" {
		less = "continue with " + more + ", or " + less
	}
	e.covers(a, c, words{coverage.Limit: "more files match than these; " + less})
	e.unlooked = append(e.unlooked, a.unmatched...)
}

// words describes each kind of gap for one tool, with what the caller can do.
type words map[coverage.Kind]string

// covers records the coverage of an answer and adds each gap, in the tool's words or in the common
// ones.
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

// unsearched describes a gap, and what the caller can do about it.
func (e *end) unsearched(a *Args, g coverage.Gap) string {
	switch g.Kind {
	// A higher limit does not help: the search would run out of time at the same point.
	case coverage.Late:
		return fmt.Sprintf("what was not reached within 5 seconds; %s, or use a longer literal", narrower(a.tool))
	case coverage.Lost:
		return fmt.Sprintf("%d of %d parts of the index did not answer; try again in a few seconds", g.Count, g.Of)
	case coverage.Pending:
		return fmt.Sprintf("%s not indexed yet", count(g.Count, "repository"))

	// The index has a few revisions of each repository; a mirror has all. With repo, grep reads the
	// mirror.
	case coverage.Revision, coverage.NoRevision:
		where := "with repo it is searched wherever it exists"
		if a.tool.Name == "search" {
			where = "grep with repo searches it wherever it exists" // words are ranked by the index alone
		}
		return fmt.Sprintf("%q is not indexed in %d of %d repositories; %s", g.Ref, g.Count, g.Of, where)

	// Name the cause, so that an operator without ctags does not look for a fault.
	case coverage.Symbols:
		return symbolsText(a, g)
	case coverage.NameOnly:
		return keptOnce(a, g, e.found)
	case coverage.Shallow:
		return "older commits: the remote is a shallow repository and does not have them"
	}
	return unknownPart
}

// symbolsText describes files whose symbols are unknown.
func symbolsText(a *Args, g coverage.Gap) string {
	text := "symbols of " + count(g.Count, "file")
	if len(g.Files) > 0 {
		text += ", as " + of(a, g.Files[0].Repo) + label(g.Files[0].Path)
	}
	return text + " (they come after the text; without ctags on the nodes there are none); grep finds text"
}

// keptOnce returns keptText. If an earlier answer of the same call has it already, it says "the
// same files".
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

// keptText describes files that are indexed only by name. If not brief, it also says why, and how
// to read one.
func keptText(a *Args, g coverage.Gap, brief bool) string {
	// Something was found elsewhere, so one example of such files is enough.
	if brief && g.Count > 1 && len(g.Files) > 0 {
		first := g.Files[0]
		return fmt.Sprintf("%s kept by name only, as %s%s", count(g.Count, "file"), of(a, first.Repo), fileLabel(first.Path))
	}

	// Nothing was found, so the answer may be in these files; the reason is important.
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
	// With repo, grep also reads some files indexed only by name, from the mirror.
	case a.Text("repo") == "":
		return text + "; grep with repo reads the first of them"
	}

	// That repository was searched already. The caller can still read the file.
	first := g.Files[0]
	return text + "; " + callOf("read_file", "repo", first.Repo, "path", first.Path) + " reads it"
}
