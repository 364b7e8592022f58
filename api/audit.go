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

// trail reads events and the audit, and adds accesses to the audit.
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

func (a *auditRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/events", accessOwner, quickTimeout, ownerHandler(a.listEvents)),
		newRoute("GET", "/api/audit", accessOwner, streamTimeout, ownerHandler(a.list)),
	}
}

// listEvents handles GET /api/events.
func (a *auditRoutes) listEvents(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := chronicle.EventsRequest{Limit: p.integer("limit", 100, 1, 1000), After: p.text("after")}
	if err := p.err(); err != nil {
		return err
	}
	return c.answer(a.chronicle.Events(ctx, by, req))
}

// missingHeader is the header with the nodes whose entries may be missing, and why.
const missingHeader = "X-Audit-Missing"

// list handles GET /api/audit: one page as JSON, or all lines as JSON lines.
func (a *auditRoutes) list(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := chronicle.AuditRequest{
		Kind:  chronicle.Kind(p.choice("kind", string(chronicle.Everything), string(chronicle.Changes), string(chronicle.Accesses))),
		Since: p.timestamp("since"), Until: p.timestamp("until"), Action: p.text("action"), Actor: p.text("actor"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
	}
	asLines := p.choice("format", "json", "jsonl") == "jsonl"
	if err := p.err(); err != nil {
		return err
	}

	// An export has no pages; it begins with the newest event.
	if asLines {
		return a.streamLines(ctx, c, by, req)
	}
	r, err := a.readPage(ctx, c, by, req)
	if err != nil {
		return err
	}
	return c.json(r.Lines, reply.Precise)
}

// readPage reads one page of the audit, and sets the headers for its page and its gaps.
func (a *auditRoutes) readPage(ctx context.Context, c *call, by account.Owner, req chronicle.AuditRequest) (*chronicle.AuditResponse, error) {
	r, err := a.chronicle.Audit(ctx, by, req)
	if err != nil {
		return nil, err
	}

	// Report gaps in a header, so that the body is a list of lines only.
	c.setPageHeaders(a.base(), paged{req.Page, req.PerPage, len(r.Lines), r.Total, r.AtLeast})
	c.setMissing(r.Missing)
	return r, nil
}

// setMissing sets missingHeader if there are gaps.
func (c *call) setMissing(gaps []chronicle.Gap) {
	var texts []string
	for _, g := range gaps {
		texts = append(texts, g.Node+": "+g.Why)
	}
	if len(texts) > 0 {
		c.setHeader(missingHeader, strings.Join(texts, "; "))
	}
}

// streamLines streams the audit as JSON lines, newest first, page by page. The last lines name the
// nodes whose entries may be missing.
func (a *auditRoutes) streamLines(ctx context.Context, c *call, by account.Owner, req chronicle.AuditRequest) error {
	req.Page, req.PerPage = 1, chronicle.MaxLines
	r, err := a.chronicle.Audit(ctx, by, req)
	if err != nil {
		return err
	}

	// The header is sent before the later pages are read, so their gaps are sent as lines at the end.
	c.setMissing(r.Missing)
	c.mime = mimeLines
	c.stream = func(w *bufio.Writer) error {
		enc := json.NewEncoder(w)

		// Do not escape < and >: programs read these lines, not browsers.
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

			// The next page begins after the last line. A page number would repeat lines: new events are
			// added at the front.
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

// timestamp returns the time of a parameter in RFC 3339, or the start of a day. It returns the zero
// time for a missing parameter, and for an invalid one, which it reports.
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

// maxUserAgent limits the User-Agent in the audit, in bytes.
const maxUserAgent = 200

// actor returns who made a call, for the audit.
func (c *call) actor(trusted func(netip.Addr) bool) catalog.Actor {
	// Prefer the account to the key, so that the audit names people. Shorten the User-Agent,
	// which may contain anything.
	v, userAgent := c.viewer, c.requestHeader("User-Agent")
	a := catalog.Actor{ID: cmp.Or(v.Account, v.KeyID), Name: v.Name, Key: cmp.Or(v.Session, v.KeyID), Agent: userAgent[:min(len(userAgent), maxUserAgent)]}
	if addr := c.address(trusted); addr.IsValid() {
		a.Address = addr.String()
	}

	// A session is a person's. An agent uses an access token, which has another form than a key and
	// is accepted by the tool server only.
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
