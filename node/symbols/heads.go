package symbols

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/lex"
)

// head is the declaration of a type up to its body: its name, and the types that it extends.
type head struct {
	name, kind string  // name is "" of an object without one, and of a line whose type stands around it
	written    string  // the name with its qualifier
	at         int     // offset of the name, or of the kind where there is none
	supers     []super // the types that are named in it
}

// namesake reports whether a super has the name of the head and still is another type: one of the
// two has a qualifier that the other lacks, as in interface Events extends Processor.Events.
func (h *head) namesake(s super) bool { return lastPart(s.name) == h.name && s.name != h.written }

// itself reports whether a super is the type of the head.
func (h *head) itself(s super) bool { return lastPart(s.name) == h.name && s.name == h.written }

// super is a type that a head names as extended.
type super struct {
	name string // as it is written, without arguments
	at   int    // offset
}

// style describes how a family of languages writes the head of a type.
type style struct {
	kinds []string // words that begin a head
	lists []string // words or signs behind which the types stand that it extends
	expr  string   // of a head that may name %s among those types
	named string   // of a head of the type %s, as far as its body
}

// Parts of expressions. Brackets may be nested two deep.
const (
	inBrackets = `\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)`
	upToBody   = `(?:[^{;()]|` + inBrackets + `)*`
	bodiless   = `(?:[^{;]|\{[^{}\n]*\})*` // a default value may be an empty function
	scopes     = `(?:[\w.:\\]*[.:\\])?`
)

// wordStyle is for languages with keywords before the types: class A extends B implements C.
func wordStyle(kinds, lists string) style {
	k := `\b(?:` + strings.ReplaceAll(kinds, " ", "|") + `)\b`
	l := `\b(?:` + strings.ReplaceAll(lists, " ", "|") + `)\b`
	return style{strings.Fields(kinds), strings.Fields(lists), k + bodiless + l + bodiless + `%s`, k + `\s+` + scopes + `%s` + upToBody}
}

// signStyle is for languages with a colon before the types: class A : B, C.
func signStyle(kinds string) style {
	k := `\b(?:` + strings.ReplaceAll(kinds, " ", "|") + `)\b`
	return style{strings.Fields(kinds), []string{":"}, k + bodiless + `:` + bodiless + `%s`, k + `[^{;:()]*?\b%s` + upToBody}
}

// The styles of languages. Hierarchies are unknown for languages without a style.
var (
	javaStyle   = wordStyle("class interface enum record trait mixin object", "extends implements with on")
	kotlinStyle = signStyle("class interface object")
	swiftStyle  = signStyle("class struct enum protocol extension actor")
	sharpStyle  = signStyle("class struct interface record")
	cppStyle    = signStyle("class struct")
	objcStyle   = signStyle("interface protocol")
	solidStyle  = wordStyle("contract interface", "is")
	pythonStyle = style{kinds: []string{"class"}, lists: []string{"("}, expr: `\bclass\s+\w+[^:()]*\((?:[^():]|` + inBrackets + `)*%s`, named: `\bclass\s+%s\b[^:()]*(?:` + inBrackets + `)?`}
	rubyStyle   = style{kinds: []string{"class"}, lists: []string{"<"}, expr: `\bclass\s+[\w:]+\s*<\s*[\w:]*%s`, named: `\bclass\s+` + scopes + `%s\b[^\n]*`}
	rustStyle   = style{
		kinds: []string{"impl", "trait", "derive"},
		expr:  `\bimpl\b[^{;]*%[1]s[^{;]*\bfor\b|\btrait\s+\w+[^{;]*:[^{;]*%[1]s|\bderive\([^()]*%[1]s`,
		named: `\bimpl\b[^{;]*\bfor\b[^{;]*%[1]s|\btrait\s+%[1]s[^{;]*|\bderive\([^()]*\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\S*\s+)?(?:struct|enum|union)\s+%[1]s`,
	}
)

