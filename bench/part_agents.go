package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// task is a question that people ask agents, and what an agent reads until it
// knows the answer: with the tools of this product, and with the reference's.
type task struct {
	question string
	answer   string // is in what is read, on both sides
	ours     func(ctx context.Context, a *agent) error
	theirs   func(ctx context.Context, a *agent, f reference) error
}

// agent gathers what an agent has read.
type agent struct {
	s     *server
	repo  string
	texts []string
}

// call calls a tool of this product and returns its text.
func (a *agent) call(ctx context.Context, tool string, args map[string]any) (string, error) {
	if args["repo"] == nil && tool != "list_repos" && args["groupByRepo"] == nil {
		args["repo"] = a.repo
	}
	text, _, err := a.s.tool(ctx, toolCall{tool, args})
	if err == nil {
		a.texts = append(a.texts, text)
	}
	return text, err
}

// continuing is a call that the last line of a text names.
var continuing = regexp.MustCompile(`(?:continue with|More:) ([a-z_]+) (\{.*?\})`)

// toTheEnd makes a call and those by which its result says that it goes on.
func (a *agent) toTheEnd(ctx context.Context, tool string, args map[string]any) error {
	for {
		text, err := a.call(ctx, tool, args)
		if err != nil {
			return err
		}

		// Only the last line: the text may quote such a call.
		next := continuing.FindStringSubmatch(text[strings.LastIndexByte(text, '\n')+1:])
		if next == nil {
			return nil
		}

		// A new map: decoding into the old one would keep its arguments.
		tool, args = next[1], nil
		if err := json.Unmarshal([]byte(next[2]), &args); err != nil {
			return fmt.Errorf("the call %q: %w", next[0], err)
		}
	}
}

func (a *agent) read(text string, err error) error {
	if err == nil {
		a.texts = append(a.texts, text)
	}
	return err
}

func (a *agent) all() string { return strings.Join(a.texts, "\n") }

// cost is what questions took.
type cost struct{ calls, bytes, tokens int }

func (c *cost) add(o cost) {
	c.calls += o.calls
	c.bytes += o.bytes
	c.tokens += o.tokens
}

// cost is what an agent has read.
func (a *agent) cost() cost {
	return cost{len(a.texts), len(a.all()), estimateTokens(a.all())}
}

// partAgents compares what ten questions about git's own source cost an agent
// to read, in calls, bytes and tokens.
func partAgents(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Ten questions of agents, in the format of the tool server and in the reference's",
		Columns: []string{"question", "calls", "bytes", "tokens", "reference's calls", "bytes", "tokens", "tokens / reference", "better"}}

	history := filepath.Join(r.Dir, "R.git")
	if ok, err := exists(history); err != nil || !ok {
		p.note("not measured: %s, a bare copy of git's repository, is not there", history)
		return p, err
	}

	// With symbols, for half of the questions ask for them.
	s, _, err := r.index(ctx, "agents", "ctags", 1, map[string]connection{"R": {"type": "git", "url": "file://" + history}})
	if err != nil {
		return nil, err
	}
	defer s.stop()

	if err := s.symbolsReady(ctx, symbolsTime, "strbuf_addf"); err != nil {
		return nil, err
	}

	repo := "local/" + repoName(history)
	var ours, theirs cost
	better := 0

	// Better means both: fewer tokens in more calls would only move the cost.
	for _, t := range tasks() {
		our, their, err := t.compare(ctx, s, repo)
		if err != nil {
			return nil, err
		}

		good := our.calls <= their.calls && our.tokens < their.tokens
		if good {
			better++
		}
		ours.add(our)
		theirs.add(their)
		p.costs(t.question, our, their, good)
	}

	p.costs("all", ours, theirs, ours.calls < theirs.calls && ours.tokens < theirs.tokens)
	p.note("%d of %d questions take fewer tokens and no more calls. Tokens are estimated: a word of five letters, three digits, or a sign is one. The reference's texts are made of this node's answers, in its format and within its bounds; both sides read until the answer is there.", better, len(p.Rows)-1)
	return p, nil
}

