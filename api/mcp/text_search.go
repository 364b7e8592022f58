package mcp

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/shoalsearch/shoal/node"
)

// grepText writes matching lines by file.
func grepText(a *args, r *node.GrepResponse, limit int) string {
	if len(r.Files) == 0 {
		return nothing("No line matches.", r.CutWhy, a, "grep")
	}
	expr, _ := regexp.Compile("(?m)" + a.text("pattern")) // nil shows lines from their start
	blocks, repos := make([]block, len(r.Files)), map[string]bool{}
	last := ""
	for i := range r.Files {
		f := &r.Files[i]
		repos[f.Repo] = true
		b := block{head: clean([]byte(f.Path)) + "\n"}
		if a.text("repo") == "" && f.Repo != last {
			b.head = "[" + f.Repo + "]\n" + b.head
		}
		last = f.Repo
		for _, line := range f.Lines {
			b.lines = append(b.lines, fmt.Sprintf("%d: %s\n", line.Number, around(clean(line.Text), expr)))
		}
		blocks[i] = b
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s in %s", count(r.Matches, "matching line"), count(len(r.Files), "file"))
	if a.text("repo") == "" {
		fmt.Fprintf(&out, " of %s", count(len(repos), "repository"))
	}
	return blocksText(&out, blocks, rest{r.Cut, r.CutWhy, r.Over}, func(i int) string { return onlyFile(a, "grep", r.Files[i].Repo, r.Files[i].Path) }, moreFiles(a, "grep", limit))
}

// around cuts a line around its first match.
func around(line string, expr *regexp.Regexp) string {
	from, to := 0, 0
	if expr != nil && len(line) > 2*aside {
		if m := expr.FindStringIndex(line); m != nil {
			from, to = m[0], m[1]
		}
	}
	return cut(line, from, to)
}

// onlyFile is the call that searches one file.
func onlyFile(a *args, tool, repo, path string) string {
	return a.with(tool, "repo", repo, "path", nil, "include", globQuote(path), "limit", nil)
}

// globQuote escapes what a glob would take for more than itself.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(path)
}

// moreFiles is the call that asks for more files.
func moreFiles(a *args, tool string, limit int) string {
	if limit >= 10000 {
		return "narrow with repo, path or include"
	}
	return a.with(tool, "limit", min(10000, limit*4)) + ", or narrow with repo, path or include"
}

// rest is what an answer lacks before it is written.
type rest struct {
	cut  bool
	why  string // a sentence
	over bool   // a greater limit gives more
}

// blocksText writes files within the budget and says in the last line what
// was left out. one is the call for the file with a number, more the call
// for further files.
func blocksText(out *strings.Builder, blocks []block, lacks rest, one func(i int) string, more string) string {
	level, shown := share(blocks, budget-reserve-out.Len())
	if shown < len(blocks) {
		fmt.Fprintf(out, "; the first %d files are shown", shown)
	}
	out.WriteByte('\n')
	shortened, first := 0, -1
	for i := range blocks[:shown] {
		left := blocks[i].fit(out, level, func(left int) string { return fmt.Sprintf("… %d more\n", left) })
		if left > 0 {
			if shortened++; first < 0 {
				first = i
			}
		}
	}
	var left []string
	if shortened > 0 {
		left = append(left, fmt.Sprintf("lines of %s (marked …); continue with %s", count(shortened, "file"), one(first)))
	}
	if hidden := len(blocks) - shown; hidden > 0 {
		left = append(left, fmt.Sprintf("%s; narrow with repo, path or include", count(hidden, "file")))
	}
	switch {
	case lacks.cut && lacks.over:
		left = append(left, because(lacks.why)+"continue with "+more)
	case lacks.cut:
		left = append(left, strings.TrimRight(lacks.why, ". "))
	}
	out.WriteString(ending(left))
	return out.String()
}

// because is the reason of a cut as the beginning of a sentence.
func because(why string) string {
	if why == "" {
		return "more than the limit; "
	}
	return strings.TrimRight(why, ". ") + "; "
}

func ending(rest []string) string {
	if rest == nil {
		return complete
	}
	return "Left out: " + strings.Join(rest, ". Left out: ") + "."
}

// nothing is the result of a search that found nothing.
func nothing(first, why string, a *args, tool string) string {
	if why != "" {
		return first + "\nNot everything was searched: " + strings.TrimRight(why, ". ") + "."
	}
	hint := ""
	switch {
	case tool == "grep" && !strings.HasPrefix(a.text("pattern"), "(?i)"):
		hint = " To ignore case: " + a.with(tool, "pattern", "(?i)"+a.text("pattern")) + "."
	case tool == "glob" && !strings.HasPrefix(a.text("pattern"), "**/"):
		hint = " A glob has to match the whole path; anywhere: " + a.with(tool, "pattern", "**/"+strings.TrimLeft(a.text("pattern"), "/")) + "."
	}
	return first + hint + "\n" + complete
}

