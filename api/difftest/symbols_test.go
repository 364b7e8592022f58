package difftest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/node/paths"
)

// definitions are known definitions in the repository code.
var definitions = []struct {
	symbol, path string
	line         int
	outline      bool // an outline of the file has this name
}{
	{"Store", "store/store.go", 4, true}, {"Open", "store/store.go", 7, true}, {"Get", "store/store.go", 9, true}, {"Store.Get", "store/store.go", 9, true}, {"TestOpen", "store/store_test.go", 3, true},
	{"Deepest", "deep.cpp", 2, true}, {"deepMethod", "deep.cpp", 4, true}, {"deepFunction", "deep.cpp", 6, true},
	{"setX:", "Bag.m", 2, true}, {"setX", "Bag.m", 2, false}, {"bagWith:and:", "Bag.m", 3, true}, {"bagWith", "Bag.m", 3, false}, {"go", "Bag.m", 4, false},
	{"Outer", "lib/mod.py", 1, true}, {"method_one", "lib/mod.py", 3, true}, {"top_level", "lib/mod.py", 6, true},
	{"Client", "api.rb", 3, true}, {"push", "api.rb", 4, true}, {"Shape", "main.rs", 1, true}, {"scale", "main.rs", 3, true}, {"doc_mut", "main.rs", 5, true},
	{"evict", "evict.c", 2, true}, {"free_one", "evict.c", 5, true}, {"pool", "evict.h", 1, true}, {"markedFunction", "marked.go", 3, true}, {"dos_function", "dos.py", 1, true}, {"wide_function", "wide.c", 1, true},
}

// isDefinition checks that find_symbol_definitions finds an existing definition.
func isDefinition(c toolCall, w *twin, text string) verdict {
	v := verdict{claimed: claims(text)}
	for _, d := range definitions {
		if d.symbol != c.text("symbol") || c.text("path") != "" && !within(d.path, c.text("path")) {
			continue
		}
		v = v.about(w.named("local/code").refs[0].fileAt(d.path))
		at := regexp.MustCompile(fmt.Sprintf(`(?m)^%s\n(?:\d.*\n)*?%d\b`, regexp.QuoteMeta(d.path), d.line))
		if !at.MatchString(text) && v.claimed {
			return v.wrong("it lacks %s:%d", d.path, d.line)
		}
		return v
	}
	if v.claimed && !strings.HasPrefix(text, "No ") {
		return v.wrong("there is no such symbol")
	}
	return v
}

func drawDefinition(r *rand.Rand, w *twin) call {
	d := definitions[r.IntN(len(definitions))]
	args := map[string]any{"symbol": d.symbol}
	if r.IntN(10) == 0 {
		args["symbol"] = "no_such_symbol_at_all"
	}
	if r.IntN(2) == 0 {
		args["repo"] = "local/code"
	}
	if r.IntN(4) == 0 {
		args["path"], args["repo"] = d.path, "local/code"
	}
	if r.IntN(4) == 0 {
		args["ref"] = "main"
	}
	if r.IntN(4) == 0 {
		args["body"] = true
	}
	return toolCall{name: "find_symbol_definitions", args: args, is: isDefinition, need: []string{"symbol"}}
}

// isReference checks that find_symbol_references finds the lines with the word.
func isReference(c toolCall, w *twin, text string) verdict {
	v := verdict{claimed: claims(text)}
	word := regexp.MustCompile(`(?:^|[^\pL\pN_])` + regexp.QuoteMeta(c.text("symbol")) + `(?:[^\pL\pN_]|$)`)
	comments := 0 // lines that the answer counts and does not show
	if m := regexp.MustCompile(`(\d+) in comments and prose not shown`).FindStringSubmatch(text); m != nil {
		comments, _ = strconv.Atoi(m[1])
	}
	for _, f := range c.files(w) {
		if f.repo.name != "local/code" || !f.searchable() {
			continue
		}
		for i, line := range f.lineTexts() {
			if !word.MatchString(line) || !v.claimed {
				continue
			}
			use := regexp.MustCompile(fmt.Sprintf(`(?m)^%s\n(?:\d.*\n)*?%d\b|^Defined at (?:local/code )?%s:%d\b`, regexp.QuoteMeta(f.path), i+1, regexp.QuoteMeta(f.path), i+1))
			switch {
			case use.MatchString(text):
			case comments > 0 && (strings.Contains(line, "//") || strings.Contains(line, "#") || strings.Contains(line, "*")):
				comments--
			default:
				return v.about(f).wrong("it lacks %s:%d %q", f.path, i+1, line)
			}
		}
	}
	return v
}

