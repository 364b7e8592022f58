package settings

import (
	"context"

	"github.com/shoalsearch/shoal/api/layout"
)

var agentsTemplate = parse("agents.html")

// agents shows the page of the tool server.
func (p *Pages) agents(_ context.Context, v *layout.Visit) error {
	data := struct {
		URL      string
		Snippets []layout.Agent
	}{p.Base() + "/api/mcp", layout.Agents(p.Base(), "")}
	return p.show(v, "agents", "Agents", agentsTemplate, data)
}