// compare has both sides read until they have the answer.
func (t *task) compare(ctx context.Context, s *server, repo string) (our, their cost, err error) {
	// Each side reads on its own until it has the answer, or the comparison is none.
	ours, theirs := &agent{s: s, repo: repo}, &agent{s: s, repo: repo}
	if err := t.ours(ctx, ours); err != nil {
		return cost{}, cost{}, fmt.Errorf("%s: %w", t.question, err)
	}
	if err := t.theirs(ctx, theirs, reference{s, repo}); err != nil {
		return cost{}, cost{}, fmt.Errorf("%s, reference: %w", t.question, err)
	}

	for _, a := range []*agent{ours, theirs} {
		if !strings.Contains(a.all(), t.answer) {
			return cost{}, cost{}, fmt.Errorf("%s: %q is not in what was read:\n%s", t.question, t.answer, a.all())
		}
	}
	return ours.cost(), theirs.cost(), nil
}

// costs is a row of what a question took on both sides.
func (p *Part) costs(question string, our, their cost, better bool) {
	p.row(question, our.calls, our.bytes, our.tokens, their.calls, their.bytes, their.tokens, ratio(float64(our.tokens)/float64(their.tokens)), better)
}

// firstPlace is where a listing of symbols says that the first one is.
var firstPlace = regexp.MustCompile(`(?m)^([^\s\[].*\.[ch])\n(\d+)`)

// tasks are questions about git's own source.
func tasks() []task { return append(codeTasks(), historyTasks()...) }

func codeTasks() []task {
	// The reference's steps are those that its own tools would take for the same question.
	return []task{
		{"how is strbuf_addf implemented?", "va_end(ap)", func(ctx context.Context, a *agent) error {
			text, err := a.call(ctx, "find_symbol_definitions", map[string]any{"symbol": "strbuf_addf"})
			if err != nil {
				return err
			}

			at := firstPlace.FindStringSubmatch(text)
			if at == nil {
				return fmt.Errorf("no place in %q", text)
			}
			_, err = a.call(ctx, "read_file", map[string]any{"path": at[1], "offset": at[2], "limit": 30})
			return err
		}, func(ctx context.Context, a *agent, f reference) error {
			text, err := f.symbols(ctx, "/api/find_definitions", "strbuf_addf")
			if err != nil {
				return err
			}

			a.texts = append(a.texts, text)
			at := regexp.MustCompile(`\] (.*):\n  (\d+)`).FindStringSubmatch(text)
			if at == nil {
				return fmt.Errorf("no place in %q", text)
			}
			line := 0
			if _, err := fmt.Sscan(at[2], &line); err != nil {
				return err
			}
			texts, err := f.read(ctx, at[1], "HEAD", line, 30, "")
			a.texts = append(a.texts, texts...)
			return err
		}},

		{"what does builtin/mv.c do? (all of it)", "cmd_mv", func(ctx context.Context, a *agent) error {
			return a.toTheEnd(ctx, "read_file", map[string]any{"path": "builtin/mv.c"})
		}, func(ctx context.Context, a *agent, f reference) error {
			texts, err := f.read(ctx, "builtin/mv.c", "HEAD", 1, 1<<20, "")
			a.texts = append(a.texts, texts...)
			return err
		}},

		{"who calls unpack_trees?", "builtin/read-tree.c", func(ctx context.Context, a *agent) error {
			_, err := a.call(ctx, "find_symbol_references", map[string]any{"symbol": "unpack_trees"})
			return err
		}, func(ctx context.Context, a *agent, f reference) error {
			return a.read(f.symbols(ctx, "/api/find_references", "unpack_trees"))
		}},

		{"which settings does builtin/gc.c read?", "gc.auto", func(ctx context.Context, a *agent) error {
			_, err := a.call(ctx, "grep", map[string]any{"pattern": `config_get_\w+\(`, "path": "builtin/gc.c"})
			return err
		}, func(ctx context.Context, a *agent, f reference) error {
			return a.read(f.grep(ctx, `config_get_\w+\(`, `builtin/gc\.c`))
		}},
		{"where is the environment variable GIT_TRACE2_EVENT read?", "trace2/", func(ctx context.Context, a *agent) error {
			_, err := a.call(ctx, "grep", map[string]any{"pattern": "GIT_TRACE2_EVENT", "include": "**/*.{c,h}"})
			return err
		}, func(ctx context.Context, a *agent, f reference) error {
			return a.read(f.grep(ctx, "GIT_TRACE2_EVENT", `\.[ch]$`))
		}},
	}
}

