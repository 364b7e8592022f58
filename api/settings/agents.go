package settings

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
)

var agentsTemplate = parse("agents.html")

// snippet is the configuration of one client, with an API key and without. BASE is the placeholder for
// the URL of the service.
type snippet struct{ Client, Where, WithKey, Without string }

// snippets are the known clients. README shows those with a key.
var snippets = []snippet{
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

// agents shows the page of the tool server.
func (p *Pages) agents(_ context.Context, v *layout.Visit) error {
	withURL := func(text string) string { return strings.ReplaceAll(text, "BASE", p.Base()) }
	data := struct {
		URL      string
		Snippets []snippet
	}{URL: withURL("BASE/api/mcp")}
	for _, s := range snippets {
		s.WithKey, s.Without = withURL(s.WithKey), withURL(s.Without)
		data.Snippets = append(data.Snippets, s)
	}
	return p.show(v, "agents", "Agents", agentsTemplate, data)
}
