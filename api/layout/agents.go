package layout

import "strings"

// Agent is how one client of the tool server is configured, with an API key and without.
type Agent struct{ Client, Where, WithKey, Without string }

// agents are the known clients. BASE is the placeholder for the URL of the service. The tutorial shows those
// with a key.
var agents = []Agent{
	{
		"Claude Code", "in a shell",
		`claude mcp add --transport http shoal BASE/api/mcp --header "Authorization: Bearer $SHOAL_API_KEY"`,
		`claude mcp add --transport http shoal BASE/api/mcp`,
	},
	{
		"Cursor, Windsurf and others that take a URL", ".cursor/mcp.json",
		`{ "mcpServers": { "shoal": { "url": "BASE/api/mcp", "headers": { "Authorization": "Bearer shoal_..." } } } }`,
		`{ "mcpServers": { "shoal": { "url": "BASE/api/mcp" } } }`,
	},
	{
		"VS Code", ".vscode/mcp.json",
		`{ "servers": { "shoal": { "type": "http", "url": "BASE/api/mcp", "headers": { "Authorization": "Bearer shoal_..." } } } }`,
		`{ "servers": { "shoal": { "type": "http", "url": "BASE/api/mcp" } } }`,
	},
	{
		"Gemini CLI", "~/.gemini/settings.json",
		`{ "mcpServers": { "shoal": { "httpUrl": "BASE/api/mcp", "headers": { "Authorization": "Bearer shoal_..." } } } }`,
		`{ "mcpServers": { "shoal": { "httpUrl": "BASE/api/mcp" } } }`,
	},
	{
		"opencode", "opencode.json",
		`{ "mcp": { "shoal": { "type": "remote", "url": "BASE/api/mcp", "headers": { "Authorization": "Bearer shoal_..." } } } }`,
		`{ "mcp": { "shoal": { "type": "remote", "url": "BASE/api/mcp" } } }`,
	},
	{
		"Codex", "~/.codex/config.toml",
		"[mcp_servers.shoal]\nurl = \"BASE/api/mcp\"\nbearer_token_env_var = \"SHOAL_API_KEY\"",
		"[mcp_servers.shoal]\nurl = \"BASE/api/mcp\"",
	},
	{
		"Clients that start a program (Claude Desktop, Zed and others)", "the client's own file; shoal is on the PATH",
		`{ "mcpServers": { "shoal": { "command": "shoal", "args": ["mcp"], "env": { "SHOAL_URL": "BASE", "SHOAL_API_KEY": "shoal_..." } } } }`,
		`{ "mcpServers": { "shoal": { "command": "shoal", "args": ["mcp"], "env": { "SHOAL_URL": "BASE" } } } }`,
	},
}

// Agents returns the known clients for a service at a URL. "shoal_..." and the variable SHOAL_API_KEY stand for the
// key, unless one is given.
func Agents(base, key string) []Agent {
	fill := []string{"BASE", base}
	if key != "" {
		fill = append(fill, "shoal_...", key, "$SHOAL_API_KEY", key)
	}
	r := strings.NewReplacer(fill...)
	out := make([]Agent, len(agents))
	for i, a := range agents {
		out[i] = Agent{a.Client, a.Where, r.Replace(a.WithKey), r.Replace(a.Without)}
	}
	return out
}
