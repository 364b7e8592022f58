package symbols

import "testing"

// An embedded interface is that of the package which its file imports.
func TestEmbeddedInterface_isThatOfTheImportedPackage(t *testing.T) {
	t.Parallel()
	at := func(repo, dir string) typeOfGo { return typeOfGo{repo, dir, "Reader"} }
	for _, tt := range []struct {
		name, imported string
		among          []typeOfGo
		want           string // repository and directory; "standard", "" for unknown
	}{
		{"Reader", "", []typeOfGo{at("h/acme/app", "api"), at("h/acme/app", "log")}, "h/acme/app api"},
		{"Reader", "", []typeOfGo{at("h/acme/app", "log")}, ""},
		{"log.Reader", "h/acme/app/log", []typeOfGo{at("h/acme/app", "api"), at("h/acme/app", "log"), at("h/acme/log", ".")}, "h/acme/app log"},
		{"log.Reader", "h/acme/log", []typeOfGo{at("h/acme/app", "log"), at("h/acme/log", ".")}, "h/acme/log ."},
		{"log.Reader", "h/acme/log/v2", []typeOfGo{at("h/acme/app", "log"), at("h/acme/log", ".")}, "h/acme/log ."},
		{"log.Reader", "gopkg.in/log.v3", []typeOfGo{at("h/acme/log", ".")}, "h/acme/log ."},
		{"log.Reader", "h/other/log", []typeOfGo{at("h/acme/app", "api")}, ""},
		{"log.Reader", "h/other/lib/log", []typeOfGo{at("h/acme/lib", "x/log"), at("h/elsewhere/lib", "log")}, "h/elsewhere/lib log"},
		{"log.Reader", "module/log", []typeOfGo{at("h/acme/app", "log"), at("h/acme/app", "cmd/log")}, "h/acme/app log"},
		{"log.Reader", "h/lib/log", []typeOfGo{at("h/a/lib", "log"), at("h/b/lib", "log")}, ""},
		{"io.Reader", "io", []typeOfGo{at("h/acme/app", "io"), at("h/acme/app", "internal/io")}, "standard"},
		{"io.Reader", "io", []typeOfGo{at("h/acme/app", "internal/io"), at("h/golang/go", "src/io")}, "h/golang/go src/io"},
		{"io.Reader", "io", []typeOfGo{at("h/acme/app", "api")}, "standard"}, // the outer type itself
		{"io.Reader", "h/other/io", nil, ""},
		{"core.Reader", "k8s.io/api/core/v1", []typeOfGo{at("h/k/kube", "staging/src/k8s.io/api/core/v1"), at("h/acme/app", "core/v1")}, "h/k/kube staging/src/k8s.io/api/core/v1"},
	} {
		outer := at("h/acme/app", "api")
		sets := map[typeOfGo]*methodSet{}
		for _, one := range tt.among {
			sets[one] = &methodSet{}
		}
		if sets[outer] == nil {
			outer.name = "ReadSeeker"
			sets[outer] = &methodSet{}
		}
		sets[outer].imports = map[string]string{"log": tt.imported, "io": tt.imported, "core": tt.imported}

		for range 20 { // a map has another order each time
			got, inner := embeddedBy(outer, tt.name, sets)
			where := got.repo + " " + got.dir
			switch {
			case inner == nil:
				where = ""
			case inner == standard()["io.Reader"]:
				where = "standard"
			}
			if where != tt.want {
				t.Errorf("%s from %q among %v: %q, want %q", tt.name, tt.imported, tt.among, where, tt.want)
			}
		}
	}
}
