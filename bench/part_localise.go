package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// localised is a commit that is a question: a search for its subject in the tree of its parent should find
// the source files that it changed.
type localised struct {
	subject string
	parent  string
	files   []string
	branch  string // of the parent, in the indexed copy
}

// Limits of part localise.
const (
	localiseCommits = 60   // of a repository; each needs a branch, and a node indexes at most 64 revisions
	localiseLog     = 4000 // newest commits to choose from
	localiseFiles   = 3    // most changed files; a commit with more is a clean-up
	localiseWords   = 4    // fewest words of a subject
	localiseShown   = 10   // files that each side may name
)

var (
	sourceFile  = regexp.MustCompile(`\.(?:c|h|cc|cpp|hpp|cs|go|py|rs|js|ts|tsx|vue|java|kt|php|rb|sh)$`)
	testPath    = regexp.MustCompile(`(?i)test|^t/`)
	subjectArea = regexp.MustCompile(`^[\w./ -]{1,30}: |\(#\d+\)$`) // names the place, which would be the answer
	plainWord   = regexp.MustCompile(`[\w.-]*\w`)
)

// partLocalise searches for commits by their subjects, in the trees before them: with the tool
// search, and with git grep by the number of words that a file has. Each group of repositories is
// one folder, because a ranking may be tuned on some of them.
func partLocalise(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Files that a commit changed, found by its subject in the tree before it",
		Columns: []string{"repository", "commits", "first", "in 5", "in 10", "tokens", "CPU ms", "by git grep: first", "in 5", "in 10"}}
	groups, err := filepath.Glob(filepath.Join(r.Dir, "localise", "*"))
	if err != nil || len(groups) == 0 {
		p.note("not measured: no folder of bare repositories in %s", filepath.Join(r.Dir, "localise"))
		return p, err
	}

	for _, group := range groups {
		if err := r.localiseGroup(ctx, p, group); err != nil {
			return nil, fmt.Errorf("%s: %w", group, err)
		}
	}
	p.note("Non-merge commits that changed 1 to %d source files, no tests, spread over the last %d. A hit is one of the files changed. git grep ranks by the number of different words, then by lines; it is left out where indexes of an earlier run are used.", localiseFiles, localiseLog)
	return p, nil
}

// localiseGroup measures the repositories of a folder and adds their rows.
func (r *run) localiseGroup(ctx context.Context, p *Part, group string) error {
	repos, err := filepath.Glob(filepath.Join(group, "*.git"))
	if err != nil {
		return err
	}

	var all [2]hits
	for _, dir := range repos {
		ours, theirs, err := r.localiseRepository(ctx, dir)
		var damage *lacksObjects
		if errors.As(err, &damage) {
			p.note("not measured: %s: %v", repoName(dir), damage)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}

		p.row(append([]any{repoName(dir)}, hitCells(ours, theirs)...)...)
		all[0].add(ours)
		all[1].add(theirs)
	}
	p.row(append([]any{"all of " + filepath.Base(group)}, hitCells(all[0], all[1])...)...)
	return nil
}

// hits counts how often a changed file was found first, among the first 5 and among the first 10.
type hits struct {
	asked, first, five, ten, tokens int
	cpu                             time.Duration
}

func (h *hits) add(o hits) {
	h.asked, h.first, h.five, h.ten, h.tokens = h.asked+o.asked, h.first+o.first, h.five+o.five, h.ten+o.ten, h.tokens+o.tokens
	h.cpu += o.cpu
}

// count counts the files that were found for a commit, the best first.
func (h *hits) count(c localised, found []string) {
	h.asked++
	at := slices.IndexFunc(found, func(f string) bool { return slices.Contains(c.files, f) })

	if at < 0 {
		return
	}
	h.ten++
	if at < 5 {
		h.five++
	}

	if at == 0 {
		h.first++
	}
}

