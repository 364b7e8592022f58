package ask_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

const storeGo = `package store

// Open opens a store.
func Open(path string) (*Store, error) {
	return &Store{path: path}, nil
}

// Store keeps values.
type Store struct{ path string }

// Close ends it.
func (s *Store) Close() error {
	return nil
}
`

// sample starts a node with two repositories, local/app and local/hidden, and a scripted model.
func sample(t *testing.T, s *modeltest.Server, models ...string) *nodetest.Node {
	t.Helper()
	return sampleWith(t, s, func(*node.Options) {}, models...)
}

// sampleWith is sample with other options of the node.
func sampleWith(t *testing.T, s *modeltest.Server, edit func(*node.Options), models ...string) *nodetest.Node {
	t.Helper()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"store/store.go": storeGo, "README.md": "# App\n\nKeeps values.\n"})
	nodetest.NewRepo(t, filepath.Join(dir, "hidden"), map[string]string{"secret.go": "package secret\n\nconst planted = 7\n"})
	if models == nil {
		models = []string{fmt.Sprintf(`{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}`, s.URL)}
	}
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}, "models": [%s]}`, dir, strings.Join(models, ",")),
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
		Edit: func(o *node.Options) {
			o.BaseURL, o.Ctags = "http://shoal.test", ""
			edit(o)
		},
	})
	n.WaitIndexed(2)
	waitModels(n)
	return n
}

// answered asks, waits for the end, and returns the report and the events.
func answered(t *testing.T, n *nodetest.Node, q ask.Question) (ask.Report, []ask.Event) {
	t.Helper()
	started, err := n.Ask.Ask(t.Context(), catalog.Operator(), q)
	if err != nil {
		t.Fatal(err)
	}
	var events []ask.Event
	if err := n.Ask.WatchChat(t.Context(), catalog.Operator(), started.ID, started.After, func(e ask.Event) error { events = append(events, e); return nil }); err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		if e.N != started.After+i+1 {
			t.Errorf("event %d has the number %d", i+1, e.N)
		}
	}
	if last := events[len(events)-1]; last.Kind != ask.KindDone {
		t.Errorf("the last event is %q", last.Kind)
	}
	c, err := n.Ask.Chat(t.Context(), catalog.Operator(), started.ID)
	if err != nil {
		t.Fatal(err)
	}
	return c.Turns[len(c.Turns)-1], events
}

func call(id, name, arguments string) modeltest.Call {
	return modeltest.Call{ID: id, Name: name, Arguments: arguments}
}

func TestAsk_verifiesCitations(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t,
		modeltest.Turn{Text: "I look.", Calls: []modeltest.Call{
			call("a", "grep", `{"pattern":"func Open","repo":"local/app"}`), call("b", "read_file", `{"repo":"local/app","path":"store/store.go"}`),
		}},
		modeltest.Turn{Text: "It is opened by `Open` @file:{local/app::store/store.go:4-6}, ended by `Close` @file:{app::store.go:1-2}. " +
			"Not by @file:{local/app::store/other.go:3}, nor @file:{local/app::store/store.go:900}."})
	n := sample(t, s)
	r, events := answered(t, n, ask.Question{Query: "How is a store opened?"})
	if r.Status != ask.Done || r.Steps != 2 || r.Searches != 1 || r.Usage.Input != 240 {
		t.Errorf("report %+v", r)
	}

	// One citation is right, one has moved, two are wrong.
	var cites []string
	for _, p := range r.Answer {
		if p.Cite != nil {
			cites = append(cites, string(p.Cite.State)+" "+p.Cite.Label())
			if p.Cite.State != ask.Unverified && len(p.Cite.Commit) != 40 {
				t.Errorf("%s is not pinned to a commit: %q", p.Cite.Label(), p.Cite.Commit)
			}
		}
	}
	want := []string{"cited store/store.go:4-6", "moved store/store.go:12", "unverified other.go:3", "unverified store/store.go:900"}
	for i := range want {
		if i >= len(cites) || !strings.HasPrefix(cites[i], want[i]) {
			t.Fatalf("citations %q, want %q", cites, want)
		}
	}
	if !slices.Contains(r.Limits, "2 citations could not be verified.") {
		t.Errorf("limits %q", r.Limits)
	}
	text := ask.Markdown(r.Answer, "http://shoal.test")
	if !strings.Contains(text, "opened by `Open` [store/store.go:4-6](http://shoal.test/browse/local/app@") || !strings.Contains(text, "#L4-L6)") || strings.Contains(text, "I look") {
		t.Errorf("answer %s", text)
	}

	// Watchers saw the same as what is stored.
	var shown []string
	for _, e := range events {
		switch e.Kind {
		case ask.KindAside, ask.KindAgain:
			shown = nil
		case ask.KindText:
			shown = append(shown, e.Text)
		case ask.KindCite:
			shown = append(shown, ask.Markdown([]ask.Piece{{Cite: e.Cite}}, "http://shoal.test"))
		}
	}
	if strings.Join(shown, "") != text {
		t.Errorf("shown %q, kept %q", strings.Join(shown, ""), text)
	}
	if refused := s.Refused(); refused != nil {
		t.Errorf("refused: %q", refused)
	}
	if strings.Count(s.Requests()[1].Raw, "data-") < 4 {
		t.Error("results do not stand between marks")
	}
}

// The model calls every tool for a repository outside the question.
func TestAsk_modelCannotLeaveItsScope(t *testing.T) {
	t.Parallel()
	var calls []modeltest.Call
	for i, c := range [][2]string{
		{"grep", `{"pattern":"planted"}`}, {"grep", `{"pattern":"planted","repo":"local/hidden"}`}, {"read_file", `{"repo":"local/hidden","path":"secret.go"}`},
		{"read_file", `{"repo":"hidden","path":"secret.go"}`}, {"list_repos", `{}`}, {"search", `{"query":"planted secret"}`}, {"glob", `{"pattern":"**/*.go"}`},
		{"list_tree", `{"repo":"local/hidden"}`}, {"find_symbol_definitions", `{"symbol":"planted"}`}, {"find_symbol_references", `{"symbol":"planted"}`},
		{"outline", `{"repo":"local/hidden","path":"secret.go"}`}, {"list_commits", `{"repo":"local/hidden"}`}, {"blame", `{"repo":"local/hidden","path":"secret.go"}`},
		{"get_diff", `{"repo":"local/hidden","base":"HEAD","head":"HEAD"}`}, {"list_branches", `{"repo":"local/hidden"}`}, {"grep", `{"pattern":"(?i)planted|secret","repo":"local/h*"}`},
	} {
		calls = append(calls, call(fmt.Sprint("c", i), c[0], c[1]))
	}
	s := modeltest.Start(t, modeltest.Turn{Calls: calls}, modeltest.Turn{Text: "Nothing: @file:{local/hidden::secret.go:3}"})
	n := sample(t, s)
	r, events := answered(t, n, ask.Question{Query: "What is planted?", Repos: []string{"app"}})
	if len(s.Requests()) < 2 {
		t.Fatalf("%+v", r)
	}
	if raw := s.Requests()[1].Raw; strings.Contains(raw, "package secret") || strings.Contains(raw, "const planted") || strings.Contains(raw, "secret.go at") {
		t.Errorf("the model was shown what it may not see:\n%s", raw)
	}
	for _, e := range events {
		if e.Kind == ask.KindResult && (strings.Contains(e.Text, "secret.go at") || strings.Contains(e.Text, "local/hidden,")) {
			t.Errorf("a result: %s", e.Text)
		}
		if e.Kind == ask.KindCite && e.Cite.State != ask.Unverified {
			t.Errorf("a citation out of scope: %+v", e.Cite)
		}
	}
	if _, err := n.Ask.Ask(t.Context(), catalog.Operator(), ask.Question{Query: "?", Repos: []string{"nothere"}}); err == nil || !strings.Contains(err.Error(), "nothere") {
		t.Errorf("%v", err)
	}
}

// Some models never stop by themselves.
func TestAsk_stopsAModelThatNeverEnds(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]func(r *modeltest.Request) modeltest.Turn{
		"the same call": func(r *modeltest.Request) modeltest.Turn {
			if r.Body["tool_choice"] == "none" {
				return modeltest.Turn{Text: "I give up."}
			}
			return modeltest.Turn{Calls: []modeltest.Call{call(fmt.Sprint("c", r.Step), "grep", `{"pattern":"Open"}`)}}
		},
		"only errors": func(r *modeltest.Request) modeltest.Turn {
			if r.Body["tool_choice"] == "none" {
				return modeltest.Turn{Text: "I give up."}
			}
			return modeltest.Turn{Calls: []modeltest.Call{call(fmt.Sprint("c", r.Step), "no_such_tool", fmt.Sprintf(`{"n":%d}`, r.Step))}}
		},
		"calls for ever": func(r *modeltest.Request) modeltest.Turn {
			return modeltest.Turn{Calls: []modeltest.Call{call(fmt.Sprint("c", r.Step), "grep", `{"pattern":"Open"}`)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := modeltest.Play(t, policy)
			r, _ := answered(t, sample(t, s), ask.Question{Query: "?"})
			want := ask.Done
			if name == "calls for ever" {
				want = ask.Failed
			}
			if len(r.Limits) == 0 || r.Steps > 12 || r.Status != want {
				t.Errorf("%s after %d steps, limits %q, %s", r.Status, r.Steps, r.Limits, r.Error)
			}
			if refused := s.Refused(); refused != nil {
				t.Errorf("refused: %q", refused)
			}
		})
	}
}

// The model gets one more try.
func TestAsk_asksOnceMoreForCitations(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t,
		modeltest.Turn{Calls: []modeltest.Call{call("a", "read_file", `{"repo":"local/app","path":"store/store.go"}`)}},
		modeltest.Turn{Text: "By `Open`."},
		modeltest.Turn{Text: "By `Open` @file:{local/app::store/store.go:4}."})
	r, events := answered(t, sample(t, s), ask.Question{Query: "?"})
	if got := ask.Markdown(r.Answer, ""); r.Steps != 3 || !strings.Contains(got, "[store/store.go:4](") || !slices.ContainsFunc(events, func(e ask.Event) bool { return e.Kind == ask.KindAgain }) {
		t.Errorf("%d steps: %s", r.Steps, got)
	}
}

// An answer without sources says so, and an endless answer is cut. A repeated tool call sends its
// result only once.
func TestAsk_answerStatesWhatItLacks(t *testing.T) {
	t.Parallel()
	open := call("a", "grep", `{"pattern":"Open"}`)
	for name, tt := range map[string]struct {
		turns []modeltest.Turn
		steps int
		limit string
	}{
		"no citation":         {[]modeltest.Turn{{Calls: []modeltest.Call{open}}, {Text: "See store/store.go line 4."}, {Text: "See `Open`."}}, 3, "The answer cites no source."},
		"no look at the code": {[]modeltest.Turn{{Text: "I remember that stores are closed."}}, 1, "The model looked at no code: the answer has no source."},
		"lines nobody saw":    {[]modeltest.Turn{{Text: "See @file:{local/app::README.md:3}."}}, 1, "1 citation could not be checked: no tool has shown the lines."},
		"no end":              {[]modeltest.Turn{{Text: strings.Repeat("and so on ", 100_000)}}, 1, "The answer was cut at the model's limit of output."},
		"asked for twice": {[]modeltest.Turn{{Calls: []modeltest.Call{open, call("b", "grep", `{"pattern":"Open"}`)}}, {Calls: []modeltest.Call{call("c", "grep", `{"pattern":"Open"}`)}},
			{Text: "By `Open` @file:{local/app::store/store.go:4}."}}, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := 0
			s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
				sent = strings.Count(r.Raw, "4: func Open(")
				return tt.turns[min(r.Step, len(tt.turns)-1)]
			})
			r, _ := answered(t, sample(t, s), ask.Question{Query: "?"})
			if r.Steps != tt.steps || tt.limit == "" && len(r.Limits) > 0 || tt.limit != "" && !slices.Contains(r.Limits, tt.limit) {
				t.Errorf("%d steps, limits %q, want %q", r.Steps, r.Limits, tt.limit)
			}
			if text := ask.Markdown(r.Answer, ""); len(text) > 300<<10 {
				t.Errorf("an answer of %d bytes", len(text))
			}
			if name == "asked for twice" && sent != 1 {
				t.Errorf("the result was sent %d times", sent)
			}
		})
	}
}

// The results of the model's calls exceed its context window.
func TestAsk_trimsToolResultsToTheContextWindow(t *testing.T) {
	t.Parallel()
	refused := false
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		switch {
		case r.Step == 3 && !refused:
			refused = true
			return modeltest.Turn{Fault: modeltest.Status(400, `{"error":{"message":"maximum context length","code":"context_length_exceeded"}}`)}
		case r.Step > 4:
			return modeltest.Turn{Text: "done"}
		}
		return modeltest.Turn{Calls: []modeltest.Call{call(fmt.Sprint("c", r.Step), "read_file", fmt.Sprintf(`{"repo":"local/app","path":"store/store.go","limit":%d}`, 400+r.Step))}}
	})
	// The model's name means 16,000 tokens; the server counts 120 for each step.
	n := sample(t, s, fmt.Sprintf(`{"provider": "openai-compatible", "model": "gpt-3.5-x", "baseUrl": %q}`, s.URL))
	r, _ := answered(t, n, ask.Question{Query: "?"})
	if r.Status != ask.Done {
		t.Fatalf("%s %s", r.Status, r.Error)
	}
	if got := s.Refused(); got != nil {
		t.Errorf("refused: %q", got)
	}
}

func TestAsk_reportsAFailureOfTheModel(t *testing.T) {
	t.Parallel()
	s := modeltest.Start(t, modeltest.Turn{Fault: modeltest.Status(401, `{"error":{"message":"no"}}`)})
	r, events := answered(t, sample(t, s), ask.Question{Query: "?"})
	if r.Status != ask.Failed || !strings.Contains(r.Error, "key for openai-compatible was refused") {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
	if e := events[len(events)-2]; e.Kind != ask.KindError || e.Text != r.Error {
		t.Errorf("%+v", e)
	}
}

func TestAsk_refusesInvalidQuestions(t *testing.T) {
	t.Parallel()
	n := sample(t, modeltest.Start(t, modeltest.Turn{Text: "x"}))
	for _, tt := range []struct {
		q    ask.Question
		want string
	}{
		{ask.Question{}, "must not be empty"},
		{ask.Question{Query: strings.Repeat("x", 64<<10+1)}, "at most 65536"},
		{ask.Question{Query: "?", Model: ask.ModelName{Provider: "openai", Model: "gpt"}}, `"openai/gpt" is not configured, or more than once. Configured: openai-compatible/scripted (default).`},
	} {
		if _, err := n.Ask.Ask(t.Context(), catalog.Operator(), tt.q); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	if _, err := n.Ask.Ask(t.Context(), catalog.Viewer{}, ask.Question{Query: "?"}); err == nil || !strings.Contains(err.Error(), "Not authenticated") {
		t.Errorf("%v", err)
	}
}
