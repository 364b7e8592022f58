package glob

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// extension matches a file extension after !(*.d). Such an extension belongs to the excluded name.
var extension = regexp.MustCompile(`^\.[^\\/.]+$`)

const (
	maxPattern = 4096 // bytes of a pattern
	maxDepth   = 32   // groups within each other
	maxRange   = 1000 // members of a range
	maxMembers = 4000 // members of all ranges
)

var (
	errNoClassEnd    = errors.New("a [ has no ]")
	errNoBraceEnd    = errors.New("a { has no }")
	errNoGroupEnd    = errors.New("a group has no )")
	errLongRange     = fmt.Errorf("a range has more than %d members", maxRange)
	errReversedRange = errors.New("a range of a class ends before it begins")
	errLastBackslash = errors.New("a backslash stands at the end")
	errTooLong       = fmt.Errorf("it is longer than %d bytes", maxPattern)
	errTooDeep       = fmt.Errorf("its groups are nested more than %d deep", maxDepth)
	errTooLarge      = errors.New("its groups and ranges are too large together")
)

type op uint8

const (
	opRune  op = iota // r
	opAny             // one character, no slash
	opClass           // one character of a class
	opStar            // any text without a slash
	opAll             // any text
	opStars           // **, before resolveStars replaces it
	opGroup           // one of alts, repeated as rep says
)

// node is an element of a parsed pattern.
type node struct {
	op    op
	r     rune // for opRune: the character; negative for a byte that is not UTF-8
	class *class
	alts  [][]node
	rep   byte   // for opGroup: @ once, ? at most once, * + any number, ! none
	inner string // for opGroup with !: text of the pattern inside
	next  string // for opGroup with !: text of the pattern after it
	after []node // for opGroup with !: the nodes of next, if next is an extension
}

// class is a set of characters.
type class struct {
	negated bool
	ranges  [][2]rune
}

// parser reads a pattern from left to right.
type parser struct {
	text    string
	pos     int // offset of the next byte
	depth   int // nesting of groups
	members int // members of ranges so far
}

// readSequence reads nodes up to the end of an alternative, and stops before the character that ends it.
// closing is the character that closes the group; 0 means the end of the pattern.
func (p *parser) readSequence(closing byte) ([]node, error) {
	var seq []node
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if closing != 0 && (c == closing || c == ',' && closing == '}' || c == '|' && closing == ')') {
			return seq, nil
		}
		nodes, err := p.readElement()
		if err != nil {
			return nil, err
		}
		seq = append(seq, nodes...)
	}

	switch closing {
	case '}':
		return nil, errNoBraceEnd
	case ')':
		return nil, errNoGroupEnd
	}
	return seq, nil
}

// readElement reads one element, for example a character, a class or a group.
func (p *parser) readElement() ([]node, error) {
	c, rest := p.text[p.pos], p.text[p.pos:]
	if len(rest) > 1 && rest[1] == '(' && strings.IndexByte("@?*+!", c) >= 0 {
		p.pos++
		return p.readGroup(c)
	}

	switch {
	case c == '(' && p.hasAlternatives():
		return p.readGroup('@')
	case c == '{':
		return p.readBrace()
	case c == '[':
		return p.readClass()
	case c == '?':
		p.pos++
		return []node{{op: opAny}}, nil
	case c == '*':
		return p.readStars(), nil
	case c == '\\':
		if p.pos++; p.pos == len(p.text) {
			return nil, errLastBackslash
		}
	}
	return []node{{op: opRune, r: p.readRune()}}, nil
}

// readRune reads a character. A byte that is not UTF-8 becomes a negative number.
func (p *parser) readRune() rune {
	r, size := decode(p.text[p.pos:])
	p.pos += size
	return r
}

// decode returns the first character of s and its length in bytes. A byte that is not UTF-8 gives a
// negative character.
func decode(s string) (r rune, size int) {
	r, size = utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		r = -1 - rune(s[0])
	}
	return r, size
}

// readStars reads * or **. ** only has its special meaning between slashes; resolveStars decides that.
func (p *parser) readStars() []node {
	from := p.pos
	for p.pos < len(p.text) && p.text[p.pos] == '*' && !strings.HasPrefix(p.text[p.pos:], "*(") {
		p.pos++
	}
	if p.pos-from > 1 {
		return []node{{op: opStars}}
	}
	return []node{{op: opStar}}
}

// hasAlternatives reports whether the parenthesis at pos contains several patterns. Without a bar it
// is part of a name, as in "app (old)".
func (p *parser) hasAlternatives() bool {
	depth, hasBar := 0, false
	for i := p.pos; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			i++
		case '(':
			depth++
		case '|':
			hasBar = hasBar || depth == 1
		case ')':
			if depth--; depth == 0 {
				return hasBar
			}
		}
	}
	return false
}

// readGroup reads (a|b). rep says how often it may repeat.
func (p *parser) readGroup(rep byte) ([]node, error) {
	p.pos++
	from := p.pos
	alts, err := p.readAlternatives(')')
	if err != nil {
		return nil, err
	}
	n := node{op: opGroup, rep: rep, alts: alts}
	if rep == '!' {
		n.inner, n.next = p.text[from:p.pos-1], p.text[p.pos:]
		if extension.MatchString(n.next) {
			rest := &parser{text: n.next, depth: p.depth + 1}
			if n.after, err = rest.readSequence(0); err != nil {
				return nil, err
			}
		}
	}
	return []node{n}, nil
}

