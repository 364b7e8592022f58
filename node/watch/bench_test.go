package watch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// BenchmarkCheckWithoutMatch measures what 10,000 watches with searches of their own cost a push of
// 20 kB that none of them matches.
func BenchmarkCheckWithoutMatch(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	name := func() string {
		text := make([]byte, 6+r.IntN(10))
		for i := range text {
			text[i] = "etaoinshrdlucmfwypvbgkjqxz"[r.IntN(26)]
		}
		return string(text)
	}
	state, index := catalog.New(), uint64(0)
	do := func(c catalog.Command) {
		index++
		if r := state.Apply(catalog.Entry{Index: index, Node: "n1", Commands: []catalog.Command{c}})[0]; r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	for i := range 100 {
		a := fmt.Sprint("a", i)
		do(&catalog.PutAccount{Account: catalog.User{ID: a, Email: a + "@example.com", Role: catalog.RoleMember, State: catalog.AccountActive}})
		for j := range 100 {
			query := []string{"type:diff added:%s", "type:commit %s", "%s lang:go", "type:diff (%s or x%[1]sy) repo:acme"}[j%4]
			do(&catalog.PutWatch{New: true, Watch: catalog.Watch{ID: fmt.Sprint(i, "-", j), Account: a, Name: "n", Query: fmt.Sprintf(query, name())}})
		}
	}
	var g groups
	g.update(state.View())
	var text []byte
	for len(text) < 20_000 {
		text = append(append(text, name()...), " (.)\n{}"[r.IntN(7)])
	}
	b.ResetTimer()
	passed := 0
	for b.Loop() {
		found := g.needs.findings()
		found.add(text)
		for _, at := range g.all {
			if found.meet(at.need) {
				passed++
			}
		}
	}
	b.ReportMetric(float64(passed)/float64(b.N), "searches/op")
}
