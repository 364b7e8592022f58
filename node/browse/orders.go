package browse

import (
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// orders caches the sorted lists of all repositories. Sorting 20,000 for each request costs more
// than the rest of the request. It is safe for concurrent use.
type orders struct {
	mu    sync.Mutex // guards the field below
	lists map[orderKey]ordered
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

// sorted returns all repositories of a view in the requested order, and caches them.
func (o *orders) sorted(view *catalog.View, req *ReposRequest) []*catalog.Repo {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := orderKey{req.Sort, req.Desc}
	previous, known := o.lists[key]
	if known && previous.view == view {
		return previous.list
	}

	// After few changes, move the changed repositories; after many, sort again.
	var list []*catalog.Repo
	changes, ok := catalog.Changes{}, false
	if known {
		changes, ok = view.Since(previous.view)
	}
	if ok && len(changes.Repos) <= leastSorted+len(previous.list)/64 {
		list = req.updateOrder(previous, view, changes.Repos)
	} else {
		list = slices.SortedFunc(view.Repos(), req.compareRepos)
	}
	if o.lists == nil {
		o.lists = map[orderKey]ordered{}
	}
	o.lists[key] = ordered{view, list}
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
			if at, found := slices.BinarySearchFunc(list, old, req.compareRepos); found {
				list = slices.Delete(list, at, at+1)
			}
		}
	}
	for _, id := range ids {
		if repo := to.Repo(id); repo != nil {
			at, _ := slices.BinarySearchFunc(list, repo, req.compareRepos)
			list = slices.Insert(list, at, repo)
		}
	}
	return list
}
