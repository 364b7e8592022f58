package api

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/chronicle"
)

// referenceRoutes handles the routes below /api/ee, by which Sourcebot's clients read accounts and
// the audit.
type referenceRoutes struct {
	users   people.Accounts
	audit   auditRoutes
	version string
}

func (a *referenceRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/ee/users", accessOwner, adminTimeout, ownerHandler(a.list)),
		newRoute("GET", "/api/ee/user", accessOwner, adminTimeout, ownerHandler(a.get)),
		newRoute("DELETE", "/api/ee/user", accessOwner, adminTimeout, ownerHandler(a.remove)),
		newRoute("GET", "/api/ee/audit", accessOwner, streamTimeout, ownerHandler(a.events)),
	}
}

// referenceUserJSON is an account in Sourcebot's format. null means that the time is unknown, or
// that it never happened.
type referenceUserJSON struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Email     string  `json:"email"`
	Role      string  `json:"role"`
	Suspended *string `json:"suspendedAt"`
	Created   string  `json:"createdAt"`
	Updated   string  `json:"updatedAt"`
	Active    *string `json:"lastActivityAt"`
}

func referenceUserOf(u *account.UserInfo) referenceUserJSON {
	out := referenceUserJSON{
		ID: u.ID, Name: u.Name, Email: u.Email, Role: strings.ToUpper(u.Role.String()),
		Created: formatTime(u.Created), Updated: formatTime(u.Created),
	}

	// The account does not store when it was suspended. Any time tells clients that it is suspended.
	if u.State == catalog.AccountSuspended {
		out.Suspended = &out.Updated
	}
	if !u.Used.IsZero() {
		used := formatTime(u.Used)
		out.Active = &used
	}
	return out
}

// list handles GET /api/ee/users.
func (a *referenceRoutes) list(ctx context.Context, c *call, by account.Owner) error {
	all, err := a.users.Users(ctx, by)
	if err != nil {
		return err
	}
	out := make([]referenceUserJSON, len(all))
	for i := range all {
		out[i] = referenceUserOf(&all[i])
	}
	return c.json(out)
}

// get handles GET /api/ee/user?userId=.
func (a *referenceRoutes) get(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	id := p.required("userId")
	if err := p.err(); err != nil {
		return err
	}
	all, err := a.users.Users(ctx, by)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].ID == id {
			return c.json(referenceUserOf(&all[i]))
		}
	}
	return &failure{Status: 404, Code: codeNotFound, Message: "There is no account with this id."}
}

// remove handles DELETE /api/ee/user?userId=.
func (a *referenceRoutes) remove(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	id := p.required("userId")
	if err := p.err(); err != nil {
		return err
	}
	u, err := a.users.DeleteUser(ctx, by, id)
	if err != nil {
		return err
	}
	return c.json(struct {
		Success bool   `json:"success"`
		Message string `json:"message"`
	}{true, "The account " + u.Email + " is deleted."})
}

// auditRowJSON is a line of the audit with the members that Sourcebot adds.
type auditRowJSON struct {
	chronicle.Line
	Metadata map[string]string `json:"metadata"`
	Version  string            `json:"sourcebotVersion"`
	Org      int               `json:"orgId"`
}

// events handles GET /api/ee/audit.
func (a *referenceRoutes) events(ctx context.Context, c *call, by account.Owner) error {
	p := c.params()
	req := chronicle.AuditRequest{
		Since: p.timestamp("since"), Until: p.timestamp("until"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
	}
	if !req.Since.IsZero() && !req.Until.IsZero() && !req.Since.Before(req.Until) {
		p.wrong("since", "expected a time before until")
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.audit.readPage(ctx, c, by, req)
	if err != nil {
		return err
	}
	out := make([]auditRowJSON, len(r.Lines))
	for i, line := range r.Lines {
		out[i] = auditRowJSON{Line: line, Metadata: line.Metadata, Version: a.version, Org: 1}
		if line.Metadata == nil {
			out[i].Metadata = map[string]string{}
		}
	}
	return c.json(out, reply.Precise)
}

// replacements names, for routes of Sourcebot that do not exist here, what replaces them. The first
// row whose prefix fits counts.
var replacements = []struct{ prefix, sentence string }{
	{"/api/ee/scoped_access_token", "There are no tokens for some repositories alone. POST /api/keys makes a key with the rights of its account; an agent that signs in is bound to repositories on the page where a person lets it in."},
	{"/api/ee/chat", "Conversations are at /api/chat."},
	{"/api/ee/mcp", "The tool server is at /api/mcp."},
	{"/api/ee/oauth/", "Agents sign in by /oauth/register, /oauth/authorize, /oauth/token and /oauth/revoke."},
	{"/api/ee/permissionSyncStatus", "GET /api/status has the state of permissions."},
	{"/api/ee/accountPermissionSyncJobStatus", "GET /api/jobs?kind=account_permissions has these jobs."},
	{"/api/ee/", "GET /api/openapi.json has all routes."},
	{"/api/folder_contents", "POST /api/tree lists directories."},
	{"/api/repo-index-status", "GET /api/repos has the state of each repository."},
	{"/api/repo-status/", "GET /api/repos has the state of each repository."},
	{"/api/repository-sync-counts", "GET /api/status counts repositories."},
	{"/api/connection-sync-", "GET /api/connections has the state of each connection."},
	{"/api/job-logs", "GET /api/jobs/{id} has why a job failed."},
	{"/scim/", "There is no SCIM; POST /api/users makes accounts."},
}

// unknownPath returns the failure for a path without a route.
func unknownPath(path string) *failure {
	f := &failure{Status: 404, Code: codeNotFound, Message: "This API endpoint does not exist"}
	if !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/scim/") {
		f.Message = "Nothing has this address"
	}
	for _, x := range replacements {
		if strings.HasPrefix(path, x.prefix) {
			f.Message += ". " + x.sentence
			break
		}
	}
	return f
}
