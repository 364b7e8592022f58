package config

// Token is a reference to a secret, never the secret itself. Exactly one field is set. It may be
// logged, since it prints as the reference.
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

// Override is a value that overrides an environment variable. If Token is not nil, the value is a
// reference to a secret; otherwise it is Value. Numbers and booleans are text as printed.
type Override struct {
	Name  string
	Token *Token
	Value string
}
