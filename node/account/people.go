package account

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// UserInfo describes an account without its secrets.
type UserInfo struct {
	ID      string               `json:"id"`
	Email   string               `json:"email"`
	Name    string               `json:"name"`
	Role    catalog.Role         `json:"role"`
	State   catalog.AccountState `json:"state"`
	Keys    int                  `json:"keys"`
	Created time.Time            `json:"createdAt"`
	By      string               `json:"createdBy"`
	Used    time.Time            `json:"-"` // last use of a session, recorded from time to time; zero: none
	// Unproven means that nobody has confirmed the address.
	Unproven bool `json:"-"`
}

// CreateUserRequest describes a new account.
type CreateUserRequest struct {
	Email string
	Name  string
	Role  catalog.Role // RoleMember or RoleOwner; RoleNone means RoleMember
}

// ChangeUserRequest changes an account. Zero fields leave their part unchanged.
type ChangeUserRequest struct {
	User  string // id or e-mail address
	Name  *string
	Role  catalog.Role         // RoleNone: no change
	State catalog.AccountState // 0: no change; AccountActive or AccountSuspended
}

// GrantRequest adds and removes repositories that an account may see.
type GrantRequest struct {
	User   string   // id or e-mail address
	Add    []string // names of repositories
	Remove []string
}

// GrantResponse lists what owners let an account see.
type GrantResponse struct {
	User  UserInfo `json:"user"`
	Repos []string `json:"repositories"` // names, sorted
}

// People creates, changes and deletes accounts. It is safe for concurrent use.
type People struct {
	catalog Catalog
}

// NewPeople returns the accounts of a catalog.
func NewPeople(c Catalog) *People { return &People{catalog: c} }

// CreateUser creates an account.
func (u *People) CreateUser(ctx context.Context, by Owner, req CreateUserRequest) (*UserInfo, error) {
	email, err := cleanEmail(req.Email)
	if err != nil {
		return nil, err
	}
	if err := cleanName(req.Name); err != nil {
		return nil, err
	}
	if req.Role == catalog.RoleNone {
		req.Role = catalog.RoleMember
	}
	if req.Role != catalog.RoleMember && req.Role != catalog.RoleOwner {
		return nil, call.Fail(call.ErrInvalid, "the role of an account is member or owner")
	}

	a := catalog.User{
		ID:    newID(),
		Email: email,
		Name:  req.Name,
		Role:  req.Role,
		State: catalog.AccountActive,
		By:    by.Name(),
	}

	// The command checks whether the address is free, so that two concurrent calls create one
	// account.
	if _, err := u.catalog.Propose(ctx, &catalog.PutAccount{Account: a}); err != nil {
		return nil, creationError(err, u.catalog.View().AccountByEmail(email) != nil)
	}
	return u.userInfoOf(u.catalog.View().Account(a.ID)), nil
}

// creationError returns the error for something that was not created. exists means that its name is
// taken.
func creationError(err error, exists bool) error {
	if refused, ok := catalog.Refused(err); ok && refused.Code == catalog.Conflict && exists {
		return call.Fail(call.ErrExists, "%s", refused.Reason)
	}
	return call.WriteError(err)
}

// changeError converts the error of a command that failed to change an account to one for the
// client.
func changeError(err error) error {
	// The request is valid, but possible only once there is another owner.
	if refused, ok := catalog.Refused(err); ok && refused.Reason == catalog.LastOwner {
		return call.Fail(call.ErrUnable, "%s", refused.Reason)
	}
	return call.WriteError(err)
}

// newID returns the id of a new account: "u" and 16 digits. So it is never an e-mail address or the
// id of a key.
func newID() string {
	var b [8]byte
	rand.Read(b[:])
	return "u" + hex.EncodeToString(b[:])
}

// cleanEmail returns an address in the form of accounts, or an error.
func cleanEmail(text string) (string, error) {
	email := plainEmail(text)
	if email == "" {
		return "", call.Fail(call.ErrInvalid, "%q is no e-mail address that an account can have: it is one of ASCII letters, such as ann@example.com", text)
	}
	return email, nil
}

