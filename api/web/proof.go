package web

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/query"

	"github.com/shoalsearch/shoal/api/layout"
)

// proof is the line that says whether an answer is complete, and why, with its details.
type proof struct {
	Complete bool
	Warn     bool               // something was not searched, because of a failure or a lack of time
	Text     string             // the line
	Counted  string             // the line once all matches of a cut answer are counted; "" if it is not cut
	Missing  []string           // repositories that were not searched
	Failed   []string           // nodes that did not answer
	Past     []pastRow          // commits that were read from git
	Gaps     []search.Uncovered // repositories whose commits were not all searched
	Numbers  []number
}

// pastRow is a commit without an index of its own, and where its files were searched.
type pastRow struct{ Repo, Commit, URL, Where string }

func pastRows(past []search.PastRepo) []pastRow {
	var out []pastRow
	for _, p := range past {
		row := pastRow{Repo: p.Repository, Commit: short(p.Commit) + " of " + p.Time.UTC().Format(time.DateOnly), URL: address(p.Repository, p.Commit, "tree", "")}

		scanned := counted(p.Read, "file", "files") + " (" + sizeOf(p.Bytes) + ") scanned in git"
		// Files that are the same in an indexed commit of the repository were searched in its index, the
		// others in git.
		switch {
		case p.Beside == "":
			row.Where = scanned + ", nothing searched in the index"
		case p.Read == 0:
			row.Where = "indexed: searched in the index of " + p.Beside
		default:
			row.Where = scanned + ", the others searched in the index of " + p.Beside
		}

		out = append(out, row)
	}
	return out
}

type number struct{ Name, Value string }

// exactButCut begins the line of an answer that counts more than it shows.
const exactButCut = "counted exactly, shown up to the limit of this page: "

// proofOf returns the proof of an answer. exact means that the answer counts all matches, also those
// that it does not show.
func proofOf(resp *search.Response, exact bool, took time.Duration) proof {
	s, c := &resp.Stats, &resp.Cluster
	p := proof{Complete: resp.Coverage.Exhaustive(), Missing: c.ReposMissing, Failed: c.NodesFailed, Past: pastRows(resp.Past)}

	// Report the most serious reason only: a node that does not answer may cause the others.
	shards := fmt.Sprintf("%s of %s answered", grouping(s.ShardsAnswered), counted(s.ShardsRequired, "shard", "shards"))
	switch {
	case resp.Coverage.Exhaustive():
		p.Text = "complete: " + shards + ", nothing cut, " + milliseconds(took)
	case len(c.NodesFailed) > 0 || len(c.ShardsMissing) > 0:
		p.Warn = true
		p.Text = fmt.Sprintf("not complete: %s did not answer", counted(s.ShardsRequired-s.ShardsAnswered, "shard", "shards")) + " (" + shards + "), " + milliseconds(took)

	case s.FlushReason == search.FlushTimeout:
		p.Warn = true
		p.Text = "not complete: time ran out, " + shards + ", " + milliseconds(took)
	case len(c.ReposMissing) > 0:
		p.Warn = true
		p.Text = "not complete: some repositories are not indexed yet, " + shards + ", " + milliseconds(took)

	case s.FlushReason == search.FlushUntagged:
		p.Warn = true
		p.Text = "not complete: symbols of some files are not known, yet or for want of ctags, " + shards + ", " + milliseconds(took)
	case resp.Coverage.Has(coverage.Revision, coverage.NoRevision):
		p.Text = "not complete: " + missingRevision(resp.Coverage) + ", " + shards + ", " + milliseconds(took)
	case exact:
		p.Complete = true
		p.Text = exactButCut + shards + ", " + milliseconds(took)
	case s.FlushReason == search.FlushLimit:
		p.Text = "cut at the limit of this page, so counts are lower bounds: " + shards + ", " + milliseconds(took)
		p.Counted = exactButCut + shards

	default:
		p.Text = "not proved complete: " + shards + ", " + milliseconds(took)
	}

	// A complete search finds nothing if its revision does not exist, so say that.
	if s.UnknownRevision != "" && resp.Coverage.Exhaustive() {
		p.Text += fmt.Sprintf("; no repository of this query has the revision %q", s.UnknownRevision)
	}

	p.Numbers = []number{
		{"Shards", shards},
		{"Files considered", grouping(int(s.FilesConsidered))},
		{"Files read", grouping(int(s.FilesLoaded))},
		{"Files known by name only, not searched", grouping(int(s.FilesNotSearched))},
		{"Bytes of text read", sizeOf(int64(s.ContentBytes))},
		{"Bytes of index read", sizeOf(int64(s.IndexBytes))},
		{"Catalog", fmt.Sprintf("%s, %s old", grouping(int(c.CatalogIndex)), milliseconds(c.CatalogAge))},
		{"The node's own time", milliseconds(s.Duration)},
	}
	return p
}

// missingRevision says in how many repositories a revision was not searched, and what to do.
func missingRevision(c coverage.Coverage) string {
	g := c.Gap(coverage.Revision)
	if g.Count == 0 {
		g = c.Gap(coverage.NoRevision)
	}
	return fmt.Sprintf("the revision %q is not indexed in %d of %s; name a few with repo: to search it in git", g.Ref, g.Count, counted(g.Of, "repository", "repositories"))
}

// countedExactly reports whether an answer that was cut counts all matches. countsAll means that the
// query requests that.
func countedExactly(resp *search.Response, countsAll bool) bool {
	return countsAll && resp.Coverage.Cut()
}

