package config

// Token is a reference to a secret, never the secret. Exactly one of the
// fields is set. It prints as its reference, so it may be logged.
type Token struct {
	Env         string // name of an environment variable
	GoogleCloud string // projects/<id>/secrets/<name>/versions/<version>
}

func (t Token) String() string {
	if t.Env != "" {
		return "env:" + t.Env
	}
	return "googleCloudSecret:" + t.GoogleCloud
}

// Override is a value for an environment variable that wins over the real
// environment. Token is set when the value is a secret reference; else Value
// is the text (numbers and booleans as they print).
type Override struct {
	Name  string
	Token *Token
	Value string
}