func historyTasks() []task {
	return []task{
		{"what changed in refs.c from v2.40.0 to v2.41.0?", "repo_dwim_ref", func(ctx context.Context, a *agent) error {
			_, err := a.call(ctx, "get_diff", map[string]any{"base": "v2.40.0", "head": "v2.41.0", "path": "refs.c"})
			return err
		}, func(ctx context.Context, a *agent, f reference) error {
			return a.read(f.diff(ctx, "v2.40.0", "v2.41.0", "refs.c"))
		}},

		{"which files did v2.40.1 change?", "GIT-VERSION-GEN", func(ctx context.Context, a *agent) error {
			_, err := a.call(ctx, "get_diff", map[string]any{"base": "v2.40.0", "head": "v2.40.1"})
			return err
		}, func(ctx context.Context, a *agent, f reference) error {
			return a.read(f.diff(ctx, "v2.40.0", "v2.40.1", ""))
		}},

		{"which commits are about bloom filters?", "bloom", func(ctx context.Context, a *agent) error {
			_, err := a.call(ctx, "list_commits", map[string]any{"query": "bloom filter"})
			return err
		}, func(ctx context.Context, a *agent, f reference) error { return a.read(f.commits(ctx, "bloom filter")) }},
		{"what is in xdiff and which tests are about sparse checkouts?", "t1092-sparse", func(ctx context.Context, a *agent) error {
			if _, err := a.call(ctx, "list_tree", map[string]any{"path": "xdiff"}); err != nil {
				return err
			}
			_, err := a.call(ctx, "glob", map[string]any{"pattern": "t/**/*sparse*"})
			return err
		}, func(ctx context.Context, a *agent, f reference) error {
			for tool, args := range map[string]map[string]any{"list_tree": {"path": "xdiff", "repo": a.repo}, "glob": {"pattern": "t/**/*sparse*", "repo": a.repo}} {
				text, _, err := a.s.tool(ctx, toolCall{tool, args})
				if err != nil {
					return err
				}

				if tool == "glob" {
					a.texts = append(a.texts, f.paths(text, "t/**/*sparse*"))
				} else {
					a.texts = append(a.texts, f.tree(text, "xdiff"))
				}
			}

			return nil
		}},
		{"how did v2.10.0 open packs? (a tag that is not indexed)", "open_packed_git_1(struct packed_git *p)", func(ctx context.Context, a *agent) error {
			text, err := a.call(ctx, "grep", map[string]any{"pattern": `open_packed_git_1\(struct`, "ref": "v2.10.0"})
			if err != nil {
				return err
			}

			at := firstPlace.FindStringSubmatch(text)
			if at == nil {
				return fmt.Errorf("no place in %q", text)
			}
			_, err = a.call(ctx, "read_file", map[string]any{"path": at[1], "offset": at[2], "limit": 80, "ref": "v2.10.0"})
			return err
		}, func(ctx context.Context, a *agent, f reference) error {
			// It searches indexed revisions only: the agent looks at the tree
			// and reads the file that it guesses.
			a.texts = append(a.texts, "No files found")
			text, _, err := a.s.tool(ctx, toolCall{"list_tree", map[string]any{"repo": a.repo, "ref": "v2.10.0"}})
			if err != nil {
				return err
			}

			a.texts = append(a.texts, f.tree(text, "/"))
			texts, err := f.read(ctx, "sha1_file.c", "v2.10.0", 1, 1<<20, "open_packed_git_1(struct packed_git *p)")
			a.texts = append(a.texts, texts...)
			return err
		}},
	}
}
