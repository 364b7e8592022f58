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

// The chart of a search has at each date what a search at that date counts, also where branches were
// merged. Commits are counted by month.
func TestTrend_equalsASearchAtEachDate(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now().UTC()
	back := func(months int) time.Time {
		return time.Date(now.Year(), now.Month()-time.Month(months), 10, 12, 0, 0, 0, time.UTC)
	}
	r := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"README.md": "nothing\n"})
	r.CommitAs("Ann", back(7), "begin", map[string]string{"a.txt": "kraken\nkraken\n"})
	r.Git("checkout", "-q", "-b", "side")
	r.CommitAs("Ann", back(6), "aside", map[string]string{"b.txt": "kraken\nkraken\nkraken\n"})
	r.Git("checkout", "-q", "main")
	r.CommitAs("Bob", back(5), "less", map[string]string{"a.txt": "kraken\n"})
	r.Git("merge", "-q", "--no-ff", "-m", "merge", "side")
	n := nodetest.Start(t, nodetest.Config{
		File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir),
		Env:  map[string]string{"FORCE_ENABLE_ANONYMOUS_ACCESS": "true"},
		Edit: func(o *node.Options) { o.History = change.Bound{All: true} },
	})
	n.WaitIndexed(1)
	n.WaitHistory()
	s := start(t, partsOf(n.Node))
	rows := func(query, by string) [][]string {
		t.Helper()
		resp, body := askAs(t, s, "", "GET", "/search?csv=1&trend="+by+"&query="+url.QueryEscape(query), "")
		rows, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
		if err != nil || resp.StatusCode != 200 || len(rows) < 2 {
			t.Fatalf("%s: %d %s", query, resp.StatusCode, body)
		}
		return rows[1:]
	}

	for _, by := range []string{"month", "week"} {
		for i, row := range rows("kraken", by) {
			query := "count:all at:" + row[0] + " kraken"
			if i == 11 {
				query = "count:all kraken"
			}
			_, body := askAs(t, s, "", "POST", "/api/search", fmt.Sprintf(`{"query":%q,"matches":1}`, query))
			var answer struct {
				Stats struct {
					Total int `json:"totalMatchCount"`
				}
			}
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatal(err)
			}
			if row[1] != strconv.Itoa(answer.Stats.Total) || row[2] != "true" {
				t.Errorf("by %s: %v, and a search at that date counts %d", by, row, answer.Stats.Total)
			}
		}
	}

	// Of commits the month counts in which they were made.
	counts := map[string]string{}
	for _, row := range rows("type:diff kraken", "month") {
		counts[row[0]] = row[1]
	}
	for _, months := range []int{7, 6, 5} {
		if month := back(months).Format("2006-01"); counts[month] != "1" {
			t.Errorf("%s: %q", month, counts[month])
		}
	}
}
