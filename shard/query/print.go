package query

import (
	"fmt"
	"strings"
)

func (q *And) String() string { return group("and", q.Subs) }

func (q *Or) String() string { return group("or", q.Subs) }

func (q *Not) String() string { return "(not " + q.Sub.String() + ")" }

func (q Const) String() string { return fmt.Sprintf("%t", bool(q)) }

func (q *Text) String() string {
	field := [...]string{"content", "file", "sym"}[q.Field]
	kind, fold := "", ""
	if q.Regexp {
		kind = "_regexp"
	}
	if q.Fold {
		fold = "i"
	}
	if q.WordBegins {
		kind += "_begins"
	}
	if q.WordEnds {
		kind += "_ends"
	}
	return fmt.Sprintf("%s%s:%q%s", field, kind, q.Pattern, fold)
}

func (q *Lang) String() string { return fmt.Sprintf("lang:%q", q.Name) }

func (q *Rev) String() string { return fmt.Sprintf("rev:%q", q.Pattern) }

func (q *Repo) String() string {
	fold := ""
	if q.Fold {
		fold = "i"
	}
	return fmt.Sprintf("repo:%q%s", q.Pattern, fold)
}

func (q *RepoSet) String() string { return fmt.Sprintf("reposet:%q", q.Names) }

func (q *Context) String() string { return fmt.Sprintf("context:%q", q.Name) }

func (q *Flag) String() string {
	return [...]string{"archived", "fork", "visibility"}[q.Kind] + ":" + q.Value
}

func (q *Repos) String() string { return "repos:" + q.Set.String() }

// group prints an operator with its members.
func group(op string, subs []Q) string {
	var b strings.Builder
	b.WriteString("(" + op)
	for _, s := range subs {
		b.WriteString(" " + s.String())
	}
	b.WriteString(")")
	return b.String()
}
