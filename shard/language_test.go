package shard

import (
	"slices"
	"testing"

	"github.com/go-enry/go-enry/v2"
)

// TestLanguage_decidedByMarksAgreesWithEnry compares decisions by marks with those of go-enry,
// which reads the content.
func TestLanguage_decidedByMarksAgreesWithEnry(t *testing.T) {
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

// A part of a file has the same language as the whole.
func TestLanguage_emptyFileHasTheUsualLanguage(t *testing.T) {
	t.Parallel()
	for ext, want := range usualLanguage {
		if got := languageOf("a"+ext, []byte("\n\n")); got != want {
			t.Errorf("a%s: %s, want %s", ext, got, want)
		}
		if !slices.Contains(enry.GetLanguagesByExtension("a"+ext, nil, nil), want) {
			t.Errorf("no file of %s ends in %s", want, ext)
		}
	}

	// The content decides before the usual language does.
	for name, text := range map[string]string{
		"Raku": "#!/usr/bin/env raku\n", "Perl": "#!/usr/bin/perl\nprint 1\n", "Prolog": ":- module(a, []).\n",
	} {
		if got := languageOf("a.pl", []byte(text)); got != name {
			t.Errorf("a.pl %q: %s, want %s", text, got, name)
		}
	}
}

// If an extension has several languages, the text decides, as in linguist.
func TestLanguage_ofAnAmbiguousNameIsDecidedByTheText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"a.m", "classdef Stack < handle\n  properties\n    items = {}\n  end\nend\n", "MATLAB"},
		{"a.m", "x = linspace(0,1,100);\n", "MATLAB"},
		{"a.m", "function r = f(x)\nr = x;\nend\n", "MATLAB"},
		{"a.m", "plot(x, y);\nhold on\n", "MATLAB"},
		{"a.m", "#import <x.h>\n", "Objective-C"},
		{"a.m", "int main() { return 0; }\n", "Objective-C"},
		{"a.m", "static void f(NSString *s) {\n}\n", "Objective-C"},
		{"a.m", ":- module hello.\n:- interface.\n:- import_module io.\n", "Mercury"},
		{"a.m", "(* ::Package:: *)\nf[x_] := x\n", "Wolfram Language"},
		{"a.spec", "Name: foo\nVersion: 1\n%build\nmake\n", "RPM Spec"},
		{"a.spec", "# -*- mode: python -*-\na = Analysis(['x.py'])\n", "Python"},
		{"a.spec", "describe 'x' do\nend\n", "Ruby"},
		{"a.gs", "function f() {\n  SpreadsheetApp.getActive();\n}\n", "JavaScript"},
		{"a.gs", "#version 330\nlayout(triangles) in;\nvoid main() {}\n", "GLSL"},
		{"a.inc", "<div><?php echo 1 ?></div>\n", "PHP"},
		{"a.inc", "<?php\n", "PHP"},
		{"a.inc", "#define X 1\nint f(void);\n", "C++"},
		{"a.inc", "\tmov ax, 1\n", "Assembly"},
		{"a.inc", "stock x() { return 1; }\n", "Pawn"},
		{"a.inc", "SRC_URI = \"git://x\"\ninherit autotools\n", "BitBake"},
		{"a.cfg", "[a]\nb = c\n", "INI"},
		{"a.cfg", "frontend x\n\tbind :80\n\tdefault_backend y\nbackend y\n\tserver a 127.0.0.1:1\n", "HAProxy"},
		{"a.v", "Theorem x : forall n, n = n.\nProof. reflexivity. Qed.\n", "Rocq Prover"},
		{"a.v", "module m(input a);\nendmodule\n", "Verilog"},
		{"a.pp", "class x {\n  file { '/a': ensure => present }\n}\n", "Puppet"},
		{"a.pp", "unit x;\ninterface\nimplementation\nend.\n", "Pascal"},
		{"a.x", "program P {\n  version V {\n    int NULL(void) = 0;\n  } = 1;\n} = 2;\n", "RPC"},
		{"a.sls", "base:\n  '*':\n    - web\n", "SaltStack"},
		{"a.sls", "(library (x) (export y) (import (rnrs)))\n", "Scheme"},
		{"a.tpl", "{include file='header.tpl'}{foreach from=$a item=b}{$b|escape}{/foreach}\n", "Smarty"},
		{"a.pl", "a\t1\nb\t2\n", "Perl"},
		{"Dockerfile.prod", "FROM x\n", "Dockerfile"},
		{"Makefile.local", "x:\n", "Makefile"},
		{"noise.prod", "FROM x\n", ""},
	} {
		if got := languageOf("d/"+c.name, []byte(c.text)); got != c.want {
			t.Errorf("%s %q: %s, want %s", c.name, c.text, got, c.want)
		}
	}
}
