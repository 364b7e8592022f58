package git

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Authors equal those that git prints, for any .mailmap. Without .mailmap they are those in the
// commits.
func TestMailmap_agreesWithGit(t *testing.T) {
	t.Parallel()
	names := []string{"Ann", "ann", "Bob B.", "", "Ärger", "bot[1]"}
	emails := []string{"a@x.org", "A@X.org", "b@x.org", "", "odd#1"}
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 9))
		pick := func(list []string) string { return list[rng.IntN(len(list))] }

		// The lines have every valid form, and invalid ones.
		var rules strings.Builder
		for range 8 {
			switch rng.IntN(7) {
			case 0:
				fmt.Fprintf(&rules, "Proper %d <%s>\n", rng.IntN(9), pick(emails))
			case 1:
				fmt.Fprintf(&rules, "<p%d@x.org> <%s>\n", rng.IntN(9), pick(emails))
			case 2:
				fmt.Fprintf(&rules, "  Proper %d\t<p%d@x.org>  <%s>\n", rng.IntN(9), rng.IntN(9), pick(emails))
			case 3, 4:
				fmt.Fprintf(&rules, "Proper %d <p%d@x.org> %s <%s> # note\n", rng.IntN(9), rng.IntN(9), pick(names), pick(emails))
			case 5:
				fmt.Fprintf(&rules, "# <c@x.org> <%s>\n\n", pick(emails))
			case 6:
				fmt.Fprintf(&rules, "broken %s <%s\n", pick(names), pick(emails))
			}
		}

		r := newRepo(t)
		h := &stream{}
		for i := range 25 {
			fmt.Fprintf(h, "commit refs/heads/main\nauthor %s <%s> %d +0000\ncommitter Ci <c@x.org> %d +0000\ndata 3\none\n", pick(names), pick(emails), at(i), at(i))
			h.file("a", fmt.Sprint(i))
			h.file(mailmapFile, rules.String())
		}
		r.load(h)
		m := fetched(t, r.url())
		ctx := within(t)
		head := r.git("rev-parse", "main")
		people, err := m.Mailmap(ctx)
		if err != nil {
			t.Fatal(err)
		}

		page, err := m.Log(ctx, LogQuery{Commit: head, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var got, raw strings.Builder
		for _, c := range page.Commits {
			name, email := people.Author(c.AuthorName, c.AuthorEmail)
			fmt.Fprintf(&got, "%s|%s\n", name, email)
			fmt.Fprintf(&raw, "%s|%s\n", c.AuthorName, c.AuthorEmail)
		}
		if want := r.git("log", "--format=%aN|%aE", "main"); strings.TrimSpace(got.String()) != strings.TrimSpace(want) {
			t.Errorf("seed %d: authors are\n%s\ngit has\n%s\nby\n%s", seed, got.String(), want, rules.String())
		}
		if want := r.git("log", "--format=%an|%ae", "main"); strings.TrimSpace(raw.String()) != strings.TrimSpace(want) {
			t.Errorf("seed %d: commits say\n%s\ngit has\n%s", seed, raw.String(), want)
		}

		// A filter on authors uses the mapped names.
		for _, text := range []string{"Proper 1", "p2@x.org", "ann", "Bob", "a@x"} {
			for _, people := range []*Mailmap{nil, people} {
				var want []string
				for _, c := range page.Commits {
					name, email := people.Author(c.AuthorName, c.AuthorEmail)
					if strings.Contains(strings.ToLower(name+" <"+email+">"), strings.ToLower(text)) {
						want = append(want, c.Hash)
					}
				}
				found, err := m.Log(ctx, LogQuery{Commit: head, Limit: 100, Author: text, People: people})
				var got []string
				for _, c := range found.Commits {
					got = append(got, c.Hash)
				}
				if err != nil || found.Total != len(want) || !slices.Equal(got, want) {
					t.Errorf("seed %d: by %q: %q, %d in all, %v, want %q", seed, text, got, found.Total, err, want)
				}
			}
		}
		counted, err := m.Authors(ctx, head, "", people)
		if err != nil {
			t.Fatal(err)
		}
		sum := map[string]int{}
		for line := range strings.Lines(got.String()) {
			sum[strings.TrimSuffix(line, "\n")]++
		}
		for _, a := range counted {
			if sum[a.Name+"|"+a.Email] != a.Commits {
				t.Errorf("seed %d: %+v, want %d", seed, a, sum[a.Name+"|"+a.Email])
			}
		}
		if len(counted) != len(sum) {
			t.Errorf("seed %d: %d authors, want %d", seed, len(counted), len(sum))
		}
	}
}

// Blame skips the commits that the default branch lists, as git does with that list.
func TestBlame_skipsIgnoredCommits(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "Begin", "a", "one\ntwo\nthree\n", "b", "b\n")
	h.commit("refs/heads/main", 2, "Bot", "Format", "a", "  one\n  two\n  three\nnew\n")
	h.commit("refs/heads/main", 3, "Bot", "Format again", "a", "\tone\n\ttwo\n  three\nnew\n")
	h.commit("refs/heads/main", 4, "Cleo", "Mend", "a", "\tone\n\ttwo\n  three!\nnew\n")
	r.load(h)
	format, again := r.git("rev-parse", "main~2"), r.git("rev-parse", "main~1")
	more := &stream{}
	more.WriteString("reset refs/heads/main\nfrom " + r.git("rev-parse", "main") + "\n\n")
	more.commit("refs/heads/main", 5, "Ann", "List", ignoreFile, "# formatting\n"+strings.ToUpper(format)+" # by the bot\n\n"+again+"\nnonsense\n"+strings.Repeat("ab", 20)+"\n"+again[:10]+"\n")
	r.load(more)
	m := fetched(t, r.url())
	head, old := r.git("rev-parse", "main"), r.git("rev-parse", "main~1")

	authors := func(b Blame) (out []string) {
		for _, g := range b.Ranges {
			for range g.Lines {
				out = append(out, b.Commits[g.Commit].Summary)
			}
		}
		return out
	}
	for name, tt := range map[string]struct {
		q    BlameQuery
		want []string
		past int
	}{
		"past them":       {BlameQuery{Commit: head, Path: "a"}, []string{"Begin", "Begin", "Mend", "Format"}, 2},
		"as they are":     {BlameQuery{Commit: head, Path: "a", Verbatim: true}, []string{"Format again", "Format again", "Mend", "Format"}, 0},
		"an old revision": {BlameQuery{Commit: old, Path: "a"}, []string{"Begin", "Begin", "Mend", "Format"}, 2},
		"some lines":      {BlameQuery{Commit: head, Path: "a", First: 2, Last: 3, Within: time.Minute}, []string{"Begin", "Mend"}, 1},
		"another file":    {BlameQuery{Commit: head, Path: "b"}, []string{"Begin"}, 0},
	} {
		for range 2 { // from git, then from the cache
			b, err := m.Blame(within(t), tt.q)
			if got := authors(b); err != nil || !slices.Equal(got, tt.want) || b.Past != tt.past {
				t.Errorf("%s: %q, %d past, %v; want %q, %d", name, got, b.Past, err, tt.want, tt.past)
			}
		}
	}
	if b, err := m.Blame(within(t), BlameQuery{Commit: head, Path: "a", First: 1, Last: 4, Within: time.Nanosecond}); err != nil || !b.Late {
		t.Errorf("late: %+v, %v", b, err)
	}
}
