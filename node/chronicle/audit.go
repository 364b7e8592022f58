package chronicle

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/environ"
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
func (c *Chronicle) Audit(_ context.Context, _ account.Owner, req AuditRequest) (*AuditResponse, error) {
	if err := req.check(); err != nil {
		return nil, err
	}

	// What is too old stays in the catalog until the next change: nobody is told of it.
	if keep := c.d.Rule().Keep; keep > 0 {
		if first := c.d.Now().Add(-keep); req.Since.Before(first) {
			req.Since = first
		}
	}

	out := &AuditResponse{Page: req.Page, Per: req.PerPage}
	for e := range c.d.View().EventsBefore(0) {
		if e.At.Before(req.Since) {
			break // the clock of the catalog never goes back
		}
		if !req.wants(e) {
			continue
		}

		// All are counted, those of the page are kept.
		if out.Total/req.PerPage == req.Page-1 {
			out.Events = append(out.Events, *e)
		}
		out.Total++
	}
	return out, nil
}

// check fills in what the request leaves open, and refuses what no list is of.
func (req *AuditRequest) check() error {
	if err := call.CheckPage(&req.Page, &req.PerPage, 50); err != nil {
		return err
	}

	switch {
	case !req.Since.IsZero() && !req.Until.IsZero() && !req.Since.Before(req.Until):
		return call.Fail(call.ErrInvalid, "since must be before until")
	}
	return nil
}

// wants reports whether an event is one that is asked for.
func (req *AuditRequest) wants(e *catalog.Event) bool {
	switch {
	case !req.Until.IsZero() && !e.At.Before(req.Until):
		return false
	case req.Action != "" && e.Action != req.Action && !strings.HasPrefix(e.Action, req.Action+"."):
		return false
	case req.Actor == "":
		return true
	}

	a := &e.Actor
	return slices.Contains([]string{a.ID, a.Key, a.Type}, req.Actor) || strings.EqualFold(a.Name, req.Actor)
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
	return environ.Days(text, usualAuditDays, 0, mostAuditDays)
}

// Variables is where the audit's variables are looked up.
type Variables interface {
	// Lookup is a variable as it is in force.
	Lookup(name string) (text string, ok bool)
	// Flag is a variable that says true or false.
	Flag(name string) (value, set bool)
}

// Rule is how changes are audited by the variables in force.
func Rule(env Variables) cluster.Audit {
	text, _ := env.Lookup(AuditDaysVariable)
	days, err := ParseAuditDays(text)
	if err != nil {
		days = usualAuditDays
	}

	on, set := env.Flag(AuditVariable)
	return cluster.Audit{Off: set && !on, Keep: time.Duration(days) * 24 * time.Hour}
}
