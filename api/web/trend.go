package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
)

var trendTemplate = layout.Parse(templates, "templates/trend.html")

const (
	trendPoints  = 12  // dates at which files are searched
	trendMonths  = 60  // months of commits that are shown
	trendHeight  = 100 // of the chart, which its page stretches
	trendSpacing = 10  // between the left sides of two bars
)

// trendSpans has the choices of the span between two dates, with their value in an address. end returns
// the end of the span that is back spans before that of now.
var trendSpans = []struct {
	value, name string
	end         func(now time.Time, back int) time.Time
}{
	{"month", "by month", func(now time.Time, back int) time.Time {
		return time.Date(now.Year(), now.Month()-time.Month(back)+1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second)
	}},
	{"year", "by year", func(now time.Time, back int) time.Time {
		return time.Date(now.Year()-back+1, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second)
	}},
	{"week", "by week", func(now time.Time, back int) time.Time {
		monday := time.Date(now.Year(), now.Month(), now.Day()-(int(now.Weekday())+6)%7, 0, 0, 0, 0, time.UTC)
		return monday.AddDate(0, 0, 7*(1-back)).Add(-time.Second)
	}},
}

// trend is the data of the page of a search over time: the number of matches at the end of each span, or
// the number of matching commits in each month.
type trend struct {
	layout.Box
	Trouble     *trouble
	Title       string
	Exact       bool
	Text        string // what is counted, and whether exactly
	Row, Column string // heads of the table
	Spans       []view
	CSV, Back   string // addresses of the table as a file, and of the search
	Points      []trendPoint
	Wide        int    // width of the chart
	Most        string // the largest count
	First, Last string
}

// trendPoint is the count of one date or month.
type trendPoint struct {
	Name, Count, URL string
	Exact            bool
	X, Y, Height     int // of its bar in the chart

	count int
}

// trend shows a search over time, or sends its table as a file.
func (p *searching) trend(ctx context.Context, v *layout.Visit, box layout.Box) error {
	t := &trend{Box: box, Exact: true, Back: searchURL(box, 0)}
	t.CSV = t.Back + "&trend=" + v.Query.Get("trend") + "&csv=1"
	addPoints := p.datedMatches
	if changeQuery.MatchString(box.Query) {
		addPoints = p.datedCommits
	}
	if err := addPoints(ctx, v.Viewer, t, v.Query.Get("trend")); err != nil {
		return (&results{Box: box}).refuse(v, err)
	}
	if v.Query.Get("csv") == "1" {
		v.Mime, v.Body = "text/csv; charset=utf-8", t.csv()
		v.Set("Content-Disposition", `attachment; filename="trend.csv"`)
		return nil
	}
	t.draw()
	return v.Show(layout.Head{Title: box.Query, Page: "trend", Box: box, Scripts: []string{"js/search.js"}}, trendTemplate, t)
}

// datedMatches adds a point for the end of each span of the kind by, with the number of matches then, as
// a search with the filter at: finds them.
func (p *searching) datedMatches(ctx context.Context, v catalog.Viewer, t *trend, by string) error {
	// Month is the span unless another one is named.
	span, now := trendSpans[0], p.now().UTC()
	for _, s := range trendSpans {
		if s.value == by {
			span = s
		}
	}
	for _, s := range trendSpans {
		t.Spans = append(t.Spans, view{s.name, t.Back + "&trend=" + s.value, s.value == span.value})
	}
	t.Title, t.Row, t.Column = "Matches over time", "At the end of", "Matches"

	// Each point leads to the same search at its date.
	dates := make([]time.Time, trendPoints)
	for i := range dates {
		end := span.end(now, trendPoints-1-i)
		at := end.Format(time.DateOnly)
		dated := t.Box
		if dated.Query = "at:" + at + " " + grouped(t.Query); end.After(now) {
			dated, end = t.Box, time.Time{} // the span goes on, and HEAD is its end
		}
		dates[i] = end
		t.Points = append(t.Points, trendPoint{Name: at, URL: searchURL(dated, 0)})
	}

	found, err := p.searcher.Trend(ctx, v, search.Request{Query: t.Query, Regexp: t.Regexp, CaseSensitive: t.Case, Words: t.Whole}, dates)
	if err != nil {
		return err
	}

	for i := range t.Points {
		t.Points[i].count, t.Points[i].Exact = found.Counts[i], found.Missing == 0
	}
	t.Text = "counted exactly at each date"
	if found.Missing > 0 {
		t.Exact, t.Text = false, fmt.Sprintf("lower bounds: %d of %s could not be counted", found.Missing, counted(found.Repositories, "repository", "repositories"))
	}
	return nil
}

// datedCommits adds a point for each month from the first matching commit to the last, up to
// trendMonths, with the number of matching commits.
func (p *searching) datedCommits(ctx context.Context, v catalog.Viewer, t *trend, _ string) error {
	found, err := p.searcher.SearchCommits(ctx, v, search.Request{Query: t.Query, Regexp: t.Regexp, CaseSensitive: t.Case, Words: t.Whole, Matches: 1, Facets: true, Exact: true})
	if err != nil {
		return err
	}
	t.Title, t.Row, t.Column = "Commits over time", "In", "Commits"
	if found.Diff {
		t.Title, t.Column = "Changes over time", "Changed files"
	}

	// The facet has the months with commits, the newest first. The chart has those between too.
	counts := map[string]int{}
	for _, m := range found.Facets.Months {
		counts[m.Value] = m.Files
	}
	if len(found.Facets.Months) > 0 {
		first, last := found.Facets.Months[len(found.Facets.Months)-1].Value, found.Facets.Months[0].Value
		end, _ := time.Parse("2006-01", last)
		for back := trendMonths - 1; back >= 0; back-- {
			month := time.Date(end.Year(), end.Month()-time.Month(back), 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
			if month < first {
				continue
			}
			within := t.Box
			within.Query = "since:" + month + " until:" + month + " " + grouped(t.Query)
			t.Points = append(t.Points, trendPoint{Name: month, URL: searchURL(within, 0), Exact: found.Facets.Exact, count: counts[month]})
		}
	}

	t.Text = "counted exactly in the whole history"
	if !found.Facets.Exact {
		t.Exact, t.Text = false, "lower bounds: some commits were not searched"
	}
	return nil
}

// draw sets the bars of the chart and the texts of the counts.
func (t *trend) draw() {
	most := 1
	for _, p := range t.Points {
		most = max(most, p.count)
	}
	for i := range t.Points {
		p := &t.Points[i]
		p.Count = grouping(p.count)
		if !p.Exact {
			p.Count = "≥ " + p.Count
		}
		p.Height = (p.count*trendHeight + most - 1) / most
		p.X, p.Y = i*trendSpacing+1, trendHeight-p.Height
	}
	if n := len(t.Points); n > 0 {
		t.First, t.Last = t.Points[0].Name, t.Points[n-1].Name
	}
	t.Wide, t.Most = max(1, len(t.Points))*trendSpacing, grouping(most)
}

// csv returns the table as comma-separated values.
func (t *trend) csv() []byte {
	var b strings.Builder
	b.WriteString("date,count,exact\n")
	for _, p := range t.Points {
		fmt.Fprintf(&b, "%s,%d,%t\n", p.Name, p.count, p.Exact)
	}
	return []byte(b.String())
}
