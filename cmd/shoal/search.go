package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	language "github.com/shoalsearch/shoal/shard/query"
)

// searchAnswer has the parts of an answer to POST /api/search that the command uses.
type searchAnswer struct {
	Stats      search.Stats       `json:"stats"`
	Files      []fileAnswer       `json:"files"`
	Repos      []repoName         `json:"repositoryInfo"`
	Exhaustive bool               `json:"isSearchExhaustive"`
	Gaps       []coverage.Gap     `json:"notSearched"`
	Cluster    search.ClusterInfo `json:"cluster"`
	Past       []search.PastRepo  `json:"past"`
	Hints      []string           `json:"hints"`
}

// commitText returns a line about a repository that was read from git at a commit.
func commitText(p search.PastRepo) string {
	text := fmt.Sprintf("%s at %.10s of %s: %s read from git",
		p.Repository, p.Commit, p.Time.Format(time.DateOnly), catalog.Counted(p.Read, "file", "files"))
	if p.Beside != "" {
		text += ", the others searched in the index of " + p.Beside
	}
	return text
}

type repoName struct{ Name string }

type fileAnswer struct {
	FileName   struct{ Text string } `json:"fileName"`
	Repository string                `json:"repository"`
	Chunks     []chunkAnswer         `json:"chunks"`
}

type chunkAnswer struct {
	Content      string
	MatchRanges  []struct{ Start, End positionAnswer }
	ContentStart positionAnswer
	Cut          struct{ Before, After int } // bytes cut from overlong lines
}

type positionAnswer struct{ ByteOffset, LineNumber, Column int }

type searchFlags struct {
	regex, caseSensitive, asJSON, filesOnly, count bool
	context, matches                               int
	color                                          string
}

func newSearch(getenv func(string) string) *cobra.Command {
	var f searchFlags
	cmd := clientCommand(getenv, naming{}, &cobra.Command{
		Use:   "search QUERY",
		Short: "Search from the terminal",
		Long: `Search from the terminal. Lines come as repository:path:line:text, like grep -n; a path with line breaks
or other control characters is quoted, like git's.
Exit status: 0 when something was found, 1 when nothing was, 2 on an error.

  shoal search 'func main lang:go'
  shoal search -e 'err(or)? != nil' -C 2
  shoal search 'sym:NewServer repo:shoal'
  shoal search 'repo:shoal at:2026-01-31 raft'
  shoal search 'type:diff removed:deprecated since:2026-01'
  shoal search 'type:commit author:ann fix'`,
		Args: cobra.MinimumNArgs(1),
	}, f.run)

	fs := cmd.Flags()
	fs.BoolVarP(&f.regex, "regexp", "e", false, "terms are regular expressions (RE2)")
	fs.BoolVarP(&f.caseSensitive, "case-sensitive", "s", false, "letters match only in the same case")
	fs.IntVarP(&f.context, "context", "C", 0, "lines around each match, 0..100")
	fs.IntVarP(&f.matches, "matches", "m", 1000, "most matches to show, 1..1000000")
	fs.BoolVarP(&f.filesOnly, "files-with-matches", "l", false, "only names of files")
	fs.BoolVarP(&f.count, "count", "c", false, "only the numbers of all matches and files")
	fs.BoolVar(&f.asJSON, "json", false, "the answer of the API as it is")
	fs.StringVar(&f.color, "color", "auto", "auto, always or never")
	return cmd
}

// run runs the search and prints its results. It returns exit code 1 if there are none.
func (f *searchFlags) run(cmd *cobra.Command, c *client, args []string) error {
	query := strings.Join(args, " ")
	if strings.TrimSpace(query) == "" {
		return errors.New("the query is empty: give a word, an expression or a filter, as in `shoal search 'file:\\.go$'`")
	}

	matches := f.matches
	if f.onlyCount() { // count all matches, but request as few lines as possible
		query, matches = query+" count:all", 1
	}

	if q, err := language.Parse(query, language.Options{Regexp: f.regex, CaseSensitive: f.caseSensitive}); err == nil && q.Type.Changes() {
		return f.searchCommits(cmd, c, query)
	}

	began := time.Now()
	var raw json.RawMessage

	err := c.call(cmd.Context(), "POST", "/api/search", map[string]any{
		"query": query, "matches": matches, "contextLines": f.context,
		"isRegexEnabled": f.regex, "isCaseSensitivityEnabled": f.caseSensitive,
	}, &raw)
	if err != nil {
		return err
	}

	took := time.Since(began)

	var answer searchAnswer
	if err := reply.Decode(raw, &answer); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}

	out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
	if err := f.printAnswer(out, raw, &answer); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}

	// Print the summary to standard error, so that a pipe gets the results only.
	f.printSummary(cmd.ErrOrStderr(), &answer, took)
	if len(answer.Files) == 0 && len(answer.onlyRepos()) == 0 {
		return exitCode(1)
	}
	return nil
}

