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

// authority authorizes agents by their tokens and by people's consents.
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

// maxAgentBody limits the request bodies of routes that need no credential.
const maxAgentBody = 16 << 10

// oauthRoutes handles the authorization server, also under the paths that some clients guess. Pages
// of any site may call these routes, because they ignore cookies. Package web has the page on which
// a person consents.
type oauthRoutes struct{ authority authority }

func (a *oauthRoutes) routes() []route {
	var all []route
	for _, x := range []struct {
		paths  []string
		method string
		handle handler
	}{
		{[]string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/api/mcp"}, "GET", a.resourceMetadata},
		{[]string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/api/mcp"}, "GET", a.serverMetadata},
		{[]string{"/oauth/register", "/register"}, "POST", a.register},
		{[]string{"/oauth/token", "/token"}, "POST", a.token},
		{[]string{"/oauth/revoke"}, "POST", a.revoke},
	} {
		// Some clients follow an older standard, whose paths have no prefix.
		for _, path := range x.paths {
			all = append(all, route{name: path, method: x.method, access: accessOpen, timeout: quickTimeout, handle: a.ifEnabled(x.handle), maxBody: maxAgentBody, shared: anySite})
		}
	}
	return all
}

// ifEnabled makes a handler that calls h and answers its errors in OAuth's format. It answers 404 if
// agents cannot sign in here, because tokens would be sent in clear text.
func (a *oauthRoutes) ifEnabled(h handler) handler {
	return func(ctx context.Context, c *call) error {
		if !a.authority.Enabled() {
			return &failure{Status: 404, Code: codeNotFound, Message: "Agents sign in only where the base URL (--base-url) has no path, and begins with https:// or is of this machine; use an API key."}
		}

		// OAuth clients read the members error and error_description only.
		err := h(ctx, c)
		if err == nil {
			return nil
		}
		return c.answerOAuthFailure(asOAuth(ctx, err))
	}
}

// oauthFailure is a failure in OAuth's format.
type oauthFailure struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
	failure     *failure
}

// asOAuth converts an error into OAuth's format.
func asOAuth(ctx context.Context, err error) oauthFailure {
	// A refusal that OAuth defines has a code of its own. All other mistakes of a client share a code.
	var refusal *oauth.Error
	if errors.As(err, &refusal) {
		return oauthFailure{refusal.Code, refusal.Description, &failure{Status: 400}}
	}
	f := asFailure(ctx, err)
	if f.Status < 500 && f.Status != 429 {
		return oauthFailure{"invalid_request", f.Message, f}
	}

	// Clients retry after temporarily_unavailable, but not after server_error.
	if f.Status == 500 {
		return oauthFailure{"server_error", f.Message, f}
	}
	return oauthFailure{"temporarily_unavailable", f.Message, f}
}

// answerOAuthFailure answers with the failure in OAuth's format. A defect of the server, or a client
// that has left, it returns instead: the server logs and counts them.
func (c *call) answerOAuthFailure(o oauthFailure) error {
	if o.failure.Status == 500 || o.failure.Status == statusClientGone {
		return o.failure
	}
	c.status = o.failure.Status
	if c.status > 500 || c.status == 429 {
		c.setHeader("Retry-After", o.failure.retryAfter())
	}
	return c.json(o)
}

// resourceMetadata answers as RFC 9728 demands: which server authorizes agents for the tool server.
func (a *oauthRoutes) resourceMetadata(_ context.Context, c *call) error {
	return c.publicJSON(map[string]any{
		"resource": a.authority.Resource(), "authorization_servers": []string{a.authority.Issuer()}, "scopes_supported": []string{"mcp"},
		"bearer_methods_supported": []string{"header"}, "resource_name": "Shoal",
	})
}

// serverMetadata answers as RFC 8414 demands: how an agent gets authorized.
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

// publicJSON answers with JSON that is the same for everybody, and may be cached.
func (c *call) publicJSON(v any) error {
	c.setHeader("Cache-Control", "public, max-age=300")
	return c.json(v)
}

// register registers a client as RFC 7591 demands. The server stores nothing about it.
func (a *oauthRoutes) register(ctx context.Context, c *call) error {
	c.status = fasthttp.StatusCreated
	return c.answer(a.authority.Register(ctx, c.requestBody()))
}

// token exchanges a code or a refresh token for tokens.
func (a *oauthRoutes) token(ctx context.Context, c *call) error {
	form, err := c.agentForm()
	if err != nil {
		return err
	}

	// Exchange compares this client id with the one in the form, if both are there.
	client, err := c.basicClient()
	if err != nil {
		return err
	}

	got, err := a.authority.Exchange(ctx, client, form)
	if err != nil {
		return err
	}

	// RFC 6749 demands this beside Cache-Control: no-store.
	c.setHeader("Pragma", "no-cache")
	return c.json(got)
}

// revoke revokes a token as RFC 7009 demands.
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

// agentForm parses the parameters of a request: a form, or a JSON object of strings and lists of
// strings.
func (c *call) agentForm() (url.Values, error) {
	// OAuth uses forms, but some clients send JSON.
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

	// A list has the values of a repeated parameter, such as resource.
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

// basicClient returns the client id in the header for Basic authentication, which some libraries try
// first. It returns "" without such a header, and an error if the header has a secret.
func (c *call) basicClient() (string, error) {
	// Without the header, or with another scheme, the form names the client.
	scheme, rest, _ := strings.Cut(c.requestHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "basic") {
		return "", nil
	}

	// This server gives clients no secrets, so a secret is a mistake.
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(rest))
	id, secret, _ := strings.Cut(string(raw), ":")
	if err != nil || secret != "" {
		return "", &oauth.Error{Code: "invalid_client", Description: "Clients have no secrets here."}
	}

	// RFC 6749: the id is form-encoded before base64.
	if id, err = url.QueryUnescape(id); err != nil {
		return "", &oauth.Error{Code: "invalid_client", Description: "The client in the header cannot be read."}
	}
	return id, nil
}

// challenge returns the header WWW-Authenticate. At the tool server it tells an agent where to get a
// token, and whether the one that it sent is invalid.
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
