package host

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Person identifies a person to a code host.
type Person struct {
	Address string // URL of the host in browsers
	Subject string // the host's id of the person
	Token   string // valid token of the person

	User   string   // user name for the token; "" if the host needs none
	Within []string // organisations to list; for hosts without a list across organisations
}

// Own is a code host, asked with a person's token.
type Own interface {
	// Who returns the host's id of the token's owner.
	Who(ctx context.Context) (subject string, err error)
	// Repos calls take with the external id of each private repository whose code the person may
	// read. It returns a sentence about what the host withholds for now, or "".
	Repos(ctx context.Context, take func(externalID string)) (withheld string, err error)
}

// OpenOwn is the type of GitHubOwn and the like.
type OpenOwn func(Person, Tools) (Own, error)

// Readable returns the external ids of all private repositories whose code a person may read,
// sorted.
func Readable(ctx context.Context, own Own) (ids []string, withheld string, err error) {
	withheld, err = own.Repos(ctx, func(id string) { ids = append(ids, id) })
	if err != nil {
		return nil, "", err
	}
	slices.Sort(ids)
	return slices.Compact(ids), withheld, nil
}

// hostURL returns the parsed URL of the host.
func (p Person) hostURL(usual string) (*url.URL, error) { return addressOf(p.Address, usual) }

// budgetKey returns the key of the person's budget.
func (p Person) budgetKey() string { return "person " + p.Subject }

// authorize returns a function that returns the person's Authorization header.
func (p Person) authorize() func(context.Context) (string, error) {
	return withPrefix("Bearer ", func(context.Context) (string, error) { return p.Token, nil })
}

// forPerson makes a client's errors speak of a person instead of a connection.
func (c *client) forPerson(scope string) *client {
	product := c.explain
	// Errors name the connection, but this call has none.
	c.name = "of a person"
	c.explain = func(res *http.Response, body []byte) *Refusal {
		// Check this first, because the person can correct it by linking again.
		if lacksScope(res, body) {
			return refusal(ScopeMissing, res.StatusCode, "the person's token lacks the scope %s: link the account again", scope)
		}
		if product != nil {
			// The product's explanation is more exact than a status.
			if r := product(res, body); r != nil {
				return r
			}
		}
		return c.personRefusal(res, body)
	}
	return c
}

// barred matches messages about suspended accounts.
var barred = regexp.MustCompile(`(?i)suspended|blocked|prohibit|deactivated|not activated|disabled`)

// personRefusal returns the refusal for an answer about a person, or nil.
func (c *client) personRefusal(res *http.Response, body []byte) *Refusal {
	status := res.StatusCode
	switch {
	case status == http.StatusUnauthorized:
		return refusal(TokenRefused, status, "%s refuses the person's token: it was revoked, or has ended; link the account again", c.product)

	// Only JSON comes from the host itself. An error page of a proxy says nothing about the person.
	case status == http.StatusForbidden && isJSON(res, body) && barred.Match(body):
		return refusal(AccountBlocked, status, "%s has shut the account out", c.product)
	case status == http.StatusForbidden:
		return refusal(Forbidden, status, "%s does not answer the person's token (403)", c.product)
	case status == http.StatusNotFound || status == http.StatusGone:
		return refusal(InvalidResponse, status, "%s has no such list of repositories (%d): it may be of a version that this one does not know", c.product, status)
	}
	return nil
}

func isJSON(res *http.Response, body []byte) bool {
	return strings.Contains(res.Header.Get("Content-Type"), "json") && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))
}

// lacksScope reports whether the token lacks a scope. Otherwise the person lacks a permission.
func lacksScope(res *http.Response, body []byte) bool {
	return res.StatusCode == http.StatusForbidden && isJSON(res, body) && bytes.Contains(body, []byte("scope"))
}

// RefusePerson returns the refusal of a person's token, by a host or by its identity provider.
func RefusePerson(text string) *Refusal { return refusal(TokenRefused, 0, "%s", text) }

// RefusesPerson reports whether the host permanently refuses the person or their token.
func (r *Refusal) RefusesPerson() bool {
	return r.Code == TokenRefused || r.Code == ScopeMissing || r.Code == AccountBlocked
}
