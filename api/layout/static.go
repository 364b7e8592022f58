package layout

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
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
