package browse

import (
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// orders caches the sorted lists of all repositories. Sorting 20,000 for each request costs more
// than the rest of the request. It is safe for concurrent use.
type orders struct {
	mu   sync.Mutex // guards the field below
	last map[orderKey]ordered
}

// orderKey is a sort order.
type orderKey struct {
	sort string
	desc bool
}

// ordered is the sorted list for one view. Callers share it and must not change it.
type ordered struct {
	view *catalog.View
	list []*catalog.Repo
}

// sorted returns all repositories of a view in the requested order.
func (o *orders) sorted(view *catalog.View, req *ReposRequest) []*catalog.Repo {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := orderKey{req.Sort, req.Desc}
	last, known := o.last[key]
	if known && last.view == view {
		return last.list
	}

	// After few changes, move the changed repositories; after many, sort again.
	var list []*catalog.Repo
	changes, ok := catalog.Changes{}, false
	if known {
		changes, ok = view.Since(last.view)
	}
	if ok && len(changes.Repos) <= leastSorted+len(last.list)/64 {
		list = req.updateOrder(last, view, changes.Repos)
	} else {
		list = slices.SortedFunc(view.Repos(), req.order)
	}
	if o.last == nil {
		o.last = map[orderKey]ordered{}
	}
	o.last[key] = ordered{view, list}
	return list
}

// leastSorted is the number of changes up to which a list is never sorted again.
const leastSorted = 16

// updateOrder updates a sorted list from one view to another; changed lists the repositories that may
// differ.
func (req *ReposRequest) updateOrder(from ordered, to *catalog.View, changed []catalog.RepoID) []*catalog.Repo {
	ids := slices.Compact(slices.Sorted(slices.Values(changed)))
	if len(ids) == 0 {
		return from.list
	}

	// Remove all before inserting any: two repositories may have swapped names.
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
