package difftest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/node/paths"
)

// commit is a commit as printed by git log.
type commit struct {
	hash, author, message string
	entered               time.Time
	parents               int
}

// log returns the history of a revision, as git limits it to a path.
func (w *twin) log(a *animal, rev string, more ...string) (out []commit) {
	text, _ := w.git(a, append([]string{"log", "-z", "--no-show-signature", "--format=%H%x1f%an <%ae>%x1f%ct%x1f%P%x1f%B", rev}, more...)...)
	for record := range strings.SplitSeq(strings.TrimSuffix(text, "\x00"), "\x00") {
		part := strings.SplitN(record, "\x1f", 5)
		if len(part) < 5 {
			continue
		}
		seconds, _ := strconv.ParseInt(part[2], 10, 64)
		out = append(out, commit{part[0], part[1], part[4], time.Unix(seconds, 0), len(strings.Fields(part[3]))})
	}
	return out
}

// lower returns a text in lower case.
func lower(text string) string { return strings.Map(unicode.ToLower, text) }

// commitsOf returns the commits that the arguments of list_commits mean.
func (c toolCall) commitsOf(w *twin) (out []commit) {
	a := w.named(c.text("repo"))
	more := []string{"--"}
	if path := c.text("path"); path != "" {
		more = append(more, ":(literal)"+path)
	}
	for _, x := range w.log(a, a.revision(c.text("ref")).commit, more...) {
		changed := true
		if text := c.text("changes"); text != "" {
			files, _ := w.git(a, append([]string{"diff-tree", "-r", "-c", "--root", "--no-renames", "--no-commit-id", "--name-only", "-S" + text, x.hash}, more...)...)
			changed = files != ""
		}
		if expr := c.text("changesRegex"); expr != "" {
			changed = w.changesLine(a, x, c.text("path"), regexp.MustCompile(expr))
		}
		if changed && c.matches(x) {
			out = append(out, x)
		}
	}
	return out
}

// changesLine reports whether a commit changed a line that the expression matches. A merge
// changed a line if its file has other matching lines than in each parent.
func (w *twin) changesLine(a *animal, x commit, path string, expr *regexp.Regexp) bool {
	more := []string{"--"}
	if path != "" {
		more = append(more, ":(literal)"+path)
	}
	if x.parents < 2 {
		patch, _ := w.git(a, append([]string{"diff-tree", "-r", "--root", "--text", "--no-renames", "--no-commit-id", "--unified=0", x.hash}, append([]string{"-p"}, more...)...)...)
		inHunk := false
		for _, line := range lines(patch) {
			switch {
			case strings.HasPrefix(line, "diff --git "):
				inHunk = false
			case strings.HasPrefix(line, "@@ "):
				inHunk = true
			case inHunk && line != "" && line[0] != '\\' && expr.MatchString(strings.TrimSuffix(line[1:], "\r")):
				return true
			}
		}
		return false
	}
	files, _ := w.git(a, append([]string{"diff-tree", "-z", "-r", "-c", "--no-renames", "--no-commit-id", "--name-only", x.hash}, more...)...)
	for file := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		matching := func(rev string) (out []string) {
			text, _ := w.git(a, "show", rev+":"+file)
			return slices.DeleteFunc(lines(text), func(line string) bool { return !expr.MatchString(strings.TrimSuffix(line, "\r")) })
		}
		now, differs := matching(x.hash), file != ""
		for i := range x.parents {
			differs = differs && !slices.Equal(now, matching(fmt.Sprintf("%s^%d", x.hash, i+1)))
		}
		if differs {
			return true
		}
	}
	return false
}

