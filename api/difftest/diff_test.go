package difftest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	caseCount = flag.Int("cases", 3_000, "calls of the differential test")
	firstSeed = flag.Uint64("seed", 1, "seed of the calls")
	only      = flag.Int("only", -1, "number of the one call to make")
)

// call is a request that the node and the twin answer.
type call interface {
	judge(w *twin, s *server) verdict
	smaller() []call // calls with one argument or part less
	String() string
}

// verdict is the result of a call.
type verdict struct {
	claimed bool   // the answer claims to be complete
	refused bool   // the call was refused
	amiss   string // how the answer is wrong; "" if it is right
	tags    []string
}

func wrong(format string, args ...any) verdict { return verdict{}.wrong(format, args...) }

func (v verdict) wrong(format string, args ...any) verdict {
	v.amiss = fmt.Sprintf(format, args...)
	return v
}

// about returns the verdict with a file added.
func (v verdict) about(f *file) verdict {
	v.tags = append(slices.Clone(v.tags), f.tags...)
	return v
}

// named is about for a file of an answer.
func (v verdict) named(w *twin, repo, path string) verdict {
	if a := w.named(repo); a != nil {
		for _, r := range a.refs {
			for _, f := range r.files {
				if shown(f.path) == path {
					return v.about(f)
				}
			}
		}
	}
	return v
}

// draws are the kinds of calls, each with its percentage.
var draws = []struct {
	name   string
	weight int
	draw   func(r *rand.Rand, w *twin) call
}{
	{"search", 100, drawSearch},
	{"grep", 60, drawGrep},
	{"glob", 30, drawGlobCall},
	{"read_file", 20, drawReadFile},
	{"list_tree", 15, drawListTree},
	{"list_commits", 20, drawListCommits},
	{"list_branches", 10, drawListBranches},
	{"get_diff", 10, drawGetDiff},
	{"blame", 10, drawBlame},
	{"find_symbol_definitions", 10, drawDefinition},
	{"find_symbol_references", 5, drawReference},
	{"find_implementations", 5, drawImplementation},
	{"outline", 5, drawOutline},
	{"search tool", 5, drawWords},
	{"/api/source", 8, drawSource},
	{"/api/raw", 3, drawRaw},
	{"/api/tree", 8, drawTree},
	{"/api/commits", 8, drawCommits},
	{"/api/blame", 4, drawBlameRoute},
	{"/api/find_definitions", 5, drawFindDefinitions},
	{"/search", 15, drawPage},
}

// tally counts the verdicts of a kind of call.
type tally struct{ cases, claimed, refused, amiss int }

func TestSearchAnswers_equalAPlainScanOfTheFiles(t *testing.T) {
	t.Parallel()
	began := time.Now()
	dir := zooDir(t)
	names := build(t, dir)
	w := scan(t, dir, names)
	s := serve(t, dir, len(names))
	t.Logf("the zoo is indexed after %v", time.Since(began).Round(time.Millisecond))

	total := 0
	for _, d := range draws {
		total += d.weight
	}
	var mu sync.Mutex
	counts := map[string]*tally{}
	shown := 0
	one := func(i int) {
		r := rand.New(rand.NewPCG(*firstSeed, uint64(i)))
		n := r.IntN(total)
		k := 0
		for ; n >= draws[k].weight; k++ {
			n -= draws[k].weight
		}
		c := draws[k].draw(r, w)
		v := c.judge(w, s)
		if v.amiss != "" {
			c, v = shrink(w, s, c, v)
		}

		mu.Lock()
		defer mu.Unlock()
		x := counts[draws[k].name]
		if x == nil {
			x = &tally{}
			counts[draws[k].name] = x
		}
		x.cases++
		x.claimed += btoi(v.claimed)
		x.refused += btoi(v.refused)
		if v.amiss != "" {
			x.amiss++
			if shown++; shown <= 20 {
				t.Errorf("-seed %d -only %d: %s %v\n%s", *firstSeed, i, c, v.tags, v.amiss)
			}
		}
	}
	if *only >= 0 {
		one(*only)
		return
	}

	numbers := make(chan int)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range numbers {
				one(i)
			}
		})
	}
	for i := range *caseCount {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	linksOpen(t, w, s)
	for _, d := range draws {
		if x := counts[d.name]; x != nil {
			fmt.Printf("%-24s %6d calls, %6d claimed to be complete, %5d refused, %5d disagree\n", d.name, x.cases, x.claimed, x.refused, x.amiss)
		}
	}
}

// shrink removes arguments and parts while the answer stays wrong.
func shrink(w *twin, s *server, c call, v verdict) (call, verdict) {
	for again := true; again; {
		again = false
		for _, less := range c.smaller() {
			if got := less.judge(w, s); got.amiss != "" && !strings.HasPrefix(got.amiss, "status") {
				c, v, again = less, got, true
				break
			}
		}
	}
	return c, v
}
