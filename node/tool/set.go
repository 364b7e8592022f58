package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/symbols"
)

// Model is a configured language model. The first one of a list is the default.
type Model struct {
	Provider    string `json:"provider"`
	Model       string `json:"model"`
	DisplayName string `json:"displayName,omitzero"`
	Usable      bool   `json:"usable"` // the node that was asked has what calling it needs
}

// Modeler lists the configured language models.
type Modeler interface {
	Models(context.Context, catalog.Viewer) ([]Model, error)
}

// Parts is what the tools work with. All of them take calls from many
// goroutines at once and check themselves what the viewer may see.
type Parts struct {
	Search symbols.Searcher
	Browse browse.Reader
	Models Modeler
	Log    *slog.Logger // told of failures that are the node's own
}

// Set is the tools that are offered to agents. It may be used by many at once.
type Set struct {
	tools  []Tool
	search symbols.Searcher
	browse browse.Reader
	log    *slog.Logger
}

// New makes the set of the product's tools, in the order that clients show
// them, with further ones behind.
func New(p Parts, more ...Tool) *Set {
	tools := []Tool{
		rankedSearch(p.Search, p.Browse),
		grep(p.Search, p.Browse),
		glob(p.Search, p.Browse),
		readFile(p.Browse),
		listTree(p.Browse),
		listRepos(p.Browse),
		definitions(p.Search, p.Browse),
		references(p.Search, p.Browse),
		implementations(p.Search, p.Browse),
		dependencies(p.Search, p.Browse),
		outline(p.Browse),
		listCommits(p.Search, p.Browse),
		blame(p.Browse),
		getDiff(p.Browse),
		listBranches(p.Browse),
		listModels(p.Models),
	}

	// The bound of an answer goes with every tool of the product.
	for i := range tools {
		tools[i].Params = append(tools[i].Params, maxTokens)
	}
	return &Set{tools: append(tools, more...), search: p.Search, browse: p.Browse, log: p.Log}
}

// Tools lists the rows. They are not to be changed.
func (s *Set) Tools() []Tool { return s.tools }

// Offered is the set of the rows that can be used now, which is this one where
// all of them can.
func (s *Set) Offered() *Set {
	now := &Set{search: s.search, browse: s.browse, log: s.log}
	for _, t := range s.tools {
		if t.Offered == nil || t.Offered() {
			now.tools = append(now.tools, t)
		}
	}

	if len(now.tools) == len(s.tools) {
		return s
	}
	return now
}

// Without is the set without the tool of a name.
func (s *Set) Without(name string) *Set {
	less := *s
	less.tools = slices.DeleteFunc(slices.Clone(s.tools), func(t Tool) bool { return t.Name == name })
	return &less
}

// progressKey is of the function that is told how far a call is.
type progressKey struct{}

