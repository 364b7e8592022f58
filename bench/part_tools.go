package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// question is what an agent asks with a tool, in several forms, and the plain
// command that answers one of them in a checkout.
type question struct {
	name  string
	calls []toolCall
	plain []string // program and arguments, run in the checkout; nil for none
}

// partTools times every tool for one agent and for sixteen, beside the plain
// command that answers the same question in a checkout.
func partTools(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Tools of the tool server, beside a plain command in a checkout",
		Columns: []string{"question", "plain", "Shoal, 1 agent", "p99", "16 agents", "p99", "Shoal / plain", "quicker"}}
	tree, err := r.corpora.tree(ctx)
	if err != nil {
		return nil, err
	}

	// With one commit more, for some questions ask of one that is not indexed.
	repo, older, err := r.corpora.grown(ctx)
	if err != nil {
		return nil, err
	}

	l, _, err := r.index(ctx, "tools-L", "off", 1, map[string]connection{"L": {"type": "git", "url": "file://" + repo}})
	if err != nil {
		return nil, err
	}
	defer l.stop()

	w := &toolWatch{r: r, s: l, p: p}
	if err := w.ask(ctx, "L", tree, repo, largeQuestions("local/"+repoName(repo), older)); err != nil {
		return nil, err
	}

	if err := r.historyTools(ctx, w); err != nil {
		return nil, err
	}
	p.note("plain: ripgrep or git, best of 3, in a checkout (git in the bare repository) on a warm cache. %d of %d questions quicker with one agent.", w.met, w.asked)
	return p, nil
}

// historyTools asks about a repository with a long history, where there is
// one.
func (r *run) historyTools(ctx context.Context, w *toolWatch) error {
	history := filepath.Join(r.Dir, "R.git")
	if ok, err := exists(history); err != nil || !ok {
		w.p.note("no history measured: %s is not there", history)
		return err
	}

	checkout, err := r.corpora.checkout(ctx, history)
	if err != nil {
		return err
	}

	s, _, err := r.index(ctx, "tools-R", "ctags", 1, map[string]connection{"R": {"type": "git", "url": "file://" + history}})
	if err != nil {
		return err
	}
	defer s.stop()

	if err := s.symbolsReady(ctx, symbolsTime, "read_loose_object"); err != nil {
		return err
	}

	// Another node: its memory is watched from the beginning.
	w.s, w.before, w.most, w.peak = s, 0, 0, 0
	return w.ask(ctx, "R", checkout, history, historyQuestions("local/"+repoName(history)))
}

// bestOfSome is the best of three, of fewer where one takes seconds.
func bestOfSome(f func() (time.Duration, error)) (time.Duration, error) {
	least, err := f()
	for i := 1; i < 3 && err == nil && least < 3*time.Second; i++ {
		var d time.Duration
		d, err = f()
		least = min(least, d)
	}
	return least, err
}

func repoName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".git") }

// toolWatch asks questions and watches what they take.
type toolWatch struct {
	r                  *run
	s                  *server
	p                  *Part
	met, asked         int
	before, most, peak int64 // bytes
}

func (w *toolWatch) memory() error {
	peak, _, anonymous, err := procMemory(w.s.cmd.Process.Pid)
	if w.before == 0 {
		w.before = anonymous
	}
	w.most, w.peak = max(w.most, anonymous), max(w.peak, peak)
	return err
}

// ask measures the questions about one repository. Commands of git run in the
// bare repository, others in the checkout.
func (w *toolWatch) ask(ctx context.Context, corpus, tree, repo string, questions []question) error {
	for _, q := range questions {
		w.r.Log("  %s: %s", corpus, q.name)
		if err := w.memory(); err != nil {
			return err
		}

		// One agent for how long it waits, sixteen for what the node can do for many.
		one, err := w.s.agents(ctx, 1, 8, 8*time.Second, q.calls)
		if err != nil {
			return err
		}

		many, err := w.s.agents(ctx, 16, 40, 4*time.Second, q.calls)
		if err != nil {
			return err
		}

		if err := w.memory(); err != nil {
			return err
		}
		name := corpus + " " + q.name

		if q.plain == nil {
			w.p.row(name, "", median(one.took), quantile(one.took, 0.99), median(many.took), quantile(many.took, 0.99), "", "")
			continue
		}

		// git reads the bare repository, as the node does; the others need files.
		dir := tree
		if q.plain[0] == "git" {
			dir = repo
		}

		// The best of some, as of the searches; the cache is warm for both.
		plain, err := bestOfSome(func() (time.Duration, error) {
			u, err := measure(ctx, dir, nil, q.plain[0], q.plain[1:]...)
			return u.Wall, err
		})
		if err != nil {
			return err
		}

		w.asked++
		if median(one.took) < plain {
			w.met++
		}

		w.p.row(name, plain, median(one.took), quantile(one.took, 0.99), median(many.took), quantile(many.took, 0.99),
			ratio(float64(median(one.took))/float64(plain)), median(one.took) < plain)
	}

	w.p.note("%s: memory of the node that no file backs: %s before, %s at most under this load, git's processes not counted; its peak with mapped files %s.",
		corpus, cell(bytesize(w.before)), cell(bytesize(w.most)), cell(bytesize(w.peak)))
	return nil
}

