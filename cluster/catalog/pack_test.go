package catalog

import (
	"slices"
	"testing"
)

// packs returns a book with repositories 1 to n, each with one shard and a side file.
func packs(t *testing.T, n int) *book {
	b := newBook(t)
	b.do(&InitCluster{"c"})
	b.member("n1")
	b.configure("a")
	var names []string
	for i := range n {
		names = append(names, string(rune('p'+i)))
	}
	b.listing("a", names...)
	for i := 1; i <= n; i++ {
		subject := RepoSubject(RepoID(i))
		b.do(&FinishIndex{Repo: RepoID(i), Fence: b.grant(JobIndex, subject), Holder: "n1", InputKey: "k",
			Shards: []ShardRef{{ID: hash(i), Dead: hash(100 + i), Bytes: 10, Text: 20, Docs: 1}}})
	}
	return b
}

// pack returns the command that packs the present files of repositories into file 50.
func (b *book) pack(ids ...RepoID) *FinishPack {
	b.t.Helper()
	subject := PackSubject(nil)
	b.do(&EnqueueJob{Kind: JobPack, Subject: subject})
	c := &FinishPack{Subject: subject, Fence: b.grant(JobPack, subject), Holder: "n1",
		Packs: []ShardRef{{ID: hash(50), Symbols: hash(51), Bytes: 100, Pack: 20 * int64(len(ids))}}}
	for _, id := range ids {
		r := b.s.View().Repo(id)
		c.From = append(c.From, r.Shards[0].ID)
		c.Repos = append(c.Repos, PackedRepo{id, FilesHash(r.Shards, func(string) bool { return true }), []PackShare{{Docs: 1, Text: 20}}})
	}
	return c
}

func TestFinishPack_replacesTheIndexFilesOfItsRepositories(t *testing.T) {
	t.Parallel()
	b := packs(t, 3)
	before := b.s.View().Repo(1)
	b.member("n2")
	c := b.pack(1, 2)
	c.Second = "n2"
	if n := b.do(c); n != 2 {
		t.Fatalf("%d repositories packed, want 2", n)
	}
	v := b.s.View()
	if got := len(v.Holders(ShardKey(hash(50)))); got != 2 {
		t.Errorf("%d members hold the pack, want both", got)
	}
	r := v.Repo(1)
	want := ShardRef{ID: hash(50), Symbols: hash(51), Bytes: 50, Docs: 1, Text: 20, Pack: 40}
	if len(r.Shards) != 1 || r.Shards[0] != want {
		t.Errorf("shards %+v, want %+v", r.Shards, want)
	}
	if r.Generation != before.Generation || r.GenerationAt != before.GenerationAt || r.InputKey != before.InputKey {
		t.Errorf("a pack is no other generation: %+v, was %+v", r, before)
	}
	for id, want := range map[string]int{hash(50): 2, hash(51): 2, hash(1): 0, hash(101): 0, hash(3): 1} {
		if got := v.FileRefs(id); got != want {
			t.Errorf("file %s is named %d times, want %d", id, got, want)
		}
		if got := len(v.Holders(ShardKey(id))) > 0; got != (want > 0) {
			t.Errorf("file %s is held: %t", id, got)
		}
	}
	if v.Job(JobPack, PackSubject(nil)) != nil {
		t.Error("the job is still there")
	}
}

func TestFinishPack_skipsChangedRepositories(t *testing.T) {
	t.Parallel()
	b := packs(t, 4)
	c := b.pack(1, 2, 3, 4)
	// The first was indexed again, the second is being indexed, the third left the catalog.
	b.do(&EnqueueJob{Kind: JobIndex, Subject: "1"})
	b.do(&FinishIndex{Repo: 1, Fence: b.grant(JobIndex, "1"), Holder: "n1", Shards: []ShardRef{{ID: hash(1), Dead: hash(60)}, {ID: hash(61)}}})
	b.do(&EnqueueJob{Kind: JobIndex, Subject: "2"})
	fence := b.grant(JobIndex, "2")
	b.listing("a", "p", "q", "s")
	b.do(&EnqueueJob{Kind: JobCollect, Subject: "3"})
	b.do(&FinishCollect{Repo: 3, Fence: b.grant(JobCollect, "3")})
	if n := b.do(c); n != 1 {
		t.Fatalf("%d repositories packed, want 1", n)
	}
	v := b.s.View()
	if got := v.Repo(1).Shards; len(got) != 2 || got[0].Dead != hash(60) {
		t.Errorf("the repository that was indexed has %+v", got)
	}
	if got := v.Repo(2).Shards; got[0].ID != hash(2) {
		t.Errorf("the repository that is being indexed has %+v", got)
	}
	if got := v.Repo(4).Shards; got[0].ID != hash(50) {
		t.Errorf("the one that did not change has %+v", got)
	}
	if v.FileRefs(hash(50)) != 1 {
		t.Errorf("the pack is named %d times", v.FileRefs(hash(50)))
	}
	b.do(&FinishIndex{Repo: 2, Fence: fence, Unchanged: true})
	b.refused(NotFound, c) // the job no longer exists
}

func TestFinishPack_withoutRepositoriesStoresNothing(t *testing.T) {
	t.Parallel()
	b := packs(t, 1)
	c := b.pack(1)
	c.Repos[0].Was++
	b.do(c)
	if v := b.s.View(); v.FileRefs(hash(50)) != 0 || len(v.Holders(ShardKey(hash(50)))) != 0 {
		t.Error("a pack that nobody reads is held")
	}
	c = b.pack(1)
	c.Packs[0].ID = "x"
	b.refused(Invalid, c)
	c.Packs[0].ID, c.Repos[0].Shares[0].Pack = hash(50), 1
	b.refused(Invalid, c)
}

func TestPackSubject_parsesBackToItsMembers(t *testing.T) {
	t.Parallel()
	for want, members := range map[string][]uint32{"all": nil, "n1+n7+n10": {10, 1, 7}} {
		got := PackSubject(members)
		back, ok := SubjectMembers(got)
		slices.Sort(members)
		if got != want || !ok || !slices.Equal(back, members) {
			t.Errorf("PackSubject(%v) = %q, back %v %t", members, got, back, ok)
		}
	}
	for _, bad := range []string{"", "1", "n", "n2+n1", "nn1", "n1+", "n-1"} {
		if m, ok := SubjectMembers(bad); ok {
			t.Errorf("SubjectMembers(%q) = %v", bad, m)
		}
	}
}
