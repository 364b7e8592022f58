package bench

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// questionFiles has the questions. Each has the calls of tools that an agent makes one after the other
// until it has the answer, and the commands of a user with checkouts and a shell.
//
//go:embed questions/*.json
var questionFiles embed.FS

// questionLists names the files of questions, in order. Those of fzf, tokio and flask were
// written by a rule: see DESIGN.md.
var questionLists = []string{"questions.json", "linux.json", "fzf.json", "tokio-flask.json"}

// asking is a question with its answer, and how each side finds it.
type asking struct {
	Question string      `json:"q"`
	Repo     string      `json:"repo"`    // name of the bare repository without its extension; "" for all
	Needs    []string    `json:"needs"`   // for a question about all repositories: those that have the answer
	Answer   []string    `json:"answer"`  // texts that an agent must read
	Calls    []namedCall `json:"calls"`   // of tools; they get repo if they name none
	Control  [][]string  `json:"control"` // programs and arguments, run in the checkout, or in the directory of all
	// ControlAnswer replaces Answer for the commands if they print it differently: for example nothing if
	// there is nothing.
	ControlAnswer *[]string `json:"controlAnswer"`
}

// namedCall is a tool call in a file of questions.
type namedCall toolCall

// UnmarshalJSON parses a list of the tool's name and its arguments.
func (c *namedCall) UnmarshalJSON(data []byte) error {
	var args map[string]any
	pair := []any{&c.tool, &args}
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if c.tool == "" || args == nil || len(pair) != 2 {
		return fmt.Errorf("a call is a tool and its arguments, not %s", data)
	}
	c.args = args
	return nil
}

// questionsOf reads a file of questions.
func questionsOf(name string) (list []asking, err error) {
	data, err := questionFiles.ReadFile("questions/" + name)
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("questions %s: %w", name, err)
	}
	return list, nil
}

// questioned has the node and the checkouts that answer questions.
type questioned struct {
	s         *server
	checkouts string
	repos     []string
}

// startQuestions starts a node with the bare repositories of the directory questions, and makes a checkout
// of each. If there are none, it adds a note to p and returns nil.
func (r *run) startQuestions(ctx context.Context, p *Part) (*questioned, error) {
	dir := filepath.Join(r.Dir, "questions")
	bare, err := filepath.Glob(filepath.Join(dir, "*.git"))
	if err != nil || len(bare) == 0 {
		p.note("not measured: no bare repository in %s", dir)
		return nil, err
	}

	q := &questioned{checkouts: filepath.Join(r.Dir, "questions-checkouts")}
	if err := os.MkdirAll(q.checkouts, 0o755); err != nil {
		return nil, err
	}

	for _, repo := range bare {
		name := repoName(repo)
		q.repos = append(q.repos, name)
		to := filepath.Join(q.checkouts, name)
		if ok, err := exists(to); err != nil || ok {
			if err != nil {
				return nil, err
			}
			continue
		}

		if _, err := gitIn(ctx, dir, nil, nil, "clone", "--quiet", repo, to); err != nil {
			return nil, err
		}
	}

	q.s, _, err = r.index(ctx, "questions", "ctags", len(bare), map[string]connection{"Q": {"type": "git", "url": "file://" + dir + "/*"}})
	if err != nil {
		return nil, err
	}

	if err := q.s.waitSymbols(ctx, symbolsTime, "main"); err != nil {
		return nil, errors.Join(err, q.s.stop())
	}
	return q, nil
}

// missing returns the first of repos that does not exist; "" if all exist.
func (q *questioned) missing(repos []string) string {
	for _, repo := range repos {
		if !q.has(repo) {
			return repo
		}
	}
	return ""
}

// has reports whether a repository exists. The first three letters of its name count, because questions
// misspell names. "" means all repositories.
func (q *questioned) has(repo string) bool {
	if repo == "" {
		return true
	}
	for _, name := range q.repos {
		if name == repo || len(repo) > 2 && strings.HasPrefix(name, repo[:3]) {
			return true
		}
	}
	return false
}

// dir returns the directory for commands about a repository: its checkout, or that of all checkouts.
func (q *questioned) dir(repo string) string {
	dir := filepath.Join(q.checkouts, repo)
	if ok, err := exists(dir); err != nil || !ok {
		return q.checkouts
	}
	return dir
}

// call makes a call of a question about repo, and returns what the agent reads: the answer or the refusal.
func (q *questioned) call(ctx context.Context, repo string, c namedCall) (string, error) {
	args := map[string]any{}
	if repo != "" {
		args["repo"] = repo
	}

	for name, value := range c.args {
		args[name] = value
	}
	text, err := q.s.tool(ctx, toolCall{c.tool, args})

	if refused := (refusal)(""); errors.As(err, &refused) {
		return string(refused), nil
	}
	return text, err
}

