package shard

import (
	"slices"
	"testing"

	"github.com/go-enry/go-enry/v2"
	"github.com/go-enry/go-enry/v2/data"
)

// TestMarksSayWhatTheExpressionsSay compares what is decided by marks with
// what go-enry decides by reading.
func TestMarksSayWhatTheExpressionsSay(t *testing.T) {
	t.Parallel()
	contents := []string{
		"", "mov", "a: b\n", "\ta: b\n", "x:\n\ty: z\n", "swagger: '2.0'\n", "openapi: 3.0.1\n", `{"swagger": "2.0"}`, `{"openapi": "3.1"}`,
		"\tmovl $1, %eax\n", "\tMOV %eax, 4\n", "\tmov  \t$4\n", "mov x0, x1\n", "MOV\tr0, #4\n", "mov a,b\n", "mov ab,c\n", "mov\nab,\n", "remove ab,c\n",
		"mov %x, y\nmov ab, c\n", "mov ab, c\nmovq $3, x\n", "\tmoveq #1, d0\n", "\tmove.l d0, a1\n", "/* remove */\n\tadd r0, r1\n", "\tmove sr, d0\n", "\tbtst #1, d0\n",
		"movq", "movq ", "movl%", "mov ,ab,", "mov a%b,c", "movlab, c", "movl ab, c", "\tdbra d0, loop\n", "\tmovem.l d0-d1, -(sp)\n",
	}
	for _, name := range []string{"a.s", "a.S", "a.yaml", "a.json"} {
		for _, c := range contents {
			byExt := enry.GetLanguagesByExtension(name, nil, nil)
			want := byExt[0]
			if l := enry.GetLanguagesByContent(name, []byte(c), byExt); len(l) > 0 {
				want = l[0]
			}
			if got := languageOf(name, []byte(c)); got != want {
				t.Errorf("%s %q: %s, want %s", name, c, got, want)
			}
		}
	}
	for c, want := range map[string]string{
		"": "C", "int x;\n": "C", "\nclass X {": "C++", "int class_of;": "C", "x\ntemplate<int>": "C++", "std::string s": "C++", "a ? b : c::d": "C",
		"struct x {\npublic:\n": "C++", "republic: x": "C++", "extern \"C++\" {": "C++", "\"C++\"": "C", "@interface X": "Objective-C",
		"#import <x>": "Objective-C", "# import": "C", "@param class": "C", "\nnamespace x {": "C++", "@class X;\nclass Y": "Objective-C",
	} {
		if got := languageOf("a.h", []byte(c)); got != want {
			t.Errorf("a.h %q: %s, want %s", c, got, want)
		}
	}
}

// TestWhatSaysNothingIsOfTheUsualLanguage: a part of a file is named as the whole is.
func TestWhatSaysNothingIsOfTheUsualLanguage(t *testing.T) {
	t.Parallel()
	for ext, want := range usual {
		if got := languageOf("a"+ext, []byte("\n\n")); got != want {
			t.Errorf("a%s: %s, want %s", ext, got, want)
		}
		if !slices.Contains(enry.GetLanguagesByExtension("a"+ext, nil, nil), want) {
			t.Errorf("no file of %s ends in %s", want, ext)
		}
	}

	// What the file says goes before.
	for name, text := range map[string]string{
		"Raku": "#!/usr/bin/env raku\n", "Perl": "#!/usr/bin/perl\nprint 1\n", "Prolog": ":- module(a, []).\n",
	} {
		if got := languageOf("a.pl", []byte(text)); got != name {
			t.Errorf("a.pl %q: %s, want %s", text, got, name)
		}
	}
}

// TestTheClassifierTakesNoMemory: without it languages are told as before.
func TestTheClassifierTakesNoMemory(t *testing.T) {
	t.Parallel()
	DropClassifier()
	if n := len(data.TokensLogProbabilities); n > 0 {
		t.Errorf("go-enry's classifier has the words of %d languages in memory", n)
	}
	if got := languageOf("a.pl", []byte("\n")); got != "Perl" {
		t.Errorf("a.pl: %s", got)
	}
}
