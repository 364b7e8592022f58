package job

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// parts tells which packs are about to be written anew for a class, as far as
// anybody asks.
type parts struct {
	view    *catalog.View
	classes *classes // once anybody asks
}

// due tells that what the class of a repository has of a pack is about to
// be written to a file of its own: at once, or when its repositories, which are
// polled all the time, are not about to change.
func (p *parts) due(repo catalog.RepoID, id string) bool {
	if p.classes == nil {
		p.classes = classesOf(p.view)
	}
	f := p.classes.files[p.classes.subjects[groupOf(repo)]][id]
	return f != nil && f.worn()
}

// waits tells that a pack is not copied yet. When repositories of a pack move,
// their new class needs a part of it only; a member that has the pack writes
// that part anew, with what else moved, and copies it to the others. Until then
// the old holders serve. It does not wait where no live member of the class has
// the pack, and not for long.
func (c *Copier) waits(view *catalog.View, repo catalog.RepoID, id string, w *work) bool {
	if !w.parts.due(repo, id) {
		return false
	}
	live, writers := 0, 0
	targets := targetsOf(view, groupOf(repo))
	for _, node := range view.Holders(catalog.ShardKey(id)) {
		if !c.r.opt.Cluster.Alive(node) {
			continue
		}
		live++
		if slices.Contains(targets, node) {
			writers++
		}
	}
	if writers == 0 {
		return false
	}
	wait := partWait
	if live < c.r.opt.Replicas {
		wait = partHurry
	}
	now := c.r.opt.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	since, ok := c.put[id]
	if !ok {
		since = now
		c.put[id] = since
	}
	w.put[id] = true
	return now.Sub(since) < wait
}

// forget ends the waiting for what is not wanted any more.
func (c *Copier) forget(w *work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.put {
		if !w.put[id] {
			delete(c.put, id)
		}
	}
}