// control runs commands until their output has the wanted texts. It returns what a user has read, and
// whether that has the texts.
func (q *questioned) control(ctx context.Context, repo string, commands [][]string, wanted []string) (cost, bool, error) {
	var texts []string
	for _, c := range commands {
		u, err := measure(ctx, q.dir(repo), nil, c[0], c[1:]...)
		if err != nil {
			return cost{}, false, err
		}

		texts = append(texts, string(u.Out))
		if len(wanted) > 0 && hasAll(texts, wanted) {
			break
		}
	}

	return costOf(texts), hasAll(texts, wanted), nil
}

// cost is what a side has read to answer questions.
type cost struct{ calls, bytes, tokens int }

func (c *cost) add(o cost) {
	c.calls += o.calls
	c.bytes += o.bytes
	c.tokens += o.tokens
}

func costOf(texts []string) cost {
	all := strings.Join(texts, "\n")
	return cost{len(texts), len(all), estimateTokens(all)}
}

func hasAll(texts, wanted []string) bool {
	all := strings.Join(texts, "\n")
	for _, w := range wanted {
		if !strings.Contains(all, w) {
			return false
		}
	}
	return true
}

// partQuestions asks the questions of agents, with tools and with programs in checkouts.
func partQuestions(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Questions of agents, to the tools and to rg, git and ctags in checkouts",
		Columns: []string{"question", "calls", "tokens", "right", "control's calls", "tokens", "right"}}
	var list []asking
	for _, file := range questionLists {
		some, err := questionsOf(file)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}

	q, err := r.startQuestions(ctx, p)
	if q == nil {
		return p, err
	}
	defer q.s.stop()

	var pairs []pair
	for _, a := range list {
		wanted := a.Answer
		if a.ControlAnswer != nil {
			wanted = *a.ControlAnswer
		}

		pairs = append(pairs, pair{
			repo: a.Repo, needs: a.Needs, question: a.Question, commands: a.Control, wanted: wanted,
			tools: func() (cost, bool, error) { return q.callTools(ctx, a) },
		})
	}

	t, err := q.compare(ctx, p, pairs)
	if err != nil {
		return nil, err
	}

	p.row("all", t.ours.calls, t.ours.tokens, t.right == t.asked, t.theirs.calls, t.theirs.tokens, t.controlRight == t.asked)
	p.note("%d questions: %d right with the tools, %d with the programs. A side stops reading when it has the answer. Calls and commands are fixed (bench/questions). Tokens are estimated: a word of five letters, three digits, or a sign is one.", t.asked, t.right, t.controlRight)
	return p, nil
}

// pair is a question for both sides.
type pair struct {
	repo, question string
	needs          []string
	tools          func() (cost, bool, error)
	commands       [][]string // of the control
	wanted         []string   // in their output
}

// tally sums up a list of questions.
type tally struct {
	asked, right, controlRight int
	ours, theirs               cost
}

// compare asks both sides each question, adds a row for it, and returns the sums. It skips a question
// about a missing repository with a note.
func (q *questioned) compare(ctx context.Context, p *Part, pairs []pair) (t tally, err error) {
	for _, one := range pairs {
		if missing := q.missing(append(one.needs, one.repo)); missing != "" {
			p.note("not asked, %s is not there: %s", missing, one.question)
			continue
		}

		our, ok, err := one.tools()
		if err != nil {
			return t, err
		}
		their, controlOK, err := q.control(ctx, one.repo, one.commands, one.wanted)
		if err != nil {
			return t, err
		}

		p.row(one.question, our.calls, our.tokens, ok, their.calls, their.tokens, controlOK)

		t.asked++
		t.right += boolInt(ok)
		t.controlRight += boolInt(controlOK)
		t.ours.add(our)
		t.theirs.add(their)
	}
	return t, nil
}

func boolInt(ok bool) int {
	if ok {
		return 1
	}
	return 0
}

// callTools makes the calls of a question until their texts have the answer. It returns what an agent has
// read, and whether that has the answer.
func (q *questioned) callTools(ctx context.Context, a asking) (cost, bool, error) {
	var texts []string
	for _, c := range a.Calls {
		text, err := q.call(ctx, a.Repo, c)
		if err != nil {
			return cost{}, false, fmt.Errorf("%s: %w", a.Question, err)
		}

		if texts = append(texts, text); hasAll(texts, a.Answer) {
			break
		}
	}

	return costOf(texts), hasAll(texts, a.Answer), nil
}
