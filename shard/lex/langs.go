package lex

import (
	"strings"
	"sync"
)

// Fences of many languages.
var (
	cComment   = fence{open: "/*", close: "*/", class: Comment, lines: true}
	quoted     = fence{open: `"`, close: `"`, class: String, escape: '\\'}
	single     = fence{open: `'`, close: `'`, class: String, escape: '\\'}
	character  = fence{open: `'`, close: `'`, class: String, escape: '\\', char: true}
	doubled    = fence{open: `"`, close: `"`, class: String}
	sqlText    = fence{open: `'`, close: `'`, class: String}
	longText   = fence{open: `"""`, close: `"""`, class: String, escape: '\\', lines: true}
	longSingle = fence{open: `'''`, close: `'''`, class: String, escape: '\\', lines: true}
	shellText  = fence{open: `"`, close: `"`, class: String, escape: '\\', lines: true}
	shellPlain = fence{open: `'`, close: `'`, class: String, lines: true}
	template   = fence{open: "`", close: "`", class: String, escape: '\\', lines: true}
	rawText    = fence{open: "`", close: "`", class: String, lines: true}
	markup     = fence{open: "<!--", close: "-->", class: Comment, lines: true}

	markupFences = []fence{markup, {open: "<![CDATA[", close: "]]>", class: String, lines: true}, {open: `"`, close: `"`, class: String, lines: true}, shellPlain}
)

const (
	cWords = "break case const continue default do else enum extern for goto if inline register restrict return sizeof static struct switch typedef union volatile while _Alignas _Alignof _Atomic _Generic _Noreturn _Static_assert NULL"
	cTypes = "bool char double float int long short signed unsigned void size_t ssize_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t u8 u16 u32 u64 s8 s16 s32 s64 _Bool FILE"
	oWords = "abstract as async await base break case catch class const continue default delegate do else enum event explicit extends extern false final finally fixed for foreach get goto if implements implicit import in init instanceof interface internal is lock namespace native new null object operator out override package params permits private protected public readonly record ref return sealed set sizeof static strictfp super switch synchronized this throw throws transient true try typeof unchecked unsafe using var virtual volatile when where while with yield"
	oTypes = "boolean bool byte char decimal double dynamic float int long nint sbyte short string uint ulong ushort void String Object Integer Long List Map Set"
	jWords = "abstract as async await break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let module namespace new null of private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while with yield"
)

