package difftest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/paths"
)

// toolCall is a call of a tool or a route. For a route name is its path, with POST before it if
// args are the body.
type toolCall struct {
	name string
	args map[string]any
	is   func(c toolCall, w *twin, text string) verdict // checks an answer
	need []string                                       // arguments without which it is another call

	word string // of a search for whole words
}

func (c toolCall) String() string {
	text, _ := json.Marshal(c.args)
	return c.name + " " + string(text)
}

func (c toolCall) text(name string) string { s, _ := c.args[name].(string); return s }

func (c toolCall) number(name string, usual int) int {
	if n, ok := c.args[name].(int); ok {
		return n
	}
	return usual
}

func (c toolCall) flag(name string) bool { b, _ := c.args[name].(bool); return b }

func (c toolCall) smaller() (out []call) {
	for _, name := range slices.Sorted(maps.Keys(c.args)) {
		if !slices.Contains(c.need, name) {
			d := c
			d.args = maps.Clone(c.args)
			delete(d.args, name)
			out = append(out, d)
		}
	}
	return out
}

func (c toolCall) judge(w *twin, s *server) verdict {
	text, refused, err := c.ask(s)
	if err != nil {
		return wrong("status %v", err)
	}
	missing := c.missing(w)
	switch {
	case refused && missing == "":
		return verdict{refused: true}.wrong("it is refused: %s", text)
	case refused:
		return verdict{refused: true}
	case missing != "":
		return wrong("%s does not exist: %.500s", missing, text)
	}

	v := c.is(c, w, text)
	if v.amiss != "" {
		if c.name != "/search" {
			v.amiss += "\n" + fmt.Sprintf("%.1500s", text)
		}
	} else if !c.route() && !v.claimed && !namesLack(text) {
		return v.wrong("it is not complete, and names nothing:\n%.1500s", text)
	}
	return v
}

func (c toolCall) route() bool { return strings.Contains(c.name, "/") }

// ask makes the call.
func (c toolCall) ask(s *server) (text string, refused bool, err error) {
	if !c.route() {
		return s.tool(c.name, c.args)
	}
	var status int
	var body []byte
	if path, ok := strings.CutPrefix(c.name, "POST "); ok {
		status, body, err = s.ask(path, c.args)
	} else {
		status, body, err = s.get(c.name, c.args)
	}
	if status >= 500 {
		err = fmt.Errorf("%d: %.300s", status, body)
	}
	return string(body), status != 200, err
}

// missing returns something in the arguments that does not exist, "" for nothing.
func (c toolCall) missing(w *twin) string {
	if c.text("until") != "" && c.text("since") > c.text("until") {
		return "a time"
	}
	if name := c.text("repo"); name != "" {
		a := w.named(name)
		if a == nil {
			return "the repository"
		}
		for _, name := range []string{"ref", "contains"} {
			if text := c.text(name); text != "" && a.revision(text) == nil {
				return name
			}
		}
	}

	if dir := c.text("path"); c.name == "get_diff" && dir != "" {
		_, in := w.git(w.named(c.text("repo")), "cat-file", "-e", c.text("base")+":"+dir)
		if _, after := w.git(w.named(c.text("repo")), "cat-file", "-e", c.text("head")+":"+dir); !in && !after {
			return "the path"
		}
	}

	// An invalid glob may be the name of a file.
	named := func(f *file) bool { return globbedFile(c.text("pattern"), c.text("path"), f.path) }
	if c.name == "glob" && glob.Check(c.text("pattern")) != nil && !slices.ContainsFunc(c.files(w), named) {
		return "such a name"
	}
	return ""
}

// revision returns the revision that a name or a commit means, nil for none. A tag wins over a
// branch, as in git.
func (a *animal) revision(name string) *ref {
	if name == "" || name == "HEAD" {
		return &a.refs[0]
	}
	for _, prefix := range []string{"", "refs/tags/", "refs/heads/"} {
		for i := range a.refs {
			if a.refs[i].name == prefix+name {
				return &a.refs[i]
			}
		}
	}
	for i := range a.refs {
		if len(name) >= 7 && strings.HasPrefix(a.refs[i].commit, name) {
			return &a.refs[i]
		}
	}
	return nil
}

