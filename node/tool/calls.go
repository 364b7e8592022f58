package tool

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// callForm is one way to write a call, as expressions for the text before and after the name.
type callForm struct {
	before  *regexp.Regexp // nil matches anything
	unless  *regexp.Regexp // may not stand before the name; nil for nothing
	after   *regexp.Regexp // nil matches anything
	typed   bool           // type arguments, as <T<U>> and [T], may stand between the name and after
	argued  bool           // after begins an argument: no word that goes on with the statement
	certain bool           // a word before the name says that it is a call, not a definition
}

// form makes a callForm from two expressions, for the text before and after the name. "" matches
// anything.
func form(before, after string) callForm {
	return callForm{before: ending(before), after: beginning(after)}
}

func beginning(expr string) *regexp.Regexp {
	if expr == "" {
		return nil
	}
	return regexp.MustCompile("^(?:" + expr + ")")
}

func ending(expr string) *regexp.Regexp {
	if expr == "" {
		return nil
	}
	return regexp.MustCompile("(?:" + expr + ")$")
}

// The ways in which languages write a call of f.
var (
	parens     = callForm{after: beginning(`\.?\s*\(`), typed: true}   // f(  f<T<U>>(  f::<T>(  f[T](  f.(
	optional   = callForm{after: beginning(`[!?]+\.?\(`), typed: true} // f?.(  f!(
	inside     = callForm{unless: regexp.MustCompile(`^$`), after: beginning(`\s*\(`)}
	sqlParens  = callForm{unless: ending(`(?i:\b(?:into|table|view|index|on|references|exists)\s+[\w."]*)`), after: beginning(`\s*\(`)}
	bang       = form(``, `!\s*[(\[{]`)                                // f!(  f![  f!{
	instance   = form(``, `!\s*[(\w"]`)                                // f!int(
	curly      = callForm{after: beginning(`\{`), typed: true}         // f{1}  f<T>{1}
	curlyTypes = form(``, `\{[^}]*\}\(`)                               // f{T}(
	newObject  = form(`\bnew\s+(?:\\?[\w$]+(?:::|[.\\]))*\\?`, `\W|$`) // new f
	annotation = form(`(?:^|[^\w"'.])@(?:\w+:)?(?:\w+\.)*`, `\W|$`)    // @f  @pkg.f  @get:f
	attribute  = form(`#!?\[(?:[^\]]*[,(]\s*)?(?:\w+(?:::|\\))*`, `\s*[\](,)=]`)
	brackets   = form(`^\s*\[(?:\w+:\s*)?(?:[^\]]*,\s*)?(?:\w+\.)*`, `\s*[\],]`)
	hash       = form(`#`, `\W|$`)                                     // #f
	template   = form(``, "`")                                         // f`text`
	literal    = form(``, `\s*(?:["'{]|\[\[)`)                         // f"text"  f{…}
	element    = form(`(?:^|[^\w)\]])<(?:\w+\.)*`, `[\s/>]|$`)         // <f a={1}>
	member     = form(`\.|->`, `\s*$|\s*==|=~|[^\w\s=:(!?]|\s+[^=\s]`) // x.f
	reference  = form(`::`, `[^\w:({]|$`)                              // X::f
	passed     = form(`[\w>]::`, `\s*[,)]`)                            // map(X::f)
	capture    = form(`&(?:\w+\.)*`, `/\d`)                            // &f/1
	sigil      = form(`(?:^|[^&\w])&`, `\W|$`)                         // &f
	symbol     = form(`(?:&|\b(?:send|public_send|__send__|method|try|instance_method)[ (]+):`, `[^\w!?]|$`)
	methodOf   = form(`\.&`, `\W|$`)                         // x.&f
	selector   = form(`[@#]selector\((?:\w+\.)*`, ``)        // @selector(f:)
	message    = form(`\[.*[\s\])]`, `\s*[\]:]`)             // [x f]  [x f:1]
	head       = form(`\(\s*(?:[\w.*+-]+/)?|#'`, `[\s()]|$`) // (f x)  #'f
	backquotes = form("`", "`")                              // a `f` b
	percents   = form(`%`, `%`)                              // a %f% b
	piped      = form(`(?:\|>|<\||>>|<<|@@|<\$>|=<<|>>=|\s\$|\s\.)\s*(?:\w+\.)*`, `[^\w!?]|$`)
	jump       = form(`(?i:\b(?:callq?|blx?|blr|jalr?|jmp|b|bsr|jsr|rcall)\s+\*?)`, ``)
	makeCall   = form(`\$[({](?:call\s+)?`, `[\s,)}]`) // $(call f,x)  $(f)
	macroMark  = form(`\?`, ``)                        // ?f
	tclWord    = form(`(?:^|[\[{;"])\s*(?:::)?(?:\w+::)*`, `[\s\]};]|$`)
	alone      = form(`^\s*(?:\w+\.)*`, `\s*(?:;|#|$)`)                                                // f;
	modified   = form(`^\s*`, `\s+(?:if|unless|while|until|rescue)\b`)                                 // f if x
	braced     = form(`(?:^|[^:@])`, `\s*\{`)                                                          // f { |x| … }
	funOf      = callForm{before: ending(`\bfun\s+(?:\w+:)?`), after: beginning(`/\d`), certain: true} // fun f/1
	verb       = callForm{before: ending(`(?i:\b(?:call|exec|execute(?:\s+(?:function|procedure))?|perform)\s+(?:[\w.]+\.)?:?)`), certain: true}

	// The name is followed by a lambda. Conditions and supertypes also precede a brace, so they are
	// excluded.
	lambda = callForm{
		unless: ending(`\b(?:class|object|interface|struct|protocol|extension|enum|trait|extends|with|implements)\b[^{]*|\b(?:if|while|switch|in|guard|for|catch)\b[^{()]*|:\s*`),
		after:  beginning(`\s*(?:\w+@)?\{`), typed: true,
	}
	// In Swift an arrow precedes a result type.
	swiftLambda = callForm{unless: regexp.MustCompile(lambda.unless.String() + `|->\s*$`), after: lambda.after, typed: true}

	// The name is followed by arguments without parentheses, or by a block.
	command = callForm{before: ending(`^|[^\w:@$"'%]`), after: beginning(`\s+(?:["'\w@$\[\\]|:[\w"']|->|[*&-][\w(]|%[wWiIqQ{(]\S|~[a-zA-Z]|<<[~-]?\w)`), argued: true}

	// Application in functional languages. The first name of a line is being defined.
	apply = callForm{before: ending(`[\s(\[{,=$.!]`), unless: ending(`\b(?:let|rec|and|val|method|fun)\s+`), after: beginning(`\s+(?:["'\w(\[{$@!~\\]|-\d|<\|)`), argued: true}

	// A name between two operands.
	infix = callForm{before: ending(`[\w)\]}"']\s+`), unless: ending(`\b(?:` + notOperands + `)\s+`), after: beginning(`\s+["'\w(\[{!-]`), argued: true}

	// The position of a command in a shell: at the start, or after a separator, a keyword or
	// assignments.
	position = form("(?:^|[;&|(){!`]|\\b(?:then|do|else|elif|if|while|until|time|exec|command|builtin|sudo|env|xargs|eval|trap|nohup))\\s*[\"']?(?:\\w+=\\S*\\s+)*", `[\s;&|)"'}`+"`]|$")
	cmdlet   = form(`(?:^|[;&|(){=])\s*`, `[\s;|)}]|$`)
)

