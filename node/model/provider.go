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
	name       config.Provider
	base       string // default base URL
	wire       func(*endpoint) (wire, error)
	keys       []credential // the first available one counts, configured ones before variables
	sign       func(*endpoint) (func(context.Context, http.Header) error, error)
	setAddress func(*endpoint) error // finds the base URL if it depends on the configuration
	chat       dialect               // for Chat Completions
}

// credential is one way to authenticate.
type credential struct {
	token    func(*config.Model) *config.Token
	variable string // used if the configuration has no token; "" for none
	header   string
	prefix   string
	optional bool
}

func apiKey(m *config.Model) *config.Token    { return m.Token }
func authToken(m *config.Model) *config.Token { return m.AuthToken }

func bearerKey(variable string) []credential {
	return []credential{{token: apiKey, variable: variable, header: "Authorization", prefix: "Bearer "}}
}

// providers is the table of providers, in the order of the configuration's schema.
var providers = []provider{
	{name: config.AmazonBedrock, wire: newConverse, setAddress: bedrockAddress},
	{name: config.Anthropic, base: "https://api.anthropic.com/v1", wire: newMessages, keys: []credential{
		{token: authToken, variable: "ANTHROPIC_AUTH_TOKEN", header: "Authorization", prefix: "Bearer "},
		{token: apiKey, variable: "ANTHROPIC_API_KEY", header: "X-Api-Key"},
	}},
	{name: config.Azure, wire: newResponses, setAddress: azureAddress, keys: []credential{
		{token: apiKey, variable: "AZURE_API_KEY", header: "Api-Key"},
	}},
	{name: config.DeepSeek, base: "https://api.deepseek.com", wire: newChat, keys: bearerKey("DEEPSEEK_API_KEY"),
		chat: dialect{usage: usageOption, echo: "reasoning_content", echoAlways: true}},
	{name: config.GoogleGenerativeAI, base: "https://generativelanguage.googleapis.com/v1beta", wire: newGemini, keys: []credential{
		{token: apiKey, variable: "GOOGLE_GENERATIVE_AI_API_KEY", header: "X-Goog-Api-Key"},
	}},
	{name: config.GoogleVertexAnthropic, wire: newMessages, setAddress: vertexAddress, sign: googleSign},
	{name: config.GoogleVertex, wire: newGemini, setAddress: vertexAddress, sign: googleSign},
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

// endpoint is one model as this node calls it: the row of its provider, and its resolved
// settings.
type endpoint struct {
	provider *provider
	m        *config.Model
	d        *Deps
	base     string // without a trailing slash
	project  string // Vertex only
	region   string
	http     *http.Client
	guard    *guardedTransport
	secrets  []string // to be removed from errors
	quirks   *quirks
}

// name returns provider/model.
func (e *endpoint) name() string { return string(e.m.Provider) + "/" + e.m.Model }

// nativeMessage returns the message as this model sent it; nil if another model did.
func (e *endpoint) nativeMessage(m *Message) []byte {
	if m.Native == nil || m.Native.From != e.name() {
		return nil
	}
	return m.Native.JSON
}

// settingOf returns the configured value, else the variable, else the default.
func (e *endpoint) settingOf(configured, variable, defaultValue string) string {
	if configured != "" {
		return configured
	}
	if v, ok := e.d.Lookup(variable); ok && strings.TrimSpace(v) != "" {
		return strings.TrimSpace(v)
	}
	return defaultValue
}

// resolveSecret resolves a token reference, or reads the variable if there is none. "" means no
// secret.
func (e *endpoint) resolveSecret(ctx context.Context, t *config.Token, variable string) (string, error) {
	var value string
	if t != nil {
		resolved, err := e.d.Secret(ctx, *t)
		if err != nil {
			return "", &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: oneLine(err.Error())}
		}
		value = resolved
	} else if variable != "" {
		value, _ = e.d.Lookup(variable)
	}

	value = strings.TrimSpace(value)

	// Remember the secret, so that redact removes it from errors.
	if value != "" {
		e.secrets = append(e.secrets, value)
	}
	return value, nil
}

