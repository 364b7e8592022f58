package config

// Provider is the provider of a language model, as written in the file.
type Provider string

// The providers of language models.
const (
	AmazonBedrock         Provider = "amazon-bedrock"
	Anthropic             Provider = "anthropic"
	Azure                 Provider = "azure"
	DeepSeek              Provider = "deepseek"
	GoogleGenerativeAI    Provider = "google-generative-ai"
	GoogleVertexAnthropic Provider = "google-vertex-anthropic"
	GoogleVertex          Provider = "google-vertex"
	Mistral               Provider = "mistral"
	OpenAI                Provider = "openai"
	OpenAICompatible      Provider = "openai-compatible"
	OpenRouter            Provider = "openrouter"
	XAI                   Provider = "xai"
)

// Model is a language model. Properties that its provider does not have are empty. If a provider's
// default comes from an environment variable, the property is empty, too, and the node looks it up.
type Model struct {
	Provider    Provider  `json:"provider"`
	Model       string    `json:"model"` // for Azure the name of the deployment
	DisplayName string    `json:"displayName"`
	BaseURL     string    `json:"baseUrl"`
	Temperature *float64  `json:"temperature"`
	Headers     []KeyText `json:"-"` // sorted by key

	Token           *Token `json:"token"`
	AuthToken       *Token `json:"authToken"`
	AccessKeyID     *Token `json:"accessKeyId"`
	AccessKeySecret *Token `json:"accessKeySecret"`
	SessionToken    *Token `json:"sessionToken"`
	Credentials     *Token `json:"credentials"` // path of a key file

	Region           string    `json:"region"`
	Project          string    `json:"project"`
	ResourceName     string    `json:"resourceName"`
	APIVersion       string    `json:"apiVersion"`
	ReasoningEffort  string    `json:"reasoningEffort"`
	ReasoningSummary string    `json:"reasoningSummary"`
	ReasoningTag     string    `json:"reasoningTag"`
	ThinkingLevel    string    `json:"thinkingLevel"`
	ThinkingBudget   *int64    `json:"thinkingBudget"`
	QueryParams      []KeyText `json:"-"` // sorted by key
}

// KeyText is a header or a query parameter. If Token is not nil, the value is a reference to a
// secret; otherwise it is Value.
type KeyText struct {
	Key   string
	Value string
	Token *Token
}

// App is an app registered at a code host. Its installations give tokens for repositories.
type App struct {
	Type               string `json:"type"` // github
	ID                 string `json:"id"`
	PrivateKey         *Token `json:"privateKey"`
	DeploymentHostname string `json:"deploymentHostname"` // default github.com
}

// IdentityProvider is a service where people sign in or link their accounts.
type IdentityProvider struct {
	ID          string `json:"-"`        // key in the file; in the deprecated list, the provider
	Provider    string `json:"provider"` // github, gitlab, google, okta, ...
	Purpose     string `json:"purpose"`  // sso or account_linking
	DisplayName string `json:"displayName"`

	ClientID               *Token `json:"clientId"`
	ClientSecret           *Token `json:"clientSecret"`
	Issuer                 *Token `json:"issuer"`
	Audience               *Token `json:"audience"`
	BaseURL                string `json:"baseUrl"`
	AccountLinkingRequired bool   `json:"accountLinkingRequired"`
}
