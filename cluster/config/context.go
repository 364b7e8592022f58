package config

// Context is a search context: a named set of repositories. Exclude wins over Include. Patterns are
// globs on full repository names (host/org/repo) and on topics.
type Context struct {
	Name               string   `json:"-"` // the key in the file
	Include            []string `json:"include"`
	IncludeConnections []string `json:"includeConnections"`
	Exclude            []string `json:"exclude"`
	ExcludeConnections []string `json:"excludeConnections"`
	IncludeTopics      []string `json:"includeTopics"`
	ExcludeTopics      []string `json:"excludeTopics"`
	Description        string   `json:"description"`
}