func hitCells(ours, theirs hits) []any {
	share := func(n, of int) string { return fmt.Sprintf("%.2f", float64(n)/float64(max(of, 1))) }
	return []any{ours.asked, share(ours.first, ours.asked), share(ours.five, ours.asked), share(ours.ten, ours.asked), ours.tokens / max(ours.asked, 1),
		ours.cpu.Milliseconds() / int64(max(ours.asked, 1)),
		share(theirs.first, theirs.asked), share(theirs.five, theirs.asked), share(theirs.ten, theirs.asked)}
}

// localiseRepository measures one repository: ours has the hits of the tool search, theirs those of git
// grep, which is left out with Keep.
func (r *run) localiseRepository(ctx context.Context, dir string) (ours, theirs hits, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return ours, theirs, err
	}

	commits, err := localisedCommits(ctx, dir)
	if err != nil {
		return ours, theirs, err
	}

	// Each repository gets a node of its own, so that the repositories do not influence each other.
	s, err := r.localiseNode(ctx, dir, commits)
	if err != nil {
		return ours, theirs, err
	}
	defer s.stop()

	before, err := s.cpu()
	if err != nil {
		return ours, theirs, err
	}
	for _, c := range commits {
		text, err := s.tool(ctx, toolCall{"search", map[string]any{"query": c.subject, "repo": "local/localise-" + repoName(dir), "ref": c.branch, "limit": localiseShown, "maxTokens": 8000}})
		if err != nil {
			return ours, theirs, err
		}
		ours.count(c, rankedFiles(text))
		ours.tokens += estimateTokens(text)
	}
	after, err := s.cpu()
	if err != nil {
		return ours, theirs, err
	}
	ours.cpu = after - before

	// Both sides get the same words and the same tree.
	for _, c := range commits {
		if r.Keep {
			break
		}
		found, err := grepRanked(ctx, dir, c)
		if err != nil {
			return ours, theirs, err
		}
		theirs.count(c, found)
	}
	return ours, theirs, nil
}

// cpu returns the CPU time of a node and its child processes.
func (s *server) cpu() (time.Duration, error) {
	own, children, err := procUsage(s.cmd.Process.Pid)
	return own + children, err
}

// localiseNode starts a node with a copy of a repository, in which each commit's parent is a branch.
func (r *run) localiseNode(ctx context.Context, dir string, commits []localised) (*server, error) {
	copied := filepath.Join(r.Dir, "localise-"+repoName(dir)+".git")
	if there, err := exists(copied); err != nil {
		return nil, err
	} else if !there || !r.Keep {
		if err := copyWithBranches(ctx, dir, copied, commits); err != nil {
			return nil, err
		}
	}

	// Index all branches as revisions of one repository: an index for each commit would take a day.
	s, _, err := r.index(ctx, "localise-"+repoName(dir), "ctags", 1, map[string]connection{"L": {
		"type": "git", "url": "file://" + copied, "revisions": map[string]any{"branches": []string{"before-*"}}}})
	if err != nil {
		return nil, err
	}

	// Wait for any symbol, because a library has no main.
	if err := errors.Join(s.waitSymbols(ctx, symbolsTimeLarge, `\w+`), s.waitIdle(ctx)); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// copyWithBranches makes a bare copy of a repository with a branch for the parent of each commit. It fails
// if the copy lacks objects.
func copyWithBranches(ctx context.Context, dir, copied string, commits []localised) error {
	if err := os.RemoveAll(copied); err != nil {
		return err
	}
	if _, err := gitIn(ctx, filepath.Dir(copied), nil, nil, "clone", "--quiet", "--bare", dir, copied); err != nil {
		return err
	}
	for _, c := range commits {
		if _, err := gitIn(ctx, copied, nil, nil, "branch", "--force", c.branch, c.parent); err != nil {
			return err
		}
	}

	return checkObjects(ctx, copied)
}

// lacksObjects is the error for a repository with missing objects.
type lacksObjects struct{ err error }

func (e *lacksObjects) Error() string { return "objects of its branches are missing: " + e.err.Error() }

// checkObjects returns lacksObjects if an object of a branch is missing.
func checkObjects(ctx context.Context, dir string) error {
	if _, err := gitIn(ctx, dir, nil, nil, "rev-list", "--objects", "--quiet", "--branches"); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &lacksObjects{err}
	}
	return nil
}