// notOperands lists keywords after which a name is not an infix operator.
const notOperands = `val|var|let|def|fun|func|class|object|interface|trait|enum|struct|type|typealias|import|package|return|throw|new|in|is|as|else|if|when|match|case|by|private|public|protected|internal|override|open|abstract|final|lazy|extends|with|sealed|data|inline|suspend|operator|implicit|given`

// goesOn matches a keyword that continues the statement, in the place of an argument.
var goesOn = regexp.MustCompile(`^\s+(?:if|unless|while|until|and|or|then|in|is|as|else|elsif|of|where|with|rescue|end|when|mod|div|xor)\b`)

// callFamilies has the call forms of families of languages, by their names in go-enry. For a
// language in no family, all uses are listed.
var callFamilies = []struct {
	languages string
	forms     []callForm
}{
	{"C,Cuda,GLSL,HLSL,OpenCL,Metal,Yacc,Lex", []callForm{parens}},
	{"C++,Arduino", []callForm{parens, curly, newObject}},
	{"Objective-C,Objective-C++", []callForm{parens, message, selector}},
	{"C#", []callForm{parens, newObject, brackets}},
	{"Java,Dart,Apex,Haxe", []callForm{parens, optional, newObject, annotation, reference}},
	{"Kotlin", []callForm{parens, optional, lambda, annotation, reference, infix}},
	{"Swift", []callForm{parens, optional, swiftLambda, annotation, hash, selector}},
	{"Scala", []callForm{parens, lambda, newObject, annotation, infix, member}},
	{"Groovy", []callForm{parens, lambda, newObject, annotation, methodOf, command}},
	{"JavaScript,TypeScript,TSX,JSX,Vue,Svelte,Astro,CoffeeScript", []callForm{parens, optional, newObject, annotation, template, element}},
	{"Go,Zig,Solidity,Vyper,V,Odin,Awk,CMake,HCL,Jsonnet,MATLAB", []callForm{parens}},
	{"Lua,MoonScript,Teal", []callForm{parens, literal}},
	{"Rust", []callForm{parens, bang, attribute, passed}},
	{"D", []callForm{parens, instance, member, newObject, annotation}},
	{"Python,Cython,GDScript,Starlark", []callForm{parens, annotation}},
	{"Julia", []callForm{parens, annotation, curlyTypes, piped}},
	{"PHP,Hack", []callForm{parens, newObject, attribute}},
	{"Perl,Raku", []callForm{parens, member, sigil, alone, command}},
	{"Ruby,Crystal", []callForm{parens, member, command, braced, alone, modified, symbol}},
	{"Elixir", []callForm{parens, member, command, piped, alone, capture}},
	{"Erlang", []callForm{inside, funOf, macroMark}},
	{"Prolog", []callForm{inside}},
	{"Nim", []callForm{parens, member, command}},
	{"Shell", []callForm{position}},
	{"PowerShell", []callForm{cmdlet, parens}},
	{"Makefile", []callForm{makeCall}},
	{"Tcl", []callForm{tclWord}},
	{"Common Lisp,Emacs Lisp,Scheme,Racket,Clojure,Fennel,Hy", []callForm{head}},
	{"Haskell,Elm,PureScript,Idris,Agda,OCaml,F#,Standard ML,ReScript,Reason,Nix", []callForm{inside, apply, piped, backquotes}},
	{"R", []callForm{parens, percents, piped}},
	{"SQL,PLSQL,PLpgSQL,TSQL", []callForm{sqlParens, verb}},
	{"Fortran,Fortran Free Form,Visual Basic .NET,VBA,VBScript,COBOL,Batchfile,Vim Script", []callForm{parens, verb}},
	{"Pascal,Ada,Modula-2", []callForm{parens, alone}},
	{"Assembly,Unix Assembly", []callForm{jump}},

	// Data formats have no calls.
	{"JSON,JSON5,JSON with Comments,YAML,TOML,XML,INI,CSV,TSV,SVG,Java Properties,EditorConfig,Ignore List,Git Attributes,Protocol Buffer,Text Proto,Diff", nil},
}

