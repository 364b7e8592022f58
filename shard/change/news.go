package change

import (
	"container/heap"
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/file"
)

// News is the commits that the revisions of a log reach and that some earlier commits do not. It
// must be closed.
type News struct {
	Revisions []Tip // of the log
	Commits   int
	Rootless  bool // the log lacks one of the earlier commits, so older ones may be among the new

	s     *generation
	fresh []*roaring.Bitmap // by file of changes
}

// News finds the commits that are new since the revisions had these commits. One that the log does
// not have counts as reaching nothing.
func (l *Log) News(before []string) (*News, error) {
	s, err := l.acquire()
	if err != nil {
		return nil, err
	}
	n := &News{Revisions: s.m.Revisions, s: s, fresh: make([]*roaring.Bitmap, len(s.files))}
	for i := range n.fresh {
		n.fresh[i] = roaring.New()
	}
	if err := file.Guard(func() error { n.walk(before); return nil }); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Close lets the files go.
func (n *News) Close() { n.s.release() }

// walk goes from the newest commit to older ones until all that remain were reached before. A
// parent has a lower number than its children, so the marks of a commit are final when its turn
// comes, and the walk costs what is new.
func (n *News) walk(before []string) {
	w := &walk{old: map[uint32]bool{}}
	for _, r := range n.s.m.Revisions {
		if c, ok := n.s.find(r.Commit); ok {
			w.add(c, false)
		}
	}
	for _, id := range before {
		c, ok := n.s.find(id)
		if n.Rootless = n.Rootless || !ok; ok {
			w.add(c, true)
		}
	}
	for w.fresh > 0 {
		c := heap.Pop(w).(uint32)
		old := w.old[c]
		delete(w.old, c)
		i := n.s.fileOf(c)
		x := n.s.files[i]
		if !old {
			w.fresh--
			n.fresh[i].Add(c - x.base)
			n.Commits++
		}
		for _, p := range x.parentsOf(c - x.base) {
			if p != none {
				w.add(p, old)
			}
		}
	}
}

// fileOf is the file of changes that has a commit.
func (s *generation) fileOf(c uint32) int {
	i := len(s.files) - 1
	for s.files[i].base > c {
		i--
	}
	return i
}

// walk is the commits whose turn has not come, the highest number first.
type walk struct {
	heap  []uint32
	old   map[uint32]bool
	fresh int // of the heap: not reached before, as far as it is known
}

func (w *walk) add(c uint32, old bool) {
	was, there := w.old[c]
	switch {
	case !there:
		heap.Push(w, c)
		w.old[c] = old
		if !old {
			w.fresh++
		}
	case old && !was:
		w.old[c] = true
		w.fresh--
	}
}

func (w *walk) Len() int           { return len(w.heap) }
func (w *walk) Less(i, j int) bool { return w.heap[i] > w.heap[j] }
func (w *walk) Swap(i, j int)      { w.heap[i], w.heap[j] = w.heap[j], w.heap[i] }
func (w *walk) Push(c any)         { w.heap = append(w.heap, c.(uint32)) }
func (w *walk) Pop() any {
	c := w.heap[len(w.heap)-1]
	w.heap = w.heap[:len(w.heap)-1]
	return c
}

// Search finds what a query holds for among the new commits.
func (n *News) Search(ctx context.Context, req LogSearch) (*LogMatches, error) {
	req.All = true
	r, err := newReader(n.s, n.Revisions, n.fresh, req)
	if err != nil {
		return nil, err
	}
	ReadLogs(ctx, []*LogReader{r}, req)
	return r.Result(ctx)
}

// Texts calls a function with all that a query can look for in the new commits: messages, people,
// paths and changed lines. The bytes are valid during the call.
func (n *News) Texts(ctx context.Context, look func([]byte)) error {
	return file.Guard(func() error {
		for i, x := range n.s.files {
			people, files := map[uint32]bool{}, roaring.New()
			for it := n.fresh[i].Iterator(); it.HasNext(); {
				c := it.Next()
				for role := range 2 {
					people[x.who.At(int(2*c)+role)] = true
				}
				from, to := x.filesOf(c)
				files.AddRange(uint64(from), uint64(to))
			}
			for p := range people {
				look(x.people.at(p))
			}
			for it := files.Iterator(); it.HasNext(); {
				row := x.entry(it.Next())
				look(x.paths.at(row.path))
				if row.from != none {
					look(x.paths.at(row.from))
				}
			}
			if err := x.pages(ctx, &x.messages, n.fresh[i], look); err != nil {
				return err
			}
			if err := x.pages(ctx, &x.lines, files, look); err != nil {
				return err
			}
		}
		return nil
	})
}

// pages calls a function with the texts of a set.
func (x *index) pages(ctx context.Context, p *pageColumn, texts *roaring.Bitmap, look func([]byte)) error {
	r := textReader{x: x, p: p}
	defer r.close()
	for it := texts.Iterator(); it.HasNext() && ctx.Err() == nil; {
		text, err := r.text(it.Next())
		if err != nil {
			return err
		}
		look(text.removed)
		look(text.added)
	}
	return ctx.Err()
}
