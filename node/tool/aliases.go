package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/shard"
)

// arguments holds the undecoded arguments of a call, by the name that the caller used.
type arguments map[string]json.RawMessage

// has reports whether the caller gave an argument that is not null.
func (m arguments) has(name string) bool { return len(m[name]) > 0 && string(m[name]) != "null" }

// put sets an argument unless the caller gave it. It reports whether it did.
func (m arguments) put(name string, value any) bool {
	if m.has(name) {
		return false
	}
	m[name] = json.RawMessage(quote(value))
	return true
}

// text returns an argument that is a string or a number as text; "" for any other.
func (m arguments) text(name string) string {
	var v any
	if json.Unmarshal(m[name], &v) != nil {
		return ""
	}
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// flag returns a boolean argument, which may be a string. known is false if it is neither.
func (m arguments) flag(name string) (value, known bool) {
	var v any
	known = json.Unmarshal(m[name], &v) == nil && (v == true || v == false || v == "true" || v == "false")
	return v == true || v == "true", known
}

// translate renames arguments that have the names of other tools, as file_path for path, if only
// one parameter can be meant. Arguments that remain are refused later, by name.
func (t *Tool) translate(m arguments) {
	names := t.names()
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if contains(names, name) || !m.has(name) {
			continue
		}
		if rewrite := rewrites[bare(name)]; rewrite != nil && rewrite(t, m, name) {
			delete(m, name)
			continue
		}
		if p := t.alias(name); p != nil && !m.has(p.Name) {
			if _, problem := p.decode(m[name]); problem == "" {
				m[p.Name] = m[name]
				delete(m, name)
			}
		}
	}
}

// alias returns the parameter that an unknown name certainly means, or nil.
func (t *Tool) alias(name string) *Param {
	at := slices.IndexFunc(t.Params, func(p Param) bool { return bare(p.Name) == bare(name) })
	if at < 0 && !contains(suggestedOnly, bare(name)) {
		for _, other := range otherNames[bare(name)] {
			if at = slices.Index(t.names(), other); at >= 0 {
				break
			}
		}
	}
	if at < 0 {
		return nil
	}
	return &t.Params[at]
}

// suggestedOnly lists names that may mean several parameters. They are never translated; the error
// suggests a parameter.
var suggestedOnly = []string{"type", "filetype", "symbol", "version", "content", "files", "from", "to", "function", "format", "output", "group", "start", "line", "lines", "range", "before", "after", "owner", "search", "old", "new", "skip"}

// rewrites has functions for arguments of other tools whose value needs a conversion. Each sets the
// equivalent argument of this tool, and reports whether it could.
var rewrites = map[string]func(t *Tool, m arguments, name string) bool{
	"owner":            ownerAndRepo,
	"org":              ownerAndRepo,
	"commit":           oneCommit,
	"sha":              oneCommit,
	"startline":        lineSpan,
	"endline":          lineSpan,
	"linestart":        lineSpan,
	"lineend":          lineSpan,
	"lines":            lineText,
	"range":            lineText,
	"linerange":        lineText,
	"outputmode":       outputMode,
	"recursive":        recursive,
	"r":                recursive,
	"n":                dropFlag,
	"linenumber":       dropFlag,
	"linenumbers":      dropFlag,
	"l":                modeFlag("files"),
	"fileswithmatches": modeFlag("files"),
	"filesonly":        modeFlag("files"),
	"c":                modeFlag("count"),
	"count":            modeFlag("count"),
	"casesensitive":    caseSensitive,
	"fixedstrings":     literalPattern(true),
	"fixedstring":      literalPattern(true),
	"literal":          literalPattern(true),
	"f":                literalPattern(true),
	"isregex":          literalPattern(false),
	"isregexp":         literalPattern(false),
	"regex":            literalPattern(false),
	"regexp":           literalPattern(false),
	"type":             languageGlob,
	"filetype":         languageGlob,
	"language":         languageGlob,
	"lang":             languageGlob,
	"groupbyrepo":      groupByRepo,
	"includetests":     testsFlag("include", "exclude"),
	"excludetests":     testsFlag("exclude", "include"),
}

// ownerAndRepo joins owner and repo to the full name of a repository.
func ownerAndRepo(t *Tool, m arguments, name string) bool {
	owner, repo := m.text(name), m.text("repo")
	if owner == "" || repo == "" || strings.Contains(repo, "/") || !contains(t.names(), "repo") {
		return false
	}
	m["repo"] = json.RawMessage(quote(owner + "/" + repo))
	return true
}

// oneCommit makes the commit the head of get_diff. Other tools take it as their ref.
func oneCommit(t *Tool, m arguments, name string) bool {
	commit := m.text(name)
	if commit == "" || !contains(t.names(), "head") || m.has("base") || m.has("head") {
		return false
	}
	return m.put("head", commit)
}

