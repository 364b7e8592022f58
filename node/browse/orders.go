package browse

import (
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// orders keeps all repositories in the orders that lists ask for: to sort 20,000 of them
// for each list costs more than all the rest. It is safe for concurrent use.
type orders struct {
	mu   sync.Mutex // guards the field below
	last map[orderKey]ordered
}

// orderKey is what an order of a list depends on.
type orderKey struct {
	sort string
	desc bool
}

// ordered is the repositories of a view, which are shared.
type ordered struct {
	view *catalog.View
	list []*catalog.Repo
}

// of is all repositories of a view in the order of a list.
func (o *orders) of(view *catalog.View, req *ReposRequest) []*catalog.Repo {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := orderKey{req.Sort, req.Desc}
	last, known := o.last[key]
	if known && last.view == view {
		return last.list
	}

	// Where little has changed it is moved, and else all is sorted.
	var list []*catalog.Repo
	changes, ok := catalog.Changes{}, false
	if known {
		changes, ok = view.Since(last.view)
	}
	if ok && len(changes.Repos) <= leastSorted+len(last.list)/64 {
		list = req.move(last, view, changes.Repos)
	} else {
		list = slices.SortedFunc(view.Repos(), req.order)
	}
	if o.last == nil {
		o.last = map[orderKey]ordered{}
	}
	o.last[key] = ordered{view, list}
	return list
}

// leastSorted is the number of changes for which no list is sorted.
const leastSorted = 16

// move takes an order to another view, in which some repositories may differ.
func (req *ReposRequest) move(from ordered, to *catalog.View, changed []catalog.RepoID) []*catalog.Repo {
	ids := slices.Compact(slices.Sorted(slices.Values(changed)))
	if len(ids) == 0 {
		return from.list
	}

	// All are taken out before any is put in: two may have exchanged their names.
	list := slices.Clone(from.list)
	for _, id := range ids {
		if old := from.view.Repo(id); old != nil {
			if at, found := slices.BinarySearchFunc(list, old, req.order); found {
				list = slices.Delete(list, at, at+1)
			}
		}
	}
	for _, id := range ids {
		if repo := to.Repo(id); repo != nil {
			at, _ := slices.BinarySearchFunc(list, repo, req.order)
			list = slices.Insert(list, at, repo)
		}
	}
	return list
}
