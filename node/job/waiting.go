package job

import (
	"cmp"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// waiting is the jobs that could be granted, as a heap: of thousands that wait
// a plan grants a few, and need not sort the others.
type waiting []*catalog.Job

// Len is their number.
func (w waiting) Len() int { return len(w) }

// Less orders those that a person asked for before repositories that were
// never indexed, these before the others, and each by how long they wait.
func (w waiting) Less(i, j int) bool {
	a, b := w[i], w[j]
	return cmp.Or(cmp.Compare(urgency(a), urgency(b)), a.EnqueuedAt.Compare(b.EnqueuedAt), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject)) < 0
}

// Swap exchanges two.
func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

// Push appends a *catalog.Job.
func (w *waiting) Push(j any) { *w = append(*w, j.(*catalog.Job)) }

// Pop takes the last one away.
func (w *waiting) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

func urgency(j *catalog.Job) int {
	switch {
	case j.Urgent:
		return 0
	case j.GoodAt.IsZero():
		return 1
	}
	return 2
}
