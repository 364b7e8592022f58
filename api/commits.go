package api

import (
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/change"
)

// The JSON of a search of commits, field for field.

type commitsJSON struct {
	Commits    []foundCommitJSON `json:"commits"`
	Total      int               `json:"totalCount"` // commits, or files with type:diff
	Exhaustive bool              `json:"isSearchExhaustive"`
	Named      int               `json:"filesNotSearched"`
	Uncovered  []uncoveredJSON   `json:"uncovered"`
	Gaps       []coverage.Gap    `json:"notSearched,omitempty"`
	Hints      []string          `json:"hints,omitempty"`
	Took       time.Duration     `json:"duration,format:nano"`
}

type foundCommitJSON struct {
	Repository   string           `json:"repository"`
	RepositoryID uint32           `json:"repositoryId"`
	Commit       string           `json:"commit"`
	Parents      int              `json:"parents"`
	Author       string           `json:"author"`
	AuthoredAt   time.Time        `json:"authoredAt"`
	Committer    string           `json:"committer"`
	CommittedAt  time.Time        `json:"committedAt"`
	Message      string           `json:"message"`
	WebURL       string           `json:"webUrl"`
	Files        []commitFileJSON `json:"files"`
	MoreFiles    int              `json:"moreFiles"`
}

type commitFileJSON struct {
	Path      string     `json:"path"`
	OldPath   string     `json:"oldPath,omitempty"`
	Status    string     `json:"status"`
	Language  string     `json:"language"`
	Kept      string     `json:"keptByName,omitempty"` // binary or huge: its lines were not searched
	Added     int        `json:"added"`
	Removed   int        `json:"removed"`
	Hunks     []hunkJSON `json:"hunks"`
	MoreHunks int        `json:"moreHunks"`
}

type uncoveredJSON struct {
	Repository string `json:"repository"`
	Why        string `json:"why"`
}

// commits is POST /api/search_commits.
func (a *searchRoutes) commits(ctx context.Context, c *call) error {
	f, err := decodeBody(c.requestBody())
	if err != nil {
		return err
	}
	req := search.Request{
		Query:         f.required("query"),
		Matches:       f.integer("matches", 1, search.MaxCommits),
		Regexp:        f.flag("isRegexEnabled"),
		CaseSensitive: f.flag("isCaseSensitivityEnabled"),
	}
	c.sought = req.Query
	if err := f.err(); err != nil {
		return err
	}
	found, err := a.searcher.SearchCommits(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	out := commitsJSON{
		Commits: []foundCommitJSON{}, Total: found.Total, Exhaustive: found.Coverage.Exhaustive(), Named: found.Named,
		Uncovered: []uncoveredJSON{}, Gaps: found.Coverage.Gaps(), Hints: found.Hints, Took: found.Took,
	}
	for i := range found.Commits {
		out.Commits = append(out.Commits, commitJSONOf(&found.Commits[i]))
	}
	for _, u := range found.Uncovered {
		out.Uncovered = append(out.Uncovered, uncoveredJSON(u))
	}
	return c.json(out)
}

func commitJSONOf(x *search.FoundCommit) foundCommitJSON {
	out := foundCommitJSON{
		Repository: x.Repository, RepositoryID: x.RepoID, Commit: x.ID, Parents: x.Parents,
		Author: inUTF8(x.Author), AuthoredAt: x.AuthorTime, Committer: inUTF8(x.Committer), CommittedAt: x.CommitTime,
		Message: inUTF8(x.Message), WebURL: x.WebURL, Files: []commitFileJSON{}, MoreFiles: x.MoreFiles,
	}
	for i := range x.Files {
		out.Files = append(out.Files, commitFileJSONOf(&x.Files[i]))
	}
	return out
}

// statusNames are what git's letters mean.
var statusNames = map[byte]string{'A': "added", 'M': "modified", 'D': "deleted", 'R': "renamed"}

func commitFileJSONOf(x *change.FileMatch) commitFileJSON {
	out := commitFileJSON{
		Path: inUTF8(x.Path), OldPath: inUTF8(x.From), Status: statusNames[x.Status], Language: x.Language,
		Added: x.Added, Removed: x.Removed, Hunks: []hunkJSON{}, MoreHunks: x.MoreHunks,
	}
	switch {
	case x.Binary:
		out.Kept = "binary"
	case x.Huge:
		out.Kept = "huge"
	}
	for _, h := range x.Hunks {
		out.Hunks = append(out.Hunks, hunkJSON{
			OldRange: linesJSON{h.Old.Start, h.Old.Lines}, NewRange: linesJSON{h.New.Start, h.New.Lines}, Body: inUTF8(string(h.Body)),
		})
	}
	return out
}

// inUTF8 is a text with a replacement character for each byte that is no UTF-8.
func inUTF8(s string) string {
	if strings.ToValidUTF8(s, "") == s {
		return s
	}
	return string([]rune(s))
}
