package node_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
	watches "github.com/shoalsearch/shoal/node/watch"
)

// costWindow is how long a push is measured.
const costWindow = 6 * time.Second

// BenchmarkPushWithWatches measures the CPU time of a push to a node with 10,000 watches that find
// nothing, beside the same push to a node without watches. The pushes alternate. Run it with
// -benchtime 20x.
func BenchmarkPushWithWatches(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	type side struct {
		node *nodetest.Node
		repo *nodetest.Repo
		cpu  []float64 // seconds of a push
	}
	var sides [2]*side
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("dir%d/file%d.go", i%20, i)] = someText(r, 8000)
	}
	for i := range sides {
		dir := b.TempDir()
		s := &side{repo: nodetest.NewRepo(b, filepath.Join(dir, "app"), files)}
		s.node = withHistory(b, dir)
		s.node.WaitIndexed(1)
		s.node.WaitHistory()
		sides[i] = s
	}
	watchMuch(b, sides[1].node, r)

	n := 0
	for b.Loop() {
		changed := map[string]string{}
		for range 5 {
			i := r.IntN(1000)
			changed[fmt.Sprintf("dir%d/file%d.go", i%20, i)] = someText(r, 8000)
		}
		n++
		for i, s := range sides {
			s.repo.CommitAs("Ann", time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC), fmt.Sprint("push ", n), changed)
			runtime.GC() // else the memory of one push may be collected in the time of the other
			checked, before := s.node.Watches.Counts().Checked, processors()
			pushed(b, s.node, "local/app")

			// Each side gets the same time, so that what nodes do all the time costs both the same.
			nodetest.Moment(costWindow)
			s.cpu = append(s.cpu, processors()-before)
			found, err := s.node.Node.Search.SearchCommits(b.Context(), catalog.Operator(), search.Request{Query: fmt.Sprintf(`type:commit message:"push %d"`, n)})
			if err != nil || len(found.Commits) == 0 {
				b.Fatalf("push %d took longer than %v: %v", n, costWindow, err)
			}
			if got := s.node.Watches.Counts(); i == 1 && got.Checked == checked || got.Found > 0 {
				b.Fatalf("push %d: the watches did %+v", n, got)
			}
		}
	}
	without, with := middle(sides[0].cpu), middle(sides[1].cpu)
	b.ReportMetric(without*1000, "cpu-ms/push-without")
	b.ReportMetric(with*1000, "cpu-ms/push-with")
	b.ReportMetric(100*(with/without-1), "%more")
}

// middle returns the median.
func middle(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// someText returns random words on lines.
func someText(r *rand.Rand, size int) string {
	var text []byte
	for len(text) < size {
		text = append(append(text, someWord(r)...), " (.)\n{}"[r.IntN(7)])
	}
	return string(text)
}

func someWord(r *rand.Rand) string {
	text := make([]byte, 6+r.IntN(10))
	for i := range text {
		text[i] = "etaoinshrdlucmfwypvbgkjqxz"[r.IntN(26)]
	}
	return string(text)
}

// watchMuch makes 10,000 watches of 100 people, each with a search of its own.
func watchMuch(b *testing.B, n *nodetest.Node, r *rand.Rand) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(50)
	for i := range 100 {
		u, err := n.People.CreateUser(ctx, account.Operator(), account.CreateUserRequest{Email: fmt.Sprintf("a%d@example.com", i)})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := n.People.Grant(ctx, account.Operator(), account.GrantRequest{User: u.Email, Add: []string{"local/app"}}); err != nil {
			b.Fatal(err)
		}
		v := catalog.Viewer{Role: catalog.RoleMember, Account: u.ID}
		for j := range 100 {
			query := fmt.Sprintf([]string{"type:diff added:%s", "type:commit %s", "%s lang:go", "type:diff (%s or x%[1]sy) repo:app"}[j%4], someWord(r))
			group.Go(func() error {
				_, err := n.Watches.CreateWatch(ctx, v, watches.Change{Query: &query})
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}
