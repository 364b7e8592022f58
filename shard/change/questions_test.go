package change

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// question is a query text, and what it means for a commit and a file of it; file is nil
// where only the commit is asked for.
type question struct {
	text  string
	files bool // it is about files
	holds func(c *said, f *saidFile) bool
	not   *question // that it negates; nil for others
}

// sampler draws questions about some commits. Most of their texts are from these commits, so most
// questions have an answer.
type sampler struct {
	rnd   *rand.Rand
	repo  string
	all   []*said
	words []string // that are looked for, too
	revs  []string // as a query names them

	toggles query.Options // of the question that is drawn
	diff    bool
}

// plainWords are texts that most histories have.
var plainWords = []string{"return", "import", "fix", "test", "the", "e", "TODO", "if (", "= nil", "Merge", "naïve", "\t", "no such text"}

func oneOf[T any](s *sampler, list []T) T { return list[s.rnd.IntN(len(list))] }

// commit returns one of the commits.
func (s *sampler) commit() *said { return oneOf(s, s.all) }

// hunk returns changed lines of a commit.
func (s *sampler) hunk() string {
	for range 20 {
		c := s.commit()
		if len(c.files) == 0 {
			continue
		}
		f := oneOf(s, c.files)
		if runs := slices.Concat(f.added, f.removed); len(runs) > 0 {
			return oneOf(s, runs)
		}
	}
	return ""
}

// piece returns a short piece of a text, of some lines at most. It has no half runes and nothing that
// a query cannot hold.
func (s *sampler) piece(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	at := s.rnd.IntN(len(all))
	line := []rune(strings.ToValidUTF8(strings.Join(all[at:min(len(all), at+lines)], ""), ""))
	from := s.rnd.IntN(len(line) + 1)
	to := min(len(line), from+2+s.rnd.IntN(12))
	out := strings.NewReplacer("\x00", "", "\r", "", "\ufffd", "").Replace(string(line[from:to]))
	if strings.TrimSpace(out) == "" || lines == 1 && strings.Contains(out, "\n") {
		return oneOf(s, slices.Concat(s.words, plainWords))
	}
	return out
}

// lineText is a text that some lines have.
func (s *sampler) lineText() string {
	if s.rnd.IntN(3) == 0 {
		return oneOf(s, slices.Concat(s.words, plainWords))
	}
	return s.piece(s.hunk(), 1+s.rnd.IntN(5)/4)
}

func (s *sampler) messageText() string {
	if s.rnd.IntN(4) == 0 {
		return oneOf(s, slices.Concat(s.words, plainWords))
	}
	return s.piece(s.commit().message, 1+s.rnd.IntN(5)/4)
}

// expression makes an expression of a text that it matches, and tells a text that each match has.
func (s *sampler) expression(text string) (expr, needs string) {
	quoted := regexp.QuoteMeta(text)
	first, rest := string([]rune(text)[:1]), string([]rune(text)[1:])
	switch s.rnd.IntN(9) {
	case 0:
		return `\b` + quoted, text
	case 1:
		return quoted + `\b`, text
	case 2:
		return "^" + quoted, text
	case 3:
		return quoted + "$", text
	case 4:
		return regexp.QuoteMeta(first) + ".*" + regexp.QuoteMeta(rest), rest
	case 5:
		return "(?:" + quoted + "|" + regexp.QuoteMeta(oneOf(s, plainWords)) + ")", ""
	case 6:
		return "." + regexp.QuoteMeta(rest), rest
	case 7:
		return "[" + regexp.QuoteMeta(first) + "-" + regexp.QuoteMeta(first) + "]" + regexp.QuoteMeta(rest) + "+", ""
	}
	return quoted, text
}

// matcher is how a plain scan looks for a text or an expression. A newline of it is one of a text
// from elsewhere, too. Texts without needs do not match: to look for it first is much faster.
func (s *sampler) matcher(expr, needs string) func(text string) bool {
	flags, fold := "(?m)", !s.toggles.CaseSensitive
	if fold {
		flags = "(?im)"
		// K and S have three forms.
		if needs = strings.ToLower(needs); strings.ContainsAny(needs, "ks") || strings.ContainsFunc(needs, func(r rune) bool { return r >= utf8.RuneSelf }) {
			needs = ""
		}
	}
	re := regexp.MustCompile(flags + expr)
	return func(text string) bool {
		text = strings.ReplaceAll(text, "\r\n", "\n")
		if needs != "" {
			if fold && !strings.Contains(strings.ToLower(text), needs) || !fold && !strings.Contains(text, needs) {
				return false
			}
		}
		return re.MatchString(text)
	}
}

// text is a filter with a text as its value, and how a scan looks for it.
func (s *sampler) text(filter, text string) (string, func(text string) bool) {
	if !s.toggles.Regexp {
		return filter + query.Quote(text), s.matcher(regexp.QuoteMeta(text), text)
	}
	expr, needs := s.expression(text)
	return filter + query.QuoteRegexp(expr), s.matcher(expr, needs)
}

