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

// trail reads events and the audit, and records accesses.
type trail interface {
	settings.Chronicle
	NoteAccess(chronicle.Access) // does not block
}

// auditRoutes handles events and the audit.
type auditRoutes struct {
	chronicle trail
	base      func() string
	now       func() time.Time
}

func (a *auditRoutes) rows() []route {
	return []route{
		newRoute("GET", "/api/events", accessOwner, quickTimeout, ownerHandler(a.happened)),
		newRoute("GET", "/api/audit", accessOwner, streamTimeout, ownerHandler(a.list)),
	}
}

// happened handles GET /api/events.
func (a *auditRoutes) happened(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := chronicle.EventsRequest{Limit: p.integer("limit", 100, 1, 1000), After: p.text("after")}
	if err := p.err(); err != nil {
		return err
	}
	return c.answer(a.chronicle.Events(ctx, by, req))
}

// missingHeader names the nodes whose part of a list may be missing, and why.
const missingHeader = "X-Audit-Missing"

// list handles GET /api/audit: one page, or everything as JSON lines.
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

	// An export has no pages; it begins with the newest event.
	if lines {
		return a.lines(ctx, c, by, req)
	}

	r, err := a.page(ctx, c, by, req)
	if err != nil {
		return err
	}
	return c.json(r.Lines, reply.Precise)
}

// page reads one page and sets the answer's headers.
func (a *auditRoutes) page(ctx context.Context, c *call, by account.Owner, req chronicle.AuditRequest) (*chronicle.AuditResponse, error) {
	r, err := a.chronicle.Audit(ctx, by, req)
	if err != nil {
		return nil, err
	}

	// Gaps go into a header, so that the body stays a list.
	c.page(a.base(), paged{req.Page, req.PerPage, len(r.Lines), r.Total, r.AtLeast})
	c.tellMissing(r.Missing)
	return r, nil
}

// tellMissing sets missingHeader if there are gaps.
func (c *call) tellMissing(gaps []chronicle.Gap) {
	var said []string
	for _, g := range gaps {
		said = append(said, g.Node+": "+g.Why)
	}
	if len(said) > 0 {
		c.setHeader(missingHeader, strings.Join(said, "; "))
	}
}

// lines streams all events as JSON lines, newest first. The last lines name the nodes whose part
// may be missing.
func (a *auditRoutes) lines(ctx context.Context, c *call, by account.Owner, req chronicle.AuditRequest) error {
	req.Page, req.PerPage = 1, chronicle.MaxLines
	r, err := a.chronicle.Audit(ctx, by, req)
	if err != nil {
		return err
	}

	// The header is sent before the rest is read, so later gaps come as lines at the end.
	c.tellMissing(r.Missing)
	c.mime = mimeLines
	c.stream = func(w *bufio.Writer) error {
		enc := json.NewEncoder(w)

		// Programs read these lines, so keep < and > as they are.
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

			// Continue before the last line: new events meanwhile come before the first.
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

// timestamp returns a time in RFC 3339, or a day; zero if the parameter is missing.
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

// maxAgentSaid limits the User-Agent that is passed on, in bytes.
const maxAgentSaid = 200

// actor returns the author of a call's changes for the audit.
func (c *call) actor(trusted func(netip.Addr) bool) catalog.Actor {
	// Prefer the account to the key, so that the audit names people. Shorten the User-Agent,
	// which may contain anything.
	v, said := c.viewer, c.requestHeader("User-Agent")
	a := catalog.Actor{ID: cmp.Or(v.Account, v.KeyID), Name: v.Name, Key: cmp.Or(v.Session, v.KeyID), Agent: said[:min(len(said), maxAgentSaid)]}
	if addr := c.address(trusted); addr.IsValid() {
		a.Address = addr.String()
	}

	// An agent uses a token, which does not look like a key and works for the tool server only.
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

// credential returns the key or token in the request's headers.
func (c *call) credential() string {
	text, _ := auth.Credential(c.requestHeader("Authorization"), c.requestHeader(headerKey))
	return text
}