// lineSpan converts a first and a last line to offset and limit, or ranges. One of them may be
// missing.
func lineSpan(t *Tool, m arguments, name string) bool {
	first, last := 0, 0
	var used []string
	for other := range m {
		n, err := strconv.Atoi(m.text(other))
		switch key := bare(other); {
		case key != "startline" && key != "linestart" && key != "endline" && key != "lineend":
			continue
		case err != nil || n < 1:
			return false
		case key == "startline" || key == "linestart":
			first = n
		default:
			last = n
		}
		used = append(used, other)
	}
	if !putLines(t, m, max(first, 1), last) {
		return false
	}
	for _, other := range used {
		delete(m, other)
	}
	return true
}

// lineText converts lines such as "10-12" or "10".
func lineText(t *Tool, m arguments, name string) bool {
	text := m.text(name)
	ranges, err := parseRanges(text)
	if err != nil || len(ranges) == 0 {
		return false
	}
	if contains(t.names(), "ranges") && len(ranges) > 1 {
		return m.put("ranges", text)
	}
	return len(ranges) == 1 && putLines(t, m, ranges[0].first, ranges[0].last)
}

// putLines sets the arguments that ask for the lines first to last. If last is 0, they reach to the
// end of the file.
func putLines(t *Tool, m arguments, first, last int) bool {
	names := t.names()
	if !contains(names, "offset") || !contains(names, "limit") || contains(names, "pattern") || m.has("offset") || last > 0 && (last < first || m.has("limit") || m.has("ranges")) {
		return false
	}
	switch {
	case last == 0:
		return m.put("offset", first)
	case contains(names, "ranges"):
		return m.put("ranges", fmt.Sprintf("%d-%d", first, last))
	}
	return m.put("offset", first) && m.put("limit", last-first+1)
}

// outputMode converts the output modes of grep in other agents.
func outputMode(t *Tool, m arguments, name string) bool {
	mode := map[string]string{"content": "lines", "lines": "lines", "fileswithmatches": "files", "files": "files", "count": "count"}[bare(m.text(name))]
	return mode != "" && t.Name == "grep" && m.put("mode", mode)
}

// recursive accepts a flag that is always true here. For list_tree it sets the depth.
func recursive(t *Tool, m arguments, name string) bool {
	value, known := m.flag(name)
	switch {
	case !known:
		return false
	case t.Name == "list_tree" && value:
		return m.put("depth", 10)
	case t.Name == "list_tree":
		return m.put("depth", 1)
	}
	return value && contains(t.names(), "pattern")
}

// dropFlag accepts a flag of grep that is always true here.
func dropFlag(t *Tool, m arguments, name string) bool {
	value, known := m.flag(name)
	return known && value && t.Name == "grep"
}

func modeFlag(mode string) func(*Tool, arguments, string) bool {
	return func(t *Tool, m arguments, name string) bool {
		value, known := m.flag(name)
		return known && t.Name == "grep" && (!value || m.put("mode", mode))
	}
}

func groupByRepo(t *Tool, m arguments, name string) bool {
	value, known := m.flag(name)
	return known && t.Name == "grep" && (!value || m.put("groupBy", "repo"))
}

func caseSensitive(t *Tool, m arguments, name string) bool {
	value, known := m.flag(name)
	return known && contains(t.names(), "ignoreCase") && m.put("ignoreCase", !value)
}

// literalPattern handles a flag about whether the pattern is plain text. The pattern is escaped if
// the flag has the value literal.
func literalPattern(literal bool) func(*Tool, arguments, string) bool {
	return func(t *Tool, m arguments, name string) bool {
		value, known := m.flag(name)
		pattern := m.text("pattern")
		if !known || t.Name != "grep" || pattern == "" {
			return false
		}
		if value == literal {
			m["pattern"] = json.RawMessage(quote(regexp.QuoteMeta(pattern)))
		}
		return true
	}
}

// languageGlob converts a language to a glob of its file names. In tools with a kind parameter,
// "type" may mean the kind instead.
func languageGlob(t *Tool, m arguments, name string) bool {
	names := t.names()
	if !contains(names, "include") || contains(names, "kind") && strings.Contains(bare(name), "type") {
		return false
	}
	glob := shard.LanguageGlob(m.text(name))
	return glob != "" && m.put("include", glob)
}

// testsFlag converts a flag about tests to the parameter tests. yes and no are the values for true
// and false.
func testsFlag(yes, no string) func(*Tool, arguments, string) bool {
	return func(t *Tool, m arguments, name string) bool {
		value, known := m.flag(name)
		if !known || !contains(t.names(), "tests") {
			return false
		}
		if value {
			return m.put("tests", yes)
		}
		return m.put("tests", no)
	}
}
