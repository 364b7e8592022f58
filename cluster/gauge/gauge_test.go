package gauge

import (
	"fmt"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestMetrics_areReadWhenThePageIsRequested(t *testing.T) {
	t.Parallel()
	state, open := map[string]int{"a": 1}, true
	set := New(func() (map[string]int, bool) { return state, open }, []Gauge[map[string]int]{
		{Desc: Desc("things", "Things.", "name"), Read: func(s map[string]int, emit Emit) {
			for name, n := range s {
				emit(float64(n), name)
			}
		}},
		{Desc: Desc("any", "Whether there is one."), Read: func(s map[string]int, emit Emit) { emit(Truth(len(s) > 0)) }},
		{Desc: Desc("all_total", "All so far."), Count: true, Read: func(s map[string]int, emit Emit) { emit(7) }},
	})
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(set); err != nil {
		t.Fatal(err)
	}

	expect := func(want ...string) {
		t.Helper()
		if got := gathered(t, reg); !slices.Equal(got, want) {
			t.Errorf("the page has %q, want %q", got, want)
		}
	}
	expect("all_total counter 7", "any gauge 1", "things gauge a=1")
	state = map[string]int{"a": 2, "b": 3}
	expect("all_total counter 7", "any gauge 1", "things gauge a=2", "things gauge b=3")
	state = nil
	expect("all_total counter 7", "any gauge 0")
	open = false
	expect()
}

// gathered are the values of a page of metrics, one a line.
func gathered(t *testing.T, reg prometheus.Gatherer) []string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.Metric {
			switch {
			case m.Counter != nil:
				out = append(out, fmt.Sprintf("%s counter %v", f.GetName(), m.Counter.GetValue()))
			case len(m.Label) > 0:
				out = append(out, fmt.Sprintf("%s gauge %s=%v", f.GetName(), m.Label[0].GetValue(), m.Gauge.GetValue()))
			default:
				out = append(out, fmt.Sprintf("%s gauge %v", f.GetName(), m.Gauge.GetValue()))
			}
		}
	}
	return out
}
