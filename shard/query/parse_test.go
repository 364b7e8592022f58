package query

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	enrydata "github.com/go-enry/go-enry/v2/data"

	"github.com/shoalsearch/shoal/glob/globtest"
)

// show prints a query without parts that most tests ignore: HEAD at the top, and the i of folding,
// which is the default.
func show(q *Query) string {
	s := q.Q.String()
	if rest, ok := strings.CutSuffix(s, ` rev:"HEAD")`); ok && strings.Count(s, "rev:") == 1 && strings.HasPrefix(rest, "(and ") {
		rest = rest[len("(and "):]
		if !single(rest) {
			rest = "(and " + rest + ")"
		}
		s = rest
	}
	return strings.ReplaceAll(s, `"i`, `"`)
}

// single reports whether s is one node.
func single(s string) bool {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ' ' && depth == 0:
			return false
		}
	}
	return true
}

func TestParse_returnsTheTreeOfEachQuery(t *testing.T) {
	t.Parallel()

	// In the first table the toggle for regular expressions is off.
	for _, tt := range []struct{ in, want string }{
		{``, `rev:"HEAD"`},
		{" \t\r\n", `rev:"HEAD"`},
		{`foo`, `content:"foo"`},
		{`foo bar`, `(and content:"foo" content:"bar")`},
		{"foo\tbar\nbaz", `(and content:"foo" content:"bar" content:"baz")`},
		{`foo or bar`, `(or content:"foo" content:"bar")`},
		{`foo OR bar`, `(or content:"foo" content:"bar")`},
		{`foo Or bar`, `(and content:"foo" content:"Or" content:"bar")`},
		{`foo or bar baz`, `(or content:"foo" (and content:"bar" content:"baz"))`},
		{`foo and not bar`, `(and content:"foo" content:"and" content:"not" content:"bar")`},
		{`foo (bar or baz) -file:_test\.go$`, `(and content:"foo" (or content:"bar" content:"baz") (not file_regexp:"_test\\.go$"))`},
		{`(foo)`, `content:"foo"`},
		{`((foo))`, `content:"foo"`},
		{`()`, `false`},
		{`( )`, `false`},
		{`() or foo`, `content:"foo"`},
		{`-()`, `rev:"HEAD"`},
		{`foo foo`, `content:"foo"`},

		// or as a word
		{`or`, `content:"or"`},
		{`or foo`, `(and content:"or" content:"foo")`},
		{`foo or`, `(and content:"foo" content:"or")`},
		{`foo or `, `(and content:"foo" content:"or")`},
		{`or or or`, `content:"or"`},
		{`(or foo)`, `(and content:"or" content:"foo")`},
		{`(foo or)`, `(and content:"foo" content:"or")`},
		{`orange or order`, `(or content:"orange" content:"order")`},
		{`or(x)`, `content:"or(x)"`},

		// code as text
		{`foo(`, `content:"foo("`},
		{`(foo`, `content:"(foo"`},
		{`foo)`, `content:"foo)"`},
		{`func(arg)`, `content:"func(arg)"`},
		{`"open`, `content:"\"open"`},
		{`x="open`, `content:"x=\"open"`},
		{`name\s*=\s*"x lang:HCL`, `(and content:"name\\s*=\\s*\"x" lang:"HCL")`},
		{`(foo bar(`, `(and content:"(foo" content:"bar(")`},
		{`(foo bar( baz)`, `(and content:"(foo" content:"bar(" content:"baz)")`},
		{`(foo bar(x) baz)`, `(and content:"foo" content:"bar(x)" content:"baz")`},
		{`(int)x`, `content:"(int)x"`},
		{`()=>{}`, `content:"()=>{}"`},
		{`(char *)malloc`, `(and content:"char" content:"*" content:"malloc")`},
		{`"a":"b"`, `content:"\"a\":\"b\""`},
		{`"a b"c`, `(and content:"a b" content:"c")`},
		{`content::WebContents`, `content:"content::WebContents"`},
		{`http://x`, `content:"http://x"`},
		{`c:\dir`, `content:"\\dir"`},
		{`a.b[c]*d+`, `content:"a.b[c]*d+"`},

		// negation
		{`-foo`, `(not content:"foo")`},
		{`-_foo`, `(not content:"_foo")`},
		{`-é`, `(not content:"é")`},
		{`-"foo bar"`, `(not content:"foo bar")`},
		{`-(foo bar)`, `(not (and content:"foo" content:"bar"))`},
		{`-foo:bar`, `(not content:"foo:bar")`},
		{`-file:x`, `(not file:"x")`},
		{`- file:x`, `(not file:"x")`},
		{`- foo`, `(and content:"-" content:"foo")`},
		{`a - (b)`, `(and content:"a" content:"-" content:"b")`},
		{`->next`, `content:"->next"`},
		{`--flag`, `content:"--flag"`},
		{`-1`, `content:"-1"`},
		{`-`, `content:"-"`},
		{`-"open`, `content:"-\"open"`},
		{`-(open`, `content:"-(open"`},
		{`-or x`, `(and (not content:"or") content:"x")`},
		{`-(-foo)`, `content:"foo"`},

		// quotes
		{`"foo bar"`, `content:"foo bar"`},
		{`"foo \"bar\""`, `content:"foo \"bar\""`},
		{`"a\\b"`, `content:"a\\b"`},
		{`"a\nb"`, `content:"a\\nb"`},
		{`"\\\""`, `content:"\\\""`},
		{"\"a\nb\"", `content:"a\nb"`},
		{"x \"of (a) {\n\treturn \\\"b\\\"\n}\" y", `(and content:"x" content:"of (a) {\n\treturn \"b\"\n}" content:"y")`},
		{"(\"a)\n(b\" or c)", `(or content:"a)\n(b" content:"c")`},
		{"\"a\nb", `(and content:"\"a" content:"b")`},
		{`"(" foo`, `(and content:"(" content:"foo")`},
		{`("a)b" c)`, `(and content:"a)b" content:"c")`},
		{`""`, `rev:"HEAD"`},
		{`"or" x`, `(and content:"or" content:"x")`},
		{`foo "or" x`, `(and content:"foo" content:"or" content:"x")`},
		{`"-foo"`, `content:"-foo"`},
		{`"file:x"`, `content:"file:x"`},

		// filters
		{`content:foo`, `content:"foo"`},
		{`c:"file:x y"`, `content:"file:x y"`},
		{`content:-x`, `content:"-x"`},
		{`file:\.go$`, `file_regexp:"\\.go$"`},
		{`f:"a b"`, `file:"a b"`},
		{`f:"a \" b"`, `file:"a \" b"`},
		{`file:(test|spec)`, `file_regexp:"(test|spec)"`},
		{`(file:(a|b) or file:[)] x)`, `(or file_regexp:"(a|b)" (and file:")" content:"x"))`},
		{`(file:a\) x)`, `(and file:"a)" content:"x")`},
		{`repo:^github\.com/org/`, `repo:"^github\\.com/org/"`},
		{`r:x`, `repo:"x"`},
		{`sym:^New`, `sym_regexp:"^New"`},
		{`lang:go`, `lang:"Go"`},
		{`l:GOLANG`, `lang:"Go"`},
		{`lang:c++`, `lang:"C++"`},
		{`lang:"emacs lisp"`, `lang:"Emacs Lisp"`},
		{`lang:jsx`, `lang:"JavaScript"`},
		{`lang:Skipped`, `lang:"skipped"`},
		{`context:web`, `context:"web"`},
		{`reposet:a,"b`, `reposet:["a" "\"b"]`},
		{`reposet:"a , b,"`, `reposet:["a" "b"]`},
		{`visibility:internal`, `visibility:internal`},
		{`archived:only fork:no visibility:private`, `(and archived:only fork:no visibility:private)`},
		{`-archived:yes`, `archived:no`},
		{`-fork:yes`, `fork:no`},
		{`-fork:only`, `(not fork:only)`},
		{`(context:web or context:api) x`, `(and (or context:"web" context:"api") content:"x")`},
		{`-repo:x`, `(not repo:"x")`},
		{`foo:bar`, `content:"foo:bar"`},
		{`File:x`, `content:"File:x"`},

		// directives, which are not part of the tree
		{`case:no foo`, `content:"foo"`},
		{`foo or count:10`, `content:"foo"`},
		{`(type:file) foo`, `content:"foo"`},
		{`-(count:1)`, `rev:"HEAD"`},
		{"nul\x00x", `content:"nul\x00x"`},
	} {
		check(t, tt.in, Options{}, tt.want)
	}
	for _, tt := range []struct{ in, want string }{
		{`foo.*bar`, `content_regexp:"foo.*bar"`},
		{`foo`, `content:"foo"`},
		{`foo\.bar`, `content:"foo.bar"`},
		{`(foo|bar)baz`, `content_regexp:"(foo|bar)baz"`},
		{`(foo|bar)`, `content_regexp:"(foo|bar)"`},
		{`(foo bar)`, `(and content:"foo" content:"bar")`},
		{`(foo)+ x`, `(and content_regexp:"(foo)+" content:"x")`},
		{`(lang:go)`, `lang:"Go"`},
		{`(-lang:go)`, `(not lang:"Go")`},
		{`("foo")`, `content:"foo"`},
		{`((a b))`, `(and content:"a" content:"b")`},
		{`()`, `false`},
		{`()+x`, `content_regexp:"()+x"`},
		{`-(foo|bar)baz`, `(not content_regexp:"(foo|bar)baz")`},
		{`(a\) b)`, `(and content:"a)" content:"b")`},
		{`([)] b)`, `(and content:")" content:"b")`},
		{`([^])] b)`, `(and content_regexp:"[^])]" content:"b")`},
		{`"foo bar.*"`, `content_regexp:"foo bar.*"`},
		{`"foo \"bar\""`, `content:"foo \"bar\""`},
		{`"a\\b"`, `content:"a\\b"`},
		{`( context:web or context:api ) logger\.debug`, `(and (or context:"web" context:"api") content:"logger.debug")`},
		{`(?i)foo`, `content_regexp:"(?i)foo"`},
		{`a\nb`, `content:"a\nb"`},
		{"\"a.*\nb\"", `content_regexp:"a.*\nb"`},
		{`^$`, `content_regexp:"^$"`},
		{`(?:)`, `rev:"HEAD"`},
		{`content:a.c`, `content_regexp:"a.c"`},
	} {
		check(t, tt.in, Options{Regexp: true}, tt.want)
	}
}