// WithProgress returns a context in which a tool tells how far it is. fn may
// be called from any goroutine.
func WithProgress(ctx context.Context, fn func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// Progress tells whoever waits for a call how far it is.
func Progress(ctx context.Context, text string) {
	if fn, ok := ctx.Value(progressKey{}).(func(string)); ok {
		fn(text)
	}
}

// Answer is what a model reads of one call.
type Answer struct {
	Text   string
	Failed bool // Text says what went wrong and what to do next
}

// Call runs a tool for a viewer. Whatever fails is told to the model in words,
// so that it can do better with its next call.
func (s *Set) Call(ctx context.Context, v catalog.Viewer, name string, arguments json.RawMessage) Answer {
	// A name that is not there is answered in words, not as a fault of the protocol: models mend
	// those.
	if unknown := s.Unknown(name); unknown != "" {
		return Answer{Text: unknown, Failed: true}
	}
	t := s.named(name)

	// Checked before the tool sees them, so that no tool has to.
	a, err := t.decode(arguments)
	if err != nil {
		return Answer{Text: err.Error(), Failed: true}
	}

	text, err := s.run(ctx, v, t, a)
	if err == nil {
		return Answer{Text: text}
	}
	return s.failed(ctx, v, t, a, err)
}

// failed is what a model reads of a call that failed.
func (s *Set) failed(ctx context.Context, v catalog.Viewer, t *Tool, a *Args, err error) Answer {
	// What is no fault of the call is told to the operator too.
	var known *call.Error
	if !errors.As(err, &known) && ctx.Err() == nil {
		s.log.Error("tool failed", "request", call.RequestOf(ctx), "tool", t.Name, "error", err)
	}
	return Answer{Text: explain(ctx, s.browse, v, t, a, err), Failed: true}
}

// Unknown says, where there is no tool of a name, which one could be meant and
// which there are; otherwise it is "".
func (s *Set) Unknown(name string) string {
	if s.named(name) != nil {
		return ""
	}
	names := make([]string, len(s.tools))
	for i := range s.tools {
		names[i] = s.tools[i].Name
	}

	// All are listed: a model that makes a name up often does not know any.
	text := fmt.Sprintf("There is no tool %q", shorten(name))
	if near := NearestName(name, names); near != "" {
		text += ", did you mean " + near + "?"
	} else {
		text += "."
	}
	return text + " The tools are " + strings.Join(names, ", ") + "."
}

func (s *Set) named(name string) *Tool {
	for i := range s.tools {
		if s.tools[i].Name == name {
			return &s.tools[i]
		}
	}
	return nil
}

// run runs a tool. Where no repository has that full name but exactly one ends like it,
// in any case and in any form of address, that one is meant. No other one is: an answer
// of another repository would be read as one of the repository that was asked for.
func (s *Set) run(ctx context.Context, v catalog.Viewer, t *Tool, a *Args) (text string, err error) {
	defer func() {
		// One broken answer must not end the node, which serves everybody else.
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()

	if a.List("repo") != nil {
		if err := s.findRepos(ctx, v, a); err != nil {
			return "", err
		}
	}

	// The full name first: the listing is asked only where that failed, so no good call pays for
	// it.
	text, err = s.runOnce(ctx, v, t, a)
	asked := a.Text("repo")
	if asked == "" || !errors.Is(err, call.ErrRepoNotFound) {
		return text, err
	}
	// Asked by the last part alone, which is in the name of whatever ends so.
	name := plainRepo(asked)
	names := repoNames(ctx, s.browse, v, path.Base(name))
	if full := oneEndingIn(name, names); full != "" {
		// Set as if given: the calls that the answer advises have the full name.
		a.set("repo", full)
		return s.runOnce(ctx, v, t, a)
	}

	return text, err
}

// findRepos puts full names in place of the repositories that a call names, each as it would
// be found alone. A * stands for any letters.
func (s *Set) findRepos(ctx context.Context, v catalog.Viewer, a *Args) error {
	var full []string
	for _, part := range a.List("repo") {
		name := plainRepo(part)
		longest := slices.MaxFunc(strings.Split(name, "*"), func(x, y string) int { return len(x) - len(y) })
		if !strings.Contains(name, "*") {
			longest = path.Base(name)
		}
		names := repoNames(ctx, s.browse, v, longest)
		if len(names) >= mostNames {
			return call.Fail(call.ErrInvalid, "repo: %s may be any of more than %d repositories: write more of the name", part, mostNames)
		}

		like := regexp.MustCompile("(?i)(?:^|/)" + strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, ".*") + "$")
		found := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !like.MatchString(n) })
		if slices.Contains(names, name) {
			found = []string{name}
		}
		switch {
		case len(found) == 0:
			// A name may have a comma of its own.
			whole := plainRepo(strings.Join(a.List("repo"), ","))
			if one := oneEndingIn(whole, repoNames(ctx, s.browse, v, path.Base(whole))); one != "" {
				a.values["repo"] = one
				return nil
			}
			near := ""
			if all := nearRepos(name, names, 3); all != nil {
				near = " Did you mean " + strings.Join(all, ", ") + "?"
			}
			return call.Fail(call.ErrInvalid, "repo: Repository %q not found.%s list_repos shows all", part, near)
		case len(found) > 1 && !strings.Contains(name, "*"):
			return call.Fail(call.ErrInvalid, "repo: %q ends several names: %s", part, strings.Join(found, ", "))
		}
		full = append(full, found...)
	}
	slices.Sort(full)
	if full = slices.Compact(full); len(full) == 1 {
		a.values["repo"] = full[0]
		a.asked = full[0]
		return nil
	}
	a.values["repo"] = full
	return nil
}

// runOnce runs a tool for the repository as it is named.
func (s *Set) runOnce(ctx context.Context, v catalog.Viewer, t *Tool, a *Args) (string, error) {
	a.unmatched = s.unmatched(ctx, v, a)
	return t.Run(ctx, v, a)
}
