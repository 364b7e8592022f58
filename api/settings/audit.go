package settings

import (
	"context"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

var auditTemplate = parse("audit.html")

// auditPerPage is the changes of a page of the list.
const auditPerPage = 100

// audit is the list of who changed what.
func (p *Pages) audit(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}
	q := v.Query
	number, _ := strconv.Atoi(q.Get("page"))
	req := chronicle.AuditRequest{Action: strings.TrimSpace(q.Get("action")), Actor: strings.TrimSpace(q.Get("actor")), Page: max(1, number), PerPage: auditPerPage}
	r, err := p.Deps.Audit.Audit(ctx, by, req)
	if err != nil {
		return err
	}

	type row struct {
		catalog.Event
		When when
		Who  string
	}
	data := struct {
		Request chronicle.AuditRequest
		Total   string
		Rows    []row
		Turns   turns
	}{Request: req, Total: layout.Counted(r.Total, "change", "changes")}
	for _, e := range r.Events {
		who := e.Actor.Name
		if who == "" {
			who = e.Actor.ID
		}
		data.Rows = append(data.Rows, row{e, p.when(e.At), who})
	}
	data.Turns = turnsOf("/settings/audit", q, req.Page, auditPerPage, r.Total)
	return p.show(v, "audit", "Audit", auditTemplate, data)
}