func check(t *testing.T, in string, opt Options, want string) {
	t.Helper()
	q, err := Parse(in, opt)
	if err != nil {
		t.Errorf("Parse(%q): %v", in, err)
		return
	}
	if got := show(q); got != want {
		t.Errorf("Parse(%q, %+v)\n got %s\nwant %s", in, opt, got, want)
	}
}

func TestParse_readsRevisionFilters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{`a`, `(and content:"a" rev:"HEAD")`},
		{`rev:main a`, `(and rev:"main" content:"a")`},
		{`branch:x`, `rev:"x"`},
		{`b:x or revision:y`, `(or rev:"x" rev:"y")`},
		{`rev:* a`, `(and rev:"*" content:"a")`},
		{`a or rev:x b`, `(or (and content:"a" rev:"HEAD") (and rev:"x" content:"b"))`},
		{`(rev:x or rev:y) a`, `(and (or rev:"x" rev:"y") content:"a")`},
		{`a (b or rev:x c)`, `(and content:"a" (or (and content:"b" rev:"HEAD") (and rev:"x" content:"c")))`},
		{`rev:y (b or rev:x c)`, `(and rev:"y" (or content:"b" (and rev:"x" content:"c")))`},
		{`rev:f/* -rev:f/a foo`, `(and rev:"f/*" (not rev:"f/a") content:"foo")`},
		{`-rev:x foo`, `(and (not rev:"x") content:"foo")`},
		{`rev:refs/tags/v1.0`, `rev:"refs/tags/v1.0"`},
	} {
		q, err := Parse(tt.in, Options{CaseSensitive: true})
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
		} else if got := q.Q.String(); got != tt.want {
			t.Errorf("Parse(%q)\n got %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

func TestParse_decidesCaseSensitivity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		opt  Options
		want string
	}{
		{`Foo file:X repo:Y`, Options{}, `(and content:"Foo"i file:"X"i repo:"Y"i rev:"HEAD")`},
		{`Foo file:X repo:Y`, Options{CaseSensitive: true}, `(and content:"Foo" file:"X" repo:"Y" rev:"HEAD")`},
		{`Foo case:yes`, Options{}, `(and content:"Foo" rev:"HEAD")`},
		{`case:no Foo`, Options{CaseSensitive: true}, `(and content:"Foo"i rev:"HEAD")`},
		{`case:auto Foo bar`, Options{}, `(and content:"Foo" content:"bar"i rev:"HEAD")`},
		{`case:auto \S\W\pL\p{Lu}(?P<Name>.)[[:^alpha:]]`, Options{Regexp: true}, `(and content_regexp:"\\S\\W\\pL\\p{Lu}(?P<Name>.)[[:^alpha:]]"i rev:"HEAD")`},
		{`case:auto \x41 [A-Z]`, Options{Regexp: true}, `(and content:"A"i content_regexp:"[A-Z]" rev:"HEAD")`},
		{`case:yes foo case:no`, Options{}, `(and content:"foo"i rev:"HEAD")`},
	} {
		q, err := Parse(tt.in, tt.opt)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
		} else if got := q.Q.String(); got != tt.want {
			t.Errorf("Parse(%q, %+v)\n got %s\nwant %s", tt.in, tt.opt, got, tt.want)
		}
	}
}