// rows has the languages.
var rows = []Lang{
	{names: "C,Objective-C,C++,Objective-C++,Cuda,OpenCL,GLSL,HLSL,Arduino,Linker Script", comments: "//", directive: '#', fences: []fence{cComment, {open: `R"(`, close: `)"`, class: String, lines: true}, quoted, character},
		keywords: cWords + " alignas alignof and asm auto catch class co_await co_return co_yield concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export false final friend mutable namespace new noexcept not nullptr operator or override private protected public reinterpret_cast requires static_assert static_cast template this thread_local throw true try typeid typename using virtual",
		types:    cTypes + " wchar_t char8_t char16_t char32_t string vector map set"},
	{names: "Go,V,Go Template", comments: "//", fences: []fence{cComment, rawText, quoted, character},
		keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var true false nil iota",
		types:    "any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr"},
	{names: "Rust,RON", comments: "//", fences: []fence{{open: "/*", close: "*/", class: Comment, lines: true, nests: true}, {open: "r", close: `"`, class: String, lines: true, hashes: true}, {open: "br", close: `"`, class: String, lines: true, hashes: true}, shellText, character},
		keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop macro_rules match mod move mut pub ref return self Self static struct super trait true type union unsafe use where while",
		types:    "bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize Box Option Result String Vec"},
	{names: "Java,C#,Dart,Kotlin,Scala,Groovy,Apex,Vala,Gradle", comments: "//", fences: []fence{cComment, longText, quoted, single},
		keywords: oWords + " by companion crossinline data def fun given infix inline it late lateinit lazy match object open reified required sealed suspend tailrec trait typealias val value yields extension mixin", types: oTypes + " Any Unit Nothing Int Double Boolean Future"},
	{names: "Swift", comments: "//", fences: []fence{{open: "/*", close: "*/", class: Comment, lines: true, nests: true}, longText, quoted}, directive: '#',
		keywords: "actor any as associatedtype async await break case catch class continue default defer deinit do else enum extension fallthrough false fileprivate final for func guard if import in indirect init inout internal is lazy let mutating nil nonisolated open operator override private protocol public repeat required rethrows return self Self some static struct subscript super switch throw throws true try typealias unowned var weak where while",
		types:    "Any Array Bool Character Dictionary Double Float Int Int64 Optional Set String UInt UInt8 Void"},
	{names: "JavaScript,TypeScript,TSX,JSX,Vue,Svelte,CoffeeScript,Astro", comments: "//", fences: []fence{cComment, markup, template, quoted, single}, extra: "$", keywords: jWords, types: "any bigint boolean never number object string symbol unknown Array Map Promise Record Set"},
	{names: "Python,Cython,Starlark,Snakemake,SCons,Xonsh", comments: "#", fences: []fence{longText, longSingle, quoted, single},
		keywords: "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield self cls",
		types:    "bool bytes complex dict float frozenset int list object set str tuple type"},
	{names: "Ruby,Crystal", comments: " #", fences: []fence{{open: "=begin", close: "=end", class: Comment, lines: true}, quoted, single},
		keywords: "alias and attr_accessor attr_reader attr_writer begin break case class def defined? do else elsif end ensure extend false for if in include module next nil not or private protected public raise redo require require_relative rescue retry return self super then true undef unless until when while yield"},
	{names: "Perl,Raku", comments: " #", fences: []fence{{open: "=", close: "=cut", class: Comment, lines: true, first: true}, quoted, single}, extra: "$@", keywords: "and cmp continue die do else elsif eq eval for foreach ge given goto gt if last le local lt my ne next no not or our package print redo require return shift sub unless until use when while wantarray xor"},
	{names: "PHP,Hack", comments: "//\n #", fences: []fence{cComment, markup, shellText, shellPlain}, extra: "$", fold: true,
		keywords: "abstract and as break callable case catch class clone const continue declare default do echo else elseif empty enddeclare endfor endforeach endif endswitch endwhile enum extends final finally fn for foreach function global goto if implements include include_once instanceof insteadof interface isset list match namespace new null or print private protected public readonly require require_once return self static switch throw trait true false try unset use var while xor yield", types: "array bool float int iterable mixed object string void"},
	{names: "Shell,Bash,Zsh,Fish,Nushell,Tcsh,ShellSession", comments: " #", bare: '\\', fences: []fence{shellText, shellPlain},
		keywords: "alias break case continue declare do done elif else esac eval exec exit export fi for function if in local readonly return select set shift source then trap unset until while"},
	{names: "SQL,PLpgSQL,PLSQL,TSQL,SQLPL,HiveQL", comments: "--", fences: []fence{cComment, sqlText, doubled}, fold: true,
		keywords: "add all alter and any as asc begin between by case cast check column commit constraint create cross database declare default delete desc distinct drop else end except exists explain false fetch for foreign from full function grant group having if in index inner insert intersect into is join key left like limit not null offset on or order outer over partition primary procedure references returning returns revoke right rollback select set table then to transaction trigger true truncate union unique update using values view when where with",
		types:    "bigint bit blob boolean bytea char character date datetime decimal double float int integer interval json jsonb numeric real serial smallint text time timestamp uuid varchar"},
	{names: "Lua,Luau,MoonScript", comments: "--", fences: []fence{{open: "--[[", close: "]]", class: Comment, lines: true}, {open: "[[", close: "]]", class: String, lines: true}, quoted, single},
		keywords: "and break do else elseif end false for function goto if in local nil not or repeat return self then true until while"},
	{names: "Haskell,Elm,PureScript,Agda,Idris", comments: "--", fences: []fence{{open: "{-", close: "-}", class: Comment, lines: true, nests: true}, quoted, character}, extra: "'", keywords: "as case class data default deriving do else family forall foreign hiding if import in infix infixl infixr instance let module newtype of qualified then type where", types: "Bool Char Double Either Float Int Integer IO Maybe String"},
	{names: "OCaml,Standard ML,F#,Reason,ReScript,Coq", comments: "//", fences: []fence{{open: "(*", close: "*)", class: Comment, lines: true, nests: true}, quoted, character}, extra: "'", keywords: "and as assert begin class constraint do done downto else end exception external false for fun function functor if in include inherit initializer lazy let match member method module mutable new object of open or private rec sig struct then to true try type val virtual when while with yield", types: "array bool char float int list option string unit"},
	{names: "Common Lisp,Emacs Lisp,Scheme,Clojure,Racket,NewLisp,Fennel,Janet", comments: ";", bare: '\\', fences: []fence{{open: "#|", close: "|#", class: Comment, lines: true, nests: true}, shellText}, extra: "-*!?+/<>=:&%", keywords: "and case cond def default define define-macro define-syntax defmacro defn defparameter defprotocol defrecord defstruct deftype defun defvar do dolist dotimes else false fn for if lambda let let* letrec loop nil ns or progn quote recur require set! setf setq t true unless when while"},
	{names: "Erlang", comments: "%", fences: []fence{quoted, single}, keywords: "after and andalso band begin bnot bor bsl bsr bxor case catch cond div end fun if let not of or orelse receive rem try when xor", directive: '-'},
	{names: "Elixir", comments: "#", fences: []fence{longText, longSingle, quoted, single}, extra: "?!", keywords: "after alias and case catch cond def defdelegate defexception defguard defimpl defmacro defmodule defp defprotocol defstruct do else end false fn for if import in nil not or quote raise receive require rescue true try unless unquote use when with"},
	{names: "R,Julia", comments: "#", fences: []fence{{open: "#=", close: "=#", class: Comment, lines: true, nests: true}, longText, quoted, character},
		keywords: "abstract baremodule begin break catch const do else elseif end export FALSE false finally for function global if import in let library local macro module mutable NA new next NULL primitive quote repeat require return struct TRUE true try type using where while", types: "Any Array Bool Char Dict Float64 Int Int64 String Vector"},
	{names: "Pascal,Ada,VHDL,Modula-2,Modula-3", comments: "//\n--", fences: []fence{{open: "(*", close: "*)", class: Comment, lines: true}, {open: "{", close: "}", class: Comment, lines: true}, doubled, {open: `'`, close: `'`, class: String, char: true}}, fold: true,
		keywords: "abort accept access all and architecture array at begin body case component configuration const constant declare delay destructor do downto else elsif end entity entry exception exit for function generate generic goto if implementation in inherited interface is library limited loop map mod new nil not null object of or others out package port private procedure process program property protected public pragma raise range record rem repeat return select separate set signal subtype tagged task then to type unit until use uses var variable wait when while with xor", types: "boolean character integer natural positive real string std_logic std_logic_vector"},
	{names: "Verilog,SystemVerilog", comments: "//", fences: []fence{cComment, quoted}, directive: '`', keywords: "always always_comb always_ff and assert assign automatic begin bind case casex casez class clocking constraint cover default disable else end endcase endclass endfunction endgenerate endmodule endpackage endtask enum export extends final for force forever fork function generate genvar if import initial inout input interface join localparam modport module negedge new output package parameter posedge program property return sequence static struct super task this typedef unique virtual while", types: "bit byte int integer logic real reg shortint string time wire"},
	{names: "Fortran,Fortran Free Form", comments: "!", fences: []fence{doubled, sqlText}, fold: true, keywords: "allocatable allocate associate block call case class contains cycle deallocate do else elseif elsewhere end enddo endif exit function if implicit in inout intent interface module none only optional out parameter pointer private procedure program public pure recursive return save select stop subroutine target then type use where while", types: "character complex integer logical real double precision"},
	{names: "Assembly,Unix Assembly,Motorola 68K Assembly,LLVM,WebAssembly", comments: ";\n//\n #", fences: []fence{cComment, quoted}, directive: '.', preprocessed: true, extra: "%"},
	{names: "HTML,HTML+ERB,HTML+Django,HTML+PHP,HTML+Razor,ASP.NET,JavaServer Pages", fences: markupFences, extra: "-:", markup: true, scripts: true},
	{names: "XML,SVG,XSLT,Maven POM,Ant Build System", fences: markupFences, extra: "-:.", markup: true},
	{names: "CSS,SCSS,Sass,Less,Stylus,PostCSS", comments: "", fences: []fence{cComment, quoted, single}, extra: "-", keywords: "important inherit initial none auto unset", directive: '@'},
	{names: "JSON,JSON with Comments,JSON5,Jsonnet,JSONLD,Jupyter Notebook,HCL,Nix,CUE,Dhall", comments: "//\n #", fences: []fence{cComment, {open: "''", close: "''", class: String, lines: true}, quoted}, extra: "-", keywords: "true false null let in if then else with rec inherit import assert local for function variable resource data module output provider locals"},
	{names: "YAML", comments: " #", fences: []fence{quoted, {open: `'`, close: `'`, class: String}}, extra: "-", keywords: "true false null yes no on off"},
	{names: "TOML,INI,Java Properties,desktop,EditorConfig,Git Config,systemd", comments: " #\n ;", fences: []fence{longText, longSingle, quoted, {open: `'`, close: `'`, class: String}}, extra: "-", keywords: "true false null yes no on off", directive: '['},
	{names: "Makefile,Dockerfile,CMake,Meson,Just,Ninja,QMake,M4,M4Sugar,Kconfig,Starlark,Bitbake", comments: " #", fences: []fence{doubled}, fold: true, keywords: "add add_custom_command add_executable add_library arg cmd copy define depends on else elseif endef endfunction endif endmacro endforeach entrypoint env export expose find_package foreach from function healthcheck if ifdef ifeq ifndef ifneq include label macro message onbuild option override project return run set shell stopsignal target_link_libraries unexport user vpath volume workdir"},
	{names: "Protocol Buffer,Protocol Buffers,GraphQL,Thrift,Cap'n Proto,FlatBuffers,Solidity,Bicep", comments: "//\n #", fences: []fence{cComment, longText, quoted, single},
		keywords: "contract directive emit enum event exception extend extends extensions external false fragment function if implements import input interface internal mapping message modifier mutation namespace on oneof option optional package payable pragma private public query repeated required require reserved return returns rpc scalar schema service stream struct subscription syntax throws true type typedef union view void", types: "address binary bool bytes double fixed32 fixed64 float i16 i32 i64 int32 int64 list map set sfixed32 sfixed64 sint32 sint64 string uint uint256 uint32 uint64 Boolean Float ID Int String"},
	{names: "TeX,BibTeX,BibTeX Style", comments: "%", bare: '\\', directive: '\\'},
	{names: "Tcl,Expect", comments: "^#\n;#\n; #", bare: '\\', fences: []fence{shellText}, keywords: "after append array break catch continue dict else elseif error eval expr for foreach global if incr lappend lindex list namespace proc puts regexp regsub rename return set source string switch then upvar variable while"},
	{names: "Zig", comments: "//", fences: []fence{quoted, character}, keywords: "addrspace align allowzero and anyframe anytype asm async await break callconv catch comptime const continue defer else enum errdefer error export extern false fn for if inline linksection noalias noinline nosuspend null opaque or orelse packed pub resume return struct suspend switch test threadlocal true try undefined union unreachable usingnamespace var volatile while", types: "bool f32 f64 i8 i16 i32 i64 isize u8 u16 u32 u64 usize void type anyerror"},
	{names: "PowerShell", comments: " #", fences: []fence{{open: "<#", close: "#>", class: Comment, lines: true}, {open: `"`, close: `"`, class: String, escape: '`', lines: true}, shellPlain}, fold: true, extra: "$", keywords: "begin break catch class continue data do dynamicparam else elseif end enum exit filter finally for foreach from function hidden if in param process return static switch throw trap try until using while"},
	{names: "Batchfile", comments: "::\nrem ", fences: []fence{doubled}, fold: true, keywords: "call cd cls copy del do echo else endlocal exit exist for goto if in move not pause set setlocal shift start"},
	{names: "Vim Script", comments: "^\"", fences: []fence{quoted, sqlText}, keywords: "autocmd call catch command echo else elseif endfor endfunction endif endtry endwhile execute finally for function if in let map return set silent throw try unlet while"},
	{names: "Diff,Markdown,Text,AsciiDoc,reStructuredText,Rich Text Format,CSV,TSV,Org,RDoc,Ignore List,Mercury"},
	{names: "D,Nim,Haxe,ActionScript,Jai,Odin,WGSL,Move,Cairo,Ballerina,Chapel,Pony,Processing", comments: "//", fences: []fence{cComment, longText, rawText, quoted, character}, keywords: oWords + " " + jWords + " func proc fn defer pub mut use let", types: oTypes},
}

// generic is used for languages without a row.
var generic = Lang{comments: "//\n #", fences: []fence{cComment, quoted}}

// languages has the rows by name.
var languages = sync.OnceValue(func() map[string]*Lang {
	all := map[string]*Lang{"": generic.prepare()}
	for i := range rows {
		l := rows[i].prepare()
		for name := range strings.SplitSeq(l.names, ",") {
			all[name] = l
		}
	}
	return all
})

// Knows reports whether a language has a row of its own, by its go-enry name.
func Knows(language string) bool { return language != "" && languages()[language] != nil }

// For returns the row of a language by its go-enry name. An unknown language gets a row with the
// most common comments and strings.
func For(language string) *Lang {
	all := languages()
	if l := all[language]; l != nil {
		return l
	}
	return all[""]
}
