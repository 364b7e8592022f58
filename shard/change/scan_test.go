package change

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// scanMark begins the head of a commit in the output of git log.
const scanMark = "\x1e\x1ecommit of the scan\x1e"

// scan reads the commits of some revisions from one git log -p each.
func scan(t *testing.T, dir string, revisions []Tip) (all []*said) {
	t.Helper()
	byID := map[string]*said{}
	for _, r := range revisions {
		for _, id := range strings.Fields(gitIn(t, dir, "rev-list", r.Commit)) {
			if byID[id] == nil {
				byID[id] = &said{id: id, masks: map[string]bool{}}
				all = append(all, byID[id])
			}
			byID[id].masks[r.Name] = true
		}
	}

	args := []string{"-c", "core.quotePath=false", "log", "-p", "-c", "-U0", "-M", "--no-ext-diff", "--no-textconv", "--no-color", "--format=" + scanMark + "%H%x1e%P%x1e%an <%ae>%x1e%cn <%ce>%x1e%ct%x1e%B" + scanMark}
	for _, r := range revisions {
		args = append(args, r.Commit)
	}
	out := gitIn(t, dir, args...)
	parts := strings.Split(out, scanMark)
	for i := 1; i+1 < len(parts); i += 2 {
		f := strings.SplitN(parts[i], "\x1e", 6)
		c := byID[f[0]]
		c.merge, c.author, c.committer, c.message = strings.Contains(f[1], " "), f[2], f[3], strings.TrimRight(f[5], "\n")
		c.committed, _ = strconv.ParseInt(f[4], 10, 64)
		c.files = scanFiles(strings.Split(strings.TrimSuffix(parts[i+1], "\n"), "\n"))
	}
	return all
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", append([]string{"-C", dir}, args...)...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "TZ=UTC", "LC_ALL=C")
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, complaint.String())
	}
	return string(out)
}

// scanFiles reads the patches of one commit: an ordinary hunk says how many lines it has, a combined
// one ends where a line has no sign.
func scanFiles(lines []string) (out []saidFile) {
	var f *saidFile
	size, own := 0, false
	end := func() {
		if f == nil {
			return
		}
		if f.named = f.named || size > git.MaxPatch; f.named {
			f.removed, f.added = nil, nil
		}
		if own && !f.named && len(f.removed)+len(f.added) == 0 {
			out = out[:len(out)-1]
		}
	}
	begin := func(path string, combined bool) {
		end()
		out = append(out, saidFile{path: path})
		f, size, own = &out[len(out)-1], 0, combined
	}
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "diff --git "):
			names := line[len("diff --git "):]
			begin(plainPath(names[:len(names)/2]), false)
		case strings.HasPrefix(line, "diff --combined "):
			begin(plainPath("a/"+line[len("diff --combined "):]), true)
		case strings.HasPrefix(line, "rename from "):
			f.from = plainPath("a/" + line[len("rename from "):])
		case strings.HasPrefix(line, "rename to "):
			f.path = plainPath("a/" + line[len("rename to "):])
		case strings.HasPrefix(line, "Binary files "):
			f.named = true
		case strings.HasPrefix(line, "@@@"):
			signs := strings.Index(line, " ") - 1
			var run ownRun
			for i+1 < len(lines) && len(lines[i+1]) >= signs && strings.Trim(lines[i+1][:signs], "+- ") == "" {
				i++
				size += run.take(f, lines[i], signs)
			}
			run.end(f)
		case strings.HasPrefix(line, "@@ "):
			var sides [2]strings.Builder
			for side, part := range strings.Fields(line)[1:3] {
				count := 1
				if _, n, ok := strings.Cut(part, ","); ok {
					count, _ = strconv.Atoi(n)
				}
				for ; count > 0; count-- {
					i++
					sides[side].WriteString(lines[i][1:] + "\n")
				}
				if i+1 < len(lines) && strings.HasPrefix(lines[i+1], `\`) {
					i++
				}
			}
			size += sides[0].Len() + sides[1].Len()
			f.removed, f.added = append(f.removed, sides[0].String()), append(f.added, sides[1].String())
		}
	}
	end()
	return out
}

// ownRun is lines of a merge that differ from all parents and stand together.
type ownRun struct{ removed, added strings.Builder }

// take takes a line of a combined hunk, and returns how many bytes of it are the merge's own. A line
// that is not ends the run, unless only parents behind the first had it.
func (r *ownRun) take(f *saidFile, line string, signs int) int {
	body := line[signs:] + "\n"
	switch sign := line[:signs]; {
	case sign == strings.Repeat("+", signs):
		r.added.WriteString(body)
		return len(body)
	case sign == strings.Repeat("-", signs):
		r.removed.WriteString(body)
		return len(body)
	case sign[0] != ' ' || !strings.Contains(sign, "-"):
		r.end(f)
	}
	return 0
}

func (r *ownRun) end(f *saidFile) {
	if r.removed.Len() > 0 {
		f.removed = append(f.removed, r.removed.String())
	}
	if r.added.Len() > 0 {
		f.added = append(f.added, r.added.String())
	}
	r.removed.Reset()
	r.added.Reset()
}

// plainPath reads a path as git prints it, and leaves out what stands before its first slash.
func plainPath(name string) string {
	name = strings.TrimSpace(name)
	if strings.HasPrefix(name, `a/"`) {
		name = `"a/` + name[3:]
	}
	if s, err := strconv.Unquote(name); err == nil && strings.HasPrefix(name, `"`) {
		name = s
	}
	_, path, _ := strings.Cut(name, "/")
	return path
}

