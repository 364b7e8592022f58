package change

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// world is a repository with an odd history, and what git says of it.
type world struct {
	t    *testing.T
	rnd  *rand.Rand
	dir  string
	tips []string // refs
	mark int
	cut  bool                         // a shallow mirror: older commits are left out
	tree map[string]map[string]string // by mark of a commit: contents by path
}

var (
	worldWords = []string{"alpha", "beta", "Gamma", "delta", "func main", "x := 1", "return nil", "TODO", "ß", "naïve", "\xff\xfe raw", "a\tb", "-- not a header", "++ plus", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ No newline", "trail ", "tab\r"}
	worldPaths = []string{"a.go", "src/b.py", "src/deep/c.c", "odd name.txt", "quo\"te.md", "line\nbreak.txt", "ünï/ç.rs", "-dash", "b b b b.go", "x b/x", "Makefile"}
	worldWho   = []string{"Ann Lee <ann@example.com>", "Bob <bob@example.org>", "Çelik Ö <c@x.de>", "no name <>"}
)

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 7)), dir: t.TempDir(), tree: map[string]map[string]string{}}
	w.run("", "init", "-q", "--bare", ".")
	w.run("", "hash-object", "-w", "-t", "blob", "--stdin")
	return w
}

func (w *world) run(stdin string, args ...string) string {
	w.t.Helper()
	c := exec.Command("git", append([]string{"-C", w.dir}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "TZ=UTC", "LC_ALL=C")
	c.Stdin = strings.NewReader(stdin)
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, complaint.String())
	}
	return string(out)
}

func pick[T any](w *world, list []T) T { return list[w.rnd.IntN(len(list))] }

func (w *world) text() string {
	var b strings.Builder
	for range w.rnd.IntN(12) {
		b.WriteString(pick(w, worldWords) + strings.Repeat(" "+pick(w, worldWords), w.rnd.IntN(3)) + "\n")
	}
	s := b.String()
	switch w.rnd.IntN(12) {
	case 0:
		return "bin\x00" + s
	case 1:
		return strings.TrimSuffix(s, "\n")
	case 2:
		return strings.ReplaceAll(s, "\n", "\r\n")
	case 3: // Latin-1
		return strings.NewReplacer("ß", "\xdf", "ï", "\xef").Replace(s)
	case 4: // UTF-16 is binary to git
		out := []byte{0xff, 0xfe}
		for _, unit := range utf16.Encode([]rune(s)) {
			out = binary.LittleEndian.AppendUint16(out, unit)
		}
		return string(out)
	}
	return s
}

// edit changes some lines of a text.
func (w *world) edit(s string) string {
	lines := strings.SplitAfter(s, "\n")
	for range 1 + w.rnd.IntN(3) {
		i := w.rnd.IntN(len(lines))
		switch w.rnd.IntN(3) {
		case 0:
			lines = slices.Delete(lines, i, i+1)
		case 1:
			lines = slices.Insert(lines, i, pick(w, worldWords)+"\n")
		default:
			lines[i] = pick(w, worldWords) + "\n"
		}
		if len(lines) == 0 {
			lines = []string{""}
		}
	}
	return strings.Join(lines, "")
}

// change edits, adds, moves and removes some files.
func (w *world) change(tree map[string]string) {
	for range w.rnd.IntN(4) {
		path, other := pick(w, worldPaths), pick(w, worldPaths)
		text, there := tree[path]
		switch n := w.rnd.IntN(8); {
		case !there || n == 0:
			tree[path] = w.text()
		case n == 1:
			delete(tree, path)
		case n == 2: // a rename, with or without a change
			delete(tree, path)
			tree[other] = text + strings.Repeat("more\n", w.rnd.IntN(2))
		case n == 3: // a revert
			tree[path] = w.tree[strconv.Itoa(1+w.rnd.IntN(w.mark))][path]
		default:
			tree[path] = w.edit(text)
		}
	}
}