// summaryOf returns the count of matches and files, or of repositories, with ≥ if it is a lower bound.
// exact means that it is not.
func summaryOf(resp *search.Response, exact bool) string {
	s := &resp.Stats
	least := ""
	if !resp.Coverage.Exhaustive() && s.FlushReason != search.FlushFinal && !exact {
		least = "≥ "
	}
	if len(resp.Files) == 0 && len(resp.Repositories) > 0 {
		return least + counted(len(resp.Repositories), "repository", "repositories")
	}
	if s.TotalMatches == 0 && s.Files > 0 { // a query such as lang:go matches files, but no text
		return least + counted(int(s.Files), "file", "files")
	}
	return least + counted(int(s.TotalMatches), "match", "matches") + " in " + least + counted(int(s.Files), "file", "files")
}

// facet is a property of the found files, with its most frequent values.
type facet struct {
	Name string
	Rows []facetRow
	More int // number of further values
}

type facetRow struct {
	Value, Count     string
	Chosen           bool   // the query has it: Include leads to the query without it
	Include, Exclude string // addresses of searches with the value, and with its negation
}

// Limits of the rows of a facet.
const (
	facetRows   = 12
	countedRows = search.MaxFacetValues // if all files were counted
)

var plainValue = regexp.MustCompile(`^[\w][\w./+#-]*$`)

// valueOf returns a value of a filter, quoted if needed.
func valueOf(v string) string {
	if plainValue.MatchString(v) {
		return v
	}
	return query.Quote(v)
}

// facetKind is a property of files, with the filter that selects a value.
type facetKind struct {
	name      string
	minValues int // the facet is shown if an answer has at least so many values
	valuesOf  func(*search.Facets) *[]search.FacetValue
	filter    func(value string) string
	wrote     *regexp.Regexp // matches what filter writes
}

var facetKinds = []facetKind{
	{"Repositories", 1, func(f *search.Facets) *[]search.FacetValue { return &f.Repositories }, func(v string) string { return "reposet:" + valueOf(v) }, regexp.MustCompile(`^reposet:[^*]+$`)},
	{"Languages", 1, func(f *search.Facets) *[]search.FacetValue { return &f.Languages }, func(v string) string { return "lang:" + valueOf(v) }, regexp.MustCompile(`^lang:[^*]+$`)},
	{"Directories", 1, func(f *search.Facets) *[]search.FacetValue { return &f.Paths }, func(v string) string { return "file:" + fieldRegexp("^"+quoteMeta(v)) }, regexp.MustCompile(`^file:"?\^[^*|$]*/"?$`)},
	{"Revisions", 2, func(f *search.Facets) *[]search.FacetValue { return &f.Revisions }, func(v string) string { return "rev:" + valueOf(v) }, regexp.MustCompile(`^rev:[^*{]+$`)},
}

// facetsOf returns the facets of found files, each with at most maxRows values, the most frequent
// first. Counts that are not exact are left out: they are those of one page.
func facetsOf(found *search.Facets, b layout.Box, maxRows int) []facet {
	var out []facet
	for _, k := range facetKinds {
		if f := facetOf(k, *k.valuesOf(found), found.Exact, b, maxRows); len(f.Rows) >= k.minValues {
			out = append(out, f)
		}
	}
	return out
}

// choice has the chosen values of a facet, as the query's filters, and the query without them.
type choice struct {
	filters []string
	rest    string
}

// chosen returns the chosen values of a kind in a query: those of its first filter, or of its first
// group of filters as toggled writes it.
func (k *facetKind) chosen(q string) choice {
	tokens := tokensOf(q)
	for i, t := range tokens {
		filters := []string{t.text}
		if group, ok := strings.CutPrefix(t.text, "("); ok && t.filter == "" {
			filters = strings.Split(strings.TrimSuffix(group, ")"), " or ")
		}
		if t.not || slices.ContainsFunc(filters, func(f string) bool { return !k.wrote.MatchString(f) || len(tokensOf(f)) != 1 }) {
			continue
		}
		return choice{filters, without(q, tokens, i)}
	}
	return choice{rest: q}
}

// toggled returns the query of a choice with one more filter, or without it if it was chosen.
func (c choice) toggled(filter string) string {
	filters := slices.DeleteFunc(slices.Clone(c.filters), func(f string) bool { return f == filter })
	if len(filters) == len(c.filters) {
		filters = append(filters, filter)
	}
	rest := grouped(c.rest)
	switch len(filters) {
	case 0:
		return c.rest
	case 1:
		return strings.TrimSpace(filters[0] + " " + rest)
	}
	return strings.TrimSpace("(" + strings.Join(filters, " or ") + ") " + rest)
}

// facetOf returns the facet of a kind. It shows the first maxRows of the counted values.
func facetOf(k facetKind, values []search.FacetValue, exact bool, b layout.Box, maxRows int) facet {
	f := facet{Name: k.name, More: max(0, len(values)-maxRows)}
	c := k.chosen(b.Query)
	for _, v := range values[:min(len(values), maxRows)] {
		filter := k.filter(v.Value)
		row := facetRow{Value: v.Value, Chosen: slices.Contains(c.filters, filter)}
		if exact {
			row.Count = grouping(v.Files)
		}

		// Each row has a query with the value, and one without it.
		with, without := b, b
		with.Query = c.toggled(filter)
		without.Query = "-" + filter + " " + grouped(b.Query)
		if row.Chosen {
			without.Query = strings.TrimSpace("-" + filter + " " + grouped(c.rest))
		}
		row.Include, row.Exclude = searchURL(with, 0), searchURL(without, 0)
		f.Rows = append(f.Rows, row)
	}
	return f
}

// milliseconds formats a duration for display.
func milliseconds(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < 10*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return d.Round(time.Second).String()
}

// sizeOf formats a number of bytes for display.
func sizeOf(n int64) string { return layout.Size(n) }
