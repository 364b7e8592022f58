package tool

import (
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/node/search"
)

// end is the last line of an answer: that it is complete, or what it lacks and
// the call that goes on.
type end struct {
	left     []string // what was left out, each with how to get it
	unlooked []string // what was not searched
	failed   int      // repositories that could not be indexed
	hint     string   // another call that tells more; "" for none
	found    bool     // what was asked for: files that are kept by name only are then told in brief
}

// String writes the line.
func (e *end) String() string {
	text := complete
	if e.left != nil {
		text = "Left out: " + strings.Join(e.left, ". Left out: ") + "."
	}

	// Where something was left out both are told; else this one alone.
	if e.unlooked != nil {
		unlooked := "Not searched: " + strings.Join(e.unlooked, ". Not searched: ") + "."
		if e.left != nil {
			text += " " + unlooked
		} else {
			text = unlooked
		}
	}

	// Repositories that could not be indexed lack nothing that a call could get.
	if e.failed > 0 {
		text = strings.Replace(text, complete, "Complete", 1)
		if !strings.HasSuffix(text, "Complete") {
			text += " All"
		}
		text += fmt.Sprintf(" but for %s that could not be indexed; list_repos tells why.", count(e.failed, "repository"))
	}

	// Last, for what is lacking matters more than what else could be asked.
	if e.hint != "" {
		text += " " + e.hint
	}
	return text
}

// searched ends a sentence that nothing was found, where that is said of a part alone.
func searched(cut search.Cut) string {
	switch cut.Why {
	case search.CutTime, search.CutParts, search.CutPending, search.CutUnknown:
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
func (e *end) lacks(a *Args, cut search.Cut, more string) {
	missing := func(format string, args ...any) {
		e.unlooked = append(e.unlooked, fmt.Sprintf(format, args...))
	}

	// What is left out can be had with another call, what was not searched cannot: they read
	// differently.
	less := narrower(a.tool)
	switch cut.Why {
	case search.CutLimit:
		// A higher limit first: it loses nothing, while a narrower question may miss what was
		// sought.
		if more != "" {
			less = "continue with " + more + ", or " + less
		}
		e.left = append(e.left, "more files match than these; "+less)

	// The limit is no help here: the same work would end at the same time.
	case search.CutTime:
		missing("what was not reached within 5 seconds; %s, or use a longer literal", less)

	case search.CutParts:
		missing("%d of %d parts of the index did not answer; try again in a few seconds", cut.Count, cut.Of)
	case search.CutPending:
		missing("%s not indexed yet", count(cut.Count, "repository"))
	// The index knows few revisions of each repository, a mirror knows all: with repo it is asked.
	case search.CutRevision, search.CutNoRevision:
		where := "with repo it is searched wherever it exists"
		if a.tool.Name == "search" {
			where = "grep with repo searches it wherever it exists" // words are ranked by the index alone
		}
		missing("%q is not indexed in %d of %d repositories; %s", cut.Ref, cut.Count, cut.Of, where)

	// Named with its cause: an operator without ctags looks for a fault otherwise.
	case search.CutSymbols:
		missing("files whose symbols are not known (they come after the text; without ctags on the nodes there are none); grep finds text")
	case search.CutUnknown:
		missing("a part of the index; try again in a few seconds")
	}

	// These do not depend on why the search ended, and are told beside it.
	e.failed = cut.Failed
	if cut.Unsearched > 0 {
		e.unlooked = append(e.unlooked, keptOnce(a, cut, e.found))
	}
}

// keptOnce is keptText, or where the answer about a symbol before this one has it
// already, that these are the same files.
func keptOnce(a *Args, cut search.Cut, brief bool) string {
	files := keptText(a, cut, true)
	if a.told[files] {
		return "the same files"
	}
	if a.told != nil {
		a.told[files] = true
	}
	return keptText(a, cut, brief)
}

// keptText names files that are kept by name only; at length, why they are and how
// to read one.
func keptText(a *Args, cut search.Cut, brief bool) string {
	// Where something was found elsewhere, one name tells what kind of files they are.
	if brief && cut.Unsearched > 1 && len(cut.UnsearchedFiles) > 0 {
		first := cut.UnsearchedFiles[0]
		return fmt.Sprintf("%s kept by name only, as %s%s", count(cut.Unsearched, "file"), of(a, first.Repo), label(first.Path))
	}

	// Nothing was found: then the answer may stand in one of these files, and why they are kept so
	// matters.
	var names []string
	for _, f := range cut.UnsearchedFiles {
		name := of(a, f.Repo) + label(f.Path)
		if !brief {
			name += " (" + f.Why + ")"
		}
		names = append(names, name)
	}

	text := "kept by name only: " + strings.Join(names, ", ")
	if more := cut.Unsearched - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case brief:
		return text
	// A search in one repository reads some of these files too, from the mirror.
	case a.Text("repo") == "":
		return text + "; grep with repo reads the first of them"
	}

	// The search was in that repository already; what is left is to read.
	first := cut.UnsearchedFiles[0]
	return text + "; " + callOf("read_file", "repo", first.Repo, "path", first.Path) + " reads it"
}
