package settings

import (
	"os"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node"
)

func TestTheVerdictIsComputed(t *testing.T) {
	t.Parallel()
	three := []node.MemberStatus{{Health: "alive"}, {Health: "alive"}, {Health: "alive"}}
	for _, c := range []struct {
		status      node.StatusResponse
		class, want string
	}{
		{node.StatusResponse{Members: three, Tolerates: node.Tolerance{Searches: 1, Known: true, Writes: 1}}, "good", "Any 1 node may fail now; searches stay complete."},
		{node.StatusResponse{Members: three, Tolerates: node.Tolerance{Searches: 2, Known: true, Writes: 2}}, "good", "Any 2 nodes may fail now"},
		{node.StatusResponse{Members: three[:2], Tolerates: node.Tolerance{Searches: 1, Known: true}}, "warn", "changes would wait"},
		{node.StatusResponse{Members: three, Tolerates: node.Tolerance{Known: true, Writes: 1}, Placement: node.PlacementStatus{UnderReplicated: 3}}, "warn", "3 repositories have fewer copies"},
		{node.StatusResponse{Members: three, Tolerates: node.Tolerance{Known: true, Writes: 1}}, "warn", "Nothing has a second copy"},
		{node.StatusResponse{Members: three, Tolerates: node.Tolerance{Searches: -1, Known: true, Writes: 1}, Placement: node.PlacementStatus{NoLiveCopy: 1}}, "bad", "1 repository has no live copy"},
		{node.StatusResponse{Members: three[:1], Tolerates: node.Tolerance{Known: true}}, "", "it must not fail"},
		{node.StatusResponse{Members: three, Tolerates: node.Tolerance{Searches: 1, Known: true, Writes: -1}}, "bad", "changes wait"},
		{node.StatusResponse{Members: three, Tolerates: node.Tolerance{Writes: 1}}, "good", "Any 1 node may fail now; changes go on."},
		{node.StatusResponse{Members: three[:2]}, "warn", "The failure of a node would make changes wait."},
	} {
		if got := verdict(&c.status); got.Class != c.class || !strings.Contains(got.Word, c.want) {
			t.Errorf("%+v of %d: %q (%s), want %q (%s)", c.status.Tolerates, len(c.status.Members), got.Word, got.Class, c.want, c.class)
		}
	}
}

func TestACommandCanBePastedIntoAShell(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]string{
		"github.com/acme/app": "shoal x github.com/acme/app", "two words": "shoal x 'two words'",
		"a'; rm -rf /": `shoal x 'a'\''; rm -rf /'`, "$HOME": "shoal x '$HOME'", "": "shoal x ''",
	} {
		if got := shell([]string{"shoal", "x", "SUBJECT"}, subject); got != want {
			t.Errorf("%q: %s, want %s", subject, got, want)
		}
	}
}

// README and the page of agents show the same.
func TestReadmeHasTheSnippetsOfAgents(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range snippets {
		want := "    " + strings.ReplaceAll(strings.ReplaceAll(s.WithKey, "BASE", "http://127.0.0.1:7700"), "\n", "\n    ")
		if !strings.Contains(string(readme), want) {
			t.Errorf("README does not connect %s by\n%s", s.Client, want)
		}
	}
}
