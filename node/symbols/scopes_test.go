package symbols

import "testing"

func TestQualifiedName_namesItsScope(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ symbol, scope, name string }{
		{"Pool.Tag", "Pool", "Tag"}, {"a::b::c", "a::b", "c"}, {"plain", "", "plain"}, {".hidden", "", ".hidden"}, {"end.", "", "end."},
	} {
		if scope, name := Qualified(c.symbol); scope != c.scope || name != c.name {
			t.Errorf("Qualified(%q) = %q, %q", c.symbol, scope, name)
		}
	}
	if !inScope("pkg.Pool", "Pool") || !inScope("a::b", "a.b") || inScope("xPool", "Pool") {
		t.Error("a scope is told by its last parts")
	}
}

// A definition may write its scope itself, and then nothing encloses it.
func TestQualifiedName_isWrittenInItsDefinition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, symbol string
		want         bool
	}{
		{"defmodule Ecto.Association do", "Ecto.Association", true},
		{"defmodule My.Ecto.Association do", "Ecto.Association", true},
		{"Ecto.Association", "Ecto.Association", true},
		{"namespace a::b {", "a::b", true},
		{"defmodule Ecto.Associations do", "Ecto.Association", false},
		{"defmodule NotEcto.Association do", "Ecto.Association", false},
		{"defmodule EctoXAssociation do", "Ecto.Association", false},
	} {
		if got := qualifiedExpr(c.symbol).MatchString(c.line); got != c.want {
			t.Errorf("%q in %q: %t", c.symbol, c.line, got)
		}
	}
}