// claims reports whether an answer says that it is complete.
func claims(text string) bool {
	return strings.Contains(text, "\nComplete.") || strings.HasSuffix(text, "\nEnd of file.") || strings.HasPrefix(text, "Complete.")
}

// namesLack reports whether an answer says what is missing.
func namesLack(text string) bool {
	return regexp.MustCompile(`(?m)^(.*Left out: |.*Not searched: |More: |There is no page \d|.*only \d+ line)`).MatchString(text)
}

// files returns the files that repo and ref of a call mean, and whether all are searched:
// repositories without that revision are not.
func (c toolCall) files(w *twin) (out []*file) {
	for _, a := range w.repos {
		if name := c.text("repo"); name != "" && name != a.name {
			continue
		}
		if c.text("repo") != "" {
			return a.revision(c.text("ref")).files
		}
		for _, r := range a.refs {
			// If a branch and a tag share a name, the tag is meant.
			if tag := a.revision(c.text("ref")); tag != nil && tag.name == "refs/tags/"+c.text("ref") && r.name == "refs/heads/"+c.text("ref") {
				continue
			}
			if c.text("ref") == "" && r.commit == a.refs[0].commit || c.text("ref") != "" && (searchCall{}).holds(part{op: "rev", value: c.text("ref")}, &file{repo: a}, r, r.commit == a.refs[0].commit, false) {
				out = append(out, r.files...)
			}
		}
	}
	slices.SortFunc(out, func(x, y *file) int { return strings.Compare(fmt.Sprintf("%p", x), fmt.Sprintf("%p", y)) })
	return slices.Compact(out)
}

// globsOf returns the globs of a pattern; an invalid one matches nothing.
func globsOf(pattern string) glob.Globs {
	g, ok := globCache.Load(pattern)
	if !ok {
		made, _ := glob.Compile(glob.Exact, pattern)
		g, _ = globCache.LoadOrStore(pattern, made)
	}
	return g.(glob.Globs)
}

var globCache sync.Map

