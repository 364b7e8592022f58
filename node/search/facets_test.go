package search

import (
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// Each value of a property counts its files, and the most frequent value comes first. The counts
// are exact only if the answer has every file.
func TestFacetCounts_areExactOnlyIfTheAnswerHasEveryFile(t *testing.T) {
	t.Parallel()
	resp := &Response{Coverage: coverage.Of(coverage.Parts, 1, 1), Files: []File{
		{Repository: "b", Path: "top.go", Language: "Go", Branches: []string{"HEAD"}},
		{Repository: "a", Path: "cmd/a/main.go", Language: "Go", Branches: []string{"HEAD", "refs/heads/main", "refs/tags/v1"}},
		{Repository: "a", Path: "cmd/b/main.c", Language: "C", Branches: []string{"refs/heads/main"}},
		{Repository: "b", Path: "api/odd", Branches: []string{"HEAD"}},
	}}
	resp.Stats = Stats{Stats: shard.Stats{Files: 4}}

	got := resp.CountFiles()
	for _, c := range []struct {
		name string
		got  []FacetValue
		want []FacetValue
	}{
		{"repositories", got.Repositories, []FacetValue{{"a", 2}, {"b", 2}}},
		{"languages", got.Languages, []FacetValue{{"Go", 2}, {"C", 1}}},
		{"paths", got.Paths, []FacetValue{{"cmd/", 2}, {"api/", 1}}},
		{"revisions", got.Revisions, []FacetValue{{"HEAD", 2}, {"main", 2}, {"v1", 1}}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if !got.Exact {
		t.Error("an answer with every file is not exact")
	}

	resp.Stats.Files = 5
	if resp.CountFiles().Exact {
		t.Error("an answer that lacks a file is exact")
	}
	if resp.Stats.Files, resp.Coverage = 4, (coverage.Coverage{}); resp.CountFiles().Exact {
		t.Error("an answer that is not exhaustive is exact")
	}
}

// Counting lists every file, whatever the query says about its answer, but keeps the query's
// timeout.
func TestFacetCountQuery_listsEveryFile(t *testing.T) {
	t.Parallel()
	for text, timeout := range map[string]string{"x count:1 type:repo": "10s", "x timeout:2s": "2s", "x or": "10s"} {
		q, err := query.Parse(text, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		before := q.Q.String()
		countEveryFile(q)
		if q.Type != query.FileType || q.Count != query.CountAll || q.Timeout.String() != timeout || q.Q.String() != before {
			t.Errorf("%s: type %d, count %d, timeout %v, %v", text, q.Type, q.Count, q.Timeout, q.Q)
		}
	}
}
