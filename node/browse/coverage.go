package browse

import "github.com/shoalsearch/shoal/node/coverage"

// readCoverage returns the coverage of a read: unknown before a holder has answered, otherwise with the
// gaps that are true in the map.
func readCoverage(answered bool, gaps map[coverage.Kind]bool) coverage.Coverage {
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

// Coverage reports what a list of repositories covers.
func (r *ReposResponse) Coverage() coverage.Coverage { return readCoverage(r.Per > 0, nil) }

// Coverage reports what a read of a file covers.
func (r *ReadFileResponse) Coverage() coverage.Coverage { return readCoverage(r.Commit != "", nil) }

// Coverage reports what a tree covers.
func (r *ListTreeResponse) Coverage() coverage.Coverage {
	return readCoverage(r.Commit != "", map[coverage.Kind]bool{coverage.Limit: r.Cut})
}

// Coverage reports what a list of branches or tags covers.
func (r *RefsResponse) Coverage() coverage.Coverage {
	return readCoverage(r.Repo != "", map[coverage.Kind]bool{coverage.Late: r.Late})
}

// Coverage reports what a page of commits covers.
func (r *CommitsResponse) Coverage() coverage.Coverage {
	return readCoverage(r.Per > 0, map[coverage.Kind]bool{coverage.Late: r.AtLeast || !r.Reached.IsZero(), coverage.Shallow: r.Shallow})
}

// Coverage reports what a list of authors covers.
func (r *AuthorsResponse) Coverage() coverage.Coverage {
	return readCoverage(r.Per > 0, map[coverage.Kind]bool{coverage.Shallow: r.Shallow})
}

// Coverage reports what a count of files that changed together covers.
func (r *TogetherResponse) Coverage() coverage.Coverage {
	return readCoverage(r.Total > 0, map[coverage.Kind]bool{coverage.Limit: r.Cut, coverage.Shallow: r.Shallow})
}

// Coverage reports what a search in the history covers. AtLeast with From means that following
// lines stopped at the limit; without From, that time ran out.
func (r *TraceResponse) Coverage() coverage.Coverage {
	limit := r.AtLeast && r.From != ""
	c := readCoverage(r.Commit != "", map[coverage.Kind]bool{coverage.Limit: limit || r.Total > len(r.Commits), coverage.Late: r.AtLeast && !limit, coverage.Shallow: r.Shallow})
	if r.Unread == 0 {
		return c
	}
	g := coverage.Gap{Kind: coverage.NameOnly, Count: r.Unread}
	for _, path := range r.Large {
		g.Files = append(g.Files, coverage.File{Path: path})
	}
	return c.With(g)
}

// Coverage reports what a blame covers.
func (r *BlameResponse) Coverage() coverage.Coverage {
	return readCoverage(r.Commit != "", map[coverage.Kind]bool{coverage.Late: r.Late, coverage.Shallow: r.Shallow})
}

// Coverage reports what a diff covers.
func (r *DiffResponse) Coverage() coverage.Coverage {
	return readCoverage(r.HeadCommit != "", map[coverage.Kind]bool{coverage.Limit: r.Cut})
}

// Coverage reports what an outline covers: files with unknown symbols are gaps.
func (r *OutlineResponse) Coverage() coverage.Coverage {
	c := readCoverage(r.Commit != "", map[coverage.Kind]bool{coverage.Limit: r.Cut})
	for _, f := range r.Files {
		if f.Unknown {
			c = c.With(coverage.Gap{Kind: coverage.Symbols, Count: 1, Files: []coverage.File{{Path: f.Path}}})
		}
	}
	return c
}
