package model

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/config"
)

// provider is one row of the table of providers.
type provider struct {
	name  config.Provider
	base  string // where it is, without what the configuration says
	wire  func(*endpoint) (wire, error)
	keys  []credential // the first that there is, configured ones before variables
	sign  func(*endpoint) (func(context.Context, http.Header) error, error)
	place func(*endpoint) error // finds the base where it depends on the configuration
	chat  dialect               // of Chat Completions
}

// credential is one way to show who calls.
type credential struct {
	token    func(*config.Model) *config.Token
	variable string // where the configuration names no token; "" for none
	header   string
	prefix   string
	optional bool
}

func apiKey(m *config.Model) *config.Token    { return m.Token }
func authToken(m *config.Model) *config.Token { return m.AuthToken }

func bearerKey(variable string) []credential {
	return []credential{{token: apiKey, variable: variable, header: "Authorization", prefix: "Bearer "}}
}

// providers is the table, in the order of the configuration's schema.
var providers = []provider{
	{name: config.AmazonBedrock, wire: newConverse, place: bedrockPlace},
	{name: config.Anthropic, base: "https://api.anthropic.com/v1", wire: newMessages, keys: []credential{
		{token: authToken, variable: "ANTHROPIC_AUTH_TOKEN", header: "Authorization", prefix: "Bearer "},
		{token: apiKey, variable: "ANTHROPIC_API_KEY", header: "X-Api-Key"},
	}},
	{name: config.Azure, wire: newResponses, place: azurePlace, keys: []credential{
		{token: apiKey, variable: "AZURE_API_KEY", header: "Api-Key"},
	}},
	{name: config.DeepSeek, base: "https://api.deepseek.com", wire: newChat, keys: bearerKey("DEEPSEEK_API_KEY"),
		chat: dialect{usage: usageOption, echo: "reasoning_content", echoAlways: true}},
	{name: config.GoogleGenerativeAI, base: "https://generativelanguage.googleapis.com/v1beta", wire: newGemini, keys: []credential{
		{token: apiKey, variable: "GOOGLE_GENERATIVE_AI_API_KEY", header: "X-Goog-Api-Key"},
	}},
	{name: config.GoogleVertexAnthropic, wire: newMessages, place: vertexPlace, sign: googleSign},
	{name: config.GoogleVertex, wire: newGemini, place: vertexPlace, sign: googleSign},
	{name: config.Mistral, base: "https://api.mistral.ai/v1", wire: newChat, keys: bearerKey("MISTRAL_API_KEY"), chat: dialect{shortIDs: true}},
	{name: config.OpenAI, base: "https://api.openai.com/v1", wire: newResponses, keys: bearerKey("OPENAI_API_KEY")},
	{name: config.OpenAICompatible, wire: newChat, chat: dialect{usage: usageOption, tagged: true},
		keys: []credential{{token: apiKey, header: "Authorization", prefix: "Bearer ", optional: true}}},
	{name: config.OpenRouter, base: "https://openrouter.ai/api/v1", wire: newChat, keys: bearerKey("OPENROUTER_API_KEY"),
		chat: dialect{usage: usageMember, echo: "reasoning_details"}},
	{name: config.XAI, base: "https://api.x.ai/v1", wire: newChat, keys: bearerKey("XAI_API_KEY"), chat: dialect{usage: usageOption}},
}

func providerOf(name config.Provider) *provider {
	for i := range providers {
		if providers[i].name == name {
			return &providers[i]
		}
	}
	return nil
}

// endpoint is one model as it is called from this node: the row of its
// provider, and what was found out and resolved for it.
type endpoint struct {
	provider *provider
	m        *config.Model
	d        *Deps
	base     string // without a trailing slash
	project  string // of Vertex
	region   string
	http     *http.Client
	guard    *guarded
	secrets  []string // to be cut out of errors
	learned  *learned
}

// name is how the model is called in the configuration.
func (e *endpoint) name() string { return string(e.m.Provider) + "/" + e.m.Model }

// native is the provider's own form of an assistant's message, nil where it
// came from another model.
func (e *endpoint) native(m *Message) []byte {
	if m.Native == nil || m.Native.From != e.name() {
		return nil
	}
	return m.Native.JSON
}

// lookup is a property of the configuration, else a variable, else the usual.
func (e *endpoint) lookup(configured, variable, usual string) string {
	if configured != "" {
		return configured
	}
	if v, ok := e.d.Lookup(variable); ok && strings.TrimSpace(v) != "" {
		return strings.TrimSpace(v)
	}
	return usual
}

// secret resolves a token reference, or the variable where there is none. "" is none.
func (e *endpoint) secret(ctx context.Context, t *config.Token, variable string) (string, error) {
	var value string
	if t != nil {
		resolved, err := e.d.Secret(ctx, *t)
		if err != nil {
			return "", &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: clip(err.Error())}
		}
		value = resolved
	} else if variable != "" {
		value, _ = e.d.Lookup(variable)
	}

	value = strings.TrimSpace(value)

	// Whatever is used as a secret is struck out of what errors tell.
	if value != "" {
		e.secrets = append(e.secrets, value)
	}
	return value, nil
}