// localisedCommits returns commits that are fair questions, spread over the log.
func localisedCommits(ctx context.Context, dir string) ([]localised, error) {
	log, err := gitIn(ctx, dir, nil, nil, "log", "--no-merges", "--no-renames", "--diff-filter=AM", "--name-status", "--format=%x01%P%n%s", fmt.Sprintf("-%d", localiseLog), "HEAD")
	if err != nil {
		return nil, err
	}
	var fair []localised
	for record := range strings.SplitSeq(log, "\x01") {
		if c, ok := fairCommit(record); ok {
			fair = append(fair, c)
		}
	}

	// Do not take adjacent commits, which are often about one topic.
	step := max(1, len(fair)/localiseCommits)
	var out []localised
	for i := 0; i < len(fair) && len(out) < localiseCommits; i += step {
		c := fair[i]
		c.branch = fmt.Sprintf("before-%d", len(out))
		out = append(out, c)
	}
	return out, nil
}

// fairCommit parses a record of the log, and reports whether the commit is a fair question: it has one
// parent and enough words, and changed a few existing source files.
func fairCommit(record string) (c localised, ok bool) {
	lines := strings.Split(strings.TrimSpace(record), "\n")
	if len(lines) < 3 {
		return c, false
	}

	c.parent = lines[0]

	// Remove names of areas, which would be the answer, and signs.
	c.subject = strings.Join(plainWord.FindAllString(subjectArea.ReplaceAllString(lines[1], ""), -1), " ")
	for _, line := range lines[2:] {
		kind, file, _ := strings.Cut(line, "\t")
		if kind == "M" && sourceFile.MatchString(file) && !testPath.MatchString(file) {
			c.files = append(c.files, file)
		}
	}

	words := len(strings.Fields(c.subject))
	return c, words >= localiseWords && len(c.files) > 0 && len(c.files) <= localiseFiles && !strings.Contains(c.parent, " ")
}

// rankedHead matches the head line of a file in an answer of search, rankedLine another line that has no space.
var (
	rankedHead = regexp.MustCompile(`^(\S+?)(?:, \d+/\d+ words)?(?:, \d+ equal cop(?:y|ies))?$`)
	rankedLine = regexp.MustCompile(`^(?:\d+:|Complete\.$)`)
)

func rankedFiles(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := rankedHead.FindStringSubmatch(line); m != nil && !rankedLine.MatchString(line) {
			out = append(out, m[1])
		}
	}
	return out
}

// grepRanked returns the files that git grep finds for a commit's subject, word by word. Files with more
// different words come first, then files with more matching lines.
func grepRanked(ctx context.Context, dir string, c localised) ([]string, error) {
	type file struct{ words, lines int }
	files := map[string]file{}
	for _, word := range strings.Fields(c.subject) {
		if len(word) < 3 {
			continue
		}
		out, _ := gitIn(ctx, dir, nil, nil, "grep", "-I", "-i", "-F", "-c", "-e", word, c.parent) // an error means no match
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(strings.TrimPrefix(line, c.parent+":"), "\n")
			at := strings.LastIndexByte(line, ':')
			if at < 0 {
				continue
			}

			lines := 0
			if _, err := fmt.Sscan(line[at+1:], &lines); err != nil {
				return nil, fmt.Errorf("git grep printed %q: %w", line, err)
			}
			f := files[line[:at]]
			files[line[:at]] = file{f.words + 1, f.lines + lines}
		}
	}

	names := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(files[b].words-files[a].words, files[b].lines-files[a].lines, strings.Compare(a, b))
	})
	return names[:min(len(names), localiseShown)], nil
}

func repoName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".git") }