// onlyRepos returns the repositories of an answer without files, as that to type:repo.
func (a *searchAnswer) onlyRepos() []repoName {
	if len(a.Files) > 0 {
		return nil
	}
	return a.Repos
}

// onlyCount reports whether the command prints counts only. These cover all matches, whatever --matches
// says.
func (f *searchFlags) onlyCount() bool { return f.count && !f.asJSON }

// printAnswer prints the results in the form that the flags ask for. raw is the answer as JSON.
func (f *searchFlags) printAnswer(out *bufio.Writer, raw json.RawMessage, answer *searchAnswer) error {
	p, err := f.newPrinter(out)
	if err != nil {
		return err
	}

	switch {
	case f.asJSON:
		_, err := fmt.Fprintf(out, "%s\n", raw)
		return err
	case f.count && len(answer.onlyRepos()) > 0:
		_, err := fmt.Fprintln(out, catalog.Counted(answer.Stats.TotalMatches, "repository", "repositories"))
		return err
	case f.count:
		_, err := fmt.Fprintf(out, "%s in %s\n",
			catalog.Counted(answer.Stats.TotalMatches, "match", "matches"), catalog.Counted(answer.Stats.Files, "file", "files"))
		return err
	}

	for _, r := range answer.onlyRepos() {
		p.paint(colorName, p.sanitize(r.Name))
		out.WriteByte('\n')
	}

	// A file that matches by its name only has no lines.
	for i := range answer.Files {
		if f.filesOnly || len(answer.Files[i].Chunks) == 0 {
			p.printName(&answer.Files[i])
			out.WriteByte('\n')
			continue
		}
		p.printFile(&answer.Files[i], f.context > 0)
	}
	return nil
}

// printSummary prints notes, such as why the answer is incomplete, and on a terminal the counts.
func (f *searchFlags) printSummary(w io.Writer, a *searchAnswer, took time.Duration) {
	for _, p := range a.Past {
		fmt.Fprintln(w, "shoal:", commitText(p))
	}
	for _, hint := range a.Hints {
		fmt.Fprintf(w, "shoal: %s\n", hint)
	}

	if rev := a.Stats.UnknownRevision; rev != "" && a.Exhaustive {
		fmt.Fprintf(w, "shoal: no repository of this query has the revision %q\n", rev)
	}

	if why := a.incompleteReason(f.onlyCount()); why != "" {
		fmt.Fprintf(w, "shoal: not everything is shown: %s\n", why)
	}

	if isTerminal(os.Stdout) && !f.asJSON && !f.count {
		fmt.Fprintf(w, "%s in %s of %s, %v\n",
			catalog.Counted(a.Stats.ActualMatches, "match", "matches"), catalog.Counted(len(a.Files), "file", "files"),
			catalog.Counted(len(a.Repos), "repository", "repositories"), took.Round(time.Microsecond*100))
	}
}

// incompleteReason returns the worst reason why an answer is incomplete; "" if it is complete. countsOnly
// means that the command prints counts only.
func (a *searchAnswer) incompleteReason(countsOnly bool) string {
	missing := len(a.Cluster.ReposMissing)
	names := replaceHidden(strings.Join(a.Cluster.ReposMissing, ", "))

	// A shard that did not answer is worse than a limit, which the user can raise.
	silent := a.Stats.ShardsRequired - a.Stats.ShardsAnswered
	switch {
	case a.Exhaustive:
		return ""
	case silent > 0 && missing > 0:
		return fmt.Sprintf("%d of %s did not answer; it lacks, in whole or in part, %s", silent, catalog.Counted(a.Stats.ShardsRequired, "shard", "shards"), names)
	case silent > 0:
		return fmt.Sprintf("%d of %s did not answer", silent, catalog.Counted(a.Stats.ShardsRequired, "shard", "shards"))

	case a.Stats.FlushReason == "timeout":
		return "time ran out; narrow the query"
	case missing == maxMissing:
		return fmt.Sprintf("%d repositories or more could not be searched, as %s; shoal status has why", missing, names)
	case missing > 0:
		return fmt.Sprintf("%s could not be searched: %s; shoal status has why", catalog.Counted(missing, "repository", "repositories"), names)
	case a.Stats.FlushReason == "symbols_unavailable":
		return "symbols of some files are not known: they come after the text, and without ctags on the nodes not at all"

	case a.missingRevision() != "":
		return a.missingRevision()

	case countsOnly: // counts have no limit
		return ""
	}
	return "a limit was reached; raise it with --matches or narrow the query"
}

// missingRevision says in how many repositories the revision was not searched; "" for none.
func (a *searchAnswer) missingRevision() string {
	for _, g := range a.Gaps {
		if g.Ref != "" {
			return fmt.Sprintf("the revision %q is not indexed in %d of %s; name at most 8 with repo: to search it in git", g.Ref, g.Count, catalog.Counted(g.Of, "repository", "repositories"))
		}
	}
	return ""
}

// maxMissing is how many missing repositories a node names at most.
const maxMissing = 20
