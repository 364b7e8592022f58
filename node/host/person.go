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

// Person is somebody who lets a code host be asked in their name.
type Person struct {
	Address string // of the host, as people open it
	Subject string // the host's own id of the person
	Token   string // of the person, good now

	User   string   // name that goes with the token; "" where the host asks for none
	Within []string // organisations whose repositories are listed, where the host lists by these
}

// Own is a code host as somebody sees it who lets it be asked in their name.
type Own interface {
	// Who is the host's own id of the person that the token is of.
	Who(ctx context.Context) (subject string, err error)
	// Repos passes on the external ids of the private repositories whose code
	// the person may read. Withheld says what the host leaves out for now, in a
	// sentence; empty where that is nothing.
	Repos(ctx context.Context, take func(externalID string)) (withheld string, err error)
}

// OpenOwn opens a kind of host in the name of somebody: GitHubOwn and the like.
type OpenOwn func(Person, Tools) (Own, error)

// Readable lists the private repositories whose code somebody may read, by
// external id, each once and sorted: all of them, or it fails.
func Readable(ctx context.Context, own Own) (ids []string, withheld string, err error) {
	withheld, err = own.Repos(ctx, func(id string) { ids = append(ids, id) })
	if err != nil {
		return nil, "", err
	}
	slices.Sort(ids)
	return slices.Compact(ids), withheld, nil
}

// web is the address of the host.
func (p Person) web(usual string) (*url.URL, error) { return addressOf(p.Address, usual) }

// budget is the key of the person's own limit of calls.
func (p Person) budget() string { return "person " + p.Subject }

// authorize is the person's Authorization header.
func (p Person) authorize() func(context.Context) (string, error) {
	return prefixed("Bearer ", func(context.Context) (string, error) { return p.Token, nil })
}

// named makes a client speak of a person, and not of a connection, where an
// answer is no.
func (c *client) named(scope string) *client {
	product := c.explain
	// Errors name the connection, and this call has none.
	c.name = "of a person"
	c.explain = func(res *http.Response, body []byte) *Refusal {
		// Before all else: the person can mend this, by linking anew.
		if lacksScope(res, body) {
			return refusal(ScopeMissing, res.StatusCode, "the person's token lacks the scope %s: link the account again", scope)
		}
		if product != nil {
			// What the product says in its own way is more exact than a status.
			if r := product(res, body); r != nil {
				return r
			}
		}
		return c.personal(res, body)
	}
	return c
}

// barred is what hosts say of people who are shut out.
var barred = regexp.MustCompile(`(?i)suspended|blocked|prohibit|deactivated|not activated|disabled`)

// personal reads an answer that is about the person.
func (c *client) personal(res *http.Response, body []byte) *Refusal {
	status := res.StatusCode
	switch {
	case status == http.StatusUnauthorized:
		return refusal(TokenRefused, status, "%s refuses the person's token: it was revoked, or has ended; link the account again", c.product)

	// A proxy that refuses says nothing of the person.
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

// lacksScope tells a token that may not ask from a person who may not.
func lacksScope(res *http.Response, body []byte) bool {
	return res.StatusCode == http.StatusForbidden && isJSON(res, body) && bytes.Contains(body, []byte("scope"))
}

// RefusePerson is the word of a host, or of whoever signs people in there, that a
// token of somebody is good no more.
func RefusePerson(text string) *Refusal { return refusal(TokenRefused, 0, "%s", text) }

// RefusesPerson reports whether an error of a host is its word that somebody is
// not let in, or does not let it be asked, any more: nothing that time mends.
func (r *Refusal) RefusesPerson() bool {
	return r.Code == TokenRefused || r.Code == ScopeMissing || r.Code == AccountBlocked
}