// synthetic makes a repository of so many small commits.
func synthetic(t *testing.T, commits int) string {
	t.Helper()
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(1, 1))
	var in bytes.Buffer
	for i := range commits {
		message := fmt.Sprintf("change %d: %s", i, worldWords[rnd.IntN(10)])
		text := fmt.Sprintf("%s\nline %d\n%s\n", worldWords[rnd.IntN(10)], rnd.IntN(100), worldWords[rnd.IntN(10)])
		fmt.Fprintf(&in, "commit refs/heads/main\nauthor %s %d +0000\ncommitter %s %d +0000\ndata %d\n%s\nM 100644 inline d%d/f%d.go\ndata %d\n%s\n",
			worldWho[rnd.IntN(4)], 1_500_000_000+600*i, worldWho[rnd.IntN(4)], 1_500_000_000+600*i, len(message), message, rnd.IntN(10), rnd.IntN(100), len(text), text)
	}
	gitIn(t, dir, "init", "-q", "--bare", "-b", "main", ".")
	c := exec.Command("git", "-C", dir, "fast-import", "--quiet")
	c.Stdin = &in
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// Random questions over real repositories find what a plain scan of git log -p finds.
// SHOAL_ORACLE_MIRRORS names them, with blanks between; SHOAL_ORACLE_QUESTIONS is how many questions
// they are asked together. Repositories with large files that were left out cannot be read by git.
func TestCommitSearch_findsWhatAScanOfRealHistoriesFinds(t *testing.T) {
	t.Parallel()
	questions, _ := strconv.Atoi(os.Getenv("SHOAL_ORACLE_QUESTIONS"))
	dirs, commits := strings.Fields(os.Getenv("SHOAL_ORACLE_MIRRORS")), 100_000
	if questions == 0 {
		dirs, questions, commits = nil, 60, 1000
	}
	for i, dir := range append(dirs, "") {
		name := filepath.Base(filepath.Dir(dir))
		t.Run(name, func(t *testing.T) {
			if dir == "" {
				dir = synthetic(t, commits)
			}
			revisions := []Tip{{"HEAD", strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD"))}}
			for _, tag := range strings.Fields(gitIn(t, dir, "for-each-ref", "--sort=-creatordate", "--count=3", "--format=%(refname)", "refs/tags")) {
				if c := exec.Command("git", "-C", dir, "rev-parse", "--verify", tag+"^{commit}"); c.Run() == nil { // it may be of a tree or a blob
					revisions = append(revisions, Tip{tag, strings.TrimSpace(gitIn(t, dir, "rev-parse", tag+"^{commit}"))})
				}
			}
			began := time.Now()
			m, l := git.Open(dir), Open(t.TempDir())
			defer m.Close()
			defer l.Close()
			if err := l.Update(t.Context(), m, revisions, Bound{All: true}, time.Now(), noPause); err != nil {
				t.Fatal(err)
			}
			built := time.Since(began)
			s := &sampler{rnd: rand.New(rand.NewPCG(uint64(i), 11)), repo: name, all: scan(t, dir, revisions), words: worldWords[:10]}
			for _, r := range revisions {
				s.revs = append(s.revs, r.Name)
			}
			// A batch with a file that the mirror lacks leaves commits unread, and a scan fails.
			if found, err := l.Search(context.Background(), LogSearch{Q: query.Const(true)}); err != nil || !found.Whole || found.Total != len(s.all) {
				t.Fatalf("%d commits are scanned, and %+v found, %v", len(s.all), found, err)
			}
			for range questions / (len(dirs) + 1) {
				s.compare(t, searchOf(t, l))
			}
			t.Logf("%d commits, indexed in %s; %d questions in %s", len(s.all), built.Round(time.Millisecond), questions/(len(dirs)+1), (time.Since(began) - built).Round(time.Millisecond))
		})
	}
}