// fixed is a filter whose value is always an expression.
func (s *sampler) fixed(filter, expr string) (string, func(text string) bool) {
	return filter + query.QuoteRegexp(expr), s.matcher(expr, "")
}

// atom is a question of one filter.
func (s *sampler) atom() question {
	any := func(has func(string) bool, lists ...[]string) bool {
		return slices.ContainsFunc(lists, func(list []string) bool { return slices.ContainsFunc(list, has) })
	}
	switch s.rnd.IntN(16) {
	case 0, 1:
		text, has := s.text("added:", s.lineText())
		return question{text, true, func(_ *said, f *saidFile) bool { return any(has, f.added) }, nil}
	case 2, 3:
		text, has := s.text("removed:", s.lineText())
		return question{text, true, func(_ *said, f *saidFile) bool { return any(has, f.removed) }, nil}
	case 4, 5:
		text, has := s.text("message:", s.messageText())
		return question{text, false, func(c *said, _ *saidFile) bool { return has(c.message + "\n") }, nil}
	case 6:
		if text, has := s.text("", s.lineText()); s.diff {
			return question{text, true, func(_ *said, f *saidFile) bool { return any(has, f.added, f.removed) }, nil}
		}
		text, has := s.text("", s.messageText())
		return question{text, false, func(c *said, _ *saidFile) bool { return has(c.message + "\n") }, nil}
	case 7:
		text, has := s.fixed("author:", s.person(s.commit().author))
		return question{text, false, func(c *said, _ *saidFile) bool { return has(c.author) }, nil}
	case 8:
		text, has := s.fixed("committer:", s.person(s.commit().committer))
		return question{text, false, func(c *said, _ *saidFile) bool { return has(c.committer) }, nil}
	case 9, 10:
		text, has := s.fixed("file:", s.path())
		return question{text, true, func(_ *said, f *saidFile) bool { return has(f.path) || f.from != "" && has(f.from) }, nil}
	case 11:
		first, last, text := s.date()
		if s.rnd.IntN(2) == 0 {
			return question{"since:" + text, false, func(c *said, _ *saidFile) bool { return c.committed >= first }, nil}
		}
		return question{"until:" + text, false, func(c *said, _ *saidFile) bool { return c.committed <= last }, nil}
	case 12:
		value := oneOf(s, []string{"yes", "no", "only"})
		return question{"merge:" + value, false, func(c *said, _ *saidFile) bool { return value == "yes" || c.merge == (value == "only") }, nil}
	case 13, 14:
		lang := "Go"
		if c := s.commit(); len(c.files) > 0 {
			lang = shard.LanguageOfPath(oneOf(s, c.files).path)
		}
		if name, ok := query.Language(lang); !ok || name != lang || lang == "" {
			lang = "Go"
		}
		return question{"lang:" + query.Quote(lang), true, func(_ *said, f *saidFile) bool {
			return shard.LanguageOfPath(f.path) == lang || f.from != "" && shard.LanguageOfPath(f.from) == lang
		}, nil}
	}
	return s.atom()
}

// ofRepo asks a question of some repositories only. Conditions on repositories are decided before all
// others, so within an or they would change what stands side by side.
func (s *sampler) ofRepo(q question) question {
	text := oneOf(s, []string{"^" + regexp.QuoteMeta(s.repo) + "$", ".", "nowhere", "o"})
	is := regexp.MustCompile("(?i)" + text).MatchString(s.repo)
	return question{"(repo:" + query.QuoteRegexp(text) + " " + q.text + ")", q.files, func(c *said, f *saidFile) bool { return is && q.holds(c, f) }, nil}
}

// person is an expression for somebody.
func (s *sampler) person(who string) string {
	name, address, _ := strings.Cut(who, " <")
	switch s.rnd.IntN(4) {
	case 0:
		return "^" + regexp.QuoteMeta(s.piece(name+"\n", 1))
	case 1:
		return regexp.QuoteMeta(strings.TrimSuffix(address, ">")) + ">$"
	case 2:
		return "[A-M]" + regexp.QuoteMeta(s.piece(name, 1))
	}
	return regexp.QuoteMeta(s.piece(name, 1))
}

// path is an expression for a path.
func (s *sampler) path() string {
	path := "a.go"
	if c := s.commit(); len(c.files) > 0 {
		path = strings.ToValidUTF8(oneOf(s, c.files).path, "")
	}
	switch s.rnd.IntN(5) {
	case 0:
		return `\.go$`
	case 1:
		return "^" + regexp.QuoteMeta(path[:len(path)/2])
	case 2:
		return "^" + regexp.QuoteMeta(path) + "$"
	case 3:
		return regexp.QuoteMeta(path[strings.LastIndexAny(path, "./")+1:]) + "$"
	}
	return regexp.QuoteMeta(s.piece(strings.ReplaceAll(path, "\n", "?"), 1))
}

