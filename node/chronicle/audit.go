package chronicle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Kind is a part of the audit.
type Kind string

// Parts of the audit.
const (
	Everything Kind = "all"
	Changes    Kind = "changes"  // in the catalog, the same on each node
	Accesses   Kind = "accesses" // reads and refusals, in the files of each node
)

// AuditRequest asks for lines of the audit. The zero value asks for the newest 50 lines of all
// parts.
type AuditRequest struct {
	Kind          Kind      // "": all
	Since, Until  time.Time // zero: no limit; Until is exclusive
	Action        string    // api_key.created, or a prefix such as api_key
	Actor         string    // id, e-mail address, name or key of the actor
	Page, PerPage int       // from 1; at most MaxLines per page
	After         *Line     // instead of a page: lines after this one
}

// AuditResponse lists lines, newest first.
type AuditResponse struct {
	Lines   []Line
	Total   int  // over all pages; not set with After
	AtLeast bool // the total is a lower bound
	Missing []Gap
}

// Gap is a node whose lines may be missing, and why.
type Gap struct{ Node, Why string }

// Line returns the gap as a line of an export.
func (g Gap) Line(now time.Time) *Line {
	l := &Line{At: now.UTC(), Action: "audit.missing", ActorType: catalog.ActorSystem, TargetType: "node", TargetID: g.Node}
	l.setMetadata("message", g.Why)
	return l
}

// MaxLines is the maximum of lines per request.
const MaxLines = 5000

// Limits of one request.
const (
	maxDepth    = 10000            // lines before the end of a page, if nodes are asked
	lookTimeout = 10 * time.Second // for a node to search its files
)

// accessesCall asks a node for its accesses.
var accessesCall = call.To[look, looked]("accesses")

// Audit lists who changed what and who read what. Changes are from the catalog of this node. For
// reads and refusals it asks each node, and the response names those whose lines may be missing.
// Lines may name repositories that the owner cannot see.
func (c *Chronicle) Audit(ctx context.Context, _ account.Owner, req AuditRequest) (*AuditResponse, error) {
	if err := req.check(); err != nil {
		return nil, err
	}

	// Old events stay in the catalog until the next change, but are not shown.
	if keep := c.d.Rule().Keep; keep > 0 {
		req.Since = laterOf(req.Since, c.d.Now().Add(-keep))
	}

	out := &AuditResponse{}
	if req.Kind != Accesses {
		c.addChanges(&req, out)
	}
	if req.Kind != Changes {
		c.addAccesses(ctx, &req, out)
	}

	// Cut the page from the newest lines.
	slices.SortFunc(out.Lines, func(a, b Line) int { return a.compare(&b) })
	from := min(len(out.Lines), (req.Page-1)*req.PerPage)
	out.Lines = out.Lines[from:min(len(out.Lines), from+req.PerPage)]
	return out, nil
}

// check sets defaults and refuses invalid values.
func (req *AuditRequest) check() error {
	// Defaults: the newest lines of all parts.
	req.Kind, req.Page, req.PerPage = cmp.Or(req.Kind, Everything), cmp.Or(req.Page, 1), cmp.Or(req.PerPage, 50)

	switch {
	case !slices.Contains([]Kind{Everything, Changes, Accesses}, req.Kind):
		return call.Fail(call.ErrInvalid, "kind must be all, changes or accesses")
	case req.Page < 1 || req.After != nil && req.Page > 1:
		return call.Fail(call.ErrInvalid, "page must be at least 1")
	case req.PerPage < 1 || req.PerPage > MaxLines:
		return call.Fail(call.ErrInvalid, "perPage must be from 1 to %d", MaxLines)

	// Each page needs all earlier lines sorted, so deep pages would cost too much.
	case req.Kind != Changes && req.Page > maxDepth/req.PerPage:
		return call.Fail(call.ErrInvalid, "a page stands behind %d entries at most: bound the list by since and until, or ask for all of it with format=jsonl", maxDepth)
	case !req.Since.IsZero() && !req.Until.IsZero() && !req.Since.Before(req.Until):
		return call.Fail(call.ErrInvalid, "since must be before until")
	}
	return nil
}

// toLook returns the request for one of the lists that Audit merges.
func (req *AuditRequest) toLook() *look {
	return &look{
		Since:  req.Since,
		Until:  req.Until,
		Action: req.Action,
		Actor:  req.Actor,
		After:  req.After,
		Limit:  req.Page * req.PerPage,
	}
}

// addChanges adds the newest matching changes, and counts all of them.
func (c *Chronicle) addChanges(req *AuditRequest, out *AuditResponse) {
	q := req.toLook()
	for e := range c.d.View().EventsBefore(0) {
		if e.At.Before(q.Since) {
			break // the catalog's clock never goes back
		}

		l := lineOfChange(e)
		if !q.matches(&l) {
			continue
		}
		if out.Total++; out.Total <= q.Limit {
			out.Lines = append(out.Lines, l)
		} else if req.After != nil {
			break // with After, no total is needed
		}
	}
}

// addAccesses adds the newest accesses of each node that answers.
func (c *Chronicle) addAccesses(ctx context.Context, req *AuditRequest, out *AuditResponse) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout+time.Second)
	defer cancel()

	var nodes []string

	// Name the nodes that cannot answer, so that an incomplete list does not look complete.
	for _, m := range c.d.Members() {
		if m.Alive {
			nodes = append(nodes, m.ID)
		} else if m.State != catalog.MemberRemoved {
			out.Missing = append(out.Missing, Gap{m.ID, "it cannot be reached"})
		}
	}

	answers := accessesCall.AskAll(ctx, c.d.Net, nodes, req.toLook())
	for _, id := range nodes {
		part := answers[id]

		switch {
		case part == nil:
			out.Missing = append(out.Missing, Gap{id, "it did not answer"})
			continue
		case !part.Back.IsZero():
			out.Missing = append(out.Missing, Gap{id, "it had time to look back to " + part.Back.UTC().Format(time.DateTime) + " only"})
		}
		if part.Newer > 0 {
			out.Missing = append(out.Missing, Gap{id, fmt.Sprintf("a newer version of shoal has written %d entries that it cannot read: upgrade it", part.Newer)})
		}
		out.Lines = append(out.Lines, part.Lines...)
		out.Total += len(part.Lines)
		out.AtLeast = out.AtLeast || part.More
	}
	slices.SortFunc(out.Missing, func(a, b Gap) int { return strings.Compare(a.Node, b.Node) })
}

// serveAccesses returns the accesses on this node.
func (c *Chronicle) serveAccesses(ctx context.Context, q *look) (*looked, error) {
	if q.Limit < 1 || q.Limit > maxDepth {
		return nil, fmt.Errorf("%d lines are asked for, want 1 to %d", q.Limit, maxDepth)
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return c.trail.search(ctx, q)
}
