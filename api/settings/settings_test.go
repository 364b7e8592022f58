package settings

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node"
)

func TestVerdict_iconShowsItsState(t *testing.T) {
	t.Parallel()
	for state, class := range map[node.VerdictState]string{
		node.VerdictGood: "good", node.VerdictSmall: "", node.VerdictWeak: "warn", node.VerdictFailing: "bad",
	} {
		got := verdictMark(&node.StatusResponse{Verdict: node.Verdict{State: state, Sentence: "Any node may fail."}})
		if got.Class != class || got.Word != "Any node may fail." {
			t.Errorf("%s: %q (%s), want (%s)", state, got.Word, got.Class, class)
		}
	}
}

func TestShownCommand_canBePastedIntoAShell(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]string{
		"github.com/acme/app": "shoal x github.com/acme/app", "two words": "shoal x 'two words'",
		"a'; rm -rf /": `shoal x 'a'\''; rm -rf /'`, "$HOME": "shoal x '$HOME'", "": "shoal x ''",
	} {
		if got := shellCommand([]string{"shoal", "x", "SUBJECT"}, subject); got != want {
			t.Errorf("%q: %s, want %s", subject, got, want)
		}
	}
}

// The tutorial and the page of agents have the same snippets.
func TestTutorial_hasTheSameSnippetsAsTheAgentsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tutorial/first-agent.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range layout.Agents("http://127.0.0.1:7700", "") {
		want := "    " + strings.ReplaceAll(s.WithKey, "\n", "\n    ")
		if !strings.Contains(string(page), want) {
			t.Errorf("first-agent.md does not connect %s by\n%s", s.Client, want)
		}
	}
}

// The overview has the same order of nodes for any order of ids.
func TestCharts_keepTheOrderOfNodes(t *testing.T) {
	t.Parallel()
	members := []node.MemberStatus{{Health: "alive", Bytes: 30}, {Health: "unreachable", Bytes: 10}, {Health: "alive", Bytes: 20}}
	want := charts(&node.StatusResponse{Members: members}, false)
	for range 3 {
		members = append(members[1:], members[0])
		if got := charts(&node.StatusResponse{Members: members}, false); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
