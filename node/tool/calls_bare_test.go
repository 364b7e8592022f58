package tool

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
)

// A name alone is a call in Ruby, but not where it is a variable.
func TestBareCalls_areNoVariables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, lines, want string }{
		{"total", "show: format(total)", "+"},
		{"total", "show: x = total", "+"},
		{"total", "show: return total if ready?", "+"},
		{"total", "show: [total, 1]", "+"},
		{"total", "show: \"#{total}\"", "+"},
		{"total", "show: show(total: 1)", "-"},
		{"total", "show: delegate :total, to: :cart", "-"},
		{"total", "show: @total ||= 1", "-"},
		{"total", "show: def total", "-"},
		{"total", "show: def self.total", "-"},
		{"total", "show: alias total sum", "-"},
		{"total", "show: subtotal + total_of", "-"},
		{"total", "show: total = 1\nshow: format(total)\nother: format(total)", "--+"},
		{"total", "show: total, rest = pair\nshow: format(total)", "--"},
		{"total", "show: total += 1\nshow: format(total)", "--"},
		{"total", "show: x.each { |total| p(total) }\nother: p(total)", "-+"},
		{"total", "show: each_sum do |_, total|\nshow: p(total)", "--"},
		{"total", "Cart: def show(total)\nshow: p(total)\nother: p(total)", "--+"},
		{"total", "Cart: def show a, total = 1\nshow: p(total)", "--"},
		{"total", "show: rescue E => total\nshow: p(total)", "--"},
		{"total", "show: if total == 1", "+"},
		{"total", "show: total =~ /x/", "+"},
		{"total?", "show: total? = 1\nshow: p(total?)", "-+"},
		{"total!", "show: a && total!", "+"},
	} {
		r := &symbols.SymbolResponse{
			Defined: []symbols.SymbolFile{{Language: "Ruby", Matches: []symbols.SymbolMatch{{Kind: "method"}}}},
			Files:   []symbols.SymbolFile{{Language: "Ruby"}},
		}
		for line := range strings.SplitSeq(c.lines, "\n") {
			in, text, _ := strings.Cut(line, ": ")
			r.Files[0].Matches = append(r.Files[0].Matches, symbols.SymbolMatch{Line: []byte(text), Around: shard.Symbol{Name: in}})
		}
		got, b := "", bareCallsOf(c.name, r)
		for i := range r.Files[0].Matches {
			if b.calls(&r.Files[0].Matches[i], "Ruby") {
				got += "+"
			} else {
				got += "-"
			}
		}
		if got != c.want {
			t.Errorf("%s in %q: %s, want %s", c.name, c.lines, got, c.want)
		}
		r.Defined[0].Language = "Go"
		if bareCallsOf(c.name, r) != nil {
			t.Errorf("%s is called alone, though nothing of Ruby defines it", c.name)
		}
	}
}
