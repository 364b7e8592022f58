package settings

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

var auditTemplate = parse("audit.html")

// auditPerPage is the number of entries on a page.
const auditPerPage = 100

// audit shows the list of changes and accesses.
func (p *Pages) audit(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	q := v.Query
	number, _ := strconv.Atoi(q.Get("page"))
	req := chronicle.AuditRequest{
		Kind:    chronicle.Kind(q.Get("kind")),
		Action:  strings.TrimSpace(q.Get("action")),
		Actor:   strings.TrimSpace(q.Get("actor")),
		Page:    max(1, number),
		PerPage: auditPerPage,
	}

	r, err := p.Chronicle.Audit(ctx, by, req)
	if err != nil {
		return err
	}

	type row struct {
		chronicle.Line
		When    layout.When
		Who     string
		Browser string
		Detail  string
	}
	data := struct {
		Request chronicle.AuditRequest
		Total   string
		Missing []chronicle.Gap
		Kinds   []chronicle.Kind
		Rows    []row
		Turns   turns
	}{
		Request: req, Total: layout.Counted(r.Total, "entry", "entries"), Missing: r.Missing,
		Kinds: []chronicle.Kind{chronicle.Everything, chronicle.Changes, chronicle.Accesses},
	}

	// The count may have stopped early.
	if r.AtLeast {
		data.Total = "At least " + data.Total
	}

	for _, l := range r.Lines {
		data.Rows = append(data.Rows, row{l, p.when(l.At), cmp.Or(l.ActorName, l.ActorID), browserOf(l.UserAgent), detailOf(&l)})
	}

	data.Turns = turnsOf("/settings/audit", q, req.Page, auditPerPage, r.Total)
	return p.show(v, "audit", "Audit", auditTemplate, data)
}

// browsers and systems are parts of User-Agent headers, the more specific ones first.
var (
	browsers = [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Version/", "Safari"}}
	systems  = []string{"Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux"}
)

// browserOf shortens a User-Agent for people: "Chrome 156, Linux". For a program that is no browser it
// returns the first word.
func browserOf(agent string) string {
	for _, b := range browsers {
		_, version, ok := strings.Cut(agent, b[0])
		if !ok {
			continue
		}
		version, _, _ = strings.Cut(version, ".")
		name := b[1] + " " + version
		if at := slices.IndexFunc(systems, func(s string) bool { return strings.Contains(agent, s) }); at >= 0 {
			name += ", " + systems[at]
		}
		return name
	}
	name, _, _ := strings.Cut(agent, " ")
	return name
}

// detailOf returns the details of an entry that have no column: an error's status, how often it
// happened, the message and the query.
func detailOf(l *chronicle.Line) string {
	var details []string
	if l.Status >= 400 {
		details = append(details, fmt.Sprint("answered ", l.Status))
	}

	if l.Count > 0 { // one line may stand for many accesses
		details = append(details, layout.Counted(l.Count, "time", "times"))
	}

	for _, name := range []string{"message", "query"} {
		if text := l.Metadata[name]; text != "" {
			details = append(details, text)
		}
	}

	return strings.Join(details, ", ")
}
