package tool

import (
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/paths"
)

// otherNames maps parameter names of other tools, in lower case and without separators, to the
// names used here. The first of them that the tool has is meant.
var otherNames = map[string][]string{
	"glob":            {"include", "pattern"},
	"globs":           {"include"},
	"type":            {"include", "kind"},
	"kind":            {"kinds"},
	"kinds":           {"kind"},
	"language":        {"include"},
	"lang":            {"include"},
	"filetype":        {"include"},
	"includes":        {"include"},
	"includepattern":  {"include"},
	"filepattern":     {"include", "pattern"},
	"excludepattern":  {"exclude"},
	"ignore":          {"exclude"},
	"i":               {"ignoreCase"},
	"caseinsensitive": {"ignoreCase"},
	"a":               {"context"},
	"b":               {"context"},
	"c":               {"context"},
	"before":          {"context"},
	"after":           {"context"},
	"contextlines":    {"context"},
	"outputmode":      {"mode"},
	"output":          {"mode"},
	"format":          {"mode"},
	"group":           {"groupBy"},
	"headlimit":       {"limit", "perPage"},
	"maxresults":      {"limit", "perPage"},
	"maxmatches":      {"limit"},
	"max":             {"limit", "perPage"},
	"count":           {"limit", "perPage"},
	"n":               {"limit", "perPage"},
	"top":             {"limit"},
	"pagesize":        {"perPage"},
	"skip":            {"offset"},
	"start":           {"offset"},
	"startline":       {"offset"},
	"line":            {"offset", "lines"},
	"linerange":       {"ranges", "lines"},
	"range":           {"ranges", "lines"},
	"lines":           {"ranges", "limit"},
	"numlines":        {"limit"},
	"endline":         {"ranges", "limit"},
	"perpage":         {"limit"},
	"limit":           {"perPage", "maxEntries"},
	"file":            {"path", "pattern", "include"},
	"files":           {"paths", "include"},
	"filename":        {"path", "pattern"},
	"filepath":        {"path"},
	"dir":             {"path"},
	"directory":       {"path"},
	"folder":          {"path"},
	"regex":           {"pattern"},
	"regexp":          {"pattern"},
	"search":          {"pattern", "query"},
	"query":           {"pattern", "symbol"},
	"pattern":         {"query", "symbol"},
	"q":               {"query", "pattern"},
	"text":            {"pattern", "query"},
	"name":            {"symbol", "query"},
	"identifier":      {"symbol"},
	"symbolname":      {"symbol"},
	"function":        {"symbol"},
	"symbol":          {"changes"},
	"repository":      {"repo"},
	"repositories":    {"repo"},
	"reponame":        {"repo"},
	"repos":           {"repo"},
	"project":         {"repo"},
	"owner":           {"repo"},
	"revision":        {"ref"},
	"rev":             {"ref"},
	"branch":          {"ref"},
	"tag":             {"ref"},
	"sha":             {"ref"},
	"commit":          {"ref", "head"},
	"version":         {"ref"},
	"from":            {"base", "since"},
	"old":             {"base"},
	"to":              {"head", "until"},
	"new":             {"head"},
	"after_date":      {"since"},
	"message":         {"query"},
	"pickaxe":         {"changes"},
	"content":         {"changes", "pattern"},
	"s":               {"changes"},
	"g":               {"changesRegex"},
	"l":               {"lines"},
	"maxdepth":        {"depth"},
	"recursive":       {"depth"},
	"maxlength":       {"maxTokens"},
	"tokens":          {"maxTokens"},
	"budget":          {"maxTokens"},
	"includebody":     {"body"},
	"includetests":    {"tests"},
	"excludetests":    {"tests"},
}

// bare returns a name in lower case, without separators.
func bare(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(strings.ToLower(name))
}

// meant returns the parameter that a name stands for: one with the same letters, one that other
// tools call so, or the most similar one; "" if none.
func (t *Tool) meant(name string) string {
	names := t.names()
	if i := slices.IndexFunc(names, func(n string) bool { return bare(n) == bare(name) }); i >= 0 {
		return names[i]
	}
	for _, other := range otherNames[bare(name)] {
		if contains(names, other) {
			return other
		}
	}
	return NearestName(name, names)
}

// NearestName returns the most similar of some names; "" if more than a third of the letters differ
// in all.
func NearestName(name string, names []string) string {
	best, least := "", max(1, len(bare(name))/3)+1
	for _, n := range names {
		if d := paths.Distance(bare(name), bare(n)); d < least {
			best, least = n, d
		}
	}
	return best
}
