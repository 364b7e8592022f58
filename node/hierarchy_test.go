package node_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/symbols"
)

// family is a repository with types of several languages that extend each other.
var family = map[string]string{
	"go/api.go":       "package api\n\ntype Swimmer interface {\n\tDiver\n\tSwim(far int, how ...string) (int, error)\n}\n\ntype Diver interface{ Dive(deep int) }\n",
	"go/orca.go":      "package api\n\ntype Orca struct{}\n\nfunc (o *Orca) Swim(\n\tfar int,\n\thow ...string,\n) (int, error) {\n\treturn 0, nil\n}\n\nfunc (*Orca) Dive(d int) {}\n\ntype Baby struct {\n\t*Orca\n\tage int\n}\n",
	"go/other.go":     "package api\n\ntype Boat struct{}\n\nfunc (Boat) Swim(far string, how ...string) (int, error) { return 0, nil }\nfunc (Boat) Dive(int) {}\n",
	"go/a/sea.go":     "package a\n\ntype Sound interface{ Sing() }\n",
	"go/b/sea.go":     "package b\n\ntype Sound interface{ Roar() }\n",
	"go/c/sea.go":     "package c\n\nimport (\n\t\"example.com/r/go/a\"\n\tloud \"example.com/r/go/b\"\n)\n\ntype Quiet interface{ a.Sound }\ntype Loud interface{ loud.Sound }\ntype Whale struct{}\n\nfunc (Whale) Sing() {}\n\ntype Lion struct{}\n\nfunc (Lion) Roar() {}\n",
	"jvm/A.java":      "interface Interceptor<T> { void intercept(); }\n",
	"jvm/B.java":      "class Base implements Interceptor<String> {\n  public void intercept() {}\n}\nclass Deep extends Base {\n  public void intercept() {}\n  Interceptor<String> field;\n}\n// class Remark implements Interceptor {\n",
	"jvm/C.kt":        "class Compression(\n  private val x: Interceptor,\n  val f: () -> Unit = {},\n) : Other(),\n  @Marked\n  Interceptor {\n  override fun intercept() {}\n}\nobject Bridge : Interceptor {}\nval anonymous = object : Interceptor {\n}\n",
	"py/store.py":     "class BaseStore:\n    def get(self):\n        pass\n\nclass KVStore(BaseStore):\n    pass\n\nclass Redis(\n    KVStore,\n    Mixin,\n):\n    def get(self):\n        pass\n",
	"rb/mid.rb":       "module Job\n  module Middleware\n  end\nend\nclass Retry\n  include Job::Middleware\n  def call\n  end\nend\nclass Logger < Retry\nend\n",
	"rs/lib.rs":       "pub trait Component {\n    fn draw(&self);\n}\npub struct Menu;\nimpl Component for Menu {\n    fn draw(&self) {}\n}\nimpl<T: Component> Component for Box<T> {\n    fn draw(&self) {}\n}\nfn free(c: &dyn Component) {}\n",
	"cpp/r.hpp":       "namespace n {\nclass Reporter { virtual void run(); };\n}\nclass Xml final\n  : public n::Reporter,\n    private Lock {\n};\nvoid use(class Reporter* r);\n",
	"ts/link.ts":      "export interface Link<T> { next(): T }\nexport class HttpLink<T>\n  implements Link<T> {\n}\ninterface WsLink extends Link<string> {}\n",
	"jvm/Events.java": "interface Processor {\n  interface Events<T> {\n    void fire();\n  }\n}\n",
	"jvm/Bulk.java":   "interface Bulk {\n  interface Events\n      extends Processor.Events<Bulk> {\n    void fire();\n  }\n}\n",
	"py/session.py":   "class Session:\n    pass\n",
	"py/flask.py":     "import session\n\nclass Session(session.Session):\n    pass\n",
	"rb/result.rb":    "class Result < Struct.new(:code)\nend\nclass Job::Error < Error\nend\nclass Error < StandardError\nend\n",
	"rb/plain.rb":     "module Devise\n  module Strategies\n    class Plain < ::Warden::Strategies::Plain\n    end\n  end\nend\n",
	"hs/a.hs":         "class Shape a where\n  area :: a -> Int\n",
}

// The answer only has subtypes in languages that can extend the type.
func TestTypeHierarchy_staysWithinCompatibleLanguages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "r"), family)
	n := nodetest.Start(t, nodetest.Config{File: local(dir), Edit: func(o *node.Options) { o.Ctags = "" }})
	n.Wait("the symbols", found(n, "sym:Reporter", "local/r:cpp/r.hpp"))
	n.Wait("the symbols", found(n, "sym:^HttpLink$", "local/r:ts/link.ts"))

	for _, tt := range []struct {
		symbol         string
		up, transitive bool
		want           string
	}{
		{"Interceptor", false, false, "Base:1 Compression:6 Bridge:9 :10"},
		{"Interceptor", false, true, "Base:1 Deep:4 Compression:6 Bridge:9 :10"},
		{"Deep", true, false, "Base:1"},
		{"Deep", true, true, "Interceptor:1 Base:1"},
		{"Compression", true, false, "Interceptor:1 ?Other"},
		{"Interceptor.intercept", false, false, "intercept:2 intercept:5 intercept:7"},
		{"BaseStore", false, false, "KVStore:5"},
		{"BaseStore", false, true, "KVStore:5 Redis:10"},
		{"Redis.get", true, false, "get:2"},
		{"Middleware", false, true, "Retry:6 Logger:10"},
		{"Logger", true, true, "Middleware:2 Retry:5"},
		{"Component", false, false, "Menu:5 Box:8"},
		{"Menu", true, false, "Component:1"},
		{"Reporter", false, false, "Xml:6"},
		{"Xml", true, false, "Reporter:2 ?Lock"},
		{"Link", false, false, "HttpLink:3 WsLink:5"},
		{"Swimmer", false, false, "Orca:3 Baby:14"},
		{"Diver", false, false, "Swimmer:4 Orca:3 Baby:14 Boat:3"},
		{"Orca", true, false, "Swimmer:3 Diver:8"},
		{"Quiet", false, false, "Whale:10"},
		{"Loud", false, false, "Lion:14"},
		{"Processor.Events", false, false, "Events:3"},
		{"Bulk.Events", true, false, "Events:2"},
		{"Processor.Events.fire", false, false, "fire:4"},
		{"Session", false, false, "Session:3"},
		{"Session", true, false, "Session:1"},
		{"Struct", false, false, "Result:1"},
		{"Error", false, false, "Error:3"},
		{"Plain", true, false, "?Warden::Strategies::Plain"},
		{"Nothing", false, false, ""},
	} {
		r, err := n.Search.Hierarchy(t.Context(), catalog.Operator(), symbols.HierarchyRequest{SymbolRequest: symbols.SymbolRequest{Symbol: tt.symbol}, Up: tt.up, Transitive: tt.transitive})
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		var got []string
		for _, f := range r.Files {
			for _, m := range f.Matches {
				got = append(got, m.Name+":"+fmt.Sprint(m.Range.End.Line))
			}
		}
		for _, name := range r.Undefined {
			got = append(got, "?"+name)
		}
		if !r.Coverage.Complete() {
			t.Errorf("%+v: %v", tt, r.Coverage)
		}
		want := strings.Fields(tt.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s up %v transitive %v: %q, want %q", tt.symbol, tt.up, tt.transitive, got, want)
		}
	}
}
