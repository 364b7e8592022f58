package browse

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
)

// Limits of the last commits of a directory.
const (
	lastText = 200 // bytes of a commit's first line, and of an author's name
	lastMost = MaxEntries
)

// LastCommitsRequest asks for the last commit of each entry of a directory.
type LastCommitsRequest struct {
	Repo string
	Ref  string
	Path string // of the directory; "" is the root
}

// LastCommitsResponse has the last commit of each entry of a directory. Directories come before
// files, each by name.
type LastCommitsResponse struct {
	Commit  string                `json:"commit"` // that Ref names
	Entries []LastEntry           `json:"entries"`
	Commits map[string]LastCommit `json:"commits"`     // by hash
	Cut     bool                  `json:"isTruncated"` // the directory has more entries
}

// LastEntry is an entry and its last commit. Either Hash or From is set.
type LastEntry struct {
	Name string `json:"name"`
	Hash string `json:"hash,omitzero"`
	From string `json:"from,omitzero"` // not found in time: send this commit as Ref to continue
}

// LastCommit is the last commit of some entry.
type LastCommit struct {
	Hash       string    `json:"hash"`
	Date       time.Time `json:"date"`       // the author's
	Message    string    `json:"message"`    // first line, up to 200 bytes
	AuthorName string    `json:"authorName"` // up to 200 bytes
}

// LastCommits returns the last commit of each entry of a directory, as far as changeTime allows.
func (b *Browser) LastCommits(ctx context.Context, v catalog.Viewer, req LastCommitsRequest) (*LastCommitsResponse, error) {
	return route(ctx, b, v, req.Repo, lastCommitsOperation, req)
}

var lastCommitsOperation = operation[LastCommitsRequest, LastCommitsResponse]{name: "last_commits", run: answerLastCommits, heavy: true}

// answerLastCommits returns the last commit of each entry; each commit is listed once.
func answerLastCommits(ctx context.Context, s *site, req LastCommitsRequest) (*LastCommitsResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	req.Path = s.pathOf(ctx, commit, req.Path)
	last, err := s.mirror.Last(ctx, git.LastQuery{Commit: commit, Path: req.Path, Max: lastMost, Time: changeTime})
	if err != nil {
		return nil, s.explainError(ctx, err, commit, req.Path)
	}

	people, err := s.mailmap(ctx, false)
	if err != nil {
		return nil, err
	}
	out := &LastCommitsResponse{
		Commit:  commit,
		Entries: make([]LastEntry, len(last.Entries)),
		Commits: make(map[string]LastCommit, len(last.Commits)),
		Cut:     last.Cut,
	}
	for i, e := range last.Entries {
		out.Entries[i] = LastEntry{Name: e.Name, Hash: e.Commit, From: e.From}
	}

	// Shorten the texts: a directory may have ten thousand commits.
	for hash, c := range last.Commits {
		name, _ := people.Author(c.AuthorName, c.AuthorEmail)
		out.Commits[hash] = LastCommit{
			Hash:       hash,
			Date:       c.AuthorTime,
			Message:    Beginning(c.Subject, lastText),
			AuthorName: Beginning(name, lastText),
		}
	}
	return out, nil
}

// Beginning shortens a text to at most maxBytes, with "…" at the cut.
func Beginning(text string, maxBytes int) string {
	const sign = "…"
	if len(text) <= maxBytes {
		return text
	}

	return strings.TrimRight(WholeLetters(text, maxBytes-len(sign)), " ") + sign
}

// WholeLetters returns the first bytes of a text, at most maxBytes, without cutting a UTF-8
// character. Text that is not UTF-8 is cut at the limit.
func WholeLetters(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}

	end := maxBytes
	for end > 0 && end > maxBytes-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
