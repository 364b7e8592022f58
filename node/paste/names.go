package paste

import (
	"regexp"
	"strings"
)

// Name is a name of source code with what it stands in.
type Name struct {
	Name  string
	Scope []string // packages, types and modules from the outermost one
}

// qualified is a text that is one name with its scope, perhaps with a call:
// pkg.(*Type).Method(0xc0001b2000), ns::Class::method, Class#method, a.b.C.m().
var qualified = regexp.MustCompile(`^(?:new |func |await |&|\*)?` +
	`((?:[\pL_][\pL\pN_./%@~-]*/)?(?:[\pL_$][\pL\pN_$]*|\(\*?[\pL\pN_]+\))(?:<[^<>]*>|\[[^\[\]]*\])?` +
	`(?:(?:\.|::|#|->)(?:\(\*?[\pL\pN_]+(?:\[[^\]]*\])?\)|~?[\pL_$<][\pL\pN_$>-]*)(?:::<[^<>]*>|<[^<>]*>|\[[^\[\]]*\])?)+)` +
	`(?:\([^\n]*\)?)?[;:,]?$`)

// names finds the name that the whole text is. It may be a path as well: dict.c is
// either.
func (r *reader) names() []Name {
	m := qualified.FindStringSubmatch(strings.TrimSpace(r.text))
	if m == nil {
		return nil
	}
	if n := NameOf(m[1]); n.Name != "" {
		return []Name{n}
	}
	return nil
}

var (
	parameters = regexp.MustCompile(`<[^<>]*>|\[[^\[\]]*\]`)
	anonymous  = regexp.MustCompile(`^(?:func[0-9]+|[0-9]+|lambda|closure|_?anonymous|h[0-9a-f]{16}|\{\{closure\}\}|Anonymous)$`)
)

// NameOf reads a name as frames have it: arguments, type parameters and numbers of
// closures are no part of it.
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
