package difftest

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fileOf returns the file that a call of a route names.
func (c toolCall) fileOf(w *twin) *file {
	return w.named(c.text("repo")).revision(c.text("ref")).fileAt(c.text("path"))
}

func drawFileOf(r *rand.Rand, w *twin) map[string]any {
	a := w.repos[r.IntN(len(w.repos))]
	x := a.refs[r.IntN(len(a.refs))]
	return map[string]any{"repo": a.name, "path": x.files[r.IntN(len(x.files))].path, "ref": x.name}
}

// isSource checks the text of a file.
func isSource(c toolCall, w *twin, text string) verdict {
	f := c.fileOf(w)
	v := verdict{claimed: true}.about(f)
	var got struct {
		Source, Encoding string
		IsBinary         bool
		LineCount        int
		Target           string
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return v.wrong("%v", err)
	}
	switch {
	case got.IsBinary != f.binary:
		return v.wrong("binary is %v", got.IsBinary)
	case f.binary:
		return v
	case got.Source != shown(f.text):
		return v.wrong("the scan has %.300q", shown(f.text))
	case got.LineCount != len(f.lineTexts()):
		return v.wrong("%d lines, the scan has %d", got.LineCount, len(f.lineTexts()))
	case got.Encoding != f.encoding:
		return v.wrong("encoding %q, the scan has %q", got.Encoding, f.encoding)
	}
	return v
}

func drawSource(r *rand.Rand, w *twin) call {
	args := drawFileOf(r, w)
	return toolCall{name: "/api/source", args: args, is: isSource, need: []string{"repo", "path", "ref"}}
}

func isRaw(c toolCall, w *twin, text string) verdict {
	f := c.fileOf(w)
	if v := (verdict{claimed: true}).about(f); text != string(f.raw) {
		return v.wrong("the scan has %.300q", f.raw)
	}
	return verdict{claimed: true}
}

func drawRaw(r *rand.Rand, w *twin) call {
	return toolCall{name: "/api/raw", args: drawFileOf(r, w), is: isRaw, need: []string{"repo", "path", "ref"}}
}

// treeNode is a directory in an answer of /api/tree.
type treeNode struct {
	Type, Path, Name, Commit, Target string
	Children                         []treeNode
}

// isTree checks the opened directories.
func isTree(c toolCall, w *twin, text string) verdict {
	var got struct {
		Tree        treeNode
		IsTruncated bool
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return wrong("%v", err)
	}
	a := w.named(c.text("repoName"))
	v := verdict{claimed: !got.IsTruncated}
	opened := c.args["paths"].([]string)[0]
	node := &got.Tree
	for node.Path != opened {
		i := slices.IndexFunc(node.Children, func(n treeNode) bool { return n.Type == "tree" && within(opened, n.Path) })
		if i < 0 {
			return v.wrong("%q is not opened", opened)
		}
		node = &node.Children[i]
	}

	at := a.revision(c.text("revisionName")).commit + ":" + opened
	out, _ := w.git(a, "ls-tree", "-z", at)
	want := map[string]int{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		head, name, _ := strings.Cut(entry, "\t")
		want[strings.Fields(head)[1]+" "+shown(path.Join(opened, name))]++
	}
	for _, n := range node.Children {
		if want[n.Type+" "+n.Path]--; want[n.Type+" "+n.Path] < 0 {
			return v.wrong("%s %q is no entry of the scan", n.Type, n.Path)
		}
	}
	for name, n := range want {
		if n > 0 && v.claimed {
			return v.wrong("it lacks %q", name)
		}
	}
	return v
}

func drawTree(r *rand.Rand, w *twin) call {
	of := drawFileOf(r, w)
	dir := path.Dir(of["path"].(string))
	if dir == "." || !utf8.ValidString(dir) {
		dir = ""
	}
	args := map[string]any{"repoName": of["repo"], "revisionName": of["ref"], "paths": []string{dir}}
	return toolCall{name: "POST /api/tree", args: args, is: isTree, need: []string{"repoName", "revisionName", "paths"}}
}

// isCommits checks a page of commits.
func isCommits(c toolCall, w *twin, text string) verdict {
	var got []struct{ Hash, Message, Body string }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return wrong("%v", err)
	}
	v := verdict{claimed: len(got) < 100}
	want := map[string]commit{}
	for _, x := range c.commitsOf(w) {
		want[x.hash] = x
	}
	for _, x := range got {
		of, ok := want[x.Hash]
		if !ok {
			return v.wrong("%s is no commit of the scan: %v", x.Hash, slices.Sorted(maps.Keys(want)))
		}
		if squash(x.Message+x.Body) != squash(shown(of.message)) {
			return v.wrong("%s: the message is %q, the scan has %q", x.Hash, x.Message+"\n"+x.Body, of.message)
		}
		delete(want, x.Hash)
	}
	if v.claimed && len(want) > 0 {
		return v.wrong("it lacks %v", slices.Sorted(maps.Keys(want)))
	}
	return v
}

// squash returns a text without white space.
func squash(text string) string { return strings.Join(strings.Fields(text), "") }

