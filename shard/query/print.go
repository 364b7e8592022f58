package query

import (
	"fmt"
	"strings"
	"time"
)

func (q *And) String() string { return printGroup("and", q.Subs) }

func (q *Or) String() string { return printGroup("or", q.Subs) }

func (q *Not) String() string { return "(not " + q.Sub.String() + ")" }

func (q Const) String() string { return fmt.Sprintf("%t", bool(q)) }

func (q *Text) String() string {
	field := fieldNames[q.Field]
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

// fieldNames are the filters that search the fields.
var fieldNames = [...]string{
	Content: "content", Name: "file", Symbol: "sym",
	Added: "added", Removed: "removed", Message: "message", Author: "author", Committer: "committer",
}

func (q *Dates) String() string {
	var b []string
	if !q.Since.IsZero() {
		b = append(b, "since:"+q.Since.Format(time.RFC3339))
	}
	if !q.Until.IsZero() {
		b = append(b, "until:"+q.Until.Format(time.RFC3339))
	}
	return strings.Join(b, " ")
}

func (q *Merge) String() string { return "merge:" + q.Value }

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

// printGroup returns an operator with its members as a text.
func printGroup(op string, subs []Q) string {
	var b strings.Builder
	b.WriteString("(" + op)
	for _, s := range subs {
		b.WriteString(" " + s.String())
	}
	b.WriteString(")")
	return b.String()
}