// prepareAddress determines the address, the credential and the headers of the model.
func (e *endpoint) prepareAddress(ctx context.Context) error {
	e.base = e.provider.base
	if e.provider.setAddress != nil {
		if err := e.provider.setAddress(e); err != nil {
			return err
		}
	}
	// A configured address overrides the default. azureAddress has handled Azure's.
	if e.m.BaseURL != "" && e.m.Provider != config.Azure {
		e.base = e.m.BaseURL
	}
	e.base = strings.TrimRight(e.base, "/")

	var err error

	// Resolve secrets now: a missing one is reported before anything is sent.
	if e.guard.sign, err = e.signer(ctx); err != nil {
		return err
	}
	if e.guard.headers, err = e.configuredHeaders(ctx); err != nil {
		return err
	}

	// Configured parameters come last, since they override those of setAddress.
	for _, p := range e.m.QueryParams {
		if e.guard.query == nil {
			e.guard.query = map[string]string{}
		}
		if e.guard.query[p.Key], err = e.resolveValue(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// signer returns a function that adds the credential to a request; nil for none.
func (e *endpoint) signer(ctx context.Context) (func(context.Context, http.Header) error, error) {
	if e.provider.sign != nil {
		return e.provider.sign(e)
	}
	if e.provider.keys == nil {
		return nil, nil
	}

	// Configured credentials come before variables.
	for _, configured := range []bool{true, false} {
		for _, k := range e.provider.keys {
			token, variable := k.token(e.m), ""
			if !configured {
				token, variable = nil, k.variable
			}

			value, err := e.resolveSecret(ctx, token, variable)
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

// configuredHeaders returns the configured headers, with their secrets.
func (e *endpoint) configuredHeaders(ctx context.Context) (http.Header, error) {
	h := http.Header{}
	for _, kv := range e.m.Headers {
		value, err := e.resolveValue(ctx, kv)
		if err != nil {
			return nil, err
		}
		h.Set(kv.Key, value)
	}
	return h, nil
}

// resolveValue returns a configured value, or the secret that it refers to.
func (e *endpoint) resolveValue(ctx context.Context, kv config.KeyText) (string, error) {
	if kv.Token == nil {
		return kv.Value, nil
	}
	return e.resolveSecret(ctx, kv.Token, "")
}

// azureHosts are the suffixes of Azure's own hosts, including national clouds.
var azureHosts = []string{
	".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com", ".azure-api.net",
	".openai.azure.us", ".cognitiveservices.azure.us", ".openai.azure.cn", ".cognitiveservices.azure.cn",
}

// azureAddress determines the base URL of a resource. Azure's own hosts need a path and a version;
// so does any other host if a version is configured.
func azureAddress(e *endpoint) error {
	// The version that serves Responses.
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
		// A gateway has its own paths, and may refuse a version that nobody configured.
		own := func(host string) bool { return strings.HasSuffix(u.Hostname(), host) }
		if e.m.APIVersion != "" || slices.ContainsFunc(azureHosts, own) {
			e.base = strings.TrimSuffix(strings.TrimRight(e.base, "/"), "/v1") + "/v1"
			e.guard.query = map[string]string{"api-version": version}
		}
		return nil
	}

	// Usually the address consists of the resource's name.
	name := e.settingOf(e.m.ResourceName, "AZURE_RESOURCE_NAME", "")
	if name == "" {
		return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: "Set resourceName or baseUrl in the configuration, or AZURE_RESOURCE_NAME on the nodes."}
	}

	e.base = "https://" + name + ".openai.azure.com/openai/v1"
	e.guard.query = map[string]string{"api-version": version}
	return nil
}

// vertexAddress determines project, region and host on Vertex.
func vertexAddress(e *endpoint) error {
	e.project = e.settingOf(e.m.Project, "GOOGLE_VERTEX_PROJECT", "")
	e.region = e.settingOf(e.m.Region, "GOOGLE_VERTEX_REGION", "us-central1")
	if e.project == "" {
		return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: "Set project in the configuration, or GOOGLE_VERTEX_PROJECT on the nodes."}
	}

	// Google has three forms of the address.
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

// googleSign adds an access token of Google.
func googleSign(e *endpoint) (func(context.Context, http.Header) error, error) {
	return func(ctx context.Context, h http.Header) error {
		// Resolve the key file for each request, since it may be replaced. "" means the host's
		// credentials.
		file := ""
		if e.m.Credentials != nil {
			resolved, err := e.d.Secret(ctx, *e.m.Credentials)
			if err != nil {
				return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: oneLine(err.Error())}
			}
			file = strings.TrimSpace(resolved)
		}

		// GoogleToken caches the token and renews it before it expires.
		token, err := e.d.GoogleToken(ctx, file)
		if err != nil {
			return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: oneLine(err.Error())}
		}

		h.Set("Authorization", "Bearer "+token)
		return nil
	}, nil
}

// bedrockAddress determines the region, which address and signature contain.
func bedrockAddress(e *endpoint) error {
	e.region = e.settingOf(e.m.Region, "AWS_REGION", "")
	if e.region == "" {
		return &Error{Kind: NoKey, Provider: string(e.m.Provider), Message: "Set region in the configuration, or AWS_REGION on the nodes."}
	}
	e.base = "https://bedrock-runtime." + e.region + ".amazonaws.com"
	return nil
}