func drawCommits(r *rand.Rand, w *twin) call {
	c := drawListCommits(r, w).(toolCall)
	if query := c.text("query"); query != regexp.QuoteMeta(query) {
		delete(c.args, "query") // it may be an expression there
	}
	for _, name := range []string{"changes", "changesRegex", "noMerges", "page"} {
		delete(c.args, name)
	}
	c.args["perPage"] = 100
	c.name, c.is = "/api/commits", isCommits
	return c
}

// isBlameRoute checks the blame of a whole file.
func isBlameRoute(c toolCall, w *twin, text string) verdict {
	var got struct {
		Ranges []struct {
			Hash                 string
			StartLine, LineCount int
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return wrong("%v", err)
	}
	var out strings.Builder
	for _, run := range got.Ranges {
		fmt.Fprintf(&out, "%d-%d %.12s 2024-01\n", run.StartLine, run.StartLine+run.LineCount-1, run.Hash)
	}
	c.args = maps.Clone(c.args)
	c.args["limit"] = 1 << 30
	return isBlame(c, w, out.String()+"Complete.")
}

func drawBlameRoute(r *rand.Rand, w *twin) call {
	c := drawBlame(r, w).(toolCall)
	delete(c.args, "offset")
	delete(c.args, "limit")
	c.name, c.is = "/api/blame", isBlameRoute
	return c
}

// isFindDefinitions checks that /api/find_definitions finds an existing definition.
func isFindDefinitions(c toolCall, w *twin, text string) verdict {
	var got struct {
		Files []struct {
			FileName   string
			Repository string
			Matches    []struct{ Range place }
		}
		IsSearchExhaustive bool
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return wrong("%v", err)
	}
	v := verdict{claimed: got.IsSearchExhaustive}
	for _, d := range definitions {
		if d.symbol != c.text("symbolName") {
			continue
		}
		v = v.about(w.named("local/code").refs[0].fileAt(d.path))
		for _, f := range got.Files {
			for _, m := range f.Matches {
				if f.Repository == "local/code" && f.FileName == d.path && m.Range.Start.LineNumber == d.line {
					return v
				}
			}
		}
		if v.claimed {
			return v.wrong("it lacks %s:%d", d.path, d.line)
		}
	}
	return v
}

func drawFindDefinitions(r *rand.Rand, w *twin) call {
	d := definitions[r.IntN(len(definitions))]
	for strings.Contains(d.symbol, ".") {
		d = definitions[r.IntN(len(definitions))]
	}
	args := map[string]any{"symbolName": d.symbol}
	if r.IntN(2) == 0 {
		args["repoName"] = "local/code"
	}
	if r.IntN(3) == 0 {
		args["revisionName"] = "main"
	}
	return toolCall{name: "POST /api/find_definitions", args: args, is: isFindDefinitions, need: []string{"symbolName"}}
}

var (
	goodProof = regexp.MustCompile(`<p class="proof good"`)
	summary   = regexp.MustCompile(`([\d,]+) match(?:es)? in ([\d,]+) files?`)
)

// wholeWords counts the places of a word without a letter, digit, mark or _ next to it.
func wholeWords(text, word string) (count int) {
	at := regexp.MustCompile("^(?i:" + regexp.QuoteMeta(word) + ")")
	beside := regexp.MustCompile(`^[\pL\pN\pM_]$`)
	for i := 0; i < len(text); {
		_, next := utf8.DecodeRuneInString(text[i:])
		_, before := utf8.DecodeLastRuneInString(text[:i])
		if m := at.FindString(text[i:]); m != "" {
			end := i + len(m)
			_, after := utf8.DecodeRuneInString(text[end:])
			if !beside.MatchString(text[i-before:i]) && !beside.MatchString(text[end:end+after]) {
				count++
				next = len(m)
			}
		}
		i += next
	}
	return count
}

// isPage checks the numbers of the search page if it claims to be complete.
func isPage(c toolCall, w *twin, text string) verdict {
	v := verdict{claimed: goodProof.MatchString(text)}
	matches, files := 0, 0
	for _, a := range w.repos {
		for _, f := range a.refs[0].files {
			if n := wholeWords(f.plain, c.word); n > 0 && f.searchable() {
				matches, files = matches+n, files+1
				v.tags = append(v.tags, f.tags...)
			}
		}
	}
	m := summary.FindStringSubmatch(html.UnescapeString(text))
	got := [2]int{}
	if m != nil {
		got[0], _ = strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
		got[1], _ = strconv.Atoi(strings.ReplaceAll(m[2], ",", ""))
	}
	if v.claimed && got != [2]int{matches, files} {
		v = v.wrong("%d matches in %d files, the scan has %d in %d", got[0], got[1], matches, files)
	}
	return v
}

func drawPage(r *rand.Rand, w *twin) call {
	word := drawWord(r, w)
	for strings.ContainsAny(word, "\n\x00") {
		word = drawWord(r, w)
	}
	quoted := searchCall{}.quote(word, false)
	return toolCall{name: "/search", args: map[string]any{"query": quoted + " count:all", "whole": 1}, is: isPage, need: []string{"query", "whole"}, word: word}
}