// plainEmail returns an address in lower case, or "" for any other text. It also refuses
// letters beyond ASCII: some look like others, and some become ASCII in lower case. The Kelvin sign
// becomes k, which may be another person's address.
func plainEmail(text string) string {
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		return ""
	}
	text = strings.ToLower(text)
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || len(text) > 254 {
		return ""
	}
	return text
}

func cleanName(name string) error {
	if len(name) > 200 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return call.Fail(call.ErrInvalid, "a name has at most 200 bytes on one line")
	}
	return nil
}

func (u *People) userInfoOf(a *catalog.User) *UserInfo {
	if a == nil {
		return &UserInfo{}
	}
	keys := 0
	for k := range u.catalog.View().Keys() {
		if k.Account == a.ID {
			keys++
		}
	}
	info := userInfo(a, keys)
	return &info
}

// userInfo describes an account that has a number of keys.
func userInfo(a *catalog.User, keys int) UserInfo {
	return UserInfo{
		ID:       a.ID,
		Email:    a.Email,
		Name:     a.Name,
		Role:     a.Role,
		State:    a.State,
		Created:  a.Created,
		By:       a.By,
		Keys:     keys,
		Unproven: a.Unproven,
	}
}

// Users returns all accounts.
func (u *People) Users(ctx context.Context, _ Owner) ([]UserInfo, error) {
	if _, err := u.catalog.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}
	// Count the keys of all accounts in one pass.
	view := u.catalog.View()
	keys := map[string]int{}
	for k := range view.Keys() {
		keys[k.Account]++
	}

	used := map[string]time.Time{}
	for s := range view.Sessions() {
		if s.Used.After(used[s.Account]) {
			used[s.Account] = s.Used
		}
	}

	var out []UserInfo
	for a := range view.Accounts() {
		info := userInfo(a, keys[a.ID])
		info.Used = used[a.ID]
		out = append(out, info)
	}
	return out, nil
}

// findAccount returns an account by id or address, including changes on any node before the call.
func (u *People) findAccount(ctx context.Context, user string) (*catalog.User, error) {
	if _, err := u.catalog.Sync(ctx); err != nil {
		return nil, call.WriteError(err)
	}
	if a := accountNamed(u.catalog.View(), user); a != nil {
		return a, nil
	}
	return nil, call.Fail(call.ErrNotFound, "there is no account %q", user)
}

// accountNamed returns an account by id or address, or nil.
func accountNamed(view *catalog.View, user string) *catalog.User {
	if a := view.Account(user); a != nil {
		return a
	}
	return view.AccountByEmail(strings.TrimSpace(user))
}

// ChangeUser changes an account. When it returns, every reachable node has applied the change.
func (u *People) ChangeUser(ctx context.Context, by Owner, req ChangeUserRequest) (*UserInfo, error) {
	old, err := u.findAccount(ctx, req.User)
	if err != nil {
		return nil, err
	}

	a := *old
	if req.Name != nil {
		if err := cleanName(*req.Name); err != nil {
			return nil, err
		}
		a.Name = *req.Name
	}
	if req.Role != catalog.RoleNone {
		a.Role = req.Role
	}
	if req.State != 0 {
		a.State = req.State
	}

	// Refuse to overwrite a concurrent change.
	index, err := u.catalog.Propose(ctx, &catalog.PutAccount{Account: a, Instead: old.Changed})
	if err != nil {
		return nil, changeError(err)
	}
	AwaitOthers(ctx, u.catalog, index)
	return u.userInfoOf(u.catalog.View().Account(a.ID)), nil
}

// Grant changes which repositories owners let an account see, and returns all of them. An empty
// request changes nothing. When it returns, every reachable node has applied the change.
func (u *People) Grant(ctx context.Context, _ Owner, req GrantRequest) (*GrantResponse, error) {
	// find waits for earlier changes, so that every node gives the same answer.
	a, err := u.findAccount(ctx, req.User)
	if err != nil {
		return nil, err
	}

	// Check all names first: a mistyped one must change nothing.
	add, err := u.repoIDs(req.Add)
	if err != nil {
		return nil, err
	}
	remove, err := u.repoIDs(req.Remove)
	if err != nil {
		return nil, err
	}

	if len(add)+len(remove) > 0 {
		change := &catalog.SetGrants{Account: a.ID, Source: catalog.GrantedByOwner, Add: add, Remove: remove}
		// Propose one entry, so that nobody sees half of the change.
		index, err := u.catalog.Propose(ctx, change)
		if err != nil {
			return nil, call.WriteError(err)
		}
		AwaitOthers(ctx, u.catalog, index)
	}
	return u.grantsOf(a), nil
}

