package search

import (
	"github.com/shoalsearch/shoal/shard/query"
)

// Only narrows a search to some files of one repository.
type Only struct {
	Repo  string // name
	Paths []string
}

// narrow adds the condition to a query. nil adds nothing.
func (o *Only) narrow(q query.Q) query.Q {
	if o == nil {
		return q
	}
	return &query.And{Subs: []query.Q{q, &query.RepoSet{Names: []string{o.Repo}}, &query.Text{Field: query.Name, Regexp: true, Pattern: exactPaths(o.Paths)}}}
}
