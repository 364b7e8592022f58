package browse

import "github.com/shoalsearch/shoal/node/coverage"

// covers is what a read covers that looks at all of one thing: unknown until a holder of
// the mirror has answered, and then without the gaps that are there.
func covers(answered bool, gaps map[coverage.Kind]bool) coverage.Coverage {
	if !answered {
		return coverage.Coverage{}
	}
	c := coverage.Of(coverage.Files, 1, 1)
	for kind, there := range gaps {
		if there {
			c = c.With(coverage.Gap{Kind: kind})
		}
	}
	return c
}

// Coverage is what a listing of repositories covers.
func (r *ReposResponse) Coverage() coverage.Coverage { return covers(r.Per > 0, nil) }

// Coverage is what a read of a file covers.
func (r *ReadFileResponse) Coverage() coverage.Coverage { return covers(r.Commit != "", nil) }

// Coverage is what a tree covers.
func (r *ListTreeResponse) Coverage() coverage.Coverage {
	return covers(r.Commit != "", map[coverage.Kind]bool{coverage.Limit: r.Cut})
}

// Coverage is what a listing of branches or tags covers.
func (r *RefsResponse) Coverage() coverage.Coverage {
	return covers(r.Repo != "", map[coverage.Kind]bool{coverage.Late: r.Late})
}

// Coverage is what a page of a history covers.
func (r *CommitsResponse) Coverage() coverage.Coverage {
	return covers(r.Per > 0, map[coverage.Kind]bool{coverage.Late: r.AtLeast || !r.Reached.IsZero(), coverage.Shallow: r.Shallow})
}

// Coverage is what a list of authors covers.
func (r *AuthorsResponse) Coverage() coverage.Coverage {
	return covers(r.Per > 0, map[coverage.Kind]bool{coverage.Shallow: r.Shallow})
}

// Coverage is what a count of files that changed together covers.
func (r *TogetherResponse) Coverage() coverage.Coverage {
	return covers(r.Total > 0, map[coverage.Kind]bool{coverage.Limit: r.Cut, coverage.Shallow: r.Shallow})
}

// Coverage is what a search of a history for changes covers. A walk along lines ends at
// its limit, any other one when time runs out or more was found than the limit.
func (r *TraceResponse) Coverage() coverage.Coverage {
	limit := r.AtLeast && r.From != ""
	c := covers(r.Commit != "", map[coverage.Kind]bool{coverage.Limit: limit || r.Total > len(r.Commits), coverage.Late: r.AtLeast && !limit, coverage.Shallow: r.Shallow})
	if r.Unread == 0 {
		return c
	}
	g := coverage.Gap{Kind: coverage.NameOnly, Count: r.Unread}
	for _, path := range r.Large {
		g.Files = append(g.Files, coverage.File{Path: path})
	}
	return c.With(g)
}

// Coverage is what a blame covers.
func (r *BlameResponse) Coverage() coverage.Coverage {
	return covers(r.Commit != "", map[coverage.Kind]bool{coverage.Late: r.Late, coverage.Shallow: r.Shallow})
}

// Coverage is what a difference covers.
func (r *DiffResponse) Coverage() coverage.Coverage {
	return covers(r.HeadCommit != "", map[coverage.Kind]bool{coverage.Limit: r.Cut})
}

// Coverage is what an outline covers: the files whose symbols were found.
func (r *OutlineResponse) Coverage() coverage.Coverage {
	c := covers(r.Commit != "", map[coverage.Kind]bool{coverage.Limit: r.Cut})
	for _, f := range r.Files {
		if f.Unknown {
			c = c.With(coverage.Gap{Kind: coverage.Symbols, Count: 1, Files: []coverage.File{{Path: f.Path}}})
		}
	}
	return c
}
