package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// An incomplete answer is explained by its most serious reason. For example, a higher limit does
// not help if a repository is not indexed.
func TestSearchCommand_explainsAnIncompleteAnswerByItsWorstReason(t *testing.T) {
	t.Parallel()
	var many []string
	for range maxMissing {
		many = append(many, `"local/b"`)
	}

	for _, c := range []struct{ answer, want, count string }{
		{`"isSearchExhaustive": true`, "", ""},
		{`"stats": {"flushReason": "limit"}`, "a limit was reached", ""},
		{`"stats": {"flushReason": "timeout"}`, "time ran out", "time ran out"},
		{`"stats": {"flushReason": "symbols_unavailable"}`, "symbols of some files", "symbols of some files"},
		{`"stats": {"flushReason": "final"}, "cluster": {"reposMissing": ["local/a\u001b"]}`, "1 repository could not be searched: local/a\uFFFD; ", "1 repository could not be searched"},
		{`"stats": {"flushReason": "limit"}, "cluster": {"reposMissing": ["local/a", "local/b"]}`, "2 repositories could not be searched: local/a, local/b; ", "2 repositories"},
		{`"stats": {"flushReason": "limit"}, "cluster": {"reposMissing": [` + strings.Join(many, ",") + `]}`, "20 repositories or more could not be searched", "20 repositories or more"},
		{`"stats": {"flushReason": "shards_unavailable", "shardsRequired": 3, "shardsAnswered": 2}`, "1 of 3 shards did not answer", "1 of 3 shards did not answer"},
		{
			`"stats": {"flushReason": "timeout", "shardsRequired": 3, "shardsAnswered": 1}, "cluster": {"reposMissing": ["local/a"]}`,
			"2 of 3 shards did not answer; it lacks, in whole or in part, local/a", "2 of 3 shards",
		},
	} {
		var a searchAnswer
		if err := json.Unmarshal([]byte("{"+c.answer+"}"), &a); err != nil {
			t.Fatal(err)
		}
		if got := a.incompleteReason(false); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.answer, got, c.want)
		}
		if got := a.incompleteReason(true); !strings.HasPrefix(got, c.count) || c.count == "" && got != "" {
			t.Errorf("%s, as a count: %q, want %q", c.answer, got, c.count)
		}
	}
}