// date is a second, a day, a month or a year: its first and last second.
func (s *sampler) date() (first, last int64, text string) {
	at := time.Unix(s.commit().committed, 0).UTC()
	if at.Year() < 1971 || at.Year() > 2100 {
		at = time.Unix(1_600_000_000, 0).UTC()
	}
	layout, end := time.DateOnly, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }
	switch s.rnd.IntN(4) {
	case 0:
		layout, end = "2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }
	case 1:
		layout, end = "2006", func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }
	case 2:
		layout, end = time.RFC3339, func(t time.Time) time.Time { return t.Add(time.Second) }
	}
	text = at.Format(layout)
	from, _ := time.Parse(layout, text)
	return from.Unix(), end(from).Unix() - 1, text
}

// inCommit makes a question about files one about commits.
func (q question) inCommit() question {
	if !q.files {
		return q
	}
	return question{q.text, false, func(c *said, _ *saidFile) bool {
		return slices.ContainsFunc(c.files, func(f saidFile) bool { return q.holds(c, &f) })
	}, nil}
}

// draw makes a question of up to so many levels.
func (s *sampler) draw(depth int) question {
	if depth == 0 || s.rnd.IntN(3) == 0 {
		return s.atom()
	}
	a, b := s.draw(depth-1), s.draw(depth-1)
	switch s.rnd.IntN(4) {
	case 0:
		if !s.diff && (!a.files || !b.files) {
			a, b = a.inCommit(), b.inCommit()
		}
		return question{"(" + a.text + " or " + b.text + ")", a.files || b.files, func(c *said, f *saidFile) bool { return a.holds(c, f) || b.holds(c, f) }, nil}
	case 1:
		if a.not != nil { // two negations are none
			return *a.not
		}
		of := a
		if !s.diff {
			a = a.inCommit()
		}
		return question{"-(" + a.text + ")", a.files, func(c *said, f *saidFile) bool { return !a.holds(c, f) }, &of}
	}
	return question{"(" + a.text + " " + b.text + ")", a.files || b.files, func(c *said, f *saidFile) bool { return a.holds(c, f) && b.holds(c, f) }, nil}
}

// revisions draws which revisions are looked at: what a query says, and what that means.
func (s *sampler) revisions() (text string, within func(c *said) bool) {
	a, b := oneOf(s, s.revs), oneOf(s, s.revs)
	reached := func(c *said, rev string) bool {
		return c.masks[rev] || c.masks["refs/heads/"+rev] || c.masks["refs/tags/"+rev]
	}
	switch s.rnd.IntN(6) {
	case 0:
		return "", func(c *said) bool { return c.masks["HEAD"] }
	case 1:
		return "rev:*", func(*said) bool { return true }
	case 2:
		return "(rev:" + a + " or rev:" + b + ")", func(c *said) bool { return reached(c, a) || reached(c, b) }
	case 3:
		return "rev:" + a + " -rev:" + b, func(c *said) bool { return reached(c, a) && !reached(c, b) }
	}
	return "rev:" + a, func(c *said) bool { return reached(c, a) }
}

// compare holds the answer to a question to what a plain scan finds.
func (s *sampler) compare(t *testing.T, l asked) {
	t.Helper()
	s.diff = s.rnd.IntN(2) == 0
	s.toggles = query.Options{Regexp: s.rnd.IntN(2) == 0, CaseSensitive: s.rnd.IntN(2) == 0}
	q := s.draw(1 + s.rnd.IntN(3))
	if s.rnd.IntN(6) == 0 {
		q = s.ofRepo(q)
	}
	rev, within := s.revisions()
	text := "type:commit " + q.text + " " + rev
	if s.diff {
		text = "type:diff " + q.text + " " + rev
	}
	got, want := ask(t, l, s.repo, text, s.toggles, len(s.all) < 1000 || s.rnd.IntN(5) == 0), counted(expected(s.all, q, s.diff, within))
	if !slices.Equal(got, want) {
		t.Errorf("%s, %+v: %d and %d\n got also %.2000q\nwant also %.2000q", text, s.toggles, len(got), len(want), without(got, want), without(want, got))
	}
}

// without are the lines of a that b lacks.
func without(a, b []string) (out []string) {
	for _, line := range a {
		if _, found := slices.BinarySearch(b, line); !found {
			out = append(out, line)
		}
	}
	return out
}

// counted replaces the files of a commit by their number, if they are more than an answer names.
func counted(files []string) (out []string) {
	of := func(line string) string {
		id, _, _ := strings.Cut(line, " ")
		return id
	}
	for i := 0; i < len(files); {
		n := 1
		for i+n < len(files) && of(files[i+n]) == of(files[i]) {
			n++
		}
		if n > MostFiles {
			out = append(out, fmt.Sprintf("%s: %d files", of(files[i]), n))
		} else {
			out = append(out, files[i:i+n]...)
		}
		i += n
	}
	return out
}
