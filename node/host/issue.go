package host

import (
	"errors"
	"fmt"
	"time"
)

// Code identifies the kind of an issue, for programs.
type Code string

// Codes of issues.
const (
	TokenRefused    Code = "TOKEN_REFUSED"
	TokenMissing    Code = "TOKEN_MISSING"
	TokenExpires    Code = "TOKEN_EXPIRES"
	SSORequired     Code = "SSO_REQUIRED"
	ScopeMissing    Code = "SCOPE_MISSING"
	RateLimited     Code = "RATE_LIMITED"
	TargetNotFound  Code = "TARGET_NOT_FOUND"
	TargetEmpty     Code = "TARGET_EMPTY"
	Forbidden       Code = "FORBIDDEN"
	Unreachable     Code = "UNREACHABLE"
	InvalidResponse Code = "INVALID_PROVIDER_RESPONSE"
	PartialListing  Code = "PARTIAL_LISTING"
	NotRepository   Code = "NOT_A_REPOSITORY"
	NameTaken       Code = "NAME_TAKEN"
	NotFetchable    Code = "NOT_FETCHABLE"
	NoEffect        Code = "NO_EFFECT"
	ListShrank      Code = "LIST_SHRANK"
	AccountBlocked  Code = "ACCOUNT_BLOCKED"

	AuthenticationFallback Code = "AUTHENTICATION_FALLBACK"
)

// Issue is a problem of a listing, for operators.
type Issue struct {
	Code   Code
	Target string // organisation, group, project or repository; "": the whole connection
	Text   string // sentence about what happened and what to do, without secrets
	// Partial is true if repositories of the target may be missing, so that none of them may be
	// removed.
	Partial bool
	// Until is when the host allows calls again; zero: unknown.
	Until time.Time
}

// Passes reports whether the issue may go away by itself.
func (i *Issue) Passes() bool {
	return i.Code == RateLimited || i.Code == Unreachable || i.Code == InvalidResponse
}

// newToken is the advice about a bad token. A process never sees changes of its environment.
const newToken = "Make a new token at the host and put it where the connection's token is read from. One in a secret manager counts at the next try; for a token in a variable start the nodes again."

// advice has what to do about each code, if the issue's text does not say it.
var advice = map[Code]string{
	TokenRefused:           newToken,
	TokenMissing:           "Set the variable in the environment of each node and start it again, or correct its name in the configuration. A secret of a manager must be there, and the node be let to read it.",
	TokenExpires:           newToken,
	SSORequired:            "Authorise the token for the organisation in the settings of the account that made it.",
	ScopeMissing:           "Give the token the rights that its page in docs/hosts names, or make one that has them.",
	RateLimited:            "Nothing: what was not listed stays as it is, and the listing goes on when the host allows it.",
	TargetNotFound:         "Correct the name in the configuration, or let the account of the token see it.",
	TargetEmpty:            "Nothing, where it is empty. Else correct the name or the glob, or let the account of the token read it; upper and lower case may matter.",
	Forbidden:              "Let the account of the token read it, or take it out of the configuration.",
	Unreachable:            "Look whether the host answers from this node: address, proxy, certificate. The listing is tried again.",
	InvalidResponse:        "Look at what the host answers there: a proxy, a sign-in page or another kind of server may stand before its API.",
	NotRepository:          "Nothing, where such directories are meant to be there. Else let the glob match repositories alone: bare ones, or directories with .git.",
	NameTaken:              "Nothing, or take one of the two out of the glob.",
	NotFetchable:           "Nothing: its last index stays, and it is fetched again when the host allows it.",
	NoEffect:               "Change the configuration as the sentence says.",
	AuthenticationFallback: "Let the owner install the GitHub App, or give the connection a token that reads the owner's repositories.",

	AccountBlocked: "Let an administrator of the host let the person in again; then they link the account again.",

	ListShrank: "If they are gone for good, say so with shoal connection accept; if not, look at the rights of the token.",
}

// Advice returns what to do about an issue.
func Advice(code Code) string { return advice[code] }

// ErrGone is the error of looking up a repository that the host does not have, or does not show.
var ErrGone = errors.New("the host has no such repository")

// Refusal is an error answer of a host. It ends the request, and becomes an issue of the listing.
type Refusal struct {
	Issue
	Status int // HTTP status; 0: no answer
	cause  error
}

// Error returns the text of the issue.
func (r *Refusal) Error() string { return r.Text }

// NotBefore returns when the host allows calls again, or zero if unknown.
func (r *Refusal) NotBefore() time.Time { return r.Until }

// Unwrap returns the cause: ErrGone, or a network error.
func (r *Refusal) Unwrap() error { return r.cause }

// refusal returns a Refusal that makes its target partial.
func refusal(code Code, status int, format string, args ...any) *Refusal {
	return &Refusal{Issue: Issue{Code: code, Text: fmt.Sprintf(format, args...), Partial: true}, Status: status}
}

// issueOf converts an error of a target to an issue.
func issueOf(target string, err error) Issue {
	issue := Issue{Code: Unreachable, Text: err.Error(), Partial: true}
	if r := (*Refusal)(nil); errors.As(err, &r) {
		issue = r.Issue
	}
	issue.Target = target
	return issue
}
