package tool

import (
	"fmt"
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
	// maxMessage is the same of the one commit that get_diff shows, and of a few whose
	// bodies are asked for.
	maxMessage = 4000
)

// bodyText writes the body of a message below its subject, set in, so that no line
// of it can be taken for one of the answer. What is behind the first most bytes is
// left out, and that is said; "" for no body, and where most is 0.
func bodyText(body string, most int) string {
	if most <= 0 {
		return ""
	}
	body = strings.TrimSpace(body)
	shown := browse.WholeLetters(body, most)

	var out strings.Builder
	for line := range strings.Lines(shown) {
		text := strings.TrimRight(label(strings.TrimSuffix(line, "\n")), " \t")
		if text != "" {
			text = "    " + text
		}
		out.WriteString(text + "\n")
	}

	// A line that was cut through ends like one that was not.
	if left := len(body) - len(shown); left > 0 {
		fmt.Fprintf(&out, "    … %s more\n", count(left, "byte"))
	}
	return out.String()
}

// bodyRoom is how many bytes of each body an answer shows: as many as the caller
// asked for with body, or some where there are few commits. 0 is none.
func bodyRoom(a *Args, commits int) int {
	switch {
	case a.Flag("body"):
		return min(max(longestBody, a.room()/max(commits, 1)), maxMessage)
	// Unasked they may not take the room of what was asked for.
	case !a.Has("body") && commits <= fewCommits:
		return min(longestBody, a.room()/(fewCommits+1))
	}
	return 0
}
