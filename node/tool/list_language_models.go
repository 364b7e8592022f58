package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

func listModels(m Modeler) Tool {
	return Tool{
		Name: "list_language_models", Title: "List language models",
		About: "Lists the language models that this instance is configured with.",
		Run: func(ctx context.Context, v catalog.Viewer, _ *Args) (string, error) {
			return runListModels(ctx, v, m)
		},
	}
}

// runListModels runs a call of list_language_models.
func runListModels(ctx context.Context, v catalog.Viewer, m Modeler) (string, error) {
	models, err := m.Models(ctx, v)
	if err != nil {
		return "", err
	}

	if len(models) == 0 {
		return "No language model is configured.", nil
	}
	return modelsText(models), nil
}

// modelsText writes models, one per line, the default first.
func modelsText(models []Model) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", count(len(models), "language model"))

	for i, m := range models {
		fmt.Fprintf(&b, "provider=%s model=%s", m.Provider, m.Model)
		if m.DisplayName != "" {
			fmt.Fprintf(&b, " (%s)", m.DisplayName)
		}
		// The first model is the default.
		if i == 0 {
			b.WriteString(" default")
		}
		// Name the cause: another node may have the key.
		if !m.Usable {
			b.WriteString(" not usable: its key is not on this node")
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
