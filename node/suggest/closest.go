package suggest

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/paste"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
)

// closeness says how close a file is to a pasted message.
type closeness struct {
	source  int  // sourceRank
	names   int  // parts of a setting or a command line that it has
	longest int  // bytes of its longest match, if the pattern has alternatives
	prose   bool // a document, which says what a setting does, where a test only uses it
	defined bool // it has the name of a setting before a colon, a comma or an equals sign
	logged  bool // the message names the file and a line of it, as in [E 03:04 web:1590]
	named   bool // the message names its repository, as in httpx.ReadTimeout or rg: no match
	raised  bool // a match of all of it is in code that may print it: neither in a header nor in a comment
	words   int  // words of the message around a match
	quoted  bool // a match is within quotes
	spread  int  // bytes of its shortest match: a source has short verbs where a message has values
}

// closestFirst sorts the files that match a pattern: those that likely print the message first.
func closestFirst(files []search.File, p *paste.Pattern, message string) {
	words, module := messageWords(message), loggingModule(message)
	of := make(map[string]closeness, len(files))
	key := func(f *search.File) string { return f.Repository + ":" + f.Path }
	for i := range files {
		c := closenessOf(&files[i], p, words)
		base := path.Base(files[i].Path)
		c.logged = strings.TrimSuffix(base, path.Ext(base)) == module
		of[key(&files[i])] = c
	}
	slices.SortStableFunc(files, func(a, b search.File) int {
		x, y := of[key(&a)], of[key(&b)]
		return cmp.Or(y.source-x.source, y.names-x.names, compareBools(y.prose, x.prose), compareBools(y.defined, x.defined), y.longest-x.longest, compareBools(y.logged, x.logged), compareBools(y.named, x.named), compareBools(y.raised, x.raised), y.words-x.words, compareBools(y.quoted, x.quoted), x.spread-y.spread)
	})
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func closenessOf(f *search.File, p *paste.Pattern, words []string) closeness {
	c := closeness{source: sourceRank(f), named: slices.Contains(words, strings.ToLower(path.Base(f.Repository)))}
	alternatives := strings.Contains(p.Expr, "|")
	if p.Name {
		c.names, c.prose = namesIn(f, p.Text), prose.MatchString(f.Path)
	} else if alternatives {
		c.longest = longestMatch(f)
	}
	for _, chunk := range f.Chunks {
		lower := bytes.ToLower(chunk.Content)
		n := 0
		for _, word := range words {
			if bytes.Contains(lower, []byte(word)) {
				n++
			}
		}
		c.words = max(c.words, n)
		for _, r := range chunk.Ranges {
			c.defined = c.defined || p.Name && definesSetting(&chunk, r)
			c.quoted = c.quoted || isQuoted(&chunk, r)
			c.raised = c.raised || !alternatives && !header.MatchString(f.Path) && !isRemark(&chunk, r)
			if size := int(r.End.Offset) - int(r.Start.Offset); !alternatives && (c.spread == 0 || size < c.spread) {
				c.spread = size
			}
		}
	}
	return c
}

// definesSetting reports whether a sign of a definition follows the name of a setting, as in
// "cookie-path": "/" and flag("cookie-path", "/"). Reading it has a bracket there.
func definesSetting(chunk *shard.Chunk, r shard.Range) bool {
	_, after := cutAt(chunk, r.End)
	after = bytes.TrimLeft(after, " \t")
	return len(after) > 0 && strings.IndexByte(":,=", after[0]) >= 0
}

// cutAt returns what a chunk has before and after a position; nothing if it is elsewhere.
func cutAt(chunk *shard.Chunk, at shard.Position) (before, after []byte) {
	n := int(at.Offset) - int(chunk.Start.Offset)
	if n < 0 || n > len(chunk.Content) {
		return nil, nil
	}
	return chunk.Content[:n], chunk.Content[n:]
}

// loggedLine matches the module and the line that loggers put before a message.
var loggedLine = regexp.MustCompile(`\b([A-Za-z_]\w*):[0-9]+[\])]`)

// loggingModule returns the module that a logger names with a line before a message; "/", which no file is
// named, if there is none.
func loggingModule(message string) string {
	if m := loggedLine.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return "/"
}

// leastWord is the letters of a word that tells messages apart.
const leastWord = 3

// messageWords returns the different words of a message, in lower case.
func messageWords(message string) []string {
	words := strings.FieldsFunc(strings.ToLower(message), func(r rune) bool { return !isWordRune(r) })
	slices.Sort(words)
	return slices.DeleteFunc(slices.Compact(words), func(w string) bool { return len(w) < leastWord })
}

func isWordRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 0x7f
}

// isQuoted reports whether a quote precedes a match in its line.
func isQuoted(chunk *shard.Chunk, r shard.Range) bool {
	before, _ := cutAt(chunk, r.Start)
	return bytes.ContainsAny(before[bytes.LastIndexByte(before, '\n')+1:], "\"'`")
}

// header matches files that declare what others do: the text of a message is there for them.
var header = regexp.MustCompile(`(?i)(?:\.(?:h|hh|hpp|hxx|pyi)|\.d\.ts)$`)

// remark matches the beginning of a line that is a comment.
var remark = regexp.MustCompile(`^\s*(?://|/?\*|#(?:\s|$)|--\s|;)`)

// isRemark reports whether the line of a match begins as a comment.
func isRemark(chunk *shard.Chunk, r shard.Range) bool {
	before, _ := cutAt(chunk, r.Start)
	return remark.Match(before[bytes.LastIndexByte(before, '\n')+1:])
}

// identifier matches a name of source code: with an underscore or a capital letter in it.
var identifier = regexp.MustCompile(`[\pL_][\pL\pN]*(?:_[\pL\pN_]+|[a-z0-9][A-Z]\w+)`)

// Limits of names that tell files of one name apart.
const (
	maxHints  = 3
	leastHint = 6 // bytes
)

// preferNamed sorts files that fit a place equally well: those first that have more of the names in
// the pasted text, such as the function of the frame.
func (g *targets) preferNamed(p *paste.Place, files []Target) []Target {
	hints := g.hints(p)
	if len(files) < 2 || len(hints) == 0 {
		return files
	}
	end := p.Path[strings.LastIndexByte(p.Path, '/')+1:]
	has := make([][]search.File, len(hints))
	inParallel(len(hints), func(i int) { has[i], _ = g.filesMatching(hints[i]+" ", "(?:^|/)"+regexp.QuoteMeta(end)+"$") })

	named := func(t Target) (n int) {
		for _, list := range has {
			if slices.ContainsFunc(list, func(f search.File) bool { return f.Repository == t.Repository && f.Path == t.Path }) {
				n++
			}
		}
		return n
	}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b Target) int { return named(b) - named(a) })
	return files
}

// hints returns names that the file of a place likely has.
func (g *targets) hints(p *paste.Place) []string {
	var out []string
	add := func(name string) {
		if len(name) >= leastHint && !strings.Contains(p.Path, name) && !slices.Contains(out, name) && len(out) < maxHints {
			out = append(out, name)
		}
	}
	add(paste.NameOf(p.Name).Name)
	if !g.trace {
		for _, name := range identifier.FindAllString(g.text, 2*maxHints) {
			add(name)
		}
	}
	return out
}
