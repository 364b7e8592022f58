package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
)

// future is a program that knows one more level.
var future = Build{Lowest: 1, Versions: []string{"0.1.0", "0.2.0"}}

// able adds a node whose program applies levels up to highest.
func (b *book) able(id string, highest uint64) {
	b.t.Helper()
	epoch := uint64(1)
	if m := b.s.View().Member(id); m != nil {
		epoch = EpochStart(m.Epoch) + 1
	}
	b.do(&PutMember{Member{ID: id, Epoch: NewEpoch(epoch, 0), Lowest: min(1, highest), Highest: highest, Version: "v" + id}})
}

// The level rises once every member can apply it, and never falls. Unreachable members count, and
// so do members that report no level. Removed ones do not.
func TestFormatLevel_risesWhenEveryMemberCanApplyIt(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.s = future.New()
	raise := &RaiseLevel{Level: 2, Version: "0.2.0"}
	b.able("n1", 2)
	b.able("n2", 1)
	b.able("n3", 0)

	for _, step := range []struct {
		do       func()
		raisable uint64
		waitsFor []string
	}{
		{func() {}, 1, []string{"n2", "n3"}},
		{func() { b.able("n2", 2) }, 1, []string{"n3"}},
		{func() { b.able("n3", 1) }, 1, []string{"n3"}},
		{func() { b.do(&RemoveMember{"n3"}) }, 2, nil},
	} {
		b.refused(Conflict, raise)
		step.do()
		if got := b.s.View().Raisable(); got != step.raisable {
			t.Fatalf("at entry %d the catalog may be raised to %d, want %d", b.index, got, step.raisable)
		}
		if next, waitsFor := b.s.View().NextLevel(); next != 2 || !slices.Equal(waitsFor, step.waitsFor) {
			t.Errorf("at entry %d level %d waits for %v, want level 2 for %v", b.index, next, waitsFor, step.waitsFor)
		}
	}
	b.do(raise)
	if got, want := b.s.View().Level(), (Level{2, "0.2.0", b.index}); got != want {
		t.Fatalf("the level is %+v, want %+v", got, want)
	}

	if next, waitsFor := b.s.View().NextLevel(); next != 0 || waitsFor != nil {
		t.Errorf("level %d waits for %v", next, waitsFor)
	}

	// A lower level, or the same one, is refused.
	b.refused(Conflict, raise)
	b.refused(Conflict, &RaiseLevel{Level: 1, Version: "0.1.0"})

	// A member that returns with the older program is refused.
	b.refused(Conflict, &PutMember{Member{ID: "n2", Epoch: NewEpoch(9, 0), Lowest: 1, Highest: 1}})
	b.refused(Conflict, &PutMember{Member{ID: "n4", Epoch: NewEpoch(1, 0)}})
	if b.s.View().Raisable() != 2 {
		t.Error("the catalog could fall")
	}
}

// The level is part of the state hash and of snapshots.
func TestFormatLevel_isPartOfHashAndSnapshot(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.s = future.New()
	b.able("n1", 2)
	first := b.s.View().Hash()
	b.do(&RaiseLevel{Level: 2, Version: "0.2.0"})
	if b.s.View().Hash() == first {
		t.Error("the hash is the same at both levels")
	}
	again := reload(t, b.s)
	if got, want := again.View().Level(), b.s.View().Level(); got != want || again.View().Hash() != b.s.View().Hash() {
		t.Errorf("after a snapshot the level is %+v, want %+v", got, want)
	}

	// A new cluster from this state keeps the level.
	b.s.Refound(Successor{Cluster: "new", Node: "n9", Restored: true})
	if got := b.s.View().Level().Number; got != 2 {
		t.Errorf("after a restore the level is %d", got)
	}
}

