package ask

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
)

// Citation is a place in a file that an answer points to. It was checked at this commit, so its
// link never drifts.
type Citation struct {
	Repo, Path  string
	Commit      string
	First, Last int // lines; 0 for the whole file
	State       CiteState
}

// CiteState is the result of checking a citation.
type CiteState string

// Results of checking a citation.
const (
	Cited      CiteState = "cited"      // as the model wrote it
	Moved      CiteState = "moved"      // the check corrected the lines
	Unverified CiteState = "unverified" // there is no such place, so it has no link
	Unchecked  CiteState = "unchecked"  // no tool has shown the lines; without a commit: the nodes with the code did not answer
)

// Found reports whether the place exists, so that it has a link.
func (c *Citation) Found() bool {
	return c.State == Cited || c.State == Moved || c.isUnseen()
}

// isUnseen reports whether the place exists but no tool has shown its lines.
func (c *Citation) isUnseen() bool { return c.State == Unchecked && c.Commit != "" }

// Label returns the path and lines.
func (c *Citation) Label() string {
	switch {
	// The whole file is meant, or the lines do not exist.
	case c.First == 0:
		return c.Path
	case c.Last == c.First:
		return fmt.Sprintf("%s:%d", c.Path, c.First)
	}
	return fmt.Sprintf("%s:%d-%d", c.Path, c.First, c.Last)
}

// URL returns the page of the place; "" if it was not found.
func (c *Citation) URL(base string) string {
	if !c.Found() {
		return ""
	}
	u := browse.WebURL(base, c.Repo, c.Commit, "blob", c.Path)
	switch {
	case c.First == 0:
		return u
	case c.Last == c.First:
		return fmt.Sprintf("%s#L%d", u, c.First)
	}
	return fmt.Sprintf("%s#L%d-L%d", u, c.First, c.Last)
}

// marker begins a citation in the model's text: @file:{repo::path:10-20}.
const marker = "@file:{"

// longestCite is the length of a citation after which its end is no longer awaited.
const longestCite = 400

var (
	// otherForm matches two other common forms of citations: [label](path#L10-L20) and
	// (path:10-20).
	otherForm = regexp.MustCompile(`(?:\[([^\[\]\n]+)\])?\((/?[\w@.+-][\w@.+/-]*(?:#L\d+(?:-L?\d+)?|:\d+(?:-\d+)?))\)`)
	// otherBegin matches the end of a text that may continue as such a citation.
	otherBegin = regexp.MustCompile(`(?:\[[^\[\]\n]*(?:\](?:\([\w@.+/#:-]*)?)?|\([\w@.+/#:-]*)$`)
)

// citer splits the model's text into text and citations, and checks the citations.
type citer struct {
	check   func(mark, sentence string) *Citation
	give    func(Piece)
	pending string // a citation, or what may become one, whose end has not arrived
	near    string // the end of the text so far, for the sentence of the next citation
}

// addText processes the next part of the model's text.
func (c *citer) addText(text string) {
	// A citation may be cut anywhere between two parts, so start with what was held back.
	text = c.pending + removeInvisible(text)
	c.pending = ""

	for text != "" {
		at := strings.Index(text, marker)
		if at < 0 {
			// The end may begin a citation: hold it back until the next part.
			keep := suffixLength(text, marker)
			if begin := otherBegin.FindString(text); len(begin) > keep && len(begin) < longestCite {
				keep = len(begin)
			}
			c.emitText(text[:len(text)-keep])
			c.pending = text[len(text)-keep:]
			return
		}

		c.emitText(text[:at])
		text = text[at:]
		end := strings.IndexAny(text, "}\n")

		// The citation is complete, too long to be one, or continues in the next part.
		switch {
		case end >= 0 && end <= longestCite:
			mark := text[len(marker):end]
			if text[end] == '}' {
				end++
			}
			text = text[end:]
			c.cite(mark)
		case len(text) > longestCite:
			c.emitText(text[:len(marker)])
			text = text[len(marker):]
		default:
			c.pending = text
			return
		}
	}
}

// emitRest emits the text that was held back because it might be the beginning of a citation.
func (c *citer) emitRest() {
	held := c.pending
	c.pending = ""
	if mark, ok := strings.CutPrefix(held, marker); ok {
		c.cite(mark) // the model's limit of output cut it
		return
	}
	c.emitText(held)
}

// emitText emits text. A citation of another form in it becomes a citation if its place exists.
func (c *citer) emitText(text string) {
	for _, at := range otherForm.FindAllStringSubmatchIndex(text, -1) {
		cite := c.check(text[at[4]:at[5]], lastSentence(c.near+text[:at[0]]))
		if !cite.Found() {
			continue
		}
		label := ""
		if at[2] >= 0 {
			label = text[at[2]:at[3]] + " "
		}
		c.appendPlain(text[:at[0]] + label + "(")
		c.give(Piece{Cite: cite})
		c.near = ""
		c.emitText(")" + text[at[1]:])
		return
	}
	c.appendPlain(text)
}

// appendPlain appends text without citations.
func (c *citer) appendPlain(text string) {
	if text == "" {
		return
	}
	// Keep the end for the next citation, which belongs to the sentence before it.
	c.near += text
	if len(c.near) > 2000 {
		c.near = strings.ToValidUTF8(c.near[len(c.near)-1000:], "")
	}
	c.give(Piece{Text: text})
}

func (c *citer) cite(mark string) {
	c.give(Piece{Cite: c.check(mark, lastSentence(c.near))})
	c.near = "" // the next citation belongs to the text after this one
}

// suffixLength returns how many bytes at the end of a text could begin word.
func suffixLength(text, word string) int {
	for n := min(len(text), len(word)-1); n > 0; n-- {
		if strings.HasSuffix(text, word[:n]) {
			return n
		}
	}
	return 0
}

// lastSentence returns the last sentence of a text.
func lastSentence(text string) string {
	text = strings.TrimRight(text, " \t(")
	at := max(strings.LastIndex(text, ". "), strings.LastIndex(text, "\n"))
	return text[at+1:]
}

// mark is a citation as the model wrote it.
type mark struct {
	repo, path, rev string
	first, last     int
}

var lineRange = regexp.MustCompile(`^(.*?)(?::|#)L?(\d+)(?:-L?(\d+))?(?:,.*)?$`)

// parseMark parses a citation and repairs what models get wrong: repo::path:10-20,
// repo::path::rev:10, repo/path:10, back-quotes, trailing punctuation. ok is false without a usable path.
func parseMark(text string) (m mark, ok bool) {
	text = strings.Trim(text, " `'\"<>{}")
	text = strings.TrimRight(text, ":).,")
	if found := lineRange.FindStringSubmatch(text); found != nil {
		text = found[1]
		m.first, _ = strconv.Atoi(found[2]) // only digits; a number that overflows becomes 0
		m.last, _ = strconv.Atoi(found[3])
	}

	if m.last < m.first {
		m.last = m.first
	}

	parts := strings.Split(text, "::")
	switch len(parts) {
	case 1:
		m.path = parts[0]
	case 2:
		m.repo, m.path = parts[0], parts[1]
	default:
		m.repo, m.path, m.rev = parts[0], parts[1], parts[2]
	}

	m.path = strings.TrimPrefix(strings.Trim(m.path, "` "), "/")
	m.repo = strings.Trim(m.repo, "` /")
	return m, m.path != "" && len(m.path) < 1000
}

// removeInvisible removes invisible characters: controls, and those that reverse the direction of text.
func removeInvisible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0xfeff || r >= 0xe0000 && r <= 0xe007f:
			return -1
		}
		return r
	}, text)
}