// globbed reports whether a glob of a call matches a path. With a slash it matches from the
// directory on, else the last part, or for a plain name a directory above. A text that is a path
// means that path. If the path of the call is a file, its whole path counts too.
func globbed(pattern, dir, name string) bool {
	if dir != "" {
		rest, below := strings.CutPrefix(name, dir+"/")
		if name == dir {
			if from := strings.TrimPrefix(pattern, "/"); globsOf(from).Match(name) || from == name {
				return true
			}
			rest, below = path.Base(name), true
		}
		if !below {
			return false
		}
		if rooted := strings.HasPrefix(pattern, dir+"/"); rooted && globbed(pattern, "", name) {
			return true
		}
		name = rest
	}
	plain := !strings.ContainsAny(pattern, `*?[{(\`)
	from := strings.TrimPrefix(pattern, "/")
	match := func(name string) bool { return globsOf(from).Match(name) || from == name }
	for whole := name; ; whole = path.Dir(whole) {
		if match(whole) || !strings.Contains(pattern, "/") && match(path.Base(whole)) {
			return true
		}
		if !plain || !strings.Contains(whole, "/") {
			return false
		}
	}
}

// listed returns the files of a call with its path, include and exclude.
func (c toolCall) listed(w *twin) (out []*file) {
	for _, f := range c.files(w) {
		dir := c.text("path")
		if dir != "" && f.path != dir && !strings.HasPrefix(f.path, dir+"/") {
			continue
		}
		if glob := c.text("include"); glob != "" && !globbed(glob, dir, f.path) {
			continue
		}
		if glob := c.text("exclude"); glob != "" && globbed(glob, dir, f.path) {
			continue
		}
		out = append(out, f)
	}
	return out
}

// grepLines returns the matching lines of a file: line by line, unless the pattern spans lines.
// matches counts the places.
func grepLines(f *file, pattern string, fold bool) (out map[int]bool, matches int) {
	out = map[int]bool{}
	re := compiled(pattern, fold)
	if overLines(pattern) {
		for _, s := range f.find(re) {
			matches++
			for n := f.line(s.from); n <= f.line(s.to-1); n++ {
				out[n] = true
			}
		}
		return out, matches
	}
	for i, line := range f.lineTexts() {
		for _, m := range re.FindAllStringIndex(line, -1) {
			if m[0] < m[1] {
				out[i+1] = true
				matches++
			}
		}
	}
	return out, matches
}

// overLines reports whether a generated pattern spans lines.
func overLines(pattern string) bool {
	return strings.Contains(pattern, `\n`) || strings.Contains(pattern, "\n") || strings.HasPrefix(pattern, "(?s)")
}

var (
	lineOfFile = regexp.MustCompile(`^(\d+)(?: in .*?)?([:-]) (.*)$`)
	repoHead   = regexp.MustCompile(`^\[(local/.*)\]$`)
	countLine  = regexp.MustCompile(`^(?:(local/\S+) )?(.*): (\d+)$`)
)

// grepped parses an answer of grep: by repository and path the lines, or in an answer with counts
// the number at key 0.
func (c toolCall) grepped(text string) map[string]map[int]string {
	out := map[string]map[int]string{}
	repo, key := c.text("repo"), ""
	all := lines(text)
	for i, line := range all[1:] {
		if strings.HasPrefix(line, "Complete.") || strings.HasPrefix(line, "Left out: ") || strings.HasPrefix(line, "Not searched: ") {
			if i == len(all)-2 {
				break
			}
		}
		if m := countLine.FindStringSubmatch(line); c.text("mode") == "count" {
			if m != nil {
				n, _ := strconv.Atoi(m[3])
				if m[1] == "" {
					m[1] = repo
				}
				out[m[1]+"\x00"+m[2]] = map[int]string{-n: ""}
			}
			continue
		}
		m := lineOfFile.FindStringSubmatch(line)
		switch {
		case m != nil && m[2] == ":" && c.text("mode") == "":
			n, _ := strconv.Atoi(m[1])
			out[key][n] = m[3]
		case m != nil, line == "--", strings.HasPrefix(line, "… "):
		case c.number("context", 0) > 0 && (line == "" || line[0] == ' '): // the next line around a match
		case repoHead.MatchString(line) && c.text("repo") == "":
			repo = line[1 : len(line)-1]
		default:
			key = repo + "\x00" + line
			out[key] = map[int]string{}
		}
	}
	return out
}

// isGrep checks an answer of grep.
func isGrep(c toolCall, w *twin, text string) verdict {
	v := verdict{claimed: claims(text)}
	got := map[string]map[int]string{}
	if !strings.HasPrefix(text, "No line matches") && !strings.HasPrefix(text, "Only ") {
		got = c.grepped(text)
	}
	for _, f := range c.listed(w) {
		key := f.repo.name + "\x00" + paths.Written(f.path)
		have := got[key]
		delete(got, key)
		if f.binary {
			continue
		}
		want, matches := grepLines(f, c.text("pattern"), c.flag("ignoreCase"))
		if f.large && c.text("repo") == "" {
			want = nil
		}
		if have == nil && len(want) > 0 {
			if v.claimed {
				return v.about(f).wrong("it lacks %v", f)
			}
			continue
		}
		if have != nil && len(want) == 0 {
			return v.about(f).wrong("%v has no match", f)
		}
		if c.text("mode") != "" {
			if _, ok := have[-matches]; !ok && have != nil && c.text("mode") == "count" {
				return v.about(f).wrong("%v has %d matches, not %v", f, matches, have)
			}
			continue
		}
		texts := f.lineTexts()
		for n, line := range have {
			if !want[n] {
				return v.about(f).wrong("%v: line %d does not match", f, n)
			}
			if show := clean(texts[n-1]); len(show) < 280 && strings.TrimLeft(show, " \t") != strings.TrimLeft(line, " \t") {
				return v.about(f).wrong("%v: line %d is %q, not %q", f, n, show, line)
			}
		}
		if v.claimed && len(have) != len(want) {
			return v.about(f).wrong("%v has %d lines that match, not %d", f, len(want), len(have))
		}
	}
	for key := range got {
		return v.wrong("%q is no file of the call", key)
	}
	return v
}

// clean returns a line as tools print it: invisible characters are written by their code. Joiners
// stay, because letters and emoji need them.
func clean(line string) string {
	var out strings.Builder
	for i, size := 0, 0; i < len(line); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(line[i:])
		if r != '\t' && r != 0x200c && r != 0x200d && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func drawGrep(r *rand.Rand, w *twin) call {
	args := map[string]any{"pattern": drawPattern(r, w, true)}
	drawWhere(r, w, args)
	if r.IntN(2) == 0 {
		args["limit"] = []int{1, 3, 10000}[r.IntN(3)]
	}
	if r.IntN(2) == 0 {
		args["maxTokens"] = []int{500, 8000}[r.IntN(2)]
	}
	if r.IntN(3) == 0 {
		args["ignoreCase"] = true
	}
	if r.IntN(4) == 0 {
		args["mode"] = []string{"files", "count"}[r.IntN(2)]
	} else if r.IntN(4) == 0 {
		args["context"] = 1 + r.IntN(3)
	}
	for _, name := range []string{"include", "exclude"} {
		if r.IntN(5) == 0 {
			args[name] = drawGlob(r, w)
		}
	}
	return toolCall{name: "grep", args: args, is: isGrep, need: []string{"pattern"}}
}

// drawWhere draws repo, ref and path.
func drawWhere(r *rand.Rand, w *twin, args map[string]any) {
	a := w.repos[r.IntN(len(w.repos))]
	if r.IntN(3) > 0 {
		args["repo"] = a.name
		if r.IntN(40) == 0 {
			args["repo"] = "local/" + []string{"txt", "bul", "no-such", "kind", "CLOCK1"}[r.IntN(5)]
		}
	}
	if r.IntN(4) == 0 {
		args["ref"] = strings.TrimPrefix(strings.TrimPrefix(a.refs[r.IntN(len(a.refs))].name, "refs/heads/"), "refs/tags/")
		if r.IntN(10) == 0 {
			args["ref"] = "no-such-ref"
		}
	}
	if args["repo"] == a.name && r.IntN(5) == 0 {
		if f := a.refs[0].files; len(f) > 0 {
			if name := f[r.IntN(len(f))].path; utf8.ValidString(name) && args["ref"] == nil {
				if args["path"] = name; strings.Contains(name, "/") && r.IntN(2) == 0 {
					args["path"] = path.Dir(name)
				}
			}
		}
	}
}

func drawGlob(r *rand.Rand, w *twin) string {
	name := drawFile(r, w).path
	for !utf8.ValidString(name) || strings.Contains(name, "\ufffd") || strings.Contains(name, ",") || strings.Contains(name, `\u`) {
		name = drawFile(r, w).path
	}
	escaped := regexp.MustCompile(`[*?\[\]{}\\!]`).ReplaceAllString(name, `\$0`)
	base, ext := path.Base(escaped), path.Ext(escaped)
	if ext == "" || ext == "." {
		ext = ".txt"
	}
	dir := path.Dir(escaped)
	if dir == "." {
		dir = "src"
	}
	return []string{"*" + ext, "**/*" + ext, dir + "/**", dir + "/*", "/*" + ext, escaped, base, "**/" + base, "*", "?" + strings.TrimLeft(base, "!"), "*.{txt,go}", "[a-m]*" + ext, "[!a-m]*", name, "**"}[r.IntN(15)]
}

// isGlob checks an answer of glob.
func isGlob(c toolCall, w *twin, text string) verdict {
	v := verdict{claimed: claims(text)}
	want := map[string]*file{}
	for _, f := range c.files(w) {
		if dir := c.text("path"); dir == "" || strings.HasPrefix(f.path, dir+"/") || f.path == dir {
			if globbedFile(c.text("pattern"), dir, f.path) {
				want[f.repo.name+"\x00"+paths.Written(f.path)] = f
			}
		}
	}
	var got int
	_, _ = fmt.Sscanf(text, "%d file", &got)
	if v.claimed && got != len(want) || got > len(want) {
		for _, f := range want {
			v.tags = append(v.tags, f.tags...)
		}
		return v.wrong("%d files, the scan has %d: %v", got, len(want), slices.Sorted(maps.Keys(want)))
	}
	if got > 30 {
		return v // shown by their directories
	}
	repo := c.text("repo")
	for _, line := range lines(text)[min(1, len(lines(text))):] {
		switch {
		case repoHead.MatchString(line) && c.text("repo") == "":
			repo = line[1 : len(line)-1]
		case want[repo+"\x00"+line] != nil:
			got--
		}
	}
	if v.claimed && got > 0 {
		return v.wrong("%d files are not named as the scan has them: %v", got, slices.Sorted(maps.Keys(want)))
	}
	return v
}

// globbedFile is globbed for the pattern of glob, in which a plain name means a file. A plain
// path may begin with the directory of the call.
func globbedFile(glob, dir, name string) bool {
	if rest, not := strings.CutPrefix(glob, "!"); not && !strings.HasPrefix(rest, "(") {
		return !globbed(rest, dir, name)
	}
	if strings.ContainsAny(glob, `*?[{\`) {
		return globbed(glob, dir, name)
	}
	if glob == name && strings.HasPrefix(name, dir+"/") {
		return true
	}
	if dir != "" {
		name = strings.TrimPrefix(name, dir+"/")
	}
	from := strings.TrimPrefix(glob, "/")
	return name == from || !strings.Contains(glob, "/") && path.Base(name) == from
}

func drawGlobCall(r *rand.Rand, w *twin) call {
	args := map[string]any{"pattern": drawGlob(r, w), "limit": []int{2, 100, 10000, 10000}[r.IntN(4)]}
	drawWhere(r, w, args)
	return toolCall{name: "glob", args: args, is: isGlob, need: []string{"pattern"}}
}

// isReadFile checks an answer of read_file.
func isReadFile(c toolCall, w *twin, text string) verdict {
	f := w.named(c.text("repo")).revision(c.text("ref")).fileAt(c.text("path"))
	v := verdict{claimed: claims(text)}.about(f)
	if f.binary {
		if !strings.Contains(text, "binary file") {
			return v.wrong("%v is binary", f)
		}
		return v
	}
	all := f.lineTexts()
	first, most := c.number("offset", 1), c.number("limit", 500)
	next := first
	body := lines(text)[1:]
	for i, line := range body {
		m := lineOfFile.FindStringSubmatch(line)
		switch {
		case m != nil:
		case i == len(body)-1 || strings.HasPrefix(line, "This is a ") || strings.HasPrefix(line, "The file ") || strings.Contains(line, " cut after "):
			continue // a sentence of the tool
		default: // only some lines have their number before them
			m = []string{line, strconv.Itoa(next), "", line}
		}
		if m[1] != strconv.Itoa(next) || next > len(all) {
			return v.wrong("line %s, the scan expects %d of %d", m[1], next, len(all))
		}
		if show := clean(all[next-1]); len(show) < 300 && show != m[3] {
			return v.wrong("line %d is %q, not %q", next, show, m[3])
		}
		next++
	}
	end := strings.HasSuffix(text, "\nEnd of file.")
	switch {
	case end && next <= len(all):
		return v.wrong("it ends at line %d of %d", next-1, len(all))
	case !end && strings.HasSuffix(text, "\nComplete.") && next < min(len(all)+1, first+most) && !f.symlink:
		return v.wrong("complete at line %d of %d", next-1, len(all))
	case f.symlink && next > first && !strings.Contains(text, f.text):
		return v.wrong("the target is not named")
	}
	return v
}

func drawReadFile(r *rand.Rand, w *twin) call {
	a := w.repos[r.IntN(len(w.repos))]
	x := a.refs[r.IntN(len(a.refs))]
	f := x.files[r.IntN(len(x.files))]
	for !utf8.ValidString(f.path) || strings.Contains(f.path, "\ufffd") {
		f = x.files[r.IntN(len(x.files))]
	}
	args := map[string]any{"repo": a.name, "path": f.path, "ref": x.name}
	if r.IntN(3) == 0 {
		args["offset"] = 1 + r.IntN(6)
	}
	if r.IntN(3) == 0 {
		args["limit"] = 1 + r.IntN(6)
	}
	return toolCall{name: "read_file", args: args, is: isReadFile, need: []string{"repo", "path", "ref"}}
}

// isListTree checks an answer of list_tree.
func isListTree(c toolCall, w *twin, text string) verdict {
	a := w.named(c.text("repo"))
	v := verdict{claimed: claims(text)}
	out, _ := w.git(a, "ls-tree", "-r", "-t", "-z", "-l", "--full-tree", a.revision(c.text("ref")).commit)
	want := map[string]int{}
	depth, dir := c.number("depth", 1), c.text("path")
	wholePaths := c.args["includeDirectories"] == false
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		head, name, _ := strings.Cut(entry, "\t")
		part := strings.Fields(head)
		rel, below := name, true
		if dir != "" {
			rel, below = strings.CutPrefix(name, dir+"/")
		}
		level := 1 + strings.Count(rel, "/")
		if !below || level > depth || part[1] == "tree" && wholePaths || part[1] != "tree" && c.args["includeFiles"] == false {
			continue
		}
		line := strings.Repeat(" ", level-1) + paths.Written(path.Base(name))
		if wholePaths {
			line = paths.Written(name)
		}
		switch {
		case part[1] == "tree":
			line += "/"
		case part[1] == "commit":
			line += fmt.Sprintf(" (submodule at %.12s)", part[2])
		case part[0] == "120000":
			target, _ := w.git(a, "cat-file", "blob", part[2])
			line += " -> " + paths.Written(target)
		case c.flag("sizes"):
			line += " (" + part[3] + ")"
		}
		want[line]++
	}
	got := lines(text)
	for _, line := range got[1 : len(got)-1] {
		if want[line]--; want[line] < 0 {
			return v.wrong("%q is no entry of the scan", line)
		}
	}
	for line, n := range want {
		if n > 0 && v.claimed {
			return v.wrong("it lacks %q", line)
		}
	}
	return v
}

func drawListTree(r *rand.Rand, w *twin) call {
	args := map[string]any{}
	for args["repo"] == nil {
		drawWhere(r, w, args)
	}
	delete(args, "path")
	if a := w.named(args["repo"].(string)); a != nil && args["ref"] == nil && r.IntN(3) == 0 {
		f := a.refs[0].files[r.IntN(len(a.refs[0].files))]
		if dir := path.Dir(f.path); dir != "." && utf8.ValidString(dir) {
			args["path"] = dir
		}
	}
	if r.IntN(2) == 0 {
		args["depth"] = 1 + r.IntN(10)
	}
	if r.IntN(4) == 0 {
		args[[]string{"includeFiles", "includeDirectories"}[r.IntN(2)]] = false
	}
	if r.IntN(3) == 0 {
		args["sizes"] = true
	}
	if r.IntN(6) == 0 {
		args["maxEntries"] = 1 + r.IntN(5)
	}
	return toolCall{name: "list_tree", args: args, is: isListTree, need: []string{"repo"}}
}
