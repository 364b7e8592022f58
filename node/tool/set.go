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

// Model is a configured language model. The first one in a list is the default.
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

// Parts has what the tools need. Its fields are safe for concurrent use, and check themselves what
// the viewer may see.
type Parts struct {
	Search symbols.Searcher
	Browse browse.Reader
	Models Modeler
	Log    *slog.Logger // told of failures that are the node's own
}

// Set is the set of tools offered to agents. It is safe for concurrent use.
type Set struct {
	tools  []Tool
	search symbols.Searcher
	browse browse.Reader
	log    *slog.Logger
}

// New returns the product's tools in the order that clients show them, followed by more.
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

	// Each tool of the product has a parameter for the size of the answer.
	for i := range tools {
		tools[i].Params = append(tools[i].Params, maxTokens)
	}
	return &Set{tools: append(tools, more...), search: p.Search, browse: p.Browse, log: p.Log}
}

// Tools returns the tools. The caller must not change them.
func (s *Set) Tools() []Tool { return s.tools }

// Offered returns the tools that can be used now; s itself if all can.
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

// Without returns the set without one tool.
func (s *Set) Without(name string) *Set {
	less := *s
	less.tools = slices.DeleteFunc(slices.Clone(s.tools), func(t Tool) bool { return t.Name == name })
	return &less
}

// progressKey is the context key of the function that receives progress.
type progressKey struct{}

// WithProgress returns a context in which tools report their progress to fn. fn must be safe for
// concurrent use.
func WithProgress(ctx context.Context, fn func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// Progress reports the progress of a call to its caller.
func Progress(ctx context.Context, text string) {
	if fn, ok := ctx.Value(progressKey{}).(func(string)); ok {
		fn(text)
	}
}

// Call runs a tool for a viewer. An error becomes text, so that the model can correct its next
// call.
func (s *Set) Call(ctx context.Context, v catalog.Viewer, name string, arguments json.RawMessage) Answer {
	// An unknown name gets an answer in words instead of a protocol error: models correct such
	// mistakes.
	if unknown := s.Unknown(name); unknown != "" {
		return Answer{Text: unknown, Failed: true}
	}
	t := s.named(name)

	// Check the arguments here, so that no tool has to.
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

// failed returns the answer to a call that failed.
func (s *Set) failed(ctx context.Context, v catalog.Viewer, t *Tool, a *Args, err error) Answer {
	// An unexpected error also goes to the log.
	var known *call.Error
	if !errors.As(err, &known) && ctx.Err() == nil {
		s.log.Error("tool failed", "request", call.RequestOf(ctx), "tool", t.Name, "error", err)
	}
	return Answer{Text: explain(ctx, s.browse, v, t, a, err), Failed: true}
}

// Unknown returns a text for a name that no tool has, with the names that exist; "" if the tool
// exists.
func (s *Set) Unknown(name string) string {
	if s.named(name) != nil {
		return ""
	}
	names := make([]string, len(s.tools))
	for i := range s.tools {
		names[i] = s.tools[i].Name
	}

	// List all tools: a model that invents a name often knows none.
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

// run runs a tool. If no repository has the given name, but the names of exactly one end in it,
// that one is used. No similar name is ever used instead: the answer would look like one about the
// requested repository.
func (s *Set) run(ctx context.Context, v catalog.Viewer, t *Tool, a *Args) (text string, err error) {
	defer func() {
		// A panic in one tool must not end the node.
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()

	if a.List("repo") != nil {
		if err := s.findRepos(ctx, v, a); err != nil {
			return "", err
		}
	}

	// Try the full name first, so that correct calls do not pay for a listing.
	text, err = s.runOnce(ctx, v, t, a)
	asked := a.Text("repo")
	if asked == "" || !errors.Is(err, call.ErrRepoNotFound) {
		return text, err
	}
	// List by the last part, which every candidate contains.
	name := plainRepo(asked)
	names := repoNames(ctx, s.browse, v, path.Base(name))
	if full := oneEndingIn(name, names); full != "" {
		// Set it as if given, so that advised calls have the full name.
		a.set("repo", full)
		a.made = nil // the same repository
		return s.runOnce(ctx, v, t, a)
	}

	return text, err
}

// findRepos replaces the repositories of a call by their full names. A * stands for any letters.
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
			// A name may contain a comma.
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
	a.remember()
	return t.Run(ctx, v, a)
}