// grow adds commits by git fast-import: with merges, roots, renames, reverts and clocks that
// go wrong. The branches are some of the last.
func (w *world) grow(commits int) {
	var in bytes.Buffer
	for range commits {
		w.mark++
		var parents []int
		for range min(w.mark-1, []int{1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 0}[w.rnd.IntN(11)]) {
			if p := w.mark - 1 - w.rnd.IntN(min(w.mark-1, 6)); !slices.Contains(parents, p) {
				parents = append(parents, p)
			}
		}
		tree := map[string]string{}
		for _, p := range slices.Backward(parents) {
			for path, text := range w.tree[strconv.Itoa(p)] {
				tree[path] = text
			}
		}
		w.change(tree)
		w.tree[strconv.Itoa(w.mark)] = tree

		stamp := 1_600_000_000 + 3600*w.mark
		if w.rnd.IntN(8) == 0 {
			stamp += w.rnd.IntN(10_000_000) - 5_000_000
		}
		fmt.Fprintf(&in, "commit refs/heads/c%d\nmark :%d\nauthor %s %d +0200\ncommitter %s %d +0000\n", w.mark, w.mark, pick(w, worldWho), stamp-60, pick(w, worldWho), stamp)
		message := pick(w, worldWords[:10]) + " " + pick(w, worldWords[:10]) + "\n\nbody " + pick(w, worldWords[:10])
		if w.rnd.IntN(10) == 0 {
			message = "latin \xe9 message"
			in.WriteString("encoding ISO-8859-1\n")
		}
		fmt.Fprintf(&in, "data %d\n%s\n", len(message), message)
		for i, p := range parents {
			fmt.Fprintf(&in, "%s :%d\n", []string{"from", "merge", "merge", "merge"}[i], p)
		}
		in.WriteString("deleteall\n")
		for path, text := range tree {
			quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
			mode := []string{"100644", "100644", "100755"}[(len(path)+w.mark)%3/2*2]
			fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, quoted, len(text), text)
		}
	}
	marks := filepath.Join(w.dir, "marks")
	w.run(in.String(), "fast-import", "--quiet", "--force", "--import-marks-if-exists="+marks, "--export-marks="+marks)
	w.choose()
}

// choose makes some of the last commits the tips.
func (w *world) choose() {
	w.tips = nil
	for i := range 3 {
		w.tips = append(w.tips, strings.TrimSpace(w.run("", "rev-parse", fmt.Sprintf("refs/heads/c%d", w.mark-i*(1+w.rnd.IntN(3))))))
	}
}

// revisions are the tips with names.
func (w *world) revisions() []Tip {
	return []Tip{{"HEAD", w.tips[0]}, {"refs/heads/main", w.tips[0]}, {"refs/heads/side", w.tips[1]}, {"refs/tags/v1", w.tips[2]}}
}

// said is what git says of a commit.
type said struct {
	id, author, committer, message string
	committed                      int64
	merge                          bool
	masks                          map[string]bool // names of revisions that reach it
	files                          []saidFile
}

type saidFile struct {
	path, from     string
	named          bool
	removed, added []string // runs of lines
}

// read asks git for all commits of the tips, one question after the other.
func (w *world) read() (all []*said) {
	byID := map[string]*said{}
	for _, r := range w.revisions() {
		for id := range strings.FieldsSeq(w.run("", "rev-list", r.Commit)) {
			if byID[id] == nil {
				byID[id] = &said{id: id, masks: map[string]bool{}}
				all = append(all, byID[id])
			}
			byID[id].masks[r.Name] = true
		}
	}
	for _, c := range all {
		f := strings.Split(w.run("", "show", "-s", "--format=%an <%ae>%x00%cn <%ce>%x00%ct%x00%P%x00%B", c.id), "\x00")
		c.author, c.committer, c.message = f[0], f[1], strings.TrimRight(f[4], "\n")
		c.committed, _ = strconv.ParseInt(f[2], 10, 64)
		c.merge = strings.Contains(f[3], " ")
		switch {
		case slices.Contains(shallowOf(w.dir), c.id): // git shows it as a root
		case c.merge:
			c.files = w.ownFiles(c.id)
		default:
			c.files = w.files(c.id)
		}
	}
	return all
}

var emptyBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

// files lists what a commit changed by its raw difference, and compares the blobs themselves.
func (w *world) files(id string) (out []saidFile) {
	raw := strings.Split(w.run("", "diff-tree", "-r", "--root", "-M", "--raw", "-z", "--no-commit-id", id), "\x00")
	for i := 0; i+1 < len(raw); i += 2 {
		fields := strings.Fields(raw[i])
		f := saidFile{path: raw[i+1]}
		if fields[4][0] == 'R' {
			f.from, f.path = raw[i+1], raw[i+2]
			i++
		}
		before, now := fields[2], fields[3]
		for _, side := range []*string{&before, &now} {
			if strings.Trim(*side, "0") == "" {
				*side = emptyBlob
			}
		}
		patch := w.run("", "diff", "-U0", "--text", before, now)
		for _, side := range []string{before, now} {
			text := w.run("", "cat-file", "blob", side)
			f.named = f.named || before != now && strings.Contains(text[:min(len(text), 8000)], "\x00")
		}
		if !f.named {
			f.removed, f.added = runs(patch)
		}
		out = append(out, f)
	}
	return out
}

// runs are the runs of lines that a patch of one file removes and adds.
func runs(patch string) (removed, added []string) {
	_, body, _ := strings.Cut(patch, "\n@@")
	for hunk := range strings.SplitSeq("@@"+body, "\n@@") {
		var old, now strings.Builder
		for i, line := range strings.Split(strings.TrimSuffix(hunk, "\n"), "\n") {
			switch {
			case i == 0 || line == "":
			case line[0] == '-':
				old.WriteString(line[1:] + "\n")
			case line[0] == '+':
				now.WriteString(line[1:] + "\n")
			}
		}
		removed, added = append(removed, old.String()), append(added, now.String())
	}
	return removed, added
}

