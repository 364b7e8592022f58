package tool

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

func rankedSearch(s symbols.Searcher, b browse.Reader) Tool {
	return Tool{
		Name: "search", Title: "Search for words",
		About: "Ranks files by words of a question. Use it when you do not know a name. Shows the best block of the first file, then the best lines of others as `line in function: text`. Filters: lang:go, -file:x, sym:name.",
		Params: []Param{
			{Name: "query", Kind: String, Required: true, About: "words, as: retry replication backoff"},
			anyRepoParam, pathParam, includeParam, excludeParam, testsParam,
			{Name: "ref", Kind: String, About: "indexed branch or tag"},
			{Name: "limit", Kind: Integer, Min: 1, Max: mostRanked, Default: 10, About: "most files"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runRankedSearch(ctx, v, s, b, a)
		},
	}
}

// runRankedSearch runs a call of search.
func runRankedSearch(ctx context.Context, v catalog.Viewer, s symbols.Searcher, b browse.Reader, a *Args) (string, error) {
	l := &lookup{a, ctx, v, s, b}
	req := search.RankedRequest{
		Query: a.Text("query"),
		Repo:  a.Text("repo"),
		Ref:   a.Text("ref"),
		Paths: pathsOf(a),
		Limit: a.Number("limit"),
	}
	r, err := s.Ranked(ctx, v, req)
	if err != nil {
		return "", err
	}

	// If nothing was found, the path may be wrong.
	if len(r.Files) == 0 {
		if err := pathIsThere(ctx, v, b, a); err != nil {
			return "", err
		}
	}
	return l.ranked(r), nil
}

// mostRanked is the largest number of ranked files.
const mostRanked = 100

// ranked writes files with their best lines.
func (l *lookup) ranked(r *search.RankedResponse) string {
	e := end{found: len(r.Files) > 0}
	e.lacks(l.Args, r.Coverage, "")
	if len(r.Files) == 0 {
		return l.noWords(r) + "\n" + e.String()
	}

	blocks, paths := l.rankedBlocks(r)

	var out strings.Builder
	out.WriteString(rankedHead(r))
	if len(r.Missing) > 0 {
		out.WriteString("; no file has " + quotedWords(r.Missing) + strings.TrimSuffix(searched(r.Coverage), "."))
	}

	// One more call shows a single file with all of its lines.
	shown := writeBlocks(l.Args, &out, blocks, &e, func(i int) string { return l.with("path", paths[i]) })

	// A higher limit helps only if all of these files had room.
	if shown < len(blocks) || r.More {
		more := "files that rank lower"
		if l.Number("limit") < mostRanked && shown == len(blocks) {
			more += "; continue with " + l.with("limit", min(mostRanked, 3*l.Number("limit")))
		}
		e.leaves(more)
	}
	return out.String() + e.String()
}

// noWords answers if no file has the words, with a suggestion.
func (l *lookup) noWords(r *search.RankedResponse) string {
	// After an incomplete search, other words do not help; the end says what does.
	where := searched(r.Coverage)
	text := "No file has these words" + where
	if r.Coverage.Has(coverage.NoRevision) || where != "." {
		return text
	}

	text += " Try other words of the same meaning"
	// Suggest the first word alone, as the most important one.
	if len(r.Words) > 1 {
		text += ", or fewer: " + l.with("query", strings.Join(r.Words[:1], " "))
	}
	return text + "."
}

// rankedHead says how many files there are, and how many have all words.
func rankedHead(r *search.RankedResponse) string {
	files := count(len(r.Files), "file")
	switch {
	case r.Whole >= len(r.Files) && len(r.Missing) > 0:
		return fmt.Sprintf("%s with all other words, best first", files)
	case r.Whole >= len(r.Files):
		return fmt.Sprintf("%s with all words, best first", files)
	}
	return fmt.Sprintf("%s, best first; %d with all words", files, r.Whole)
}

// quotedWords lists words, with phrases in quotes.
func quotedWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = label(w)
		if strings.Contains(w, " ") {
			quoted[i] = `"` + quoted[i] + `"`
		}
	}
	return strings.Join(quoted, ", ")
}

// rankedBlocks makes a block for each file. The repository is named above the first of consecutive
// files.
func (l *lookup) rankedBlocks(r *search.RankedResponse) (blocks []block, paths []string) {
	last := ""
	for i := range r.Files {
		f := &r.Files[i]
		paths = append(paths, f.Path)
		b := l.rankedBlock(f, len(r.Words))
		// Files of several repositories alternate by rank; name the repository at each change.
		if l.Text("repo") == "" && f.Repo != last {
			b.head = "[" + f.Repo + "]\n" + b.head
		}
		last = f.Repo
		blocks = append(blocks, b)
	}
	return blocks, paths
}

func (l *lookup) rankedBlock(f *search.RankedFile, words int) block {
	b := block{head: fileLabel(f.Path)}
	// Say if a word is missing: it may be the important one.
	if f.Words < words {
		b.head += fmt.Sprintf(", %d/%d words", f.Words, words)
	}
	if f.Copies > 0 {
		b.head += ", " + count(f.Copies, "equal copy")
	}
	b.head += "\n"

	last, indent := "", 0
	for i, line := range f.Lines {
		// In a block, indentation shows structure. Remove what all lines share.
		if len(f.Lines) <= rankedFew {
			indent = indentOf(line.Text)
		} else if i == 0 {
			indent = commonIndent(f.Lines)
		}
		mark := ""
		if line.In.Name != "" {
			mark = " in " + withinFile(f.Path, scopedName(line.In.Name, line.In.ParentName, line.In.ParentKind))
		}
		// Consecutive lines in one function name it once.
		if mark == last {
			mark = ""
		} else if mark != "" {
			last = mark
		}

		// Cut a long line around a word of the query, so that it shows why the line matches.
		text := strings.TrimRight(clean(line.Text)[indent:], " \t")
		text = aroundMatch(text, anyWord(l.Text("query")))
		b.lines = append(b.lines, fmt.Sprintf("%d%s: %s\n", line.Number, mark, text))
	}
	return b
}

// rankedFew is the largest number of single lines of a file. A block has more lines, and its
// indentation is kept.
const rankedFew = 2

// indentOf returns the number of leading blanks of a line.
func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " \t")) }

// commonIndent returns the smallest indentation of some lines.
func commonIndent(lines []search.RankedLine) int {
	least := indentOf(lines[0].Text)
	for _, l := range lines {
		least = min(least, indentOf(l.Text))
	}
	return least
}

// anyWord matches any word of a query, for cutting long lines around it.
func anyWord(words string) *regexp.Regexp {
	fields := strings.Fields(words)
	for i, f := range fields {
		fields[i] = regexp.QuoteMeta(f)
	}
	expr, err := regexp.Compile("(?i)" + strings.Join(fields, "|"))
	if err != nil {
		return nil
	}
	return expr
}
