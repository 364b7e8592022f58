package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/oauth"
)

// authority lets agents in, by their tokens and by what people allow.
type authority interface {
	auth.Tokens
	web.Consents

	Enabled() bool
	Issuer() string
	Resource() string
	DocumentsTaken() bool
	Register(ctx context.Context, body []byte) (*oauth.RegistrationAnswer, error)
	RegisterFor(ctx context.Context, by account.Owner, name string, redirects []string) (*oauth.RegistrationAnswer, error)
	Exchange(ctx context.Context, client string, form url.Values) (*oauth.Tokens, error)
	Revoke(ctx context.Context, token string) error
}

// maxAgentBody bounds the bodies of the routes for agents that nobody has let
// in yet.
const maxAgentBody = 16 << 10

// oauthRoutes are the routes of the authorization server, also by the names that
// clients guess. Pages of any site may ask them: none looks at a cookie. The
// page of consent is one of package web.
type oauthRoutes struct{ authority authority }

func (a *oauthRoutes) rows() []route {
	var all []route
	for _, x := range []struct {
		names  []string
		method string
		handle handler
	}{
		{[]string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/api/mcp"}, "GET", a.resourceMetadata},
		{[]string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/api/mcp"}, "GET", a.serverMetadata},
		{[]string{"/oauth/register", "/register"}, "POST", a.register},
		{[]string{"/oauth/token", "/token"}, "POST", a.token},
		{[]string{"/oauth/revoke"}, "POST", a.revoke},
	} {
		// Paths without a prefix are for clients that take them from an older standard.
		for _, name := range x.names {
			all = append(all, route{name: name, method: x.method, access: accessOpen, timeout: quickTimeout, handle: a.whereEnabled(x.handle), most: maxAgentBody, shared: anySite})
		}
	}
	return all
}

// whereEnabled answers as OAuth does, and not at all where tokens would travel
// in clear.
func (a *oauthRoutes) whereEnabled(h handler) handler {
	return func(ctx context.Context, c *call) error {
		if !a.authority.Enabled() {
			return &failure{Status: 404, Code: codeNotFound, Message: "Agents sign in only where the base URL (--base-url) has no path, and begins with https:// or is of this machine; use an API key."}
		}

		// Clients of OAuth read error and error_description, and no other body.
		err := h(ctx, c)
		if err == nil {
			return nil
		}
		return c.oauthFail(asOAuth(ctx, err))
	}
}

// oauthFailure is a failure in the words of OAuth.
type oauthFailure struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
	failure     *failure
}

// asOAuth tells a client what it did wrong, or that it should ask again.
func asOAuth(ctx context.Context, err error) oauthFailure {
	// A refusal of the standard has its own code; the rest of what a client did wrong has one.
	var refusal *oauth.Error
	if errors.As(err, &refusal) {
		return oauthFailure{refusal.Code, refusal.Description, &failure{Status: 400}}
	}
	f := asFailure(ctx, err)
	if f.Status < 500 && f.Status != 429 {
		return oauthFailure{"invalid_request", f.Message, f}
	}

	// A client that is told to try later does; one that is told of a server error need not.
	if f.Status == 500 {
		return oauthFailure{"server_error", f.Message, f}
	}
	return oauthFailure{"temporarily_unavailable", f.Message, f}
}

// oauthFail makes it the answer. Only what is the service's own fault is logged.
func (c *call) oauthFail(o oauthFailure) error {
	if o.failure.Status == 500 || o.failure.Status == statusClientGone {
		return o.failure
	}
	c.status = o.failure.Status
	if c.status > 500 || c.status == 429 {
		c.setHeader("Retry-After", o.failure.retryAfter())
	}
	return c.json(o)
}

// resourceMetadata is RFC 9728: who lets agents in to the tool server.
func (a *oauthRoutes) resourceMetadata(_ context.Context, c *call) error {
	return c.publicJSON(map[string]any{
		"resource": a.authority.Resource(), "authorization_servers": []string{a.authority.Issuer()}, "scopes_supported": []string{"mcp"},
		"bearer_methods_supported": []string{"header"}, "resource_name": "Shoal",
	})
}

// serverMetadata is RFC 8414: how agents are let in.
func (a *oauthRoutes) serverMetadata(_ context.Context, c *call) error {
	return c.publicJSON(map[string]any{
		"issuer":                                         a.authority.Issuer(),
		"authorization_endpoint":                         a.authority.Issuer() + "/oauth/authorize",
		"token_endpoint":                                 a.authority.Issuer() + "/oauth/token",
		"registration_endpoint":                          a.authority.Issuer() + "/oauth/register",
		"revocation_endpoint":                            a.authority.Issuer() + "/oauth/revoke",
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported":               []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"scopes_supported":                               []string{"mcp", "offline_access"},
		"client_id_metadata_document_supported":          a.authority.DocumentsTaken(),
		"authorization_response_iss_parameter_supported": true,
		"service_documentation":                          a.authority.Issuer() + "/settings/agents",
	})
}

// publicJSON is json for what is the same for everybody.
func (c *call) publicJSON(v any) error {
	c.setHeader("Cache-Control", "public, max-age=300")
	return c.json(v)
}

// register is RFC 7591. Nothing is kept of it.
func (a *oauthRoutes) register(ctx context.Context, c *call) error {
	c.status = fasthttp.StatusCreated
	return c.answer(a.authority.Register(ctx, c.requestBody()))
}

// token gives tokens for a code, or for a refresh token.
func (a *oauthRoutes) token(ctx context.Context, c *call) error {
	form, err := c.agentForm()
	if err != nil {
		return err
	}

	// From the header where it stands there; the form may name it as well, and has to name the same.
	client, err := c.basicClient()
	if err != nil {
		return err
	}

	got, err := a.authority.Exchange(ctx, client, form)
	if err != nil {
		return err
	}

	// RFC 6749 wants both this and the no-store that all JSON has.
	c.setHeader("Pragma", "no-cache")
	return c.json(got)
}

// revoke is RFC 7009.
func (a *oauthRoutes) revoke(ctx context.Context, c *call) error {
	form, err := c.agentForm()
	if err != nil {
		return err
	}

	if err := a.authority.Revoke(ctx, form.Get("token")); err != nil {
		return err
	}
	return c.json(struct{}{})
}

// agentForm reads the parameters of a request, which are a form, or an object of
// JSON with texts and lists of texts.
func (c *call) agentForm() (url.Values, error) {
	// The standard has forms; some clients send JSON to every endpoint.
	kind, _, err := mime.ParseMediaType(c.requestHeader("Content-Type"))
	if err != nil || kind != "application/json" {
		form, err := url.ParseQuery(string(c.requestBody()))
		if err != nil {
			return nil, &oauth.Error{Code: "invalid_request", Description: "The form cannot be read."}
		}
		return form, nil
	}

	var members map[string]any
	if err := json.Unmarshal(c.requestBody(), &members); err != nil {
		return nil, &oauth.Error{Code: "invalid_request", Description: "The body is no JSON object."}
	}

	// A list is a parameter that is given several times, as resource may be.
	form := url.Values{}
	for name, value := range members {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}

		for _, v := range list {
			text, ok := v.(string)
			if !ok {
				return nil, &oauth.Error{Code: "invalid_request", Description: "Every parameter is a text."}
			}
			form.Add(name, text)
		}
	}
	return form, nil
}

// basicClient is the client that names itself in the header Authorization, as
// some libraries do first; "" where none does.
func (c *call) basicClient() (string, error) {
	// A request with another scheme, or none, names its client in the form.
	scheme, rest, _ := strings.Cut(c.requestHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "basic") {
		return "", nil
	}

	// Clients here are public: a secret is one of another service, and a mistake.
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
	id, secret, _ := strings.Cut(string(raw), ":")
	if err != nil || secret != "" {
		return "", &oauth.Error{Code: "invalid_client", Description: "Clients have no secrets here."}
	}

	// RFC 6749 has it encoded as in a form before it is put there.
	if id, err = url.QueryUnescape(id); err != nil {
		return "", &oauth.Error{Code: "invalid_client", Description: "The client in the header cannot be read."}
	}
	return id, nil
}

// challenge tells an agent that has no good credential how to get one.
func (c *call) challenge(a authority) string {
	if c.path != toolPath || !a.Enabled() {
		return `Bearer realm="shoal"`
	}
	out := `Bearer realm="shoal", resource_metadata="` + a.Issuer() + `/.well-known/oauth-protected-resource` + toolPath + `", scope="mcp"`
	if c.requestHeader("Authorization") != "" {
		out += `, error="invalid_token"`
	}
	return out
}