// callForms has the call forms by language.
var callForms = func() map[string][]callForm {
	forms := map[string][]callForm{}
	for _, row := range callFamilies {
		for lang := range strings.SplitSeq(row.languages, ",") {
			forms[lang] = row.forms
		}
	}
	return forms
}()

// definesName matches the text before a name that is being defined, because a definition can look
// like a call.
var definesName = ending(`(?i:(?:^|[\s(\[{;"'])(?:function\*?|func|fun|fn|def|defp|defmacrop?|sub|proc|procedure|method|macro|macro_rules!|class|struct|interface|trait|enum|object|module|record|protocol|extension|-spec|-type|instance|task)\s+(?:<[^>]*>\s*)?(?:\([^()]*\)\s*)?(?:[\w.$:]+(?:<[^<>]*>)?\??[.:])?)`)

// callAside is the number of bytes of a long line that are examined on each side of a name.
const callAside = 400

// calls reports whether a line calls a name. known is false for languages without call forms.
func calls(lang, name string, line []byte) (calls, known bool) {
	forms, known := callForms[lang]
	for from := 0; known && !calls; {
		n := bytes.Index(line[from:], []byte(name))
		if n < 0 {
			break
		}
		begin, end := from+n, from+n+len(name)
		from = begin + 1
		if begin > 0 && (line[begin-1] == '$' || continues(line[begin-1], name[0])) || end < len(line) && continues(name[len(name)-1], line[end]) {
			continue // a part of another name, or a variable of that name
		}

		before, after := line[max(0, begin-callAside):begin], line[end:min(len(line), end+callAside)]
		calls = slices.ContainsFunc(forms, func(f callForm) bool { return f.matches(before, after) })
	}
	return calls, known
}

// continues reports whether two adjacent bytes belong to the same name.
func continues(a, b byte) bool { return isNameByte(a) && isNameByte(b) }

func isNameByte(c byte) bool {
	return c == '_' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// matches reports whether a name between two texts is called in this form.
func (f *callForm) matches(before, after []byte) bool {
	if f.typed {
		after = behindTypes(behindTypes(after)) // f<T><<<grid, block>>>(
	}
	switch {
	case f.after != nil && !f.after.Match(after), f.before != nil && !f.before.Match(before):
		return false
	case f.unless != nil && f.unless.Match(before), f.argued && goesOn.Match(after):
		return false
	}
	return f.certain || !definesName.Match(before)
}

// behindTypes returns the text after type arguments such as <T<U>>, ::<T>, [K, V] and <<<grid,
// block>>>. Without type arguments it returns text unchanged.
func behindTypes(text []byte) []byte {
	args := bytes.TrimPrefix(text, []byte("::"))
	if len(args) == 0 || args[0] != '<' && args[0] != '[' {
		return text
	}

	depth := 0
	for i, c := range args {
		arrow := i > 0 && (args[i-1] == '-' || args[i-1] == '=')
		switch {
		case c == ';', bytes.HasPrefix(args[i:], []byte("&&")), bytes.HasPrefix(args[i:], []byte("||")):
			return text // a comparison
		case c == '<', c == '[':
			depth++
		case c == '>' && !arrow, c == ']':
			depth--
		}
		if depth == 0 {
			return args[i+1:]
		}
	}
	return text
}
