package tool

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
)

const (
	// fewCommits is the number of commits, or lines of a blame, up to which messages are shown in
	// full without a request.
	fewCommits = 3
	// longestBody is the largest number of bytes shown of a message body, if many share the room.
	longestBody = 1000
	// askedBody is the same for a few commits if the caller requested bodies.
	askedBody = 2000
	// maxMessage is the same for the single commit that get_diff shows.
	maxMessage = 4000
	// longestEnd is the number of bytes shown of the end of a shortened message, where commits say
	// what they close or revert.
	longestEnd = 250
)

// bodyText returns the body of a message, indented so that no line looks like part of the answer. A
// body of more than most bytes loses its middle, with a note of how much. The result is "" for an
// empty body, or if most is 0.
func bodyText(body string, most int) string {
	if most <= 0 {
		return ""
	}

	body = strings.TrimSpace(body)
	begin, end := body, ""
	if len(body) > most {
		end = lastLines(body, min(longestEnd, most/4))
		begin = browse.WholeLetters(body, most-len(end))
	}

	var out strings.Builder
	setIn(&out, begin)
	// Say how much is missing: a cut line looks like a complete one.
	if left := len(body) - len(begin) - len(end); left > 0 {
		fmt.Fprintf(&out, "    … %s more\n", count(left, "byte"))
	}
	setIn(&out, end)
	return out.String()
}

// lastLines returns as many whole lines at the end of a text as fit in room bytes.
func lastLines(text string, room int) string {
	from := len(text)
	for from > 0 {
		before := strings.LastIndexByte(text[:from-1], '\n') + 1
		if len(text)-before > room {
			break
		}
		from = before
	}
	return text[from:]
}

// setIn writes the lines of a text, indented.
func setIn(out *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		text := strings.TrimRight(label(strings.TrimSuffix(line, "\n")), " \t")
		if text != "" {
			text = "    " + text
		}
		out.WriteString(text + "\n")
	}
}

// bodyRoom returns the largest number of bytes of each message body. It depends on the argument
// body and on the number of commits; 0 means no bodies.
func bodyRoom(a *Args, commits int) int {
	switch {
	case a.Flag("body"):
		return min(max(longestBody, a.room()/max(commits, 1)), askedBody)
	// Without a request, bodies must leave room for what was requested.
	case !a.Has("body") && commits <= fewCommits:
		return min(longestBody, a.room()/(fewCommits+1))
	}
	return 0
}

// The limits of a body that was not requested: lines if no word of the query is in it, paragraphs with one,
// and bytes.
const (
	briefLines     = 3
	mostParagraphs = 2
	briefBytes     = 600
)

// noise matches parts of messages that say nothing about the change: trailers, badges, and
// comments, tags and tables written by programs.
var noise = regexp.MustCompile(`(?m)<!--(?s:.*?)-->|^\s*(?:[A-Z][a-z]+(?:-[a-zA-Z]+)+: .*|[<|].*|\[?!\[.*|-{3,})$\n?`)

// briefBody returns the part of a commit's body shown without a request: the first paragraphs with the most
// words of the query, or else the first lines.
func briefBody(a *Args, c *browse.CommitInfo, most int) string {
	if a.Flag("body") {
		return bodyText(c.Body, most)
	}
	body := strings.TrimSpace(noise.ReplaceAllString(strings.ReplaceAll(withoutSubject(c), "\r", ""), ""))

	var with []string
	words, found := wordsOf(strings.ToLower(a.Text("query"))), 1
	for paragraph := range strings.SplitSeq(body, "\n\n") {
		lower, n := strings.ToLower(paragraph), 0
		for _, w := range words {
			if strings.Contains(lower, w) {
				n++
			}
		}
		if n > found {
			with, found = nil, n
		}
		if n == found && len(with) < mostParagraphs {
			with = append(with, paragraph)
		}
	}
	if with == nil {
		with = strings.SplitN(body, "\n", briefLines+1)
		with = with[:min(len(with), briefLines)]
	}

	shown := strings.Join(with, "\n")
	text := bodyText(shown, min(most, briefBytes))
	if text != "" && len(shown) < len(body)-len(with) {
		text += "    …\n"
	}
	return text
}

// withoutSubject returns the body of a commit without a first line that says what its subject says: a
// program that joins the commits of a branch writes such a line.
func withoutSubject(c *browse.CommitInfo) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(c.Body), "\n")
	first = strings.TrimSpace(strings.TrimPrefix(first, "* "))
	if subject, _, _ := strings.Cut(c.Message, " (#"); first != "" && first == strings.TrimSpace(subject) {
		return rest
	}
	return c.Body
}