// The error names the version that can apply the catalog's level.
func TestFormatLevel_unknownLevelIsRefusedWithTheNeededVersion(t *testing.T) {
	t.Parallel()
	raised := newBook(t)
	raised.s = future.New()
	raised.able("n1", 2)
	raised.do(&RaiseLevel{Level: 2, Version: "0.2.0"})
	var low, high bytes.Buffer
	if err := errors.Join(New().View().Save(&low), raised.s.View().Save(&high)); err != nil {
		t.Fatal(err)
	}
	newest := Build{Lowest: 2, Versions: []string{"0.1.0", "0.2.0"}}

	for name, c := range map[string]struct {
		build    Build
		snapshot []byte
		want     string // "": the program can apply the level
		newer    bool
	}{
		"older program":        {ThisBuild(), high.Bytes(), "the catalog has level 2, and this program applies level 1 alone: start version 0.2.0 or a later one", true},
		"same program":         {future, high.Bytes(), "", false},
		"newer program":        {future, low.Bytes(), "", false},
		"program without rule": {newest, low.Bytes(), "the catalog has level 1, and this program applies level 2 alone: start version 0.1.0, or a later one that applies level 1", false},
	} {
		_, err := c.build.Load(bytes.NewReader(c.snapshot))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || errors.Is(err, codec.ErrNewer) != c.newer {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}

	// The same from a log: any program reads the entry, and a program that cannot apply the level
	// applies no later entry.
	old := newBook(t)
	old.able("n1", 2)
	if old.s.Unable() != nil {
		t.Fatal("the program cannot apply level 1")
	}
	old.do(&RaiseLevel{Level: 2, Version: "0.2.0"})
	var why *LevelError
	if err := old.s.Unable(); !errors.As(err, &why) || why.Level.Version != "0.2.0" {
		t.Errorf("after the entry: %v", err)
	}
}

// Members may have one release and the next one. A third release is refused, newer or older, as
// long as some member is two releases away.
func TestMembers_mayHaveTwoAdjacentReleases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		there []string
		comes string
		want  string // version of the node that conflicts; "": the member is admitted
	}{
		{[]string{"0.1.0"}, "0.1.7", ""},
		{[]string{"0.1.0"}, "0.2.0", ""},
		{[]string{"0.2.3-dev-9a45aff79296"}, "0.1.0", ""},
		{[]string{"0.1.0", "0.2.0"}, "0.2.1", ""},
		{[]string{"0.2.0", "0.3.0"}, "0.3.0", ""},
		{[]string{"0.1.0", "0.2.0"}, "0.3.0", "0.1.0"},
		{[]string{"0.2.0", "0.3.0"}, "0.1.9", "0.3.0"},
		{[]string{"0.1.0"}, "0.10.0", "0.1.0"},
		{[]string{"0.9.4"}, "1.0.0", ""},
		{[]string{"1.0.0"}, "0.9.4", ""},
		{[]string{"0.9.4"}, "1.1.0", "0.9.4"},
		{[]string{"0.9.4"}, "2.0.0", "0.9.4"},
		{[]string{"0.1.0", "dev", ""}, "test", ""},
	} {
		b := newBook(t)
		put := func(id, version string, epoch uint64) *PutMember {
			return &PutMember{Member{ID: id, Epoch: NewEpoch(epoch, 0), Version: version}}
		}
		for i, version := range c.there {
			b.do(put(fmt.Sprint("n", i), version, 1))
		}

		// Both as a new node, and as a restarted member.
		for _, id := range []string{"new", "n9"} {
			if id == "n9" {
				b.do(put(id, c.there[0], 1))
			}
			no := b.apply(put(id, c.comes, 2))[0].Err
			want := "version " + c.comes + " of this node and version " + c.want + " of node n"
			if (no == nil) != (c.want == "") || no != nil && !strings.Contains(no.Error(), want) {
				t.Errorf("%q beside %q: %v", c.comes, c.there, no)
			}
		}

		// A removed member does not count.
		if c.want != "" {
			for i := range c.there {
				b.do(&RemoveMember{ID: fmt.Sprint("n", i)})
			}
			b.do(&RemoveMember{ID: "n9"})
			b.do(put("later", c.comes, 1))
		}
	}
}
