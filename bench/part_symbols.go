package bench

import (
	"context"
	"fmt"
	"path/filepath"
)

// partSymbols compares indexing with symbols with what universal-ctags alone takes.
func partSymbols(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Symbols of L", Columns: []string{"what", "CPU", "wall", "on disk"}}
	tree, err := r.corpora.tree(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := r.corpora.large(ctx)
	if err != nil {
		return nil, err
	}

	// Built twice, with and without: the difference is what symbols cost.
	conn := map[string]connection{"L": {"type": "git", "url": "file://" + repo}}
	plain, without, err := r.index(ctx, "plain", "off", 1, conn)
	if err != nil {
		return nil, err
	}
	if err := plain.stop(); err != nil {
		return nil, err
	}

	s, with, err := r.index(ctx, "symbols", "ctags", 1, conn)
	if err != nil {
		return nil, err
	}
	if err := s.stop(); err != nil {
		return nil, err
	}

	// The program by itself over the tree, with the fields that the product asks for.
	alone, err := measure(ctx, tree, nil, "ctags", "--quiet", "--options=NONE", "-R", "--output-format=json", "--fields=Nnzsp", "-f", filepath.Join(r.Dir, "tags.json"), ".")
	if err != nil {
		return nil, err
	}
	if alone.Code != 0 {
		return nil, fmt.Errorf("run ctags: exit code %d", alone.Code)
	}

	text, err := textBytes(ctx, tree)
	if err != nil {
		return nil, err
	}

	p.row("without symbols", without.own+without.git, without.wall, bytesize(without.disk))
	p.row("with symbols", with.own+with.git, with.wall, bytesize(with.disk))
	p.row("universal-ctags alone", alone.CPU, alone.Wall, "")
	p.note("Symbols cost %s of CPU on top of the text (children included), ctags alone takes %s.", cell(with.own+with.git-without.own-without.git), cell(alone.CPU))
	p.note("The node's own CPU for symbols: %.3g × that of ctags alone (target 0.15). On disk: %.3g × text more (target 0.05).",
		float64(with.own-without.own)/float64(alone.CPU), float64(with.disk-without.disk)/float64(text))
	return p, nil
}
