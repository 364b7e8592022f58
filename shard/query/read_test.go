package query

import (
	"fmt"
	"strings"
	"testing"
)

// drawn returns a text with its tokens in brackets, each after its kind.
func drawn(text string, tokens []Token) string {
	var b strings.Builder
	at := 0
	for _, t := range tokens {
		fmt.Fprintf(&b, "%s%s[%s]", text[at:t.Start], [...]string{"", "f", "v", "-", "or", "(", ")"}[t.Kind], text[t.Start:t.End])
		at = t.End
	}
	return b.String() + text[at:]
}

func TestRead_returnsTheTokensOfAQuery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in     string
		regexp bool
		want   string
	}{
		{``, false, ``},
		{`foo "b c"`, false, `[foo] ["b c"]`},
		{`foo or -repo:x`, false, `[foo] or[or] -[-]f[repo:]v[x]`},
		{`or a OR`, false, `[or] [a] [OR]`},
		{`- f:"a b"  count:all`, false, `-[-] f[f:]v["a b"]  f[count:]v[all]`},
		{`(a (b or c)) ->next -1`, false, `([(][a] ([(][b] or[or] [c])[)])[)] [->next] [-1]`},
		{`(int)x std::move`, false, `[(int)x] [std::move]`},
		{`(ab) (a b) [(]`, true, `[(ab)] ([(][a] [b])[)] [[(]]`},
		{`language:go`, false, `[language:go]`},

		// Tokens up to the mistake.
		{`a lang:nolang b`, false, `[a] f[lang:]v[nolang] b`},
		{`a file: b`, false, `[a] f[file:] b`},
		{`a (b [`, true, `[a] [(b] [`},
		{"a \xff", false, "a \xff"},
	} {
		r := Read(c.in, Options{Regexp: c.regexp})
		if got := drawn(c.in, r.Tokens); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.in, got, c.want)
		}
		if (r.Query == nil) == (r.Err == nil) {
			t.Errorf("%s: query %v, error %v", c.in, r.Query, r.Err)
		}
	}
}

// If only some texts could replace a mistake, each of them is valid there.
func TestParseError_queryWithOneOfItsChoicesParses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`x case:maybe y`, `yes no auto`},
		{`type:"a file"`, `file repo commit diff`},
		{`archived:maybe`, `yes no only`},
		{`(fork:maybe)`, `yes no only`},
		{`visibility:all`, `public internal private any`},
		{`a - visibility:any b`, `-visibility:public -visibility:internal -visibility:private`},
		{`count:many`, ``},
		{`case:`, ``},
	} {
		e := Read(c.in, Options{}).Err
		if e == nil || strings.Join(e.Choices, " ") != c.want {
			t.Errorf("%s: %+v, want the choices %q", c.in, e, c.want)
			continue
		}
		for _, choice := range e.Choices {
			text := c.in[:e.Offset] + choice + c.in[e.Offset+e.Length:]
			if _, err := Parse(text, Options{}); err != nil {
				t.Errorf("%s: with %s: %v", c.in, choice, err)
			}
		}
	}
}

// A mistake in a text has an offset and a length.
func TestParseError_marksTheWrongPart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in     string
		regexp bool
		want   string // the wrong part
	}{
		{`x lang:"no lang" y`, false, `"no lang"`},
		{`archived:maybe`, false, `maybe`},
		{`a - count:1`, false, `-`},
		{`-visibility:any b`, false, `-visibility:any`},
		{`file: x`, false, ``},
		{`x "a [z-a]"`, true, `z-a`},
		{`x *a`, true, `*`},
		{`file:"x(aaaaaaaaaaa){1000}"`, false, `x(aaaaaaaaaaa){1000}`},
		{"ab\xffc", false, "\xff"},
		{strings.Repeat("a", MaxLength+3), false, "aaa"},
	} {
		e := Read(c.in, Options{Regexp: c.regexp}).Err
		if e == nil {
			t.Errorf("%.40s: no mistake", c.in)
			continue
		}
		if got := c.in[e.Offset : e.Offset+e.Length]; got != c.want {
			t.Errorf("%.40s: %q is wrong, want %q (%v)", c.in, got, c.want, e)
		}
	}
}

// FuzzRead_tokensAreInOrderAndAgreeWithParse checks that tokens are in order with only blanks between them, and that Read gives the
// same query as Parse.
func FuzzRead_tokensAreInOrderAndAgreeWithParse(f *testing.F) {
	for _, text := range []string{`a or b`, `-(f:x "y z") count:1`, `((a))`, `- r:x or or -1`, `"a" b"c`, `x file:[`, `(int)x c:"("`} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, regexp bool) {
		opt := Options{Regexp: regexp}
		r := Read(text, opt)
		q, err := Parse(text, opt)
		if (err == nil) != (r.Err == nil) || err != nil && err.Error() != r.Err.Error() || err == nil && q.Q.String() != r.Query.Q.String() {
			t.Fatalf("%q: %v and %v", text, r, err)
		}

		at := 0
		for _, x := range r.Tokens {
			if x.Start < at || x.End <= x.Start || strings.TrimSpace(text[at:x.Start]) != "" {
				t.Fatalf("%q: %s", text, drawn(text, r.Tokens))
			}
			at = x.End
		}
		if err == nil && strings.TrimSpace(text[at:]) != "" {
			t.Fatalf("%q: nothing said of %q", text, text[at:])
		}
		if r.Err != nil && (r.Err.Offset < 0 || r.Err.Length < 0 || r.Err.Offset+r.Err.Length > len(text)) {
			t.Fatalf("%q: wrong from %d, %d bytes", text, r.Err.Offset, r.Err.Length)
		}
	})
}