func TestParse_readsSettingsOfTheSearch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want Query
	}{
		{`a`, Query{Count: NoCount}},
		{`a count:7 type:repo`, Query{Count: 7, Type: RepoType}},
		{`count:all timeout:500ms type:file case:auto`, Query{Count: CountAll, Timeout: 500 * time.Millisecond, Type: FileType, Case: CaseAuto}},
		{`count:1000000`, Query{Count: 1000000}},
		{`at:2026-02`, Query{Count: NoCount, At: time.Date(2026, 2, 28, 23, 59, 59, 0, time.UTC)}},
		{`at:2026-01-31T12:00+02:00`, Query{Count: NoCount, At: time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)}},
	} {
		q, err := Parse(tt.in, Options{})
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
			continue
		}
		q.Q = nil
		if !reflect.DeepEqual(*q, tt.want) {
			t.Errorf("Parse(%q) = %+v, want %+v", tt.in, *q, tt.want)
		}
	}
}

func TestParse_errorsHaveOffsets(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("(", 5000) + "x y" + strings.Repeat(")", 5000)
	for _, tt := range []struct {
		in     string
		regexp bool
		offset int
		want   string
	}{
		{`a[`, true, 1, `missing closing ]: "["`},
		{`foo(`, true, 0, `missing closing )`},
		{`x foo)`, true, 2, `unexpected )`},
		{`x *a`, true, 2, `missing argument to repetition operator: "*"`},
		{`a**`, true, 1, `invalid nested repetition operator: "**"`},
		{`x "a [z-a]"`, true, 6, `invalid character class range: "z-a"`},
		{`file:[`, false, 5, `missing closing ]`},
		{`file:"a ["`, false, 8, `missing closing ]`},
		{`repo:(`, false, 5, `missing closing )`},
		{`sym:a**`, false, 5, `nested repetition`},
		{`file:a{1001}`, false, 6, `invalid repeat count`},
		{`((a{100}){100}){10}`, true, 3, `invalid repeat count`},
		{`x (abcdefghijk){1000}`, true, 2, `smaller regular expression`},
		{strings.Repeat("(", 2000) + strings.Repeat(")", 2000) + `x`, true, 0, `smaller regular expression`},
		{`file:`, false, 5, `a value right after file:`},
		{`file: x`, false, 5, `a value right after file:`},
		{`(file:)`, false, 6, `a value right after file:`},
		{`file:""`, false, 5, `not empty`},
		{`reposet:", ,"`, false, 8, `names of repositories`},
		{`x lang:foobar`, false, 7, `the name of a language`},
		{`x lang:docker`, false, 7, `as "Dockerfile" (`},
		{`lang:go,java`, false, 5, `the name of a language`},
		{`archived:maybe`, false, 9, `yes, no or only after archived:`},
		{`fork:YES`, false, 5, `yes, no or only after fork:`},
		{`visibility:hidden`, false, 11, `public, internal, private or any after visibility:`},
		{`-visibility:any`, false, 0, `-visibility:public`},
		{`case:maybe`, false, 5, `yes, no or auto after case:`},
		{`-case:yes`, false, 0, `case: without a minus`},
		{`a - count:1`, false, 2, `count: without a minus`},
		{`type:dir`, false, 5, `file, repo, commit or diff after type:`},
		{`count:0`, false, 6, `a number from 1 to 1000000, or all, after count:`},
		{`count:1000001`, false, 6, `a number from`},
		{`count:-1`, false, 6, `a number from`},
		{`timeout:10`, false, 8, `a duration`},
		{`timeout:-1s`, false, 8, `a duration`},
		{`timeout:2h`, false, 8, `a duration`},
		{`at:soon`, false, 3, `a date after at:`},
		{`at:9999-12-31T23:59:59-07:00`, false, 3, `a date after at:`},
		{`at:0000-01-01T00:00:00+07:00`, false, 3, `a date after at:`},
		{`-at:2026`, false, 0, `at: without a minus`},
		{`rev:a[`, false, 4, `glob is malformed`},
		{`rev:f/{a,b`, false, 4, `glob is malformed`},
		{"ab\xffc", false, 2, `UTF-8`},
		{deep, false, MaxDepth, `at most 100 groups`},
		{deep, true, MaxDepth, `at most 100 groups`},
		{strings.Repeat("a", MaxLength+1), false, MaxLength, `at most 16384 bytes`},
		{strings.Repeat("a ", MaxAtoms+1), false, 2 * MaxAtoms, `at most 1000 texts`},
	} {
		_, err := Parse(tt.in, Options{Regexp: tt.regexp})
		var pe *ParseError
		if !errors.As(err, &pe) {
			t.Errorf("Parse(%.40q): error %v, want a ParseError", tt.in, err)
			continue
		}
		if pe.Offset != tt.offset || !strings.Contains(pe.Expected, tt.want) {
			t.Errorf("Parse(%.40q)\n got %v\nwant at byte %d: ...%s...", tt.in, err, tt.offset, tt.want)
		}
		if len(pe.Expected) > 300 {
			t.Errorf("Parse(%.40q): message of %d bytes", tt.in, len(pe.Expected))
		}
	}

	// Thousands of parentheses without a partner are text.
	if _, err := Parse(strings.Repeat("(", 5000), Options{}); err != nil {
		t.Errorf("open parentheses: %v", err)
	}
}

