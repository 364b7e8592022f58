package api

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/change"
)

// The JSON of a search of commits, field for field.

type commitsJSON struct {
	Commits    []foundCommitJSON  `json:"commits"`
	Total      int                `json:"totalCount"` // commits, or files with type:diff
	Exhaustive bool               `json:"isSearchExhaustive"`
	Named      int                `json:"filesNotSearched"`
	Uncovered  []search.Uncovered `json:"uncovered"`
	Gaps       []coverage.Gap     `json:"notSearched,omitempty"`
	Hints      []string           `json:"hints,omitempty"`
	Took       time.Duration      `json:"duration,format:nano"`
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
		Total: found.Total, Exhaustive: found.Coverage.Exhaustive(), Named: found.Named,
		Uncovered: found.Uncovered, Gaps: found.Coverage.Gaps(), Hints: found.Hints, Took: found.Took,
	}
	for i := range found.Commits {
		out.Commits = append(out.Commits, commitJSONOf(&found.Commits[i]))
	}
	return c.json(out)
}

func commitJSONOf(x *search.FoundCommit) foundCommitJSON {
	out := foundCommitJSON{
		Repository: x.Repository, RepositoryID: x.RepoID, Commit: x.ID, Parents: x.Parents,
		Author: x.Author, AuthoredAt: x.AuthorTime, Committer: x.Committer, CommittedAt: x.CommitTime,
		Message: x.Message, WebURL: x.WebURL, MoreFiles: x.MoreFiles,
	}
	for i := range x.Files {
		out.Files = append(out.Files, commitFileJSONOf(&x.Files[i]))
	}
	return out
}

func commitFileJSONOf(x *change.FileMatch) commitFileJSON {
	out := commitFileJSON{
		Path: x.Path, OldPath: x.From, Status: changeNames[x.Status], Language: x.Language,
		Added: x.Added, Removed: x.Removed, MoreHunks: x.MoreHunks,
	}
	switch {
	case x.Binary:
		out.Kept = "binary"
	case x.Huge:
		out.Kept = "huge"
	}
	for _, h := range x.Hunks {
		out.Hunks = append(out.Hunks, hunkJSON{
			OldRange: linesJSON{h.Old.Start, h.Old.Lines}, NewRange: linesJSON{h.New.Start, h.New.Lines}, Body: string(h.Body),
		})
	}
	return out
}
