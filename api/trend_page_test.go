package api

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/shard/change"
)

// The chart of a search has at each date what a search at that date counts: also where branches were
// merged and files moved, over any number of repositories, and without an index of changes. Commits
// are counted by month.
func TestTrend_equalsASearchAtEachDate(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now().UTC()
	back := func(months int) time.Time {
		return time.Date(now.Year(), now.Month()-time.Month(months), 10, 12, 0, 0, 0, time.UTC)
	}
	r := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"README.md": "nothing\n"})
	r.CommitAs("Ann", back(7), "begin", map[string]string{"a.txt": "kraken\nkraken\n"})
	r.Git("checkout", "-q", "-b", "side")
	r.CommitAs("Ann", back(6), "aside", map[string]string{"b.txt": "kraken whale\nkraken\nkraken\n"})
	r.Git("checkout", "-q", "main")
	r.CommitAs("Bob", back(5), "less", map[string]string{"a.txt": "kraken\n"})
	r.Git("merge", "-q", "--no-ff", "-m", "merge", "side")
	r.Git("mv", "b.txt", "moved.txt")
	r.CommitAs("Bob", back(0).AddDate(0, 0, -20), "move", map[string]string{"utf16.txt": "\xff\xfek\x00r\x00a\x00k\x00e\x00n\x00\n\x00"})
	for i := range 9 {
		lib := nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprint("lib", i)), map[string]string{"a.go": strings.Repeat("kraken\n", i)})
		lib.CommitAs("Ann", back(1+i%3), "more", map[string]string{"b.go": "kraken\n"})
	}
	for name, bound := range map[string]change.Bound{"indexed": {All: true}, "not indexed": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := nodetest.Start(t, nodetest.Config{
				File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir),
				Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
				Edit: func(o *node.Options) { o.History = bound },
			})
			n.WaitIndexed(10)
			if !bound.Off() {
				n.WaitHistory()
			}
			c := &chart{t, start(t, partsOf(n.Node))}
			for _, query := range []string{"repo:app kraken", "repo:app kraken whale", "repo:app kraken file:b", "repo:app (kraken or whale)", "repo:app -whale kraken"} {
				c.compare(query, "month", []string{query})
			}
			c.compare("repo:app kraken", "week", []string{"repo:app kraken"})
			parts := []string{"repo:app kraken"}
			for i := range 9 {
				parts = append(parts, fmt.Sprintf("repo:lib%d kraken", i))
			}
			c.compare("kraken", "month", parts)
			if bound.Off() {
				return
			}

			// Of commits the month counts in which they were made.
			counts := map[string]string{}
			for _, row := range c.rows("repo:app type:diff kraken", "month") {
				counts[row[0]] = row[1]
			}
			for _, months := range []int{7, 6, 5} {
				if month := back(months).Format("2006-01"); counts[month] != "1" {
					t.Errorf("%s: %q", month, counts[month])
				}
			}
		})
	}
}

// chart reads the charts of a node.
type chart struct {
	t *testing.T
	s *Server
}

// rows returns the table of a chart.
func (c *chart) rows(query, by string) [][]string {
	c.t.Helper()
	resp, body := askAs(c.t, c.s, "", "GET", "/search?csv=1&trend="+by+"&query="+url.QueryEscape(query), "")
	rows, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
	if err != nil || resp.StatusCode != 200 || len(rows) < 2 {
		c.t.Fatalf("%s: %d %s", query, resp.StatusCode, body)
	}
	return rows[1:]
}

// compare holds a chart to searches at its dates: the sum of some parts, each of one repository.
func (c *chart) compare(query, by string, parts []string) {
	c.t.Helper()
	most := 0
	for i, row := range c.rows(query, by) {
		sum := 0
		for _, part := range parts {
			dated := "count:all at:" + row[0] + " " + part
			if i == 11 {
				dated = "count:all " + part
			}
			_, body := askAs(c.t, c.s, "", "POST", "/api/search", fmt.Sprintf(`{"query":%q,"matches":1}`, dated))
			var answer struct {
				Stats struct {
					Total int `json:"totalMatchCount"`
				}
			}
			if err := json.Unmarshal(body, &answer); err != nil {
				c.t.Fatal(err)
			}
			sum += answer.Stats.Total
		}
		if row[1] != strconv.Itoa(sum) || row[2] != "true" {
			c.t.Errorf("%s by %s: %v, and searches at that date count %d", query, by, row, sum)
		}
		most = max(most, sum)
	}
	if most == 0 {
		c.t.Errorf("%s: nothing was counted", query)
	}
}