// hasFromWordStart reports whether a text has a word. If that begins with an ASCII letter or a digit, it
// has to begin a word of the text.
func hasFromWordStart(text, word string) bool {
	inner := func(b byte) bool { return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' }
	for at := 0; ; at++ {
		skip := strings.Index(text[at:], word)
		if skip < 0 {
			return false
		}
		if at += skip; word == "" || !inner(word[0]) || at == 0 || !inner(text[at-1]) {
			return true
		}
	}
}

// matches reports whether a commit passes the filters of a call.
func (c toolCall) matches(x commit) bool {
	if c.route() {
		if !strings.Contains(lower(x.message), lower(c.text("query"))) {
			return false
		}
	} else {
		for _, word := range strings.Fields(c.text("query")) {
			if !hasFromWordStart(lower(x.message), lower(word)) {
				return false
			}
		}
	}
	since, _ := time.Parse(time.RFC3339, c.text("since"))
	until, err := time.Parse(time.RFC3339, c.text("until"))
	return strings.Contains(lower(x.author), lower(c.text("author"))) &&
		(c.text("since") == "" || !x.entered.Before(since)) && (c.text("until") == "" || err == nil && !x.entered.After(until)) &&
		(!c.flag("noMerges") || x.parents < 2)
}

var commitLine = regexp.MustCompile(`^([0-9a-f]{10}) (\d{4}-\d\d-\d\d) `)

// isListCommits checks an answer of list_commits.
func isListCommits(c toolCall, w *twin, text string) verdict {
	a := w.named(c.text("repo"))
	v := verdict{claimed: claims(text)}
	want := map[string]bool{}
	all := c.commitsOf(w)
	for _, x := range all {
		want[x.hash[:10]] = true
	}
	got := map[string]bool{}
	for _, line := range lines(text) {
		if m := commitLine.FindStringSubmatch(line); m != nil {
			if got[m[1]] = true; !want[m[1]] {
				return v.wrong("%s is no commit of the scan: %v", m[1], slices.Sorted(maps.Keys(want)))
			}
		}
	}
	if a.name == "local/shallow" && v.claimed {
		return v.wrong("the history is shallow")
	}
	if v.claimed && c.number("page", 1) == 1 && len(got) != len(want) {
		return v.wrong("%d commits, the scan has %d: %v", len(got), len(want), slices.Sorted(maps.Keys(want)))
	}
	var total int
	if _, err := fmt.Sscanf(text, "%d commit", &total); err == nil && total != len(want) && a.name != "local/shallow" {
		return v.wrong("it counts %d commits, the scan has %d: %v", total, len(want), slices.Sorted(maps.Keys(want)))
	}
	return v
}

// historied are the repositories for calls on history.
var historied = []string{"clock", "messages", "merged", "shallow", "refs", "clock", "messages"}

func drawListCommits(r *rand.Rand, w *twin) call {
	a := w.named("local/" + historied[r.IntN(len(historied))])
	x := a.refs[r.IntN(len(a.refs))]
	args := map[string]any{"repo": a.name, "ref": x.name, "perPage": []int{1, 3, 100, 100}[r.IntN(4)]}
	log := w.log(a, x.commit)
	some := log[r.IntN(len(log))]
	if r.IntN(3) == 0 {
		if words := wordsIn(some.message); len(words) > 0 {
			args["query"] = words[r.IntN(len(words))]
			if r.IntN(4) == 0 {
				args["query"] = words[0] + " " + words[len(words)-1]
			}
		}
	}
	if r.IntN(4) == 0 {
		args["author"] = []string{"ada", "Ben", "cole", "Cem Öz", "größe", "example.com", "nobody", "Jürgen"}[r.IntN(8)]
	}
	for _, name := range []string{"since", "until"} {
		if r.IntN(4) == 0 {
			args[name] = some.entered.Add(time.Duration(r.IntN(3)-1) * time.Second).UTC().Format(time.RFC3339)
		}
	}
	if r.IntN(3) == 0 && len(x.files) > 0 {
		if f := x.files[r.IntN(len(x.files))]; utf8.ValidString(f.path) {
			args["path"] = f.path
		}
	}
	if r.IntN(8) == 0 {
		args["noMerges"] = true
	}
	if r.IntN(8) == 0 {
		args["page"] = 2
	}
	if r.IntN(6) == 0 {
		for _, name := range []string{"query", "author", "page", "noMerges"} {
			delete(args, name)
		}
		if args["changes"] = []string{"needle", "alpha", "same", "side", "gamma", "alpha 3", "no such text"}[r.IntN(7)]; r.IntN(2) == 0 {
			delete(args, "changes")
			args["changesRegex"] = []string{`need.e`, `^.{1,6}$`, `(?i)ALPHA \d`, `\PL$`, `^..$`, `[^a-z]s`, `side|gam+a`, `\bx\b`}[r.IntN(8)]
		}
	}
	return toolCall{name: "list_commits", args: args, is: isListCommits, need: []string{"repo", "ref", "perPage"}}
}

// wordsIn returns the words of a message that a query can have.
func wordsIn(message string) (out []string) {
	for _, word := range strings.Fields(message) {
		if utf8.ValidString(word) && !strings.ContainsAny(word, "\"\ufffd\x1b") {
			out = append(out, word)
		}
	}
	return out
}

var refLine = regexp.MustCompile(`^(\S+) ([0-9a-f]{12}) \d{4}-`)

// isListBranches checks an answer of list_branches.
func isListBranches(c toolCall, w *twin, text string) verdict {
	a := w.named(c.text("repo"))
	v := verdict{claimed: claims(text)}
	kinds := map[string][]string{"": {"refs/heads/"}, "branches": {"refs/heads/"}, "tags": {"refs/tags/"}, "all": {"refs/heads/", "refs/tags/"}}[c.text("kind")]
	want := map[string]int{}
	for _, x := range a.refs {
		for _, prefix := range kinds {
			short, ok := strings.CutPrefix(x.name, prefix)
			if !ok || !strings.Contains(lower(short), lower(c.text("query"))) {
				continue
			}
			if of := c.text("contains"); of != "" {
				if _, has := w.git(a, "merge-base", "--is-ancestor", a.revision(of).commit, x.commit); !has {
					continue
				}
			}
			want[short+" "+x.commit[:12]]++
		}
	}
	for _, line := range lines(text) {
		if m := refLine.FindStringSubmatch(line); m != nil {
			if want[m[1]+" "+m[2]]--; want[m[1]+" "+m[2]] < 0 {
				return v.wrong("%q is no entry of the scan", line)
			}
		}
	}
	for key, n := range want {
		if n > 0 && v.claimed && c.number("page", 1) == 1 {
			return v.wrong("it lacks %q", key)
		}
	}
	return v
}

func drawListBranches(r *rand.Rand, w *twin) call {
	a := w.named("local/" + []string{"refs", "refs", "refs", "merged", "text", "shallow"}[r.IntN(6)])
	x := a.refs[r.IntN(len(a.refs))]
	args := map[string]any{"repo": a.name}
	if r.IntN(2) == 0 {
		args["kind"] = []string{"branches", "tags", "all"}[r.IntN(3)]
	}
	if r.IntN(3) == 0 {
		args["query"] = []string{"a", "1", "feature", "UPPER", "größe", "same", "zzz", "-"}[r.IntN(8)]
	}
	if r.IntN(3) == 0 {
		args["contains"] = x.commit[:12]
	}
	if r.IntN(4) == 0 {
		args["perPage"], args["page"] = 1+r.IntN(4), 1+r.IntN(3)
	}
	return toolCall{name: "list_branches", args: args, is: isListBranches, need: []string{"repo"}}
}

var changeLine = regexp.MustCompile(`^(?:… )?([AMDR]) (.*?)(?: \(mode \d+ -> \d+\))?(?: \+(\d+) -(\d+))?$`)

// isGetDiff checks an answer of get_diff, with names or numbers.
func isGetDiff(c toolCall, w *twin, text string) verdict {
	a := w.named(c.text("repo"))
	v := verdict{claimed: claims(text)}
	base, head := c.text("base"), c.text("head")
	args := []string{"diff", "--numstat", "-z", "-M", base, head, "--"}
	if path := c.text("path"); path != "" {
		args = append(args, ":(literal)"+path)
	}
	out, _ := w.git(a, args...)
	want := map[string]string{}
	part := strings.Split(out, "\x00")
	for i := 0; i+1 < len(part); i++ {
		number := strings.SplitN(part[i], "\t", 3)
		name := paths.Written(number[2])
		if number[2] == "" {
			name = paths.Written(part[i+1]) + " -> " + paths.Written(part[i+2])
			i += 2
		}
		want[name] = strings.ReplaceAll("+"+number[0]+" -"+number[1], "+- --", "+0 -0")
	}
	for _, line := range lines(text) {
		m := changeLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		numbers, ok := want[m[2]]
		if !ok {
			return v.wrong("%q is no change of the scan: %v", line, want)
		}
		if m[3] != "" && numbers != "+"+m[3]+" -"+m[4] {
			return v.wrong("%q: the scan has %s", line, numbers)
		}
		delete(want, m[2])
	}
	if v.claimed && len(want) > 0 {
		return v.wrong("it lacks %v", want)
	}
	return v
}

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

func drawGetDiff(r *rand.Rand, w *twin) call {
	a := w.named("local/" + historied[r.IntN(len(historied))])
	x := a.refs[r.IntN(len(a.refs))]
	log := w.log(a, x.commit)
	args := map[string]any{"repo": a.name, "base": log[r.IntN(len(log))].hash, "head": log[r.IntN(len(log))].hash, "mode": []string{"names", "stat"}[r.IntN(2)]}
	if r.IntN(4) == 0 && len(x.files) > 0 {
		if f := x.files[r.IntN(len(x.files))]; utf8.ValidString(f.path) {
			args["path"] = f.path
		}
	}
	return toolCall{name: "get_diff", args: args, is: isGetDiff, need: []string{"repo", "base", "head", "mode"}}
}

var blameLine = regexp.MustCompile(`^(\d+)(?:-(\d+))? ([0-9a-f]{12}) \d{4}-`)

// isBlame checks an answer of blame, line by line.
func isBlame(c toolCall, w *twin, text string) verdict {
	a := w.named(c.text("repo"))
	x := a.revision(c.text("ref"))
	f := x.fileAt(c.text("path"))
	v := verdict{claimed: claims(text)}.about(f)
	out, _ := w.git(a, "blame", "--porcelain", x.commit, "--", f.path)
	want := map[int]string{}
	for _, line := range lines(out) {
		if part := strings.Fields(line); len(part) >= 3 && len(part[0]) == 40 && !strings.HasPrefix(line, "\t") {
			n, _ := strconv.Atoi(part[2])
			want[n] = part[0][:12]
		}
	}
	first := c.number("offset", 1)
	last := min(len(want), first+c.number("limit", 50)-1)
	next := first
	for _, line := range lines(text) {
		m := blameLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		from, _ := strconv.Atoi(m[1])
		to := from
		if m[2] != "" {
			to, _ = strconv.Atoi(m[2])
		}
		if from != next || to > last {
			return v.wrong("lines %d-%d, the scan expects %d and ends at %d", from, to, next, last)
		}
		for ; next <= to; next++ {
			if want[next] != m[3] {
				return v.wrong("line %d is of %s, the scan says %s", next, m[3], want[next])
			}
		}
	}
	if v.claimed && next <= last {
		return v.wrong("it ends at line %d of %d", next-1, last)
	}
	return v
}

func drawBlame(r *rand.Rand, w *twin) call {
	a := w.named("local/" + []string{"clock", "messages", "merged", "ends", "text", "names"}[r.IntN(6)])
	x := a.refs[r.IntN(len(a.refs))]
	f := x.files[r.IntN(len(x.files))]
	for f.binary || f.encoding != "" || strings.Contains(f.text, "\x00") {
		f = x.files[r.IntN(len(x.files))]
	}
	args := map[string]any{"repo": a.name, "path": f.path, "ref": x.name}
	if r.IntN(3) == 0 {
		args["offset"] = 1 + r.IntN(4)
	}
	if r.IntN(3) == 0 {
		args["limit"] = 1 + r.IntN(4)
	}
	return toolCall{name: "blame", args: args, is: isBlame, need: []string{"repo", "path", "ref"}}
}
