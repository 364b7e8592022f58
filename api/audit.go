package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/api/settings"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

// trail tells what happened and who did what, and keeps what was read and refused.
type trail interface {
	settings.Chronicle
	NoteAccess(chronicle.Access) // does not wait
}

// auditRoutes are the routes of what happened, and of who did what.
type auditRoutes struct {
	chronicle trail
	base      func() string
	now       func() time.Time
}

func (a *auditRoutes) rows() []route {
	return []route{
		row("GET", "/api/events", accessOwner, quickTimeout, owners(a.happened)),
		row("GET", "/api/audit", accessOwner, streamTimeout, owners(a.list)),
	}
}

// happened is GET /api/events.
func (a *auditRoutes) happened(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := chronicle.EventsRequest{Limit: p.integer("limit", 100, 1, 1000), After: p.text("after")}
	if err := p.err(); err != nil {
		return err
	}
	return c.answer(a.chronicle.Events(ctx, by, req))
}

// missingHeader names the nodes of which a list may lack something, and says why.
const missingHeader = "X-Audit-Missing"

// list is GET /api/audit: a page of a list, or all of it as JSON lines.
func (a *auditRoutes) list(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := chronicle.AuditRequest{
		Kind:  chronicle.Kind(p.choice("kind", string(chronicle.Everything), string(chronicle.Changes), string(chronicle.Accesses))),
		Since: p.timestamp("since"), Until: p.timestamp("until"), Action: p.text("action"), Actor: p.text("actor"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
	}
	lines := p.choice("format", "json", "jsonl") == "jsonl"
	if err := p.err(); err != nil {
		return err
	}

	// An export has no pages: it begins where the newest event is.
	if lines {
		return a.lines(ctx, c, by, req)
	}

	r, err := a.page(ctx, c, by, req)
	if err != nil {
		return err
	}
	return c.json(r.Lines, reply.Precise)
}

// page reads a page of the list and sets the headers of the answer.
func (a *auditRoutes) page(ctx context.Context, c *call, by account.Owner, req chronicle.AuditRequest) (*chronicle.AuditResponse, error) {
	r, err := a.chronicle.Audit(ctx, by, req)
	if err != nil {
		return nil, err
	}

	// Gaps are a header, so that the list stays a list.
	c.page(a.base(), paged{req.Page, req.PerPage, len(r.Lines), r.Total, r.AtLeast})
	c.tellMissing(r.Missing)
	return r, nil
}

// tellMissing names the nodes of which something may be missing.
func (c *call) tellMissing(gaps []chronicle.Gap) {
	var said []string
	for _, g := range gaps {
		said = append(said, g.Node+": "+g.Why)
	}
	if len(said) > 0 {
		c.setHeader(missingHeader, strings.Join(said, "; "))
	}
}

// lines writes everything, one event a line, newest first; at the end a line for
// each node of which something may be missing.
func (a *auditRoutes) lines(ctx context.Context, c *call, by account.Owner, req chronicle.AuditRequest) error {
	req.Page, req.PerPage = 1, chronicle.MostLines
	r, err := a.chronicle.Audit(ctx, by, req)
	if err != nil {
		return err
	}

	// The header goes out before the rest is asked for: what fails later is told at the end.
	c.tellMissing(r.Missing)
	c.mime = mimeLines
	c.stream = func(w *bufio.Writer) error {
		enc := json.NewEncoder(w)

		// Lines are for programs: < and > of a query stay as they are.
		enc.SetEscapeHTML(false)

		gaps := map[chronicle.Gap]bool{}
		for {
			for i := range r.Lines {
				if err := enc.Encode(&r.Lines[i]); err != nil {
					return err
				}
			}
			for _, g := range r.Missing {
				gaps[g] = true
			}
			if err := w.Flush(); err != nil {
				return err
			}

			// What comes meanwhile is newer: the list goes back from its last line.
			if len(r.Lines) == 0 {
				break
			}

			req.After = &r.Lines[len(r.Lines)-1]
			if r, err = a.chronicle.Audit(ctx, by, req); err != nil {
				return err
			}
		}

		for g := range gaps {
			if err := enc.Encode(g.Line(a.now())); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	return nil
}

const mimeLines = "application/jsonl; charset=utf-8"

// timestamp is a time as RFC 3339 has it, zero where it is not given.
func (p *params) timestamp(name string) time.Time {
	s, ok := p.c.arg(name)
	if !ok || s == "" {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	p.wrong(name, "expected a time such as 2026-01-31T12:00:00Z or a day such as 2026-01-31")
	return time.Time{}
}

// maxAgentSaid is how much of what a client says of itself is passed on.
const maxAgentSaid = 200

// actor is who asks for the changes of a call, for the audit.
func (c *call) actor(trusted func(netip.Addr) bool) catalog.Actor {
	// An account before its key, and the session before both: the audit names people
	// where it can. What a client says of itself is cut, for it may say anything.
	v, said := c.viewer, c.requestHeader("User-Agent")
	a := catalog.Actor{ID: cmp.Or(v.Account, v.KeyID), Name: v.Name, Key: cmp.Or(v.Session, v.KeyID), Agent: said[:min(len(said), maxAgentSaid)]}
	if addr := c.address(trusted); addr.IsValid() {
		a.Address = addr.String()
	}

	// An agent comes with a token, which has not the form of a key and is good for the
	// tool server alone.
	switch {
	case v.Session != "":
		a.Type = catalog.ActorUser
	case v.KeyID != "" && c.path == toolPath && v.Role == catalog.RoleMember && !account.WellFormed(c.credential()):
		a.Type = catalog.ActorAgent

	case v.KeyID != "":
		a.Type = catalog.ActorKey
	case v.Role == catalog.RoleOwner && c.door == doorSocket:
		a.Type = catalog.ActorOperator

	default:
		a.Type, a.Name = catalog.ActorGuest, ""
	}
	return a
}

// credential is the key or token that a request shows in its headers.
func (c *call) credential() string {
	text, _ := auth.Credential(c.requestHeader("Authorization"), c.requestHeader(headerKey))
	return text
}