// WhyResponse tells whether an account sees a repository, and why.
type WhyResponse struct {
	User       UserInfo         `json:"user"`
	Repo       string           `json:"repository"`
	Sees       bool             `json:"sees"`
	HostsAsked bool             `json:"hostsAsked"`
	Reasons    []catalog.Reason `json:"reasons"`
}

// Why explains why an account sees a repository or not, by this node's catalog. An owner may ask
// about repositories that the owner cannot see.
func (u *People) Why(ctx context.Context, _ Owner, user, repo string) (*WhyResponse, error) {
	a, err := u.findAccount(ctx, user)
	if err != nil {
		return nil, err
	}
	ids, err := u.repoIDs([]string{repo})
	if err != nil {
		return nil, err
	}

	// Use the rules of searches, so that the answer cannot differ.
	view := u.catalog.View()
	r := view.Repo(ids[0])
	if r == nil {
		return nil, NoRepo(repo)
	}

	// Evaluate the account, not the owner who asks.
	sees := view.Visible(catalog.Viewer{Role: a.Role, Account: a.ID}).Contains(r.ID)
	return &WhyResponse{User: *u.userInfoOf(a), Repo: r.Name, Sees: sees, HostsAsked: view.PermissionSync() == catalog.PermissionSyncOn, Reasons: view.Why(a, r)}, nil
}

// repoIDs returns the ids of repositories by name. Owners may grant repositories that they cannot
// see.
func (u *People) repoIDs(names []string) (ids []catalog.RepoID, err error) {
	view := u.catalog.View()
	for _, name := range names {
		repo := view.RepoByName(name)
		if repo == nil {
			return nil, call.Fail(call.ErrRepoNotFound, "Repository %q not found", name)
		}
		ids = append(ids, repo.ID)
	}
	return ids, nil
}

// grantsOf returns the repositories granted to an account.
func (u *People) grantsOf(a *catalog.User) *GrantResponse {
	view := u.catalog.View()
	out := &GrantResponse{User: *u.userInfoOf(a)}
	for _, g := range view.GrantsOf(a.ID) {
		if g.Source != catalog.GrantedByOwner {
			continue
		}

		for it := g.Set().Iterator(); it.HasNext(); {
			if repo := view.Repo(it.Next()); repo != nil {
				out.Repos = append(out.Repos, repo.Name)
			}
		}
	}

	slices.Sort(out.Repos)
	return out
}

// DeleteUser deletes an account with its keys and grants. When it returns, every reachable node
// refuses its keys.
func (u *People) DeleteUser(ctx context.Context, by Owner, user string) (*UserInfo, error) {
	a, err := u.findAccount(ctx, user)
	if err != nil {
		return nil, err
	}
	info := u.userInfoOf(a) // before the change

	index, err := u.catalog.Propose(ctx, &catalog.DeleteAccount{ID: a.ID})
	if err != nil {
		return nil, changeError(err)
	}
	AwaitOthers(ctx, u.catalog, index)
	return info, nil
}

// Others is the part of *cluster.Cluster that [AwaitOthers] uses.
type Others interface {
	// AwaitOn waits until other members have applied an index, and returns those that did not.
	AwaitOn(ctx context.Context, index uint64, nodes ...string) (behind []string)
	// Members returns the members as this node sees them.
	Members() []cluster.Member
}

// AwaitOthers waits until the other members have applied an index, and returns those that did not.
func AwaitOthers(ctx context.Context, c Others, index uint64) (behind []string) {
	var others []string
	for _, m := range c.Members() {
		if !m.Self {
			others = append(others, m.ID)
		}
	}
	return c.AwaitOn(ctx, index, others...)
}
