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

// The parts of the audit.
const (
	Everything Kind = "all"
	Changes    Kind = "changes"  // of the catalog: the same on every node
	Accesses   Kind = "accesses" // reads and refusals, of the files of every node
)

// AuditRequest asks for lines of the audit. The zero value asks for the newest
// 50 of all.
type AuditRequest struct {
	Kind          Kind      // "" is all
	Since, Until  time.Time // zero: no bound; Until is not included
	Action        string    // api_key.created, or all that begin so: api_key
	Actor         string    // id, e-mail address, name or key of who it was
	Page, PerPage int       // from 1; at most MostLines
	After         *Line     // instead of a page: what stands behind this line
}

// AuditResponse lists lines, newest first.
type AuditResponse struct {
	Lines   []Line
	Total   int  // of all pages; not told with After
	AtLeast bool // there are Total or more
	Missing []Gap
}

// Gap is a node of which lines may be missing, and why.
type Gap struct{ Node, Why string }

// Line is a gap as a line of an export.
func (g Gap) Line(now time.Time) *Line {
	l := &Line{At: now.UTC(), Action: "audit.missing", ActorType: catalog.ActorSystem, TargetType: "node", TargetID: g.Node}
	l.tell("message", g.Why)
	return l
}

// MostLines is how many lines one request may ask for.
const MostLines = 5000

// Bounds of one request.
const (
	deepest  = 10000            // lines that a page may stand behind, where nodes are asked
	lookTime = 10 * time.Second // that nodes have to look through their files
)

// accessesCall asks a node for its accesses.
var accessesCall = call.To[look, looked]("accesses")

// Audit lists who changed and who read what. Changes are those of the catalog of
// this node; for reads and refusals every node is asked, and what may be missing is
// told. Names of repositories that an owner does not see stand in it.
func (c *Chronicle) Audit(ctx context.Context, _ account.Owner, req AuditRequest) (*AuditResponse, error) {
	if err := req.check(); err != nil {
		return nil, err
	}

	// What is too old stays until the next change: nobody is told of it.
	if keep := c.d.Rule().Keep; keep > 0 {
		req.Since = later(req.Since, c.d.Now().Add(-keep))
	}

	out := &AuditResponse{}
	if req.Kind != Accesses {
		c.changes(&req, out)
	}
	if req.Kind != Changes {
		c.accesses(ctx, &req, out)
	}

	// Of all that is newest, the page.
	slices.SortFunc(out.Lines, func(a, b Line) int { return a.before(&b) })
	from := min(len(out.Lines), (req.Page-1)*req.PerPage)
	out.Lines = out.Lines[from:min(len(out.Lines), from+req.PerPage)]
	return out, nil
}

// check fills in what the request leaves open, and refuses what no list is of.
func (req *AuditRequest) check() error {
	// What is left open means the newest of everything.
	req.Kind, req.Page, req.PerPage = cmp.Or(req.Kind, Everything), cmp.Or(req.Page, 1), cmp.Or(req.PerPage, 50)

	switch {
	case !slices.Contains([]Kind{Everything, Changes, Accesses}, req.Kind):
		return call.Fail(call.ErrInvalid, "kind must be all, changes or accesses")
	case req.Page < 1 || req.After != nil && req.Page > 1:
		return call.Fail(call.ErrInvalid, "page must be at least 1")
	case req.PerPage < 1 || req.PerPage > MostLines:
		return call.Fail(call.ErrInvalid, "perPage must be from 1 to %d", MostLines)

	// Pages are cut from a sorted list, which grows with their number: a deep one would need all of it.
	case req.Kind != Changes && req.Page > deepest/req.PerPage:
		return call.Fail(call.ErrInvalid, "a page stands behind %d entries at most: bound the list by since and until, or ask for all of it with format=jsonl", deepest)
	case !req.Since.IsZero() && !req.Until.IsZero() && !req.Since.Before(req.Until):
		return call.Fail(call.ErrInvalid, "since must be before until")
	}
	return nil
}

// look is the request for one of the lists that the answer is put together from.
func (req *AuditRequest) look() *look {
	return &look{
		Since:  req.Since,
		Until:  req.Until,
		Action: req.Action,
		Actor:  req.Actor,
		After:  req.After,
		Limit:  req.Page * req.PerPage,
	}
}

// changes adds the newest changes that fit, and counts all of them.
func (c *Chronicle) changes(req *AuditRequest, out *AuditResponse) {
	q := req.look()
	for e := range c.d.View().EventsBefore(0) {
		if e.At.Before(q.Since) {
			break // the clock of the catalog never goes back
		}

		l := lineOfChange(e)
		if !q.fits(&l) {
			continue
		}
		if out.Total++; out.Total <= q.Limit {
			out.Lines = append(out.Lines, l)
		} else if req.After != nil {
			break // nobody asks how many there are
		}
	}
}

// accesses adds the newest accesses of every node that answers.
func (c *Chronicle) accesses(ctx context.Context, req *AuditRequest, out *AuditResponse) {
	ctx, cancel := context.WithTimeout(ctx, lookTime+time.Second)
	defer cancel()

	var nodes []string

	// Whoever cannot answer is named: a list must not look whole that is not.
	for _, m := range c.d.Members() {
		if m.Alive {
			nodes = append(nodes, m.ID)
		} else if m.State != catalog.MemberRemoved {
			out.Missing = append(out.Missing, Gap{m.ID, "it cannot be reached"})
		}
	}

	told := accessesCall.AskAll(ctx, c.d.Net, nodes, req.look())
	for _, id := range nodes {
		part := told[id]

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

// serveAccesses tells another node of the accesses here.
func (c *Chronicle) serveAccesses(ctx context.Context, q *look) (*looked, error) {
	if q.Limit < 1 || q.Limit > deepest {
		return nil, fmt.Errorf("%d lines are asked for, want 1 to %d", q.Limit, deepest)
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return c.trail.look(ctx, q)
}
