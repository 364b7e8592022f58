package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard"
)

// A pack whose repositories not all of its holders can answer for is asked of
// each in the same order each time, and a holder is looked up once for each
// side file.
func TestSplitOfAPackIsAlwaysTheSame(t *testing.T) {
	t.Parallel()
	var parts []shard.Part
	for repo := range uint32(12) {
		p := shard.Part{Repo: repo, Shard: "pack.shard"}
		if repo%2 == 0 {
			p.Dead = fmt.Sprintf("%d.dead", repo)
		}
		parts = append(parts, p)
	}
	g := shard.Groups(parts)[0]
	for range 20 {
		asked := 0
		list := splitBy(g, nil, []string{"a", "b"}, func(p shard.Part) []string {
			asked++
			return [][]string{{"a", "b"}, {"b"}, {"a"}}[p.Repo/2%3]
		})
		var got []string
		for _, target := range list {
			text := strings.Join(target.holders, "+") + ":"
			for _, p := range target.group.Parts {
				text += fmt.Sprintf(" %d", p.Repo)
			}
			got = append(got, text)
		}
		if want := "a+b: 0 1 3 5 6 7 9 11; b: 2 8; a: 4 10"; strings.Join(got, "; ") != want || asked != 6 {
			t.Fatalf("%q after %d questions, want %q after 6", strings.Join(got, "; "), asked, want)
		}
	}
}
