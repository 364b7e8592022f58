package job

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/place"
)

// sizes returns files with these sizes of text.
func sizes(text ...int64) []*hold.ClassFile {
	var files []*hold.ClassFile
	for i, n := range text {
		files = append(files, &hold.ClassFile{ID: fmt.Sprint(i), Text: n, Live: n, Repos: []*catalog.Repo{{ID: catalog.RepoID(i)}}})
	}
	return files
}

func TestChoosePack_mergesSmallIndexFiles(t *testing.T) {
	t.Parallel()
	eight := []int64{1, 1, 1, 1, 1, 1, 1, 1}
	for _, c := range []struct {
		what  string
		files []*hold.ClassFile
		calm  bool
		want  int
	}{
		{"nothing", nil, true, 0},
		{"too few", sizes(eight[:7]...), true, 0},
		{"enough", sizes(eight...), true, 8},
		{"more are to come", sizes(eight...), false, 0},
		{"a pack that the small ones do not outweigh", sizes(append([]int64{3}, eight...)...), true, 8},
		{"one that they do", sizes(append([]int64{2}, eight...)...), true, 9},
		{"steps of growth", sizes(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536), true, 0},
		{"more text than a pack takes", sizes(slices.Repeat([]int64{maxPackText / 10}, 25)...), true, 10},
		{"large files alone", sizes(slices.Repeat([]int64{maxPackText/2 + 1}, 9)...), true, 0},
	} {
		if got := choosePack(c.files, c.calm); len(got) != c.want {
			t.Errorf("%s: %d files, want %d", c.what, len(got), c.want)
		}
	}
	for whole, want := range map[int64]int{100: 1, 80: 0} {
		worn := sizes(40, 1)
		worn[0].Whole = whole
		if got := choosePack(worn, true); len(got) != want || want > 0 && got[0].Text != 40 {
			t.Errorf("40 alive of %d: %d files, want %d", whole, len(got), want)
		}
	}
}

// Files of all sizes keep coming. The number of files stays small, and each byte is written a
// logarithmic number of times.
func TestChoosePack_losesNoFileAndRewritesEachFewTimes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var files []*hold.ClassFile
		var came, written int64
		smallest := int64(1 << 60)
		for i := range 3000 {
			n := int64(math.Exp(rng.NormFloat64()*2+8)) + 1
			came, smallest = came+n, min(smallest, n)
			files = append(files, &hold.ClassFile{ID: fmt.Sprint(i), Text: n, Live: n, Repos: []*catalog.Repo{{}}})
			for chosen := choosePack(files, true); len(chosen) > 0; chosen = choosePack(files, true) {
				sum := int64(0)
				for _, f := range chosen {
					sum += f.Text
				}
				written += sum
				files = slices.DeleteFunc(files, func(f *hold.ClassFile) bool { return slices.Contains(chosen, f) })
				files = append(files, &hold.ClassFile{ID: fmt.Sprint("p", i), Text: sum, Live: sum, Whole: sum, Repos: []*catalog.Repo{{}}})
			}
		}
		steps := math.Log(float64(came)/float64(smallest)) / math.Log(packGrowth+1)
		if len(files) > minPackFiles+3*int(steps) || float64(written) > steps*float64(came) {
			t.Errorf("seed %d: %d files after 3,000, each byte written %.1f times; growth allows %.1f", seed, len(files), float64(written)/float64(came), steps)
		}
	}
}

// packed returns a world whose repositories 1 to n are indexed, each with one file.
func packed(t *testing.T, n, nodes int) *world {
	w := newWorld(t, oneConnection, nodes)
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("r%02d", i))
	}
	w.Repos("a", names...)
	for i := 1; i <= n; i++ {
		w.plan()
		w.Index(catalog.RepoID(i), "n1", catalog.ShardRef{ID: fmt.Sprintf("%064x", i), Text: 10, Bytes: 5})
	}
	return w
}

