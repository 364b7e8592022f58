package query

import (
	"fmt"
	"slices"
	"strings"
)

// foreign are filters of other searches, by names that are none here. Only with
// one of their values a word is taken for one: the rest is code.
var foreign = []struct {
	name   string
	values []string
	say    string // what does the same here
}{
	{"patterntype", []string{"keyword", "literal", "regexp", "standard", "structural"}, "whether words are expressions is a switch beside the query: isRegexEnabled, --regexp, .* in the box"},
	{"public", []string{"yes", "no", "only"}, "visibility:public or visibility:private does that"},
	{"t", []string{"file", "filematch", "filename", "path", "repo"}, "type:file or type:repo does that"},
}

// hint notes a word that was meant for a filter, as it seems.
func (p *parser) hint(word string) {
	name, value, _ := strings.Cut(word, ":")
	for _, f := range foreign {
		if !strings.EqualFold(name, f.name) || !slices.Contains(f.values, strings.ToLower(value)) {
			continue
		}
		text := fmt.Sprintf("%s is searched for as text: %s", word, f.say)
		if !slices.Contains(p.out.Hints, text) {
			p.out.Hints = append(p.out.Hints, text)
		}
	}
}