// each makes one call for each value of an argument.
func each(tool string, args map[string]any, name string, values ...string) toolCalls {
	var calls toolCalls
	for _, v := range values {
		c := toolCall{tool, map[string]any{name: v}}
		for k, a := range args {
			c.args[k] = a
		}
		calls = append(calls, c)
	}
	return calls
}

// ripgrepLines is the command that prints the lines of a tree which match.
func ripgrepLines(args ...string) []string {
	return append([]string{"rg", "--no-ignore", "--hidden", "--line-number", "--glob", "!.git"}, args...)
}

// largeQuestions are about the Linux tree; older is a commit that is not
// indexed.
func largeQuestions(repo, older string) []question {
	// Several forms of each, for the first one of a kind might be slow or quick by chance.
	in := map[string]any{"repo": repo}
	at := map[string]any{"repo": repo, "ref": older}
	return []question{
		{"grep", each("grep", in, "pattern", "tg3_read_firmware_ver", `ext4_[a-z]+_inode`, "struct workqueue_struct", `spin_lock_irqsave\(&[a-z]+->lock`),
			ripgrepLines(`ext4_[a-z]+_inode`)},
		{"grep, all repositories", each("grep", nil, "pattern", "io_uring_cmd_import_fixed", `kmalloc\(sizeof`), ripgrepLines(`kmalloc\(sizeof`)},
		{"grep groupByRepo", []toolCall{{"grep", map[string]any{"pattern": "mutex_lock", "groupByRepo": true}}}, append(ripgrepLines("mutex_lock"), "--count")},
		{"grep, a commit that is not indexed", each("grep", at, "pattern", "tg3_read_firmware_ver", `ext4_[a-z]+_inode`, "struct workqueue_struct"),
			[]string{"git", "grep", "-n", "-E", `ext4_[a-z]+_inode`, older}},

		{"glob", each("glob", in, "pattern", "**/Kconfig", "drivers/net/**/*.h", "**/*tg3*"), []string{"rg", "--no-ignore", "--hidden", "--files", "--glob", "**/Kconfig"}},
		{"glob, a commit that is not indexed", each("glob", at, "pattern", "**/Kconfig", "drivers/net/**/*.h", "**/*tg3*"),
			[]string{"git", "ls-tree", "-r", "--name-only", older}},
		{"read_file", each("read_file", in, "path", "mm/slub.c", "kernel/sched/core.c", "net/ipv4/tcp.c", "MAINTAINERS"), []string{"git", "show", "HEAD:kernel/sched/core.c"}},
		{"list_tree", each("list_tree", in, "path", "", "drivers", "fs/ext4", "net"), []string{"git", "ls-tree", "HEAD", "drivers/"}},
		{"list_tree, 10 levels", []toolCall{{"list_tree", map[string]any{"repo": repo, "depth": 10, "maxEntries": 10000}}}, []string{"git", "ls-tree", "-r", "-t", "--name-only", "HEAD"}},

		{"list_repos", []toolCall{{"list_repos", map[string]any{}}}, nil},
		{"list_language_models", []toolCall{{"list_language_models", map[string]any{}}}, nil},
	}
}

