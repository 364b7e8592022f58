package catalog

import (
	"slices"

	"github.com/cespare/xxhash/v2"
)

// FilesHash hashes the files of a generation that pick selects, with their side files. If the hash
// is unchanged, the repository still has the files that a pack was made from.
func FilesHash(shards []ShardRef, pick func(id string) bool) uint64 {
	h := xxhash.New()
	for _, s := range shards {
		if pick(s.ID) {
			for _, id := range []string{s.ID, s.Dead, s.Symbols} {
				_, _ = h.WriteString(id)
				_, _ = h.WriteString("\x00")
			}
		}
	}
	return h.Sum64()
}

// malformedReason returns what is malformed in the command, or "".
func (c *FinishPack) malformedReason() string {
	// A new pack contains only live data, so it has no side file of dead occurrences.
	for _, s := range c.Packs {
		if !isHash(s.ID) || s.Dead != "" || s.Symbols != "" && !isHash(s.Symbols) || s.Slice != 0 || s.Pack < 0 || s.BuiltFor != 0 {
			return "a pack is not named by a SHA-256, or is not a whole one"
		}
	}

	for _, r := range c.Repos {
		for _, s := range r.Shares {
			if int(s.Pack) >= len(c.Packs) {
				return "a repository is in a pack that is not there"
			}
		}
	}
	return ""
}

func (c *FinishPack) apply(t *txn) Result {
	job, refusal := t.runningJob(JobPack, c.Subject, c.Fence)
	if job == nil {
		return refusal
	}
	if problem := c.malformedReason(); problem != "" {
		return refuse(Invalid, problem)
	}

	from := make(map[string]bool, len(c.From))
	for _, id := range c.From {
		from[id] = true
	}

	packed := 0
	for i := range c.Repos {
		if t.replaceByPack(c, &c.Repos[i], from) {
			packed++
		}
	}

	// If any repository uses a pack, the nodes that made it hold it.
	for _, holder := range []string{c.Holder, c.Second} {
		m := t.members.Get(holder)
		for _, id := range fileIDs(c.Packs) {
			if n, _ := t.refs.Get(id); n > 0 && m != nil && m.State != MemberRemoved {
				t.addHolder(ShardKey(id), m.Number)
			}
		}
	}
	t.dropJob(JobPack, c.Subject)
	return Result{ID: uint64(packed)}
}

// replaceByPack replaces the packed files of one repository by its shares of the packs, and reports
// whether it did. It does nothing if the files have changed since. It does nothing either while an
// index job runs, because that job builds on the present files.
func (t *txn) replaceByPack(c *FinishPack, p *PackedRepo, from map[string]bool) bool {
	old := t.repos.Get(p.Repo)
	in := func(id string) bool { return from[id] }
	if old == nil || FilesHash(old.Shards, in) != p.Was {
		return false
	}
	if j := t.jobs.Get(jobKey(JobIndex, RepoSubject(p.Repo))); j != nil && j.State == JobRunning {
		return false
	}

	r := *old
	r.Shards = slices.DeleteFunc(slices.Clone(old.Shards), func(s ShardRef) bool { return from[s.ID] })
	for _, s := range p.Shares {
		ref := c.Packs[s.Pack]
		// Several repositories share the file. Each counts a part by its share of the text.
		if ref.Pack > 0 {
			ref.Bytes = int64(float64(ref.Bytes) * min(float64(s.Text)/float64(ref.Pack), 1))
		}
		ref.Docs, ref.Text = s.Docs, s.Text
		r.Shards = append(r.Shards, ref)
	}

	t.repos.Set(r.ID, &r)
	// Add the new references before removing the old ones: a file in both must never become
	// unreferenced.
	t.countReferences(&r, 1)
	t.countReferences(old, -1)
	return true
}
