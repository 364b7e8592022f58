package catalog

import (
	"cmp"
	"iter"
	"slices"
)

// HistoryRule says whether commits of the repositories with a name are indexed.
type HistoryRule struct {
	Glob    string // of names of repositories
	Include bool   // else they are left out
	Index   uint64 // of the entry that set it: the newest rule that fits a name decides
}

// SetHistory sets a rule, or removes it.
type SetHistory struct {
	Glob    string
	Include bool
	Remove  bool
}

// MaxHistoryRules is the most rules that a catalog has.
const MaxHistoryRules = 1000

func (c *SetHistory) apply(t *txn) Result {
	old := t.historyRules.Get(c.Glob)
	switch {
	case c.Glob == "" || len(c.Glob) > 1000:
		return refuse(Invalid, "the glob is empty, or longer than 1,000 bytes")
	case c.Remove && old == nil:
		return refuse(NotFound, "no rule has this glob")
	case c.Remove:
		t.historyRules.Delete(c.Glob)
	case old == nil && t.historyRules.Len() >= MaxHistoryRules:
		return refuse(Conflict, "there are too many rules; remove some")
	default:
		t.historyRules.Set(c.Glob, &HistoryRule{c.Glob, c.Include, t.index})
	}
	return Result{ID: t.index}
}

// HistoryRules returns the rules, by their globs.
func (v *View) HistoryRules() iter.Seq[*HistoryRule] { return v.historyRules.Records() }

// HistoryRulesInOrder returns the rules, the newest first.
func (v *View) HistoryRulesInOrder() []*HistoryRule {
	return slices.SortedFunc(v.HistoryRules(), func(a, b *HistoryRule) int {
		return cmp.Or(cmp.Compare(b.Index, a.Index), cmp.Compare(a.Glob, b.Glob))
	})
}