// classes returns the files of each class as "subject: ids of repositories".
func (w *world) classes() string {
	var lines []string
	for subject, files := range packableFiles(w.View()) {
		n := 0
		for _, f := range files {
			n += len(f.Repos)
		}
		lines = append(lines, fmt.Sprintf("%s: %d files, %d repositories", subject, len(files), n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestJobPlan_packsIndexedRepositories(t *testing.T) {
	t.Parallel()
	w := packed(t, 9, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: "9"})
	if got := w.classes(); got != "all: 8 files, 8 repositories" {
		t.Errorf("with one repository about to change: %s", got)
	}
	w.expect("one is indexed, eight are packed", "enqueue pack all\ngrant index 9")
	w.expect("and granted", "grant pack all")
	j := w.View().Job(catalog.JobPack, "all")
	fin := newPacking(j, choosePack(packableFiles(w.View())["all"], true)).fin
	pack := fmt.Sprintf("%064x", 99)
	fin.Packs = []catalog.ShardRef{{ID: pack, Bytes: 40, Pack: 80}}
	for i := range fin.Repos {
		fin.Repos[i].Shares = []catalog.PackShare{{Docs: 1, Text: 10}}
	}
	w.Do(fin)
	w.Index(9, "n1", catalog.ShardRef{ID: fmt.Sprintf("%064x", 9), Text: 10})
	w.expect("two files are not worth a pack", "")
	if got := w.classes(); got != "all: 2 files, 9 repositories" {
		t.Errorf("packed: %s", got)
	}
	// A push leaves the pack unchanged. When most repositories have left it, the rest is written
	// again.
	for id := catalog.RepoID(1); id <= 4; id++ {
		w.Index(id, "n1", catalog.ShardRef{ID: fmt.Sprintf("%064x", 10+id), Text: 10})
	}
	w.expect("half of the pack is alive", "")
	w.Index(5, "n1", catalog.ShardRef{ID: fmt.Sprintf("%064x", 15), Text: 10})
	w.expect("less than half", "enqueue pack all")
}

func TestJobPlan_packsByHoldingMembers(t *testing.T) {
	t.Parallel()
	w := packed(t, 20, 3)
	if got := w.classes(); got != "" {
		t.Errorf("nothing is placed: %s", got)
	}
	for i := catalog.RepoID(1); i <= 20; i++ {
		w.Target(place.GroupOf(i), fmt.Sprint("n", 1+i%2), fmt.Sprint("n", 2+i%2))
	}
	if got := w.classes(); got != "n1+n2: 10 files, 10 repositories\nn2+n3: 10 files, 10 repositories" {
		t.Errorf("two pairs of nodes: %s", got)
	}
	w.nodes[1].Alive = false
	w.expect("packs are due", "enqueue pack n1+n2\nenqueue pack n2+n3")
	w.expect("each is made by one who holds the files", "grant pack n1+n2\ngrant pack n2+n3")
	for subject, want := range map[string]string{"n1+n2": "n1", "n2+n3": "n3"} {
		if j := w.View().Job(catalog.JobPack, subject); j.Node != want {
			t.Errorf("the pack of %s is made by %s, want %s", subject, j.Node, want)
		}
	}
}

// Repositories of a pack move to other members. A node with the pack writes the moved part; the
// others wait for that.
func TestPackJob_aHolderWritesTheMovedPart(t *testing.T) {
	t.Parallel()
	w := packed(t, 12, 3)
	pair := func(id catalog.RepoID, a, b int) {
		w.Target(place.GroupOf(id), fmt.Sprint("n", a), fmt.Sprint("n", b))
	}
	for id := catalog.RepoID(1); id <= 12; id++ {
		pair(id, 1, 2)
	}
	w.expect("all are packed", "enqueue pack n1+n2")
	w.expect("by one of the pair", "grant pack n1+n2")
	j := w.View().Job(catalog.JobPack, "n1+n2")
	fin := newPacking(j, choosePack(packableFiles(w.View())["n1+n2"], true)).fin
	pack := fmt.Sprintf("%064x", 99)
	fin.Packs, fin.Holder, fin.Second = []catalog.ShardRef{{ID: pack, Bytes: 60, Pack: 120}}, "n1", "n2"
	for i := range fin.Repos {
		fin.Repos[i].Shares = []catalog.PackShare{{Docs: 1, Text: 10}}
	}
	w.Do(fin)
	w.expect("all is where it should be", "")
	for moved := catalog.RepoID(1); moved <= 10; moved++ {
		pair(moved, 2, 3)
		due := hold.RewritesOf(w.View())
		// Nine of twelve are three quarters: copy the pack as it is.
		if got := due.Due(moved, pack); got != (moved < 9) {
			t.Errorf("%d moved: written anew %v", moved, got)
		}
		if due.Due(12, pack) != (moved >= 7) { // less than half stays
			t.Errorf("%d moved: what stays is written anew: %v", moved, due.Due(12, pack))
		}
	}
	for id := catalog.RepoID(5); id <= 10; id++ {
		pair(id, 1, 2)
	}
	for moved := catalog.RepoID(1); moved <= 4; moved++ { // the poll finds nothing
		w.Do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(moved)})
		if !hold.RewritesOf(w.View()).Due(moved, pack) {
			t.Errorf("while %d is polled the pack is copied", moved)
		}
	}
	for moved := catalog.RepoID(1); moved <= 4; moved++ {
		w.Index(moved, "n1", w.View().Repo(moved).Shards...)
	}
	w.expect("four moved", "enqueue pack n2+n3")
	w.expect("the one that has them writes them", "grant pack n2+n3")
	if j := w.View().Job(catalog.JobPack, "n2+n3"); j.Node != "n2" {
		t.Errorf("the part that moved is written by %s", j.Node)
	}
}
