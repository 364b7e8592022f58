package paste

import (
	"regexp"
	"slices"
	"strings"
)

// Name is a name in source code, with its scope.
type Name struct {
	Name  string
	Scope []string // packages, types and modules, the outermost first
	Frame bool     // of a call stack
}

// qualified matches a text that is only a name with its scope, perhaps with a call:
// pkg.(*Type).Method(0xc0001b2000), ns::Class::method, Class#method, a.b.C.m().
var qualified = regexp.MustCompile(`^(?:new |func |await |&|\*)?` +
	`(\\?(?:[\pL_][\pL\pN_./%@~-]*/)?(?:[\pL_$][\pL\pN_$]*|\(\*?[\pL\pN_]+\))(?:<[^<>]*>|\[[^\[\]]*\])?` +
	`(?:(?:\.|::|#|->|\\)(?:\(\*?[\pL\pN_]+(?:\[[^\]]*\])?\)|~?[\pL_$<][\pL\pN_$>-]*)(?:::<[^<>]*>|<[^<>]*>|\[[^\[\]]*\])?)+)` +
	`(?:\([^\n]*\)?|/[0-9]{1,2})?[;:,]?$`)

// wrapped matches a name within the signs of a document or a comment: {@link a.B#c()}, `+"`a.b`"+`,
// :func:`+"`~a.b`"+`, <see cref="M:A.B"/>.
var wrapped = regexp.MustCompile("^(?:\\{@\\w+ ([^{}]+)\\}|:(?:\\w+:)+`~?([^`]+)`|`{1,2}([^`]+)`{1,2}|<see(?:also)? cref=\"(?:[A-Z]:)?([^\"]+)\" ?/>|@see ([^\\s]+))[.,;]?$")

// entryPoint matches a module and a name in it, as in a list of plug-ins: acme.cart:Cart.add.
var entryPoint = regexp.MustCompile(`^(\w+(?:\.\w+)+):([\pL_][\w.]*)$`)

// unwrapName returns the name within the signs that wrapped matches, or else the whole text.
func unwrapName(text string) string {
	if m := wrapped.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(strings.Join(m[1:], ""))
	}
	return text
}

// findNames returns the name if the whole text is one, else the names of frames. A text such as
// dict.c can be a name and a path.
func (r *reader) findNames() []Name {
	text := unwrapName(strings.TrimSpace(r.text))
	if m := entryPoint.FindStringSubmatch(text); m != nil {
		text = m[1] + "." + m[2]
	}
	m := qualified.FindStringSubmatch(text)
	if m == nil {
		return r.frameNames()
	}
	if n := NameOf(m[1]); n.Name != "" {
		return []Name{n}
	}
	return nil
}

// frameForms are the forms of frames that have no file. Groups are name, and program as the scope
// of a name without scope. To add one, add a row here and a row to the test.
var frameForms = []*regexp.Regexp{
	// redis-server *:6379(dictAdd+0x45) [0x55a16c7bfcb5]
	re(`(?P<program>[\w.+-]+)(?: [^()\s]{1,60}){0,2}\((?P<name>[\pL_][\w.$:~]*)\+0x[0-9a-f]+\) ?\[0x`),
	// 3   redis-server    0x0000000104a3 dictAdd + 123
	re(`(?P<program>[\w.+-]+)\s+0x[0-9a-f]{6,16} (?P<name>[\pL_~][^\n+]{0,200}) \+ [0-9]+`),
	// Acme.Cart.Add (Acme.Item item) [0x00397] in <d32db49e>:0
	re(`(?P<name>(?:[\pL_][\w<>` + "`" + `+]*\.)+[\w<>` + "`" + `]+) ?\([^()\n]*\) \[0x[0-9a-f]+\] in <[0-9a-f]*`),
	// Acme.Cart.Add(Acme.Item)+a8
	re(`(?P<name>(?:[\pL_]\w*[.!])+\w+)\([^()\n]*\)\+[0-9a-f]+\b`),
	// at Acme.Cart.Add(Item item)     at a.b.Cart.add(Native Method)
	re(`\bat (?P<name>(?:[\pL_$][\w$<>` + "`" + `+]*\.)+[\w$<>` + "`" + `]+) ?\([^()\n:]*\)`),
	// [<ffffffff8117>] vfs_read+0x9a/0x140
	re(`(?:\[<[0-9a-f]+>\] )?(?P<name>[\pL_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+`),
}

