package node

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// AuditRequest asks for the changes that people made. The zero value asks for
// the newest 50 of all.
type AuditRequest struct {
	Since, Until  time.Time // zero: no bound; Until is not included
	Action        string    // api_key.created, or all that begin so: api_key
	Actor         string    // id, e-mail address, name or key of who made the change
	Page, PerPage int       // from 1; at most 100
}

// AuditResponse lists changes, newest first.
type AuditResponse struct {
	Events []catalog.Event
	Total  int // of all pages
	Page   int
	Per    int
}

// Audit lists who changed what, as the catalog of this node has it: any node
// answers alike. Names of repositories that an owner does not see stand in it.
func (n *Node) Audit(_ context.Context, _ account.Owner, req AuditRequest) (*AuditResponse, error) {
	req.Page, req.PerPage = cmp.Or(req.Page, 1), cmp.Or(req.PerPage, 50)
	switch {
	case req.Page < 1:
		return nil, call.Fail(call.ErrInvalid, "page must be at least 1")
	case req.PerPage < 1 || req.PerPage > 100:
		return nil, call.Fail(call.ErrInvalid, "perPage must be from 1 to 100")
	case !req.Since.IsZero() && !req.Until.IsZero() && !req.Since.Before(req.Until):
		return nil, call.Fail(call.ErrInvalid, "since must be before until")
	}

	// What is too old stays in the catalog until the next change: nobody is told of it.
	if keep := n.auditRule().Keep; keep > 0 {
		if first := n.opt.Now().Add(-keep); req.Since.Before(first) {
			req.Since = first
		}
	}

	out := &AuditResponse{Page: req.Page, Per: req.PerPage}
	for e := range n.cluster.View().EventsBefore(0) {
		if e.At.Before(req.Since) {
			break // the clock of the catalog never goes back
		}
		if !req.wants(e) {
			continue
		}
		if out.Total/req.PerPage == req.Page-1 {
			out.Events = append(out.Events, *e)
		}
		out.Total++
	}
	return out, nil
}

// wants tells whether an event is one that is asked for.
func (r *AuditRequest) wants(e *catalog.Event) bool {
	switch {
	case !r.Until.IsZero() && !e.At.Before(r.Until):
		return false
	case r.Action != "" && e.Action != r.Action && !strings.HasPrefix(e.Action, r.Action+"."):
		return false
	}
	a := &e.Actor
	return r.Actor == "" || a.ID == r.Actor || a.Key == r.Actor || strings.EqualFold(a.Name, r.Actor) || a.Type == r.Actor
}

// The variables of the audit.
const (
	AuditVariable     = "SOURCEBOT_EE_AUDIT_LOGGING_ENABLED"
	AuditDaysVariable = "SOURCEBOT_EE_AUDIT_RETENTION_DAYS"
)

const (
	usualAuditDays = 180
	mostAuditDays  = 36500 // which no duration overflows by
)

// ParseAuditDays reads AuditDaysVariable: for how many days changes are kept, 0
// for as long as there is room; "" is 180.
func ParseAuditDays(text string) (days int, err error) {
	if text = strings.TrimSpace(text); text == "" {
		return usualAuditDays, nil
	}
	days, err = strconv.Atoi(text)
	if err != nil || days < 0 || days > mostAuditDays {
		return 0, fmt.Errorf("want a whole number of days from 0 to %d", mostAuditDays)
	}
	return days, nil
}

// auditRule is how changes are audited by the variables in force.
func (n *Node) auditRule() cluster.Audit {
	text, _ := n.env.Lookup(AuditDaysVariable)
	days, err := ParseAuditDays(text)
	if err != nil {
		days = usualAuditDays
	}
	on, set := n.env.Flag(AuditVariable)
	return cluster.Audit{Off: set && !on, Keep: time.Duration(days) * 24 * time.Hour}
}
