package layout

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed static
var static embed.FS

// File is a static file. Its bytes are shared: nobody changes them.
type File struct {
	Mime       string
	Body, Gzip []byte
}

var mimes = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets is every static file and the name of all of them together, which
// changes whenever one of them does: what a browser has kept is never stale.
var assets = sync.OnceValues(func() (map[string]File, string) {
	files, sum := map[string]File{}, sha256.New()
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".css":
			body = lean(body)
		case ".js":
			body = jsComment.ReplaceAll(body, nil)
		}

		sum.Write([]byte(name))
		sum.Write(body)
		files[strings.TrimPrefix(name, "static/")] = File{mimes[path.Ext(name)], body, pack(body)}
		return nil
	})
	if err != nil {
		panic("BUG: the embedded files cannot be read: " + err.Error())
	}
	return files, hex.EncodeToString(sum.Sum(nil)[:6])
})

var (
	cssComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	cssBlank   = regexp.MustCompile(`\s*([{};,])\s*`)
	cssColon   = regexp.MustCompile(`([\w-]): `)

	jsComment = regexp.MustCompile(`(?m)^[ \t]*//.*\n|^[ \t]+|^\n`) // and indentation
)

// lean is a style without what only its readers need: who comes from elsewhere gets it
// inside the page.
func lean(css []byte) []byte {
	css = cssComment.ReplaceAll(css, nil)
	css = cssBlank.ReplaceAll(css, []byte("$1"))
	css = cssColon.ReplaceAll(css, []byte("$1:"))
	return bytes.TrimSpace(bytes.ReplaceAll(css, []byte(";}"), []byte("}")))
}

func pack(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a good one
	_, _ = w.Write(body)                                  // to memory
	_ = w.Close()
	return b.Bytes()
}

// Asset is the address of a static file. Modules import one another by relative
// names, so the version stands before all of them.
func Asset(name string) string {
	_, version := assets()
	return "/static/" + version + "/" + name
}

// Static is the file at an address that Asset made. lasting is false where the
// address is of another version of the program: then nobody should keep it.
func Static(url string) (f File, lasting, ok bool) {
	files, version := assets()
	of, name, _ := strings.Cut(strings.TrimPrefix(url, "/static/"), "/")
	f, ok = files[name]
	return f, of == version, ok
}

// brand is the drawing of icon.svg in a page itself: an image that has to be asked for
// keeps a browser busy just before it paints. Next to the name it says nothing more.
var brand = sync.OnceValue(func() template.HTML {
	files, _ := assets()
	return template.HTML(strings.Replace(string(files["icon.svg"].Body), "<svg ", `<svg width="20" height="20" aria-hidden="true" `, 1))
})

// symbol is a drawing of icons.svg.
var symbol = regexp.MustCompile(`<symbol id="(\w+)" (viewBox="[\d ]+")>(.*)</symbol>`)

// icons is the drawings of icons.svg as elements of a page. The word beside one says
// what it means.
var icons = sync.OnceValue(func() map[string]template.HTML {
	files, _ := assets()
	out := map[string]template.HTML{}
	for _, m := range symbol.FindAllSubmatch(files["icons.svg"].Body, -1) {
		out[string(m[1])] = template.HTML(`<svg class="icon" ` + string(m[2]) + ` aria-hidden="true">` + string(m[3]) + `</svg>`)
	}
	return out
})

// icon is a drawing by its name. A page names only drawings that are there.
func icon(name string) (template.HTML, error) {
	drawing, ok := icons()[name]
	if !ok {
		return "", fmt.Errorf("icons.svg has no drawing %q", name)
	}
	return drawing, nil
}

// Icon is a drawing by its name for pages that are not made of templates; "" where there is none.
func Icon(name string) template.HTML { return icons()[name] }

// Icons is the names of the drawings, sorted.
func Icons() []string { return slices.Sorted(maps.Keys(icons())) }

// bootScript is the module of every page.
const bootScript = "js/boot.js"

// imported is a module that another one names, in a statement at its beginning.
var imported = regexp.MustCompile(`(?m)^import (?:[^\n]* from )?'\./([\w.]+)';`)

// imports is what each module imports by itself.
var imports = sync.OnceValue(func() map[string][]string {
	files, _ := assets()
	out := map[string][]string{}
	for name, f := range files {
		for _, m := range imported.FindAllSubmatch(f.Body, -1) {
			out[name] = append(out[name], path.Join(path.Dir(name), string(m[1])))
		}
	}
	return out
})

// modulesOf is the modules that the scripts of a page are made of, each once,
// those of every page first.
func modulesOf(scripts []string) []string {
	var out []string
	todo := append([]string{bootScript}, scripts...)
	// Breadth first, and each once: modules may import each other in a circle.
	for i := 0; i < len(todo); i++ {
		if slices.Contains(out, todo[i]) {
			continue
		}
		out = append(out, todo[i])
		todo = append(todo, imports()[todo[i]]...)
	}
	return out
}

func lastPart(name string) string { return path.Base(name) }
