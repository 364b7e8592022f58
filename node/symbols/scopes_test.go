package symbols

import "testing"

func TestQualifiedName_namesItsScope(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ symbol, scope, name string }{
		{"Pool.Tag", "Pool", "Tag"}, {"a::b::c", "a::b", "c"}, {"plain", "", "plain"}, {".hidden", "", ".hidden"}, {"end.", "", "end."},
	} {
		if scope, name := qualified(c.symbol); scope != c.scope || name != c.name {
			t.Errorf("qualified(%q) = %q, %q", c.symbol, scope, name)
		}
	}
	if !inScope("pkg.Pool", "Pool") || !inScope("a::b", "a.b") || inScope("xPool", "Pool") {
		t.Error("a scope is told by its last parts")
	}
}