// prepare finds where the model is and what it is called with.
func (e *endpoint) prepare(ctx context.Context) error {
	e.base = e.provider.base
	if e.provider.place != nil {
		if err := e.provider.place(e); err != nil {
			return err
		}
	}
	// A configured address goes before the usual one. Azure has read it already, for its version.
	if e.m.BaseURL != "" && e.m.Provider != config.Azure {
		e.base = e.m.BaseURL
	}
	e.base = strings.TrimRight(e.base, "/")

	var err error

	// Secrets are resolved now, on this node: a missing one is told before anything is sent.
	if e.guard.sign, err = e.signer(ctx); err != nil {
		return err
	}
	if e.guard.headers, err = e.headers(ctx); err != nil {
		return err
	}

	// Last, and into what the place may have set: what people configure counts.
	for _, p := range e.m.QueryParams {
		if e.guard.query == nil {
			e.guard.query = map[string]string{}
		}
		if e.guard.query[p.Key], err = e.valueOf(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// signer is what writes the credential into a request; nil for none.
func (e *endpoint) signer(ctx context.Context) (func(context.Context, http.Header) error, error) {
	if e.provider.sign != nil {
		return e.provider.sign(e)
	}
	if e.provider.keys == nil {
		return nil, nil
	}

	// What is configured goes before what the environment has.
	for _, configured := range []bool{true, false} {
		for _, k := range e.provider.keys {
			token, variable := k.token(e.m), ""
			if !configured {
				token, variable = nil, k.variable
			}

			value, err := e.secret(ctx, token, variable)
			if err != nil {
				return nil, err
			}
			if value != "" {
				return func(_ context.Context, h http.Header) error { h.Set(k.header, k.prefix+value); return nil }, nil
			}
		}
	}

	last := e.provider.keys[len(e.provider.keys)-1]
	if last.optional {
		return nil, nil
	}
	return nil, &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: fmt.Sprintf("Set token in the configuration, or the variable %s on the nodes.", last.variable)}
}

func (e *endpoint) headers(ctx context.Context) (http.Header, error) {
	h := http.Header{}
	for _, kv := range e.m.Headers {
		value, err := e.valueOf(ctx, kv)
		if err != nil {
			return nil, err
		}
		h.Set(kv.Key, value)
	}
	return h, nil
}

func (e *endpoint) valueOf(ctx context.Context, kv config.KeyText) (string, error) {
	if kv.Token == nil {
		return kv.Value, nil
	}
	return e.secret(ctx, kv.Token, "")
}

// azureHosts are the endings of Azure's own hosts, with its national clouds.
var azureHosts = []string{
	".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com", ".azure-api.net",
	".openai.azure.us", ".cognitiveservices.azure.us", ".openai.azure.cn", ".cognitiveservices.azure.cn",
}

// azurePlace finds the address of a resource. A host of Azure gets its own
// path and version, and so does any other where a version is configured.
func azurePlace(e *endpoint) error {
	// The one under which this wire is served there.
	version := e.m.APIVersion
	if version == "" {
		version = "preview"
	}

	if e.m.BaseURL != "" {
		u, err := url.Parse(e.m.BaseURL)
		if err != nil {
			return fmt.Errorf("baseUrl: %w", err)
		}

		e.base = e.m.BaseURL
		// A gateway has its own paths, and may refuse a version that nobody wrote.
		own := func(host string) bool { return strings.HasSuffix(u.Hostname(), host) }
		if e.m.APIVersion != "" || slices.ContainsFunc(azureHosts, own) {
			e.base = strings.TrimSuffix(strings.TrimRight(e.base, "/"), "/v1") + "/v1"
			e.guard.query = map[string]string{"api-version": version}
		}
		return nil
	}

	// The usual case: the address is made of the resource's name.
	name := e.lookup(e.m.ResourceName, "AZURE_RESOURCE_NAME", "")
	if name == "" {
		return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: "Set resourceName or baseUrl in the configuration, or AZURE_RESOURCE_NAME on the nodes."}
	}

	e.base = "https://" + name + ".openai.azure.com/openai/v1"
	e.guard.query = map[string]string{"api-version": version}
	return nil
}

// vertexPlace finds project, region and host of Vertex.
func vertexPlace(e *endpoint) error {
	e.project = e.lookup(e.m.Project, "GOOGLE_VERTEX_PROJECT", "")
	e.region = e.lookup(e.m.Region, "GOOGLE_VERTEX_REGION", "us-central1")
	if e.project == "" {
		return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: "Set project in the configuration, or GOOGLE_VERTEX_PROJECT on the nodes."}
	}

	// The three forms of the address, as Google has them; the global one has no region in it.
	switch e.region {
	case "global":
		e.base = "https://aiplatform.googleapis.com"
	case "us", "eu":
		e.base = "https://aiplatform." + e.region + ".rep.googleapis.com"
	default:
		e.base = "https://" + e.region + "-aiplatform.googleapis.com"
	}
	return nil
}

// googleSign writes an access token of Google, which is asked for anew before
// it ends.
func googleSign(e *endpoint) (func(context.Context, http.Header) error, error) {
	return func(ctx context.Context, h http.Header) error {
		// Resolved with each request: a key file that was replaced counts at once. "" is what the
		// host has.
		file := ""
		if e.m.Credentials != nil {
			resolved, err := e.d.Secret(ctx, *e.m.Credentials)
			if err != nil {
				return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: clip(err.Error())}
			}
			file = strings.TrimSpace(resolved)
		}

		// Kept by whoever gives it, and asked for anew before it ends.
		token, err := e.d.GoogleToken(ctx, file)
		if err != nil {
			return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: clip(err.Error())}
		}

		h.Set("Authorization", "Bearer "+token)
		return nil
	}, nil
}

// bedrockPlace finds the region, which the address and the signature have.
func bedrockPlace(e *endpoint) error {
	e.region = e.lookup(e.m.Region, "AWS_REGION", "")
	if e.region == "" {
		return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: "Set region in the configuration, or AWS_REGION on the nodes."}
	}
	e.base = "https://bedrock-runtime." + e.region + ".amazonaws.com"
	return nil
}
