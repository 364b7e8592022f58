package browse

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard/git"
)

// The bounds of what is told of the last changes in a directory.
const (
	lastText = 200 // bytes of the first line of a commit, and of a name
	lastMost = MaxEntries
)

// LastCommitsRequest asks which commit changed each entry of a directory last.
type LastCommitsRequest struct {
	Repo string
	Ref  string
	Path string // of the directory; "" is the root
}

// LastCommitsResponse is the last commits of the entries of a directory, in the order
// of a listing: directories before files, each by name.
type LastCommitsResponse struct {
	Commit  string                `json:"commit"` // of Ref
	Entries []LastEntry           `json:"entries"`
	Commits map[string]LastCommit `json:"commits"`     // by hash
	Cut     bool                  `json:"isTruncated"` // the directory has more entries
}

// LastEntry is an entry and the commit that changed it last. One of Hash and From is
// set.
type LastEntry struct {
	Name string `json:"name"`
	Hash string `json:"hash,omitzero"`
	From string `json:"from,omitzero"` // where it was not found in time: the commit as Ref by which the next request goes on
}

// LastCommit is a commit of a directory.
type LastCommit struct {
	Hash       string    `json:"hash"`
	Date       time.Time `json:"date"`       // the author's
	Message    string    `json:"message"`    // first line, up to 200 bytes
	AuthorName string    `json:"authorName"` // likewise
}

// LastCommits finds the last commit of each entry of a directory, within a time.
func (b *Browser) LastCommits(ctx context.Context, v catalog.Viewer, req LastCommitsRequest) (*LastCommitsResponse, error) {
	return route(ctx, b, v, req.Repo, lastCommitsOperation, req)
}

var lastCommitsOperation = operation[LastCommitsRequest, LastCommitsResponse]{name: "last_commits", run: answerLastCommits, heavy: true}

// answerLastCommits tells of each entry the commit that changed it last, and each commit once.
func answerLastCommits(ctx context.Context, s *site, req LastCommitsRequest) (*LastCommitsResponse, error) {
	commit, err := s.resolve(ctx, req.Ref)
	if err != nil {
		return nil, err
	}

	req.Path = s.pathOf(ctx, commit, req.Path)
	last, err := s.mirror.Last(ctx, git.LastQuery{Commit: commit, Path: req.Path, Max: lastMost, Time: changeTime})
	if err != nil {
		return nil, s.explain(ctx, err, commit, req.Path)
	}

	people, err := s.people(ctx, false)
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

	// A directory may have ten thousand of them, and a first line any length.
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

// Beginning is a text of at most so many bytes, with a sign where it goes on.
func Beginning(text string, most int) string {
	const sign = "…"
	if len(text) <= most {
		return text
	}

	return strings.TrimRight(WholeLetters(text, most-len(sign)), " ") + sign
}

// WholeLetters is the first bytes of a text, at most so many, without a part of a
// letter. What is no UTF-8 has no letters to keep whole: it is cut where it is.
func WholeLetters(text string, most int) string {
	if len(text) <= most {
		return text
	}

	end := most
	for end > 0 && end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
