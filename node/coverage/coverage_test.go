package coverage

import (
	"slices"
	"testing"
)

// A value that no search made is never complete.
func TestCoverage_isUnknownUntilProved(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		c                    Coverage
		complete, exhaustive bool
		worst                Kind
	}{
		"zero value":                     {Coverage{}, false, false, Unknown},
		"nothing to search":              {Of(Parts, 0, 0), true, true, ""},
		"all searched":                   {Of(Parts, 3, 3), true, true, ""},
		"one part not searched":          {Of(Parts, 3, 2), false, false, Unknown},
		"a limit":                        {Of(Parts, 3, 3).With(Gap{Kind: Limit}), false, false, Limit},
		"kept by name only":              {Of(Parts, 3, 3).With(Gap{Kind: NameOnly, Count: 2}), false, true, ""},
		"not indexed":                    {Of(Parts, 3, 3).With(Gap{Kind: Failed, Count: 2}), false, false, ""},
		"the gravest first":              {Of(Parts, 3, 2).With(Gap{Kind: Limit}).With(Gap{Kind: Lost, Count: 1, Of: 3}), false, false, Lost},
		"not indexed, and not searched":  {Of(Parts, 3, 2).With(Gap{Kind: Failed, Count: 2}), false, false, Unknown},
		"with one that is complete":      {Of(Parts, 3, 3).And(Of(Files, 1, 1)), true, true, ""},
		"with one that is unknown":       {Of(Parts, 3, 3).And(Coverage{}), false, false, Unknown},
		"unknown with one that is known": {Coverage{}.And(Of(Parts, 3, 3)), false, false, Unknown},
	} {
		if tt.c.Complete() != tt.complete || tt.c.Exhaustive() != tt.exhaustive || tt.c.Worst() != tt.worst {
			t.Errorf("%s: complete %t, exhaustive %t, worst %q", name, tt.c.Complete(), tt.c.Exhaustive(), tt.c.Worst())
		}
		if tt.c.Complete() != (len(tt.c.Gaps()) == 0) {
			t.Errorf("%s: complete %t with gaps %+v", name, tt.c.Complete(), tt.c.Gaps())
		}
	}
}

// If only a limit has cut an answer, its counts are exact.
func TestCoverage_ofALimitedAnswerKeepsExactCounts(t *testing.T) {
	t.Parallel()
	limited := Of(Parts, 3, 3).With(Gap{Kind: Limit})
	for name, tt := range map[string]struct {
		c    Coverage
		want bool
	}{
		"unknown":                 {Coverage{}, false},
		"complete":                {Of(Parts, 3, 3), false},
		"a limit":                 {limited, true},
		"and kept by name only":   {limited.With(Gap{Kind: NameOnly, Count: 1}), true},
		"and a part without word": {Of(Parts, 3, 2).With(Gap{Kind: Limit}), false},
		"and not indexed yet":     {limited.With(Gap{Kind: Pending, Count: 1}), false},
		"and time":                {limited.With(Gap{Kind: Late}), false},
	} {
		if got := tt.c.Cut(); got != tt.want {
			t.Errorf("%s: cut %t", name, got)
		}
	}
}

// Gaps of one kind become one gap, and joining does not change the original value.
func TestCoverage_joinsGapsOfOneKind(t *testing.T) {
	t.Parallel()
	one := Of(Parts, 1, 1).With(Gap{Kind: Symbols, Count: 2, Files: []File{{Path: "a"}, {Path: "b"}}})
	two := one.With(Gap{Kind: Symbols, Count: 5, Files: []File{{Path: "c"}, {Path: "d"}}})
	got := two.Gap(Symbols)
	if got.Count != 7 || !slices.Equal(got.Files, []File{{Path: "a"}, {Path: "b"}, {Path: "c"}}) || len(two.Gaps()) != 1 {
		t.Errorf("joined: %+v", two.Gaps())
	}
	// Parts may answer in any order.
	turned := Of(Parts, 1, 1).With(Gap{Kind: Symbols, Count: 5, Files: []File{{Path: "d"}, {Path: "c"}}}).With(one.Gap(Symbols))
	if !slices.Equal(turned.Gap(Symbols).Files, got.Files) {
		t.Errorf("in another order: %+v", turned.Gaps())
	}
	if one.Gap(Symbols).Count != 2 || two.Has(Limit) || !two.Has(Limit, Symbols) {
		t.Errorf("the first has changed: %+v", one)
	}
}