func drawReference(r *rand.Rand, w *twin) call {
	args := map[string]any{"symbol": []string{"Open", "Store", "evict", "free_one", "zigFunction", "nimProc", "markedFunction", "dos_function", "wide_function", "top_level", "no_such_symbol"}[r.IntN(11)]}
	if r.IntN(3) > 0 {
		args["repo"] = "local/code"
	}
	if r.IntN(4) == 0 {
		args["ref"] = "main"
	}
	return toolCall{name: "find_symbol_references", args: args, is: isReference, need: []string{"symbol"}}
}

// implementations are known implementations in the repository code.
var implementations = []struct{ symbol, path, lines, name string }{
	{"Kin", "kin/Kin.java", "2-3", "One"}, {"Kin", "kin/Two.java", "1", "Two"}, {"Kin", "kin/three.kt", "1-4", "Three"}, {"Kin", "kin/four.kt", "1", "Four"},
}

// isImplementation checks that find_implementations finds exactly the existing types.
func isImplementation(c toolCall, w *twin, text string) verdict {
	v := verdict{claimed: claims(text)}
	rows := 0
	for _, f := range c.files(w) {
		for _, x := range implementations {
			if f.repo.name != "local/code" || f.path != x.path || x.symbol != c.text("symbol") || c.text("path") != "" && !within(x.path, c.text("path")) {
				continue
			}
			rows++
			row := regexp.MustCompile(fmt.Sprintf(`(?m)^%s:%s \w+ %s$`, x.path, x.lines, x.name))
			if v.claimed && !row.MatchString(text) {
				return v.about(f).wrong("it lacks %s", x.name)
			}
		}
	}
	if got := len(regexp.MustCompile(`(?m)^\S+:[\d-]+ \w+ `).FindAllString(text, -1)); got > rows {
		return v.wrong("%d types, there are %d", got, rows)
	}
	return v
}

func drawImplementation(r *rand.Rand, w *twin) call {
	args := map[string]any{"symbol": []string{"Kin", "Kin", "Kin", "Store", "Two", "no_such_symbol"}[r.IntN(6)]}
	if r.IntN(2) == 0 {
		args["repo"] = "local/code"
		if r.IntN(2) == 0 {
			args["path"] = []string{"kin", "kin/three.kt", "store"}[r.IntN(3)]
		}
	}
	if r.IntN(2) == 0 {
		args["transitive"] = true
	}
	return toolCall{name: "find_implementations", args: args, is: isImplementation, need: []string{"symbol"}}
}

// isOutline checks the outline of a file against known definitions.
func isOutline(c toolCall, w *twin, text string) verdict {
	v := verdict{claimed: claims(text)}.about(w.named("local/code").refs[0].fileAt(c.text("path")))
	for _, d := range definitions {
		last := d.symbol[strings.LastIndexByte(d.symbol, '.')+1:]
		named := regexp.MustCompile(fmt.Sprintf(`(?m)(?:^ *|, )%d(?:-\d+)? .*%s`, d.line, regexp.QuoteMeta(last)))
		if d.path == c.text("path") && d.outline && v.claimed && !named.MatchString(text) {
			return v.wrong("it lacks %s at line %d", d.symbol, d.line)
		}
	}
	return v
}

func drawOutline(r *rand.Rand, w *twin) call {
	args := map[string]any{"repo": "local/code", "path": definitions[r.IntN(len(definitions))].path}
	if r.IntN(2) == 0 {
		args["depth"] = 1 + r.IntN(4)
	}
	if r.IntN(3) == 0 {
		args["ref"] = "main"
	}
	return toolCall{name: "outline", args: args, is: isOutline, need: []string{"repo", "path"}}
}

// isWords checks that search finds the files with all words.
func isWords(c toolCall, w *twin, text string) verdict {
	v := verdict{claimed: claims(text)}
	for _, f := range c.files(w) {
		if !f.searchable() || !v.claimed {
			continue
		}
		all := true
		for _, word := range strings.Fields(c.text("query")) {
			all = all && strings.Contains(lower(f.text), word)
		}
		head := "\n" + paths.Written(f.path)
		if all && !strings.Contains(text, head+" (") && !strings.Contains(text, head+"\n") {
			return v.about(f).wrong("it lacks %v", f)
		}
	}
	return v
}

func drawWords(r *rand.Rand, w *twin) call {
	words := []string{"needle", "alpha", "beta", "store", "evict", "gamma", "wide", "rare", "inner"}
	args := map[string]any{"query": words[r.IntN(len(words))], "repo": w.repos[r.IntN(len(w.repos))].name, "limit": 50, "maxTokens": 8000}
	if r.IntN(2) == 0 {
		args["query"] = args["query"].(string) + " " + words[r.IntN(len(words))]
	}
	return toolCall{name: "search", args: args, is: isWords, need: []string{"query"}}
}
