package api

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"strconv"
	"time"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

// auditor is what the route and the page of the audit need.
type auditor interface {
	Audit(context.Context, account.Owner, chronicle.AuditRequest) (*chronicle.AuditResponse, error)
}

// auditRoutes are the routes of the audit.
type auditRoutes struct {
	auditor auditor
	base    string
	now     func() time.Time
}

func (a *auditRoutes) rows() []route {
	return []route{
		row("GET", "/api/audit", accessOwner, adminTimeout, owners(a.list)),
	}
}

// auditJSON is a change in the audit.
type auditJSON struct {
	ID         string            `json:"id"`
	Timestamp  string            `json:"timestamp"`
	Action     string            `json:"action"`
	ActorID    string            `json:"actorId"`
	ActorType  string            `json:"actorType"`
	ActorName  string            `json:"actorName,omitempty"`
	TargetID   string            `json:"targetId"`
	TargetType string            `json:"targetType"`
	Address    string            `json:"address,omitempty"`
	UserAgent  string            `json:"userAgent,omitempty"`
	Node       string            `json:"node"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

func auditOf(e *catalog.Event) auditJSON {
	out := auditJSON{
		ID: strconv.FormatUint(e.ID, 10), Timestamp: stamp(e.At), Action: e.Action,
		ActorID: e.Actor.ID, ActorType: e.Actor.Type, ActorName: e.Actor.Name,
		TargetID: e.Target, TargetType: e.TargetType, Address: e.Actor.Address, UserAgent: e.Actor.Agent, Node: e.Node,
	}

	for name, value := range map[string]string{"message": e.Message, "credential": e.Actor.Key} {
		if value == "" {
			continue
		}
		if out.Metadata == nil {
			out.Metadata = map[string]string{}
		}
		out.Metadata[name] = value
	}
	return out
}

// list is GET /api/audit: a page of a list, or all of it as JSON lines.
func (a *auditRoutes) list(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := chronicle.AuditRequest{
		Since: p.timestamp("since"), Until: p.timestamp("until"), Action: p.text("action"), Actor: p.text("actor"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
	}
	lines := p.choice("format", "json", "jsonl") == "jsonl"
	if err := p.err(); err != nil {
		return err
	}

	if lines {
		return a.lines(ctx, c, by, req)
	}

	r, err := a.auditor.Audit(ctx, by, req)
	if err != nil {
		return err
	}

	out := make([]auditJSON, len(r.Events))
	for i := range r.Events {
		out[i] = auditOf(&r.Events[i])
	}
	c.page(a.base, paged{req.Page, req.PerPage, len(out), r.Total, false})
	return c.json(out)
}

// lines writes all pages, one event a line. Events that come meanwhile are
// newer than the list: it goes back from the time at which it began.
func (a *auditRoutes) lines(ctx context.Context, c *call, by account.Owner, req chronicle.AuditRequest) error {
	req.Page, req.PerPage = 1, 100
	if req.Until.IsZero() {
		req.Until = a.now().Add(time.Millisecond)
	}

	r, err := a.auditor.Audit(ctx, by, req)
	if err != nil {
		return err
	}

	c.mime = mimeLines
	c.stream = func(w *bufio.Writer) error {
		enc := json.NewEncoder(w)
		for len(r.Events) > 0 {
			for i := range r.Events {
				if err := enc.Encode(auditOf(&r.Events[i])); err != nil {
					return err
				}
			}
			if err := w.Flush(); err != nil {
				return err
			}

			req.Page++
			if r, err = a.auditor.Audit(ctx, by, req); err != nil {
				return err
			}
		}
		return nil
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
	v, said := c.viewer, c.requestHeader("User-Agent")
	a := catalog.Actor{ID: cmp.Or(v.Account, v.KeyID), Name: v.Name, Key: cmp.Or(v.Session, v.KeyID), Agent: said[:min(len(said), maxAgentSaid)]}
	if addr := c.address(trusted); addr.IsValid() {
		a.Address = addr.String()
	}

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