// saidForms are messages of linkers and interpreters about a name that they did not find. Groups are
// those of frameForms. To add one, add a row here and a row to the test.
var saidForms = []*regexp.Regexp{
	// undefined reference to `acme::Cart::add(int)'     undefined symbol: acme::Cart::add(int)
	re("(?i:undefined reference to|undefined symbols?:|unresolved external symbol) [`'\"]?(?:[\\w<>*&]+:? ){0,4}(?P<name>[\\pL_][\\w:~]*::[\\w~]+)"),
	// cannot import name 'add' from 'acme.cart'
	re(`cannot import name '(?P<name>\w+)' from '(?P<program>[\w.]+)'`),
	// SUMMARY: ThreadSanitizer: data race (/srv/shop+0x38b) in acme::cart::Cart::add::h0123456789abcdef
	re(`SUMMARY: \w+: [^\n]*\bin (?P<name>[\pL_][\w$]*(?:::[\w~{}$]+)+)`),
	// module 'acme.cart' has no attribute 'add'
	re(`'(?P<program>[\w.]+)' (?:object )?has no attribute '(?P<name>\w+)'`),
}

// frameNames returns the names of frames without a file, or else the names of messages.
func (r *reader) frameNames() []Name {
	if names := r.namesOf(frameForms); names != nil {
		for i := range names {
			names[i].Frame = true
		}
		return names
	}
	return r.namesOf(saidForms)
}

// namesOf returns the names of some forms, without duplicates, in the order of the text.
func (r *reader) namesOf(forms []*regexp.Regexp) []Name {
	type found struct {
		at int
		Name
	}
	var all []found
	for _, form := range forms {
		for _, m := range form.FindAllStringSubmatchIndex(r.text, mostFrames) {
			if !r.claimRange(m[0], m[1]) {
				continue
			}
			group := func(name string) string {
				if i := form.SubexpIndex(name); i > 0 && m[2*i] >= 0 {
					return r.text[m[2*i]:m[2*i+1]]
				}
				return ""
			}
			n := NameOf(group("name"))
			if len(n.Scope) == 0 {
				n.Scope = strings.FieldsFunc(group("program"), func(r rune) bool { return r == '-' || r == '.' })
			}
			all = append(all, found{m[0], n})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return a.at - b.at })

	var out []Name
	for _, f := range all {
		if f.Name.Name != "" && !slices.ContainsFunc(out, func(n Name) bool { return n.Name == f.Name.Name && slices.Equal(n.Scope, f.Scope) }) {
			out = append(out, f.Name)
		}
	}
	return out
}

// mostFrames is the limit of frames without a file.
const mostFrames = 30

var (
	parameters = regexp.MustCompile(`<[^<>]*>|\[[^\[\]]*\]`)
	anonymous  = regexp.MustCompile(`^(?:func[0-9]+|[0-9]+|lambda|closure|_?anonymous|h[0-9a-f]{16}|\{\{closure\}\}|Anonymous)$`)
)

// NameOf parses a name as in a frame. It drops arguments, type parameters and numbers of
// closures.
func NameOf(text string) Name {
	if i := strings.Index(text, "("); i > 0 && !strings.HasPrefix(text[i:], "(*") && text[i-1] != '.' {
		text = text[:i]
	}
	text = parameters.ReplaceAllString(text, "")
	text = strings.NewReplacer("::", ".", "#", ".", "->", ".", "(*", "", "(", "", ")", "", "$", ".", "/", ".", `\`, ".").Replace(text)

	var parts []string
	for _, part := range strings.Split(text, ".") {
		if part = strings.Trim(part, " ~*&"); part != "" && !anonymous.MatchString(part) {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return Name{}
	}
	return Name{Name: parts[len(parts)-1], Scope: parts[:len(parts)-1]}
}
