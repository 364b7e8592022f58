package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
)

// If not all holders of a pack can answer for all of its repositories, it is split in the same
// order each time, and holders are looked up once for each side file.
func TestSplitPack_isDeterministic(t *testing.T) {
	t.Parallel()
	var parts []shard.Part
	for repo := range uint32(12) {
		p := shard.Part{Repo: repo, Shard: shard.FileID{1}}
		if repo%2 == 0 {
			p.Dead = shard.FileID{2, byte(repo)}
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

// The same repositories of a pack give the same group object, which shards cache. The groups used
// longest ago are made again.
func TestRepositoryGroup_isTheSameObjectForTheSameRepositories(t *testing.T) {
	t.Parallel()
	var parts []shard.Part
	for repo := range uint32(40) {
		parts = append(parts, shard.Part{Repo: repo, Shard: shard.FileID{1}, Dead: shard.FileID{byte(repo % 2)}})
	}
	f := newLayoutFile(shard.Groups(parts)[0])

	if g := f.among(roaring.BitmapOf(40, 99)); g != nil {
		t.Errorf("of none of them: %v", g)
	}
	if g := f.among(f.group.Repos().Clone()); g != f.group {
		t.Error("of all of them it is another group")
	}

	first := f.among(roaring.BitmapOf(7, 3, 99))
	if len(first.Parts) != 2 || first.Parts[0].Repo != 3 || first.Parts[1].Repo != 7 {
		t.Fatalf("parts %v", first.Parts)
	}
	for i := range uint32(20) {
		f.among(roaring.BitmapOf(10 + i))
		if f.among(roaring.BitmapOf(3, 7)) != first {
			t.Fatalf("after %d others it is another group", i)
		}
	}

	for i := range uint32(narrowKept) {
		f.among(roaring.BitmapOf(10 + i))
	}
	if f.among(roaring.BitmapOf(3, 7)) == first || len(f.last) != narrowKept {
		t.Errorf("%d groups are kept, want %d", len(f.last), narrowKept)
	}
}

func TestRecency_givesRecentPushesTheSameRank(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		age  time.Duration
		want uint8
	}{{-time.Hour, 255}, {0, 255}, {time.Second, 255}, {time.Hour, 255}, {7 * day, 227}, {8 * 7 * day, 128}, {24 * 7 * day, 64}, {200 * 365 * day, 0}} {
		if got := recency(c.age); got != c.want {
			t.Errorf("%v: %d, want %d", c.age, got, c.want)
		}
	}
}

// Files move from member to member without a change of a repository, and the targets follow.
func TestSearchTargets_followMovedFiles(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 2)
	w.Repos("c", "r")
	file := strings.Repeat("ab", 32)
	w.Index(1, "n1", catalog.ShardRef{ID: file})
	w.Confirm("n1", catalog.ShardKey(file))
	before := w.View()
	w.Confirm("n2", catalog.ShardKey(file))
	w.Drop("n1", catalog.ShardKey(file))
	after := w.View()
	if !after.SameRepos(before) {
		t.Fatal("a move has changed a repository")
	}

	peers := call.NewPeers(&behind{Node: w.Node("n1")}, func(string) bool { return true })
	var l layouts
	for _, c := range []struct {
		view *catalog.View
		want string
	}{{before, "n1"}, {after, "n2"}, {before, "n1"}} {
		list := l.get(c.view).targets(c.view, peers, roaring.BitmapOf(1), nil)
		if len(list) != 1 || strings.Join(list[0].holders, " ") != c.want {
			t.Errorf("asked are %+v, want %s", list, c.want)
		}
	}
}

// A change of one repository keeps the objects of other files: caches for them stay valid, and
// memory does not grow with each change.
func TestIndexLayout_keepsObjectsOfUnchangedFiles(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 1)
	w.Repos("c", "a", "b")
	w.Index(1, "n1", catalog.ShardRef{ID: strings.Repeat("ab", 32)})
	w.Index(2, "n1", catalog.ShardRef{ID: strings.Repeat("cd", 32)})

	var l layouts
	before := l.get(w.View())
	w.Index(2, "n1", catalog.ShardRef{ID: strings.Repeat("cd", 32), Dead: strings.Repeat("ef", 32)})
	after := l.get(w.View())
	if len(before.files) != 2 || len(after.files) != 2 || after.files[0] != before.files[0] || after.files[1] == before.files[1] {
		t.Errorf("files %v, then %v", before.files, after.files)
	}
}

// The state of a cursor changes with the repositories of the query, but not with others in the same
// pack, which the viewer may not see.
func TestLayoutState_ignoresOtherRepositoriesOfThePack(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 1)
	w.Repos("c", "visible", "hidden")
	file := func(n int) string { return fmt.Sprintf("%064x", n) }
	pack := func(id string, from ...string) {
		subject := catalog.PackSubject(nil)
		w.Do(&catalog.EnqueueJob{Kind: catalog.JobPack, Subject: subject})
		c := &catalog.FinishPack{Subject: subject, Fence: w.Grant(catalog.JobPack, subject, "n1"), Holder: "n1", From: from, Packs: []catalog.ShardRef{{ID: id, Bytes: 9, Pack: 9}}}
		for repo := range w.View().Repos() {
			was := catalog.FilesHash(repo.Shards, func(id string) bool { return slices.Contains(from, id) })
			c.Repos = append(c.Repos, catalog.PackedRepo{Repo: repo.ID, Was: was, Shares: []catalog.PackShare{{Docs: 1, Text: 1}}})
		}
		w.Do(c)
	}
	var l layouts
	state := func(ids ...uint32) string { return string(l.get(w.View()).state(roaring.BitmapOf(ids...))) }

	w.Index(1, "n1", catalog.ShardRef{ID: file(1)})
	w.Index(2, "n1", catalog.ShardRef{ID: file(2)})
	one, both := state(1), state(1, 2)
	pack(file(3), file(1), file(2))
	if state(1) != one || state(1, 2) != both {
		t.Error("it changes as the repositories are packed")
	}
	w.Index(2, "n1", catalog.ShardRef{ID: file(4)})
	pack(file(5), file(3), file(4))
	if state(1) != one || state(1, 2) == both {
		t.Error("the other repository of the pack was indexed again: want a change for both, and none for one")
	}
	w.Index(1, "n1", catalog.ShardRef{ID: file(6)})
	if state(1) == one {
		t.Error("it stays the same as the repository is indexed again")
	}
}

// The groups of other nodes are the same object for the same parts, and take limited memory.
func TestRepositoryGroups_areBoundedInBytes(t *testing.T) {
	t.Parallel()
	partsOf := func(generation int) []shard.Part {
		parts := make([]shard.Part, 5000)
		for i := range parts {
			parts[i] = shard.Part{Repo: uint32(i), Shard: shard.FileID{1}}
		}
		parts[generation%len(parts)].Dead = shard.FileID{1, byte(generation), byte(generation >> 8)}
		return parts
	}

	g := newGroups()
	seen := map[*shard.Group]bool{}
	for generation := range 100 {
		first := g.get(partsOf(generation))
		if seen[first] || g.get(partsOf(generation)) != first {
			t.Fatalf("generation %d: another's group, or another group for the same parts", generation)
		}
		seen[first] = true
		if n := g.cache.Size(); n > groupBytes {
			t.Fatalf("%d bytes, at most %d", n, groupBytes)
		}
	}
}