// ownFiles are the lines of a merge that differ from all parents, as git show has them.
func (w *world) ownFiles(id string) (out []saidFile) {
	for patch := range strings.SplitSeq(w.run("", "-c", "core.quotePath=false", "show", "-c", "-U0", "-M", "--format=", id), "diff --combined ") {
		name, rest, _ := strings.Cut(patch, "\n")
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		f := saidFile{path: strings.NewReplacer(`\n`, "\n", `\"`, `"`).Replace(strings.Trim(name, `"`))}
		signs, run := 0, ownRun{}
		for line := range strings.SplitSeq(rest, "\n") {
			switch {
			case strings.HasPrefix(line, "Binary files "):
				f.named = true
			case strings.HasPrefix(line, "@@@"):
				run.end(&f)
				signs = strings.Index(line, " ") - 1
			case signs > 0 && len(line) >= signs && line[0] != '\\':
				run.take(&f, line, signs)
			}
		}
		run.end(&f)
		if f.named || len(f.added)+len(f.removed) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// expected are the commits, or the files of commits, for which a question holds.
func expected(all []*said, q question, diff bool, within func(c *said) bool) (out []string) {
	for _, c := range all {
		if !within(c) {
			continue
		}
		if !diff {
			if q.inCommit().holds(c, nil) {
				out = append(out, c.id)
			}
			continue
		}
		for i := range c.files {
			if q.holds(c, &c.files[i]) {
				out = append(out, c.id+" "+c.files[i].path)
			}
		}
	}
	slices.Sort(out)
	return out
}

// asked is a search of a log.
type asked func(req LogSearch) (*LogMatches, error)

func searchOf(t *testing.T, l *Log) asked {
	return func(req LogSearch) (*LogMatches, error) { return l.Search(t.Context(), req) }
}

// ask searches the log of a repository, and holds the pages of the answer to it.
func ask(t *testing.T, l asked, repo, text string, toggles query.Options, pages bool) []string {
	t.Helper()
	q, err := query.Parse(text, toggles)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	diff := q.Type == query.DiffType
	tree := query.Simplify(query.Map(q.Q, func(n query.Q) query.Q {
		if r, ok := n.(*query.Repo); ok {
			return query.Const(regexp.MustCompile("(?i)" + r.Pattern).MatchString(repo))
		}
		return n
	}))
	found, err := l(LogSearch{Q: tree, Diff: diff, Limit: 1 << 30})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var out []string
	for i, c := range found.Commits {
		if i > 0 && found.Commits[i-1].CommitTime.Before(c.CommitTime) {
			t.Errorf("%s: %s stands behind an older one", text, c.ID)
		}
		if !diff {
			out = append(out, c.ID)
			continue
		}
		if c.MoreFiles > 0 { // the details of a commit are bounded, so these cannot be named
			out = append(out, fmt.Sprintf("%s: %d files", c.ID, len(c.Files)+c.MoreFiles))
			continue
		}
		for _, f := range c.Files {
			out = append(out, c.ID+" "+f.Path)
		}
	}
	if pages {
		askInPages(t, l, text, LogSearch{Q: tree, Diff: diff, Facets: true}, found)
	}
	slices.Sort(out)
	return out
}

// askInPages holds the pages of a search, in both orders, to the whole answer, and so the counts
// and the marks.
func askInPages(t *testing.T, l asked, text string, req LogSearch, whole *LogMatches) {
	t.Helper()
	for _, best := range []bool{false, true} {
		req.Best, req.After, req.Limit = best, Place{}, max(3, whole.Total/3)
		var ids []string
		var last Place
		for left := whole.Total; ; {
			page, err := l(req)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			exact := page.Total == whole.Total && page.Left == left
			if page.More { // what is not told is not all counted
				exact = !best && page.Total <= whole.Total && page.Left <= left && page.Left >= min(left, req.Limit)
			}
			if !exact || sum(page.Authors) != page.Total || sum(page.Months) != page.Total {
				t.Fatalf("%s: of %d: %d in all, %d of %d left, authors %v, months %v", text, whole.Total, page.Total, page.Left, left, page.Authors, page.Months)
			}
			for _, c := range page.Commits {
				at := Place{c.Score, c.CommitTime.Unix(), c.ID}
				if last != (Place{}) && last.compare(at) >= 0 {
					t.Errorf("%s: %v stands behind %v", text, at, last)
				}
				ids, last = append(ids, c.ID), at
				if left--; req.Diff {
					left -= len(c.Files) + c.MoreFiles - 1
				}
				checkMarks(t, text, &c)
			}
			if left == 0 {
				break
			}
			req.After = last
		}
		var all []string
		for _, c := range whole.Commits {
			all = append(all, c.ID)
		}
		if best {
			slices.Sort(ids)
			slices.Sort(all)
		}
		if !slices.Equal(ids, all) {
			t.Errorf("%s: pages, the best first %t, have %q, not %q", text, best, ids, all)
		}
	}
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// checkMarks holds marks to be in order, within lines and behind the sign of each.
func checkMarks(t *testing.T, text string, c *CommitMatch) {
	t.Helper()
	check := func(body string, marks []Span) {
		end := 0
		for _, m := range marks {
			if m.Start < end || m.End <= m.Start || m.End > len(body) {
				t.Fatalf("%s: %v of %q", text, marks, body)
			}
			end = m.End
		}
	}
	check(c.Message, c.Marks)
	for _, f := range c.Files {
		for _, h := range f.Hunks {
			check(h.Body, h.Marks)
			for _, m := range h.Marks {
				if m.Start == 0 || h.Body[m.Start-1] == '\n' {
					t.Fatalf("%s: the sign is marked in %q", text, h.Body)
				}
			}
		}
	}
}

// Random questions over odd histories find what git and a plain scan find: before and after
// a push, and after a history was rewritten. SHOAL_CHANGE_WORLDS sets how many worlds.
func TestCommitSearch_findsWhatGitFinds(t *testing.T) {
	t.Parallel()
	worlds, _ := strconv.Atoi(os.Getenv("SHOAL_CHANGE_WORLDS"))
	for seed := range max(2, worlds) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, uint64(seed))
			l := Open(t.TempDir())
			defer l.Close()

			for step, n := range []int{25, 3, 12} {
				w.grow(n)
				if step == 2 && w.rnd.IntN(2) == 0 { // the newest are gone again
					w.mark -= 6
					w.choose()
				}
				m := git.Open(w.dir)
				defer m.Close()
				if err := l.Update(t.Context(), m, w.revisions(), Bound{All: true}, time.Now(), noPause); err != nil {
					t.Fatal(err)
				}
				w.compare(searchOf(t, l), 60)
				w.comparePaths(l)
			}
		})
	}
}

