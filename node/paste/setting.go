package paste

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// flagName matches a flag of a program: -raft-addr, --dry-run=client.
	flagName = regexp.MustCompile(`(?:^|\s)--?([a-zA-Z][\w.-]+)`)

	// commandLine matches a program with a flag, perhaps after a prompt.
	commandLine = regexp.MustCompile(`^(?:[$#>%] |\S+@\S+[$#>%] )?(?:[\w./-]+ ){0,3}--?[a-zA-Z][\w.-]*(?:[ =]|$)`)

	// setting matches a name of several parts with its value: maxmemory-policy noeviction. A value in
	// quotes or brackets may have blanks.
	setting = regexp.MustCompile(`^\s*(?:export )?([a-zA-Z]\w*(?:[-_.]\w+)+)(?: *[=:] *| +)(?:[^\s=:"'{\[]+|"[^"\n]*"|'[^'\n]*'|\{[^\n]*\}|\[[^\n]*\])[;,]?\s*$`)
)

// maxFlags is the limit of flags of a command line that are looked for.
const maxFlags = 6

// IsSetting reports whether a text is a setting with its value.
func IsSetting(text string) bool { return setting.MatchString(text) }

// settingPatterns returns patterns for the names of flags and of a setting: quoted, as a program
// defines them, then as the text has them. It returns nil for other texts.
func settingPatterns(text string) []Pattern {
	var names []string
	text = strings.TrimSpace(text)
	if m := setting.FindStringSubmatch(text); m != nil {
		names = []string{m[1]}
	} else if commandLine.MatchString(text) {
		for _, m := range flagName.FindAllStringSubmatch(text, maxFlags) {
			names = append(names, m[1])
		}
	}
	if names == nil {
		return nil
	}

	var quoted, plain []string
	for _, name := range names {
		name = regexp.QuoteMeta(strings.TrimRight(name, "-."))
		quoted = append(quoted, "[\"'`]-{0,2}"+name+"[\"'`=]")
		plain = append(plain, `\b`+name+`\b`)
	}
	display := strings.Join(slices.Compact(names), " … ")
	out := []Pattern{{Expr: strings.Join(quoted, "|"), Text: display, Name: true}, {Expr: regexp.QuoteMeta(text), Text: text, Name: true}}
	// One word with a minus before it is more often a word that the answer must not have.
	if len(names) > 1 || strings.HasPrefix(text, "-") || setting.MatchString(text) {
		out = append(out, Pattern{Expr: strings.Join(plain, "|"), Text: display, Name: true})
	}
	return out
}
