package shard

import (
	"context"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// TestBuild_replayedCommitsEqualAFreshIndex pushes SHOAL_REPLAY_COMMITS real commits of the repository SHOAL_REPLAY_REPO one by
// one, and often compares with a fresh index.
func TestBuild_replayedCommitsEqualAFreshIndex(t *testing.T) {
	repo := os.Getenv("SHOAL_REPLAY_REPO")
	if repo == "" {
		t.Skip("SHOAL_REPLAY_REPO is not set")
	}
	n, err := strconv.Atoi(os.Getenv("SHOAL_REPLAY_COMMITS"))
	if err != nil {
		n = 200
	}
	list, err := exec.Command("git", "-C", repo, "rev-list", "--first-parent", "-n", strconv.Itoa(n), "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	commits := strings.Fields(string(list))
	set, err := OpenSet(t.TempDir(), SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	var parts []Part
	for i := len(commits) - 1; i >= 0; i-- {
		src := newGitSource(t, repo, commits[i])
		built, err := set.Update(context.Background(), parts, src, BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		parts = parts[:0:0]
		live := map[string]bool{}
		for _, b := range built {
			parts = append(parts, b.Part)
			for _, f := range b.Files() {
				live[f] = true
			}
		}
		if _, err := set.Retain(func(name string) bool { return live[name] }, 0); err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 {
			compareFresh(t, set, parts, src)
			t.Logf("%d to go: %d parts, %d bytes", i, len(parts), set.Bytes())
		}
	}
}

// compareFresh compares the answers of the parts with those of a fresh index of the same source.
func compareFresh(t *testing.T, set *Set, parts []Part, src *gitSource) {
	t.Helper()
	dir := t.TempDir()
	built, err := Build(context.Background(), dir, src, BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := OpenSet(dir, SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var fresh []Part
	for _, b := range built {
		fresh = append(fresh, b.Part)
	}
	for _, row := range asked {
		var answers [2][]scanned
		for k, from := range []struct {
			set   *Set
			parts []Part
		}{{set, parts}, {other, fresh}} {
			v, missing := from.set.Acquire(from.parts)
			res, err := v.Search(context.Background(), Request{
				Q: &query.Text{Pattern: row.text, Regexp: row.regexp, Fold: row.fold}, MaxMatches: 1 << 30, CountAll: true,
			})
			v.Release()
			if err != nil || len(missing) > 0 || res.Cut {
				t.Fatalf("%s: %v, missing %v, cut %v", row.text, err, missing, res.Cut)
			}
			for _, f := range res.Files {
				s := scanned{Path: f.Path, Language: f.Language, OID: f.OID}
				for _, c := range f.Chunks {
					s.Ranges = append(s.Ranges, c.Ranges...)
				}
				answers[k] = append(answers[k], s)
			}
			sortScanned(answers[k])
		}
		if !reflect.DeepEqual(answers[0], answers[1]) {
			t.Fatalf("%s: %d files after pushes, %d fresh", row.text, len(answers[0]), len(answers[1]))
		}
	}
}
