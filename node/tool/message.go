package tool

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
)

const (
	// fewCommits is how many commits, or lines of a blame, are few enough that each is
	// told with the whole of its message unasked.
	fewCommits = 3
	// longestBody is how many bytes of a message are shown below its subject, where many
	// share the room.
	longestBody = 1000
	// askedBody is the same of a few commits whose bodies are asked for.
	askedBody = 2000
	// maxMessage is the same of the one commit that get_diff shows.
	maxMessage = 4000
	// longestEnd is how many bytes of the end are shown of a message that is cut: what a
	// commit closes or takes back stands there.
	longestEnd = 250
)

// bodyText writes the body of a message below its subject, set in, so that no line
// of it can be taken for one of the answer. Of one of more than most bytes the middle is
// left out, and that is said; "" for no body, and where most is 0.
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
	// A line that was cut through ends like one that was not.
	if left := len(body) - len(begin) - len(end); left > 0 {
		fmt.Fprintf(&out, "    … %s more\n", count(left, "byte"))
	}
	setIn(&out, end)
	return out.String()
}

// lastLines is as many whole lines of the end of a text as have room.
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

// setIn writes the lines of a text below something.
func setIn(out *strings.Builder, text string) {
	for line := range strings.Lines(text) {
		text := strings.TrimRight(label(strings.TrimSuffix(line, "\n")), " \t")
		if text != "" {
			text = "    " + text
		}
		out.WriteString(text + "\n")
	}
}

// bodyRoom is how many bytes of each body an answer shows: as many as the caller
// asked for with body, or some where there are few commits. 0 is none.
func bodyRoom(a *Args, commits int) int {
	switch {
	case a.Flag("body"):
		return min(max(longestBody, a.room()/max(commits, 1)), askedBody)
	// Unasked they may not take the room of what was asked for.
	case !a.Has("body") && commits <= fewCommits:
		return min(longestBody, a.room()/(fewCommits+1))
	}
	return 0
}

// The bounds of a body that nobody asked for: lines where no word is in it, and bytes.
const (
	briefLines = 3
	briefBytes = 600
)

// noise is what stands in messages and says nothing of the change: trailers, badges, and
// the comments, tags and tables of programs that write them.
var noise = regexp.MustCompile(`(?m)<!--(?s:.*?)-->|^\s*(?:[A-Z][a-z]+(?:-[a-zA-Z]+)+: .*|[<|].*|\[?!\[.*|-{3,})$\n?`)

// briefBody is what is shown below a subject of a body that nobody asked for: the
// paragraphs with a word that was looked for, else the first lines.
func briefBody(a *Args, body string, most int) string {
	if a.Flag("body") {
		return bodyText(body, most)
	}
	body = strings.TrimSpace(noise.ReplaceAllString(body, ""))

	var with []string
	words := wordsOf(strings.ToLower(a.Text("query")))
	for paragraph := range strings.SplitSeq(body, "\n\n") {
		lower := strings.ToLower(paragraph)
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) }) {
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