// readAlternatives reads the patterns of a group and the byte that closes it.
func (p *parser) readAlternatives(closing byte) (alts [][]node, err error) {
	// Each nested group is a call, and the stack is limited.
	if p.depth++; p.depth > maxDepth {
		return nil, errTooDeep
	}
	defer func() { p.depth-- }()

	for {
		alt, err := p.readSequence(closing)
		if err != nil {
			return nil, err
		}
		alts = append(alts, alt)
		p.pos++
		if p.text[p.pos-1] == closing {
			return alts, nil
		}
	}
}

// readBrace reads {a,b}, {1..9} or {a..e}.
func (p *parser) readBrace() ([]node, error) {
	p.pos++
	if end := strings.IndexByte(p.text[p.pos:], '}'); end > 0 {
		members, ok, err := rangeMembers(p.text[p.pos : p.pos+end])
		if p.members += len(members); p.members > maxMembers {
			return nil, errTooLarge
		}
		if ok || err != nil {
			p.pos += end + 1
			return []node{{op: opGroup, rep: '@', alts: members}}, err
		}
	}
	alts, err := p.readAlternatives('}')
	return []node{{op: opGroup, rep: '@', alts: alts}}, err
}

// rangeMembers returns the members of 1..9, 01..10, 1..9..2 or a..e, in either order.
func rangeMembers(text string) (members [][]node, ok bool, err error) {
	parts := strings.Split(text, "..")
	if len(parts) < 2 || len(parts) > 3 {
		return nil, false, nil
	}

	step := 1
	if len(parts) == 3 {
		if step, err = strconv.Atoi(parts[2]); err != nil {
			return nil, false, nil
		}
		step = max(step, -step, 1)
	}

	low, err1 := strconv.Atoi(parts[0])
	high, err2 := strconv.Atoi(parts[1])
	format := func(n int) string { return fmt.Sprintf("%0*d", padding(parts[0], parts[1]), n) }
	if err1 != nil || err2 != nil || len(parts[0]) > 9 || len(parts[1]) > 9 {
		a, b := []rune(parts[0]), []rune(parts[1])
		if len(a) != 1 || len(b) != 1 {
			return nil, false, nil
		}
		low, high = int(a[0]), int(b[0])
		format = func(n int) string { return string(rune(n)) }
	}

	// The step counts from the first member, even if that is the larger.
	count := max(high-low, low-high)/step + 1
	if count > maxRange {
		return nil, false, errLongRange
	}
	if high < low {
		step = -step
	}
	for i := range count {
		members = append(members, literalNodes(format(low+i*step)))
	}
	return members, true, nil
}

// padding returns the width of the numbers of a range if one of them begins with a zero.
func padding(a, b string) int {
	for _, s := range []string{a, b} {
		if digits := strings.TrimPrefix(s, "-"); len(digits) > 1 && digits[0] == '0' {
			return max(len(a), len(b))
		}
	}
	return 0
}

// literalNodes returns the nodes that match a text exactly.
func literalNodes(text string) (seq []node) {
	for text != "" {
		r, size := decode(text)
		seq = append(seq, node{op: opRune, r: r})
		text = text[size:]
	}
	return seq
}

// readClass reads [a-c]. As in a shell, a ] right after the [ is a member.
func (p *parser) readClass() ([]node, error) {
	p.pos++
	c := &class{}
	if p.pos < len(p.text) && (p.text[p.pos] == '!' || p.text[p.pos] == '^') {
		c.negated = true
		p.pos++
	}

	for first := true; ; first = false {
		rest := p.text[p.pos:]
		switch {
		case rest == "":
			return nil, errNoClassEnd
		case rest[0] == ']' && !first:
			p.pos++
			return []node{{op: opClass, class: c}}, nil
		}
		if inner, ok := strings.CutPrefix(rest, "[:"); ok {
			if name, _, ok := strings.Cut(inner, ":]"); ok && namedClasses[name] != nil {
				c.ranges = append(c.ranges, namedClasses[name]...)
				p.pos += len("[:") + len(name) + len(":]")
				continue
			}
		}

		low, err := p.readMember()
		if err != nil {
			return nil, err
		}
		high := low
		if rest := p.text[p.pos:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			p.pos++
			if high, err = p.readMember(); err != nil {
				return nil, err
			}
		}
		if high < low {
			return nil, errReversedRange
		}
		c.ranges = append(c.ranges, [2]rune{low, high})
	}
}

// readMember reads a character of a class.
func (p *parser) readMember() (rune, error) {
	if p.text[p.pos] == '\\' {
		if p.pos++; p.pos == len(p.text) {
			return 0, errNoClassEnd
		}
	}
	return p.readRune(), nil
}

// namedClasses are the classes with names, such as [:digit:].
var namedClasses = map[string][][2]rune{
	"alnum": {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, "alpha": {{'A', 'Z'}, {'a', 'z'}}, "ascii": {{0, 0x7f}},
	"blank": {{'\t', '\t'}, {' ', ' '}}, "cntrl": {{0, 0x1f}, {0x7f, 0x7f}}, "digit": {{'0', '9'}},
	"graph": {{'!', '~'}}, "lower": {{'a', 'z'}}, "print": {{' ', '~'}},
	"punct": {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, "space": {{'\t', '\r'}, {' ', ' '}},
	"upper": {{'A', 'Z'}}, "word": {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, "xdigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
}