// grepCounts writes how much each repository has.
func grepCounts(a *args, r *node.GrepResponse) string {
	if len(r.Repos) == 0 {
		return nothing("No line matches.", r.CutWhy, a, "grep")
	}
	var out strings.Builder
	lines := block{}
	for _, c := range r.Repos {
		lines.lines = append(lines.lines, fmt.Sprintf("%s: %s in %s\n", c.Repo, count(c.Matches, "match"), count(c.Files, "file")))
	}
	fmt.Fprintf(&out, "%s with matches\n", count(len(r.Repos), "repository"))
	hidden := lines.fit(&out, budget-reserve, func(int) string { return "" })
	var left []string
	if hidden > 0 {
		left = append(left, count(hidden, "repository")+"; narrow with path or include")
	}
	if r.Cut {
		left = append(left, because(r.CutWhy)+"counts are at least these; narrow with repo, path or include")
	}
	out.WriteString(ending(left))
	return out.String()
}

// globText writes paths by repository.
func globText(a *args, r *node.GlobResponse, limit int) string {
	if len(r.Repos) == 0 {
		return nothing("No file matches.", r.CutWhy, a, "glob")
	}
	blocks := make([]block, len(r.Repos))
	for i := range r.Repos {
		if a.text("repo") == "" {
			blocks[i].head = "[" + r.Repos[i].Repo + "]\n"
		}
		blocks[i].lines = byDirectory(r.Repos[i].Paths)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s", count(r.Files, "file"))
	if a.text("repo") == "" {
		fmt.Fprintf(&out, " in %s", count(len(r.Repos), "repository"))
	}
	one := func(i int) string {
		return a.with("glob", "repo", r.Repos[i].Repo) + " with a narrower pattern or path"
	}
	return blocksText(&out, blocks, rest{r.Cut, r.CutWhy, r.Over}, one, moreFiles(a, "glob", limit))
}

// byDirectory writes paths so that a directory with several of them is named
// once, with the names of its files below it.
func byDirectory(paths []string) []string {
	in := map[string]int{}
	for _, p := range paths {
		in[path.Dir(p)]++
	}
	var lines []string
	written := map[string]bool{}
	for _, p := range paths {
		dir := path.Dir(p)
		switch {
		case dir == "." || in[dir] == 1:
			lines = append(lines, clean([]byte(p))+"\n")
		case !written[dir]:
			written[dir] = true
			lines = append(lines, clean([]byte(dir))+"/\n")
			for _, q := range paths {
				if path.Dir(q) == dir {
					lines = append(lines, " "+clean([]byte(path.Base(q)))+"\n")
				}
			}
		}
	}
	return lines
}

// symbolText writes places of a symbol by file.
func symbolText(a *args, r *node.SymbolResponse, noun string) string {
	symbol := a.text("symbol")
	if len(r.Files) == 0 {
		text := "No " + noun + " of " + symbol + " found. As text: grep " + quote(map[string]string{"pattern": `\b` + regexp.QuoteMeta(symbol) + `\b`, "repo": a.text("repo")}) + ".\n"
		if len(r.Similar) > 0 {
			text += "Similar names: " + clean([]byte(strings.Join(r.Similar, ", "))) + ".\n"
		}
		if !r.Exhaustive {
			return text + "Not everything was searched; try again in a few seconds."
		}
		return text + complete
	}
	blocks, remarks := make([]block, len(r.Files)), 0
	for i := range r.Files {
		f := &r.Files[i]
		blocks[i].head = clean([]byte(f.Path)) + "\n"
		for _, m := range f.Matches {
			kind, from := "", int(m.Range.Start.Column)-1
			if m.Kind != "" {
				kind = " [" + m.Kind + "]"
				if m.ParentName != "" {
					kind = " [" + m.Kind + " in " + strings.TrimSpace(m.ParentKind+" "+clean([]byte(m.ParentName))) + "]"
				}
			}
			if m.Remark {
				kind = "~"
				remarks++
			}
			text := clean(m.Line)
			if at := strings.Index(text, symbol); at >= 0 {
				from = at
			}
			from = min(max(from, 0), len(text))
			blocks[i].lines = append(blocks[i].lines, fmt.Sprintf("%d%s: %s\n", m.Range.Start.Line, kind, cut(text, from, min(len(text), from+len(symbol)))))
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s of %s in %s", count(r.MatchCount, noun), symbol, count(len(r.Files), "file"))
	if remarks > 0 {
		fmt.Fprintf(&out, ", %d of them in comments or strings (~)", remarks)
	}
	one := func(i int) string {
		return "grep " + quote(map[string]string{"pattern": `\b` + regexp.QuoteMeta(symbol) + `\b`, "repo": a.text("repo"), "include": globQuote(r.Files[i].Path)})
	}
	return blocksText(&out, blocks, rest{!r.Exhaustive, "some were left out", true}, one, `grep {"pattern":`+quote(`\b`+regexp.QuoteMeta(symbol)+`\b`)+`,"repo":`+quote(a.text("repo"))+`}`)
}