var styles = map[string]*style{
	"Java": &javaStyle, "JavaScript": &javaStyle, "JSX": &javaStyle, "TypeScript": &javaStyle, "TSX": &javaStyle, "Vue": &javaStyle, "Svelte": &javaStyle,
	"PHP": &javaStyle, "Dart": &javaStyle, "Groovy": &javaStyle, "Scala": &javaStyle, "Apex": &javaStyle,
	"Kotlin": &kotlinStyle, "Swift": &swiftStyle, "C#": &sharpStyle, "C++": &cppStyle, "Cuda": &cppStyle, "C": &cppStyle,
	"Objective-C": &objcStyle, "Objective-C++": &objcStyle, "Solidity": &solidStyle, "Python": &pythonStyle, "Cython": &pythonStyle,
	"Ruby": &rubyStyle, "Crystal": &rubyStyle, "Rust": &rustStyle,
}

// includes has, by language, the keywords of lines inside a type that add supertypes. The index
// knows the enclosing type of such a line.
var includes = map[string][]string{"Ruby": {"include", "extend", "prepend"}, "Crystal": {"include", "extend"}, "PHP": {"use"}, "Elixir": {"@behaviour", "use"}}

// Words in heads that are not names of types, and keywords that begin the next statement.
var (
	besideNames = []string{"final", "sealed", "constructor", "class", "private", "internal", "protected", "public"}
	beforeTypes = []string{"public", "private", "protected", "virtual", "dyn", "unowned", "internal", "typename"}
	behindHeads = []string{"fun", "val", "var", "def", "func", "function", "import", "package", "typealias", "const", "let", "export", "return", "where", "permits", "if", "for"}
)

// headsOf returns the heads of types in a part of a file, which may begin and end anywhere. open is
// what the lines before it leave open.
func headsOf(lang string, text []byte, open lex.State) (heads []head) {
	s := styles[lang]
	if s == nil && includes[lang] == nil {
		return nil
	}

	p := headParser{lang: lang, style: s, tokens: tokensOf(lang, text, open)}
	for p.i = 0; p.i < len(p.tokens); {
		i := p.i
		h, ok := p.head()
		if ok {
			heads = append(heads, h)
		}
		p.i = max(p.i, i+1)
	}
	return heads
}

// headToken is a qualified name, a sign, or a line end.
type headToken struct {
	text string
	at   int
}

func (t headToken) named() bool {
	r, _ := utf8.DecodeRuneInString(t.text)
	return r == '_' || r == '$' || r == '@' && len(t.text) > 1 || unicode.IsLetter(r)
}

// tokensOf returns the tokens of a text without comments and string literals.
func tokensOf(lang string, text []byte, open lex.State) (tokens []headToken) {
	text = codeOf(lang, text, open)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == ' ' || r == '\t' || r == '\r':
			i += n
		case isHeadRune(r) || r == '@' && i+1 < len(text) && text[i+1] != ' ':
			end := nameEnd(lang, text, i+n)
			tokens = append(tokens, headToken{string(text[i:end]), i})
			i = end
		default:
			tokens = append(tokens, headToken{string(text[i : i+n]), i})
			i += n
		}
	}
	return tokens
}

// nameEnd returns where the qualified name ends that continues at i.
func nameEnd(lang string, text []byte, i int) int {
	for i < len(text) {
		r, n := utf8.DecodeRune(text[i:])
		if isHeadRune(r) {
			i += n
			continue
		}

		joint := 0
		switch {
		case bytes.HasPrefix(text[i:], []byte("::")):
			joint = 2
		// In Ruby a method follows the dot, as in Struct.new.
		case r == '.' && lang != "Ruby" || r == '\\' && lang == "PHP":
			joint = 1
		}
		next, _ := utf8.DecodeRune(text[min(i+joint, len(text)):])
		if joint == 0 || !isHeadRune(next) {
			return i
		}
		i += joint
	}
	return i
}

