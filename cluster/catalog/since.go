package catalog

import "slices"

// Changes lists what may differ between two views.
type Changes struct {
	Repos    []RepoID
	Jobs     []JobKey
	Holdings []string // by key
}

// Since lists what may differ between two views; an item may appear twice. It costs what has
// changed, not the whole catalog, so callers can update sums over all repositories. If ok is false,
// anything may differ, including the result of Shown.
func (v *View) Since(old *View) (c Changes, ok bool) {
	if !slices.Equal(v.hiddenConnections(), old.hiddenConnections()) {
		return Changes{}, false
	}

	repos, known := v.repos.Changed(&old.repos)
	jobs, jobsKnown := v.jobs.Changed(&old.jobs)
	holdings, holdingsKnown := v.holdings.Changed(&old.holdings)
	if !known || !jobsKnown || !holdingsKnown {
		return Changes{}, false
	}

	c = Changes{Repos: repos, Holdings: holdings, Jobs: make([]JobKey, len(jobs))}
	for i, key := range jobs {
		c.Jobs[i] = JobKey{JobKind(key[0]), key[1:]}
	}
	return c, true
}

// hiddenConnections returns the names of the connections whose repositories are hidden.
func (v *View) hiddenConnections() (names []string) {
	for c := range v.Connections() {
		if !c.HiddenAt.IsZero() {
			names = append(names, c.Name)
		}
	}
	return names
}

// Everything lists everything that Since could list.
func (v *View) Everything() (c Changes) {
	for r := range v.Repos() {
		c.Repos = append(c.Repos, r.ID)
	}
	for j := range v.Jobs() {
		c.Jobs = append(c.Jobs, j.Key())
	}
	for h := range v.Holdings() {
		c.Holdings = append(c.Holdings, h.Key)
	}
	return c
}