func (w *world) compare(l asked, questions int) {
	t, all := w.t, w.read()
	s := &sampler{rnd: w.rnd, repo: "world", all: all, words: worldWords[:10], revs: []string{"HEAD", "main", "refs/heads/side", "v1"}}
	for range questions {
		s.compare(t, l)
	}

	// And what git itself finds, of commits with one parent.
	for _, word := range []string{"alpha", "TODO", "return nil", "naïve"} {
		w.compareWithGit(l, all, word)
	}
}

// compareWithGit holds an answer to what git log finds.
func (w *world) compareWithGit(l asked, all []*said, word string) {
	t := w.t
	t.Helper()
	byGit := func(args ...string) []string {
		ids := strings.Fields(w.run("", slices.Insert(slices.Concat([]string{"log", "--format=%H", "-M"}, args), 3, w.tips[0])...))
		if w.cut { // nobody knows what the oldest commits of a shallow mirror changed
			ids = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(shallowOf(w.dir), id) })
		}
		slices.Sort(ids)
		return ids
	}
	found := func(text string) []string {
		return ask(t, l, "world", text, query.Options{CaseSensitive: true}, true)
	}
	quoted := query.Quote(word)
	lines := byGit("--no-merges", "-G"+regexp.QuoteMeta(word))
	if got := found(fmt.Sprintf("type:commit merge:no (added:%[1]s or removed:%[1]s)", quoted)); !slices.Equal(got, lines) {
		t.Errorf("%s: got %q, git log -G has %q", word, got, lines)
	} else {
		for _, id := range byGit("--no-merges", "-S"+word) {
			// It looks into binary files, too.
			binary := slices.ContainsFunc(all, func(c *said) bool {
				return c.id == id && slices.ContainsFunc(c.files, func(f saidFile) bool { return f.named })
			})
			if !binary && !slices.Contains(got, id) {
				t.Errorf("%s: git log -S has %s too", word, id)
			}
		}
	}
	if w.cut {
		return
	}
	messages := byGit("-F", "--grep="+word)
	if got := found("type:commit message:" + quoted); !slices.Equal(got, messages) {
		t.Errorf("%s: got %q, git log --grep has %q", word, got, messages)
	}
	people := byGit("-E", "--author=^"+regexp.QuoteMeta(word[:1]), "--committer=@ex")
	if got := found("type:commit author:^" + regexp.QuoteMeta(word[:1]) + " committer:@ex"); !slices.Equal(got, people) {
		t.Errorf("%s: got %q, git log --author has %q", word, got, people)
	}
	// Git passes over paths of a rename that it does not look for, so each is looked at by itself.
	paths := byGit("--full-history", "--no-merges", "--", "*.go")
	if got := found(`type:commit merge:no file:\.go$`); !slices.Equal(got, paths) {
		t.Errorf("got %q, git log -- *.go has %q", got, paths)
	}
}

// shallowOf lists the oldest commits of a shallow mirror.
func shallowOf(dir string) []string {
	text, _ := os.ReadFile(filepath.Join(dir, "shallow")) // a whole mirror has none
	return strings.Fields(string(text))
}