func isHeadRune(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// codeOf returns a text with its comments and string literals replaced by spaces. open is what the
// lines before it leave open.
func codeOf(lang string, text []byte, open lex.State) []byte {
	out := bytes.Clone(text)
	if !lex.Knows(lang) {
		return out
	}

	var spans []lex.Span
	for line := range bytes.Lines(out) {
		spans, open = lex.For(lang).Colors(bytes.TrimRight(line, "\r\n"), open, spans[:0])
		for _, s := range spans {
			if s.Class == lex.Comment || s.Class == lex.String {
				blank(line[s.Start:s.End])
			}
		}
	}
	return out
}

func blank(b []byte) {
	for i := range b {
		b[i] = ' '
	}
}

// headParser parses heads from tokens.
type headParser struct {
	lang   string
	style  *style
	tokens []headToken
	i      int
}

// peek returns the next token, or an empty one at the end.
func (p *headParser) peek() headToken {
	if p.i >= len(p.tokens) {
		return headToken{}
	}
	return p.tokens[p.i]
}

// next returns the next token, after skipping line ends.
func (p *headParser) next() headToken {
	p.lines()
	t := p.peek()
	p.i++
	return t
}

func (p *headParser) lines() {
	for p.peek().text == "\n" {
		p.i++
	}
}

// head parses a head that begins at the next token.
func (p *headParser) head() (head, bool) {
	p.lines()
	first := p.i == 0 || p.tokens[p.i-1].text == "\n"
	t := p.next()
	switch {
	case first && slices.Contains(includes[p.lang], t.text):
		return p.include(t)
	case p.style == nil || !slices.Contains(p.style.kinds, strings.TrimPrefix(t.text, "@")):
		return head{}, false
	case p.style == &rustStyle:
		return p.rust(t)
	case p.lang == "C++" && p.i > 1 && p.tokens[p.i-2].text == "enum":
		return head{}, false // a colon is behind it, and a number
	}

	h := head{kind: strings.TrimPrefix(t.text, "@"), at: t.at}
	for steps := 0; steps < 400; steps++ {
		if p.style == &rubyStyle && h.name != "" && p.peek().text == "\n" {
			return h, true
		}
		p.lines()
		switch t := p.peek(); {
		case slices.Contains(p.style.lists, t.text):
			p.i++
			p.types(&h)
			if p.style == &pythonStyle || p.style == &rubyStyle {
				return h, h.name != ""
			}
		case t.text == "<" || t.text == "(" || t.text == "[":
			p.brackets()
		case t.named() && p.ends(t, h):
			return h, h.supers != nil || h.name != ""
		case t.named():
			// Of several names the last counts, because macros and annotations come first.
			if h.supers == nil && t.text[0] != '@' && !slices.Contains(besideNames, t.text) && (h.name == "" || p.lang == "C++") {
				h.name, h.written, h.at = lastPart(t.text), t.text, t.at+len(t.text)-len(lastPart(t.text))
			}
			p.i++
		default:
			return h, h.supers != nil || h.name != ""
		}
	}
	return h, h.supers != nil
}

// ends reports whether a name begins the next statement, so that the head has no body.
func (p *headParser) ends(t headToken, h head) bool {
	begins := slices.Contains(behindHeads, t.text) || slices.Contains(p.style.kinds, t.text)
	return begins && !(h.name == "" && h.kind == "enum")
}

// types parses a list of supertypes into h.
func (p *headParser) types(h *head) {
	parens := p.style == &pythonStyle
	for {
		t := p.next()
		switch {
		case slices.Contains(beforeTypes, t.text):
			continue
		case t.text == `\` || strings.HasPrefix(t.text, "@"):
			continue
		case t.text == ")" && parens:
			return
		case t.text == ":" && p.peek().text == ":": // ::std::exception
			p.i++
			continue
		case parens && (t.text == "," || t.text == "*"):
			continue
		case !t.named():
			p.i--
			return
		}

		// In Python a keyword argument is not a base class.
		if parens && p.peek().text == "=" {
			for depth := 0; p.i < len(p.tokens) && !(depth == 0 && (p.peek().text == "," || p.peek().text == ")")); p.i++ {
				depth += depthOf(p.peek().text)
			}
			continue
		}

		h.supers = append(h.supers, super{t.text, t.at})
		p.arguments(h)

		// The list continues only after a separator.
		mark := p.i
		switch sep := p.next().text; {
		case sep == "," || sep == "&" || sep == "+" || sep == "with" || parens && sep == "\n":
		case parens && sep == ")":
			return
		default:
			p.i = mark
			return
		}
	}
}

// arguments skips what may follow a type in a list: type arguments, constructor arguments, and the
// target of a delegation.
func (p *headParser) arguments(h *head) {
	for {
		mark := p.i
		switch t := p.next(); t.text {
		case "<", "(", "[":
			p.i--

			// In Objective-C these are the protocols.
			if t.text == "<" && h.kind == "interface" && p.style == &objcStyle {
				p.i++
				p.types(h)
				continue
			}
			p.brackets()
		case "?", "*":
		case "by":
			for depth := 0; p.i < len(p.tokens); p.i++ {
				t := p.peek().text
				if depth == 0 && (t == "," || t == "{" || t == "\n") {
					break
				}
				depth += depthOf(t)
			}
		default:
			p.i = mark
			return
		}
	}
}

// depthOf returns how a sign changes the nesting depth.
func depthOf(sign string) int {
	switch sign {
	case "(", "[", "{", "<":
		return 1
	case ")", "]", "}", ">":
		return -1
	}
	return 0
}

// brackets skips a pair of brackets with its content.
func (p *headParser) brackets() {
	open := p.peek().text
	closing := map[string]string{"<": ">", "(": ")", "[": "]"}[open]
	depth := 0
	for ; p.i < len(p.tokens); p.i++ {
		switch t := p.tokens[p.i].text; {
		case t == open:
			depth++
		// The > of an arrow closes nothing.
		case t == closing && !(t == ">" && (p.tokens[p.i-1].text == "-" || p.tokens[p.i-1].text == "=")):
			depth--
		case open == "<" && (t == "{" || t == ";"):
			return // a comparison
		}
		if depth == 0 {
			p.i++
			return
		}
	}
}

// include parses the rest of a line such as "include Comparable" in Ruby, which adds supertypes to
// the enclosing type.
func (p *headParser) include(t headToken) (head, bool) {
	h := head{kind: t.text, at: t.at}
	for p.i < len(p.tokens) {
		switch t := p.peek(); {
		case t.named():
			h.supers = append(h.supers, super{t.text, t.at})
		case t.text == "(" || t.text == "\\" || t.text == ":":
		case t.text != ",":
			return h, h.supers != nil
		}
		p.i++
	}
	return h, h.supers != nil
}

// rust parses the rest of an impl, trait or derive in Rust. t is the keyword.
func (p *headParser) rust(t headToken) (head, bool) {
	h := head{kind: t.text, at: t.at}
	if p.peek().text == "<" {
		p.brackets()
	}
	switch t.text {
	case "derive":
		p.i++
		p.types(&h)
		return p.derived(h)
	case "trait":
		t = p.next()
		h.name, h.written, h.at = t.text, t.text, t.at
		if p.peek().text == "<" {
			p.brackets()
		}
		if p.peek().text == ":" {
			p.i++
			p.types(&h)
		}
		return h, true
	}

	// The form is impl Trait for Type.
	for t = p.next(); t.text == "!" || t.text == "const"; t = p.next() {
	}
	if !t.named() {
		return h, false
	}
	h.supers = []super{{t.text, t.at}}
	p.arguments(&h)
	if p.next().text != "for" {
		return h, false
	}
	for range 12 {
		t = p.next()
		if t.named() && !slices.Contains([]string{"mut", "dyn", "const", "static"}, t.text) && p.tokens[p.i-2].text != "'" {
			h.name, h.written, h.at = lastPart(t.text), t.text, t.at+len(t.text)-len(lastPart(t.text))
			return h, true
		}
	}
	return h, false
}

// derived finds the type that follows its derived traits.
func (p *headParser) derived(h head) (head, bool) {
	for range 80 {
		switch t := p.next(); t.text {
		case "struct", "enum", "union":
			t = p.next()
			h.name, h.written, h.at = t.text, t.text, t.at
			return h, t.named()
		case "fn", "impl", "":
			return h, false
		}
	}
	return h, false
}

// lastPart returns a name without its qualifier.
func lastPart(name string) string {
	return name[strings.LastIndexAny(name, `.:\`)+1:]
}
