package mcp

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// prompt is a task that a person chooses in a client. Text has %s for each argument.
type prompt struct {
	name, title, about string
	arguments          []*mcp.PromptArgument
	text               string
}

// prompts has a row for each prompt.
var prompts = []prompt{
	{"explain_area", "Explain an area", "What a directory or file does, how it works and what depends on it.", []*mcp.PromptArgument{
		{Name: "repo", Required: true, Description: "repository"}, {Name: "path", Required: true, Description: "directory or file"}},
		`Explain %[2]s of the repository %[1]s to somebody who is new to it.

Call list_tree and outline first, then read_file only for what matters. find_symbol_references with tests exclude tells who uses the main names. list_commits with groupBy file tells what changes with it, with groupBy author whom to ask.

Answer with: its purpose, its parts and how they work together, who uses it, what to know before a change. Cite path:line for each claim. Say what you did not look at.`},
	{"line_history", "History of lines", "Why some lines are as they are: the commits that changed them, with reasons.", []*mcp.PromptArgument{
		{Name: "repo", Required: true, Description: "repository"}, {Name: "lines", Required: true, Description: "as src/a.c:520-560 or src/a.c:main"}},
		`Tell the history of %[2]s of the repository %[1]s.

list_commits with lines "%[2]s" lists the commits that changed them; get_diff shows one commit where its message does not say why.

Answer with: how they began, each change that matters with its commit, date, author and reason, and why they are as they are today. Say where the history does not tell.`},
}

func addPrompts(s *mcp.Server) {
	for _, p := range prompts {
		s.AddPrompt(&mcp.Prompt{Name: p.name, Title: p.title, Description: p.about, Arguments: p.arguments}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			var values []any
			for _, a := range p.arguments {
				value := req.Params.Arguments[a.Name]
				if value == "" {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s is required (%s)", a.Name, a.Description)}
				}
				values = append(values, value)
			}
			return &mcp.GetPromptResult{Description: p.about, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprintf(p.text, values...)}}}}, nil
		})
	}
}