// historyQuestions are about a repository with a long history: git's own.
func historyQuestions(repo string) []question {
	// Tags that no index has: what agents ask of the past is mostly not indexed.
	in := map[string]any{"repo": repo}
	with := func(more map[string]any) map[string]any {
		for k, v := range in {
			more[k] = v
		}
		return more
	}
	return []question{
		{"grep, a tag that is not indexed", each("grep", in, "ref", "v2.10.0", "v2.20.0", "v2.30.0").set("pattern", "strbuf_addf?"), []string{"git", "grep", "-n", "-E", "strbuf_addf?", "v2.20.0"}},
		{"glob, a tag that is not indexed", each("glob", in, "ref", "v2.10.0", "v2.20.0", "v2.30.0").set("pattern", "t/**/*pack*"), []string{"git", "ls-tree", "-r", "--name-only", "v2.20.0"}},
		{"list_commits", each("list_commits", in, "ref", "HEAD", "v2.30.0", "v2.20.0"), []string{"git", "log", "-50", "v2.20.0"}},
		{"list_commits path", each("list_commits", in, "path", "builtin/add.c", "t", "refs.c"), []string{"git", "log", "-50", "HEAD", "--", "builtin/add.c"}},
		{"list_commits query", each("list_commits", in, "query", "bloom filter", "use-after-free", "memory leak"), []string{"git", "log", "-50", "-i", "--grep=use-after-free", "HEAD"}},
		{"list_commits author", each("list_commits", in, "author", "torvalds", "peff", "gitster"), []string{"git", "log", "-50", "-i", "--author=torvalds", "HEAD"}},

		{"list_branches", each("list_branches", in, "query", "", "ma"), []string{"git", "branch", "--sort=-committerdate", "--format=%(refname:short) %(objectname:short) %(committerdate:short)"}},
		{"get_diff, one commit", []toolCall{{"get_diff", with(map[string]any{"base": "HEAD~1", "head": "HEAD"})}, {"get_diff", with(map[string]any{"base": "v2.30.0~1", "head": "v2.30.0"})}}, []string{"git", "diff", "HEAD~1", "HEAD"}},
		{"get_diff, two releases", []toolCall{{"get_diff", with(map[string]any{"base": "v2.40.0", "head": "v2.41.0"})}}, []string{"git", "diff", "v2.40.0", "v2.41.0"}},

		{"find_symbol_definitions", each("find_symbol_definitions", in, "symbol", "strbuf_addf", "unpack_trees", "object_id", "die"), ripgrepLines("--word-regexp", "object_id")},
		{"find_symbol_references", each("find_symbol_references", in, "symbol", "strbuf_addf", "unpack_trees", "object_id", "die"), ripgrepLines("--word-regexp", "object_id")},
		{"read_file, an old tag", each("read_file", in, "ref", "v2.10.0", "v2.20.0", "v2.30.0").set("path", "refs.c"), []string{"git", "show", "v2.20.0:refs.c"}},
	}
}

type toolCalls []toolCall

// set adds an argument to every call.
func (c toolCalls) set(name string, value any) toolCalls {
	for i := range c {
		c[i].args[name] = value
	}
	return c
}

// grown is L with one more commit, and the commit before it: what people ask
// of an older commit is mostly what the index has.
func (c corpora) grown(ctx context.Context) (repo, older string, err error) {
	repo = filepath.Join(c.dir, "L-grown.git")
	large, err := c.large(ctx)
	if err != nil {
		return "", "", err
	}

	// It borrows the objects of L: only what is new is its own.
	if ok, err := exists(filepath.Join(repo, "complete")); err != nil {
		return "", "", err
	} else if !ok {
		if _, err := measure(ctx, c.dir, nil, "git", "clone", "-q", "--bare", "--shared", large, repo); err != nil {
			return "", "", err
		}
		for _, path := range []string{"mm/slub.c", "fs/ext4/inode.c", "drivers/net/ethernet/broadcom/tg3.c"} {
			if err := changeOneFile(ctx, repo, path, "/* one more line */"); err != nil {
				return "", "", err
			}
		}

		if err := os.WriteFile(filepath.Join(repo, "complete"), nil, 0o644); err != nil {
			return "", "", err
		}
	}

	// The commit before the changes, which no revision of the index is.
	older, err = gitIn(ctx, repo, nil, nil, "rev-parse", "HEAD~3")
	return repo, older, err
}

// checkout is a work tree of a bare repository's HEAD.
func (c corpora) checkout(ctx context.Context, repo string) (string, error) {
	dir := strings.TrimSuffix(repo, ".git") + "-checkout"
	if ok, err := exists(dir); ok || err != nil {
		return dir, err
	}
	c.log("checking out %s", repo)
	_, err := measure(ctx, c.dir, nil, "git", "clone", "-q", "--shared", repo, dir)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}