// Nested groups are read once, not once for each level: otherwise the longest text takes seconds.
func TestParse_readsNestedGroupsInLinearTime(t *testing.T) {
	t.Parallel()
	const depth = (MaxLength - len("f:x")) / 2
	text := strings.Repeat("(", depth) + "f:x" + strings.Repeat(")", depth)

	began := time.Now()
	if _, err := Parse(text, Options{Regexp: true}); err == nil || !strings.Contains(err.Error(), "at most 100 groups") {
		t.Errorf("%d groups: %v", depth, err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("%d groups took %v", depth, took)
	}
}

func TestLanguage_acceptsNamesAndAliases(t *testing.T) {
	t.Parallel()
	for _, info := range enrydata.LanguageInfoByID {
		for _, name := range append([]string{info.Name, strings.ToUpper(info.Name)}, info.Aliases...) {
			got, ok := Language(name)
			if !ok {
				t.Errorf("Language(%q) is unknown, want %s", name, info.Name)
			} else if name == info.Name && got != info.Name {
				t.Errorf("Language(%q) = %s", name, got)
			}
		}
	}
}

func TestRevisionFilter_matchesNamesAndCommits(t *testing.T) {
	t.Parallel()
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, tt := range []struct {
		pattern, name string
		head, want    bool
	}{
		{"HEAD", "refs/heads/main", true, true},
		{"HEAD", "refs/heads/main", false, false},
		{"HEAD", "HEAD", false, true},
		{"main", "refs/heads/main", false, true},
		{"main", "refs/heads/maintenance", false, false},
		{"refs/heads/main", "refs/heads/main", true, true},
		{"v1", "refs/tags/v1", false, true},
		{"*", "refs/tags/v1", false, true},
		{"v*", "refs/tags/v1", false, true},
		{"v*", "refs/heads/feature/v1", false, false},
		{"feature/*", "refs/heads/feature/v1", false, true},
		{"refs/tags/*", "refs/tags/v1", false, true},
		{"**", "refs/heads/a/b/c", false, true},
		{"feature/{a,b}", "refs/heads/feature/b", false, true},
		{"feature/{a,b}", "refs/heads/feature/c", false, false},
		{"{main,v1}", "refs/tags/v1", false, true},
		{"0123", "refs/heads/x", false, true},
		{"012", "refs/heads/x", false, false},
		{"0123456789ABCDEF", "refs/heads/x", false, true},
		{commit, "refs/heads/x", false, true},
		{commit + "0", "refs/heads/x", false, false},
	} {
		if got := (&Rev{Pattern: tt.pattern}).Matcher()(tt.name, commit, tt.head); got != tt.want {
			t.Errorf("Rev(%q) matches (%q, head %t) = %t", tt.pattern, tt.name, tt.head, got)
		}
	}
}

// rev: accepts the globs that every other place accepts.
func TestRevisionFilter_acceptsTheGlobDialect(t *testing.T) {
	t.Parallel()
	for _, row := range globtest.Rows() {
		if row.Pattern == "*" { // every revision
			continue
		}
		matches := (&Rev{Pattern: row.Pattern}).Matcher()
		for _, dir := range []string{"refs/heads/", "refs/tags/"} {
			if wrong := row.Wrong(func(name string) bool { return matches(dir+name, "", false) }); wrong != nil {
				t.Errorf("rev:%s is wrong of %q", row.Pattern, wrong)
			}
		}
	}
}
