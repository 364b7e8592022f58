package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
)

// idle is all parts of a node, and does no work: every answer is a zero value.
type idle struct {
	symbols.Searcher
	browse.Reader
}

func (idle) Grep(context.Context, catalog.Viewer, search.GrepRequest) (*search.GrepResponse, error) {
	return &search.GrepResponse{}, nil
}

func (idle) Glob(context.Context, catalog.Viewer, search.GlobRequest) (*search.GlobResponse, error) {
	return &search.GlobResponse{}, nil
}

func (idle) Definitions(context.Context, catalog.Viewer, symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	return &symbols.SymbolResponse{}, nil
}

func (idle) References(context.Context, catalog.Viewer, symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	return &symbols.SymbolResponse{}, nil
}

func (idle) Ranked(context.Context, catalog.Viewer, search.RankedRequest) (*search.RankedResponse, error) {
	return &search.RankedResponse{}, nil
}

func (idle) ReadFile(context.Context, catalog.Viewer, browse.ReadFileRequest) (*browse.ReadFileResponse, error) {
	return &browse.ReadFileResponse{}, nil
}

func (idle) ListTree(context.Context, catalog.Viewer, browse.ListTreeRequest) (*browse.ListTreeResponse, error) {
	return &browse.ListTreeResponse{}, nil
}

func (idle) Outline(context.Context, catalog.Viewer, browse.OutlineRequest) (*browse.OutlineResponse, error) {
	return &browse.OutlineResponse{}, nil
}

func (idle) Commits(context.Context, catalog.Viewer, browse.CommitsRequest) (*browse.CommitsResponse, error) {
	return &browse.CommitsResponse{}, nil
}

func (idle) Branches(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error) {
	return &browse.RefsResponse{}, nil
}

func (idle) Tags(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error) {
	return &browse.RefsResponse{}, nil
}

func (idle) Trace(context.Context, catalog.Viewer, browse.TraceRequest) (*browse.TraceResponse, error) {
	return &browse.TraceResponse{}, nil
}

func (idle) Blame(context.Context, catalog.Viewer, browse.BlameRequest) (*browse.BlameResponse, error) {
	return &browse.BlameResponse{}, nil
}

func (idle) Diff(context.Context, catalog.Viewer, browse.DiffRequest) (*browse.DiffResponse, error) {
	return &browse.DiffResponse{}, nil
}

func (idle) LastSeen(context.Context, catalog.Viewer, browse.LastSeenRequest) (*browse.LastSeenResponse, error) {
	return &browse.LastSeenResponse{}, nil
}

func (idle) Repos(context.Context, catalog.Viewer, browse.ReposRequest) (*browse.ReposResponse, error) {
	return &browse.ReposResponse{}, nil
}

func (idle) Models(context.Context, catalog.Viewer) ([]Model, error) { return nil, nil }

// callsOf is calls of a tool: with what it requires, and with each choice of words.
func callsOf(row *Tool) (calls []string) {
	base := map[string]any{}
	for _, p := range row.Params {
		if p.Required || p.Name == "path" {
			base[p.Name] = "a"
		}
	}
	for _, p := range append(row.Params, Param{Name: "maxTokens", Words: []string{""}}) {
		words := p.Words
		if p.Kind == String && words == nil && !p.Required && p.Name != "symbol" {
			words = []string{"a:1-2"}
		}
		for _, word := range words {
			arguments := fmt.Sprintf(`{%q:%q`, p.Name, word)
			if word == "" {
				arguments = `{"maxTokens":500`
			}
			for name, value := range base {
				if name != p.Name {
					arguments += fmt.Sprintf(`,%q:%q`, name, value)
				}
			}
			calls = append(calls, arguments+"}")
		}
	}
	return calls
}

// Where nobody did any work no tool says that its answer is complete.
func TestTools_claimCompletenessOnlyWithProof(t *testing.T) {
	t.Parallel()
	set := New(Parts{idle{}, idle{}, idle{}, slog.New(slog.DiscardHandler)})
	answers := 0
	for i := range set.tools {
		row := &set.tools[i]
		for _, arguments := range callsOf(row) {
			a := set.Call(t.Context(), catalog.Operator(), row.Name, json.RawMessage(arguments))
			if strings.Contains(a.Text, "Complete") || strings.Contains(a.Text, "End of file") || strings.Contains(a.Text, "panic") {
				t.Errorf("%s %s:\n%s", row.Name, arguments, a.Text)
			}
			if !a.Failed {
				answers++
			}
		}
	}
	if answers < 2*len(set.tools) {
		t.Errorf("%d answers of %d tools", answers, len(set.tools))
	}
}
