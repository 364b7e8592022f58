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

// File is a static file. The caller must not change its bytes.
type File struct {
	Mime       string
	Body, Gzip []byte
}

var mimes = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets returns the static files and a version, which changes whenever a file does. Addresses
// contain the version, so a cached file is never stale.
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
			body = minifyCSS(body)
		case ".js":
			body = jsComment.ReplaceAll(body, nil)
		}

		sum.Write([]byte(name))
		sum.Write(body)
		files[strings.TrimPrefix(name, "static/")] = File{mimes[path.Ext(name)], body, compress(body)}
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

// minifyCSS removes comments and blanks from a style, because a first visit gets it inside the page.
func minifyCSS(css []byte) []byte {
	css = cssComment.ReplaceAll(css, nil)
	css = cssBlank.ReplaceAll(css, []byte("$1"))
	css = cssColon.ReplaceAll(css, []byte("$1:"))
	return bytes.TrimSpace(bytes.ReplaceAll(css, []byte(";}"), []byte("}")))
}

// compress compresses a file with gzip.
func compress(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // fails for invalid levels only
	_, _ = w.Write(body)                                  // writes to memory do not fail
	_ = w.Close()
	return b.Bytes()
}

// Asset returns the address of a static file. Modules import each other by relative names, so the
// version comes first.
func Asset(name string) string {
	_, version := assets()
	return "/static/" + version + "/" + name
}

// Static returns the file at an address made by Asset. lasting is false if the address is of
// another version of the program: then it must not be cached.
func Static(url string) (f File, lasting, ok bool) {
	files, version := assets()
	urlVersion, name, _ := strings.Cut(strings.TrimPrefix(url, "/static/"), "/")
	f, ok = files[name]
	return f, urlVersion == version, ok
}

// brand returns the logo as markup, because a separate image would delay the first paint. The site's
// name stands beside the logo, so it needs no description.
var brand = sync.OnceValue(func() template.HTML {
	files, _ := assets()
	return template.HTML(strings.Replace(string(files["icon.svg"].Body), "<svg ", `<svg width="20" height="20" aria-hidden="true" `, 1))
})

// symbol matches a drawing in icons.svg.
var symbol = regexp.MustCompile(`<symbol id="(\w+)" (viewBox="[\d ]+")>(.*)</symbol>`)

// icons returns the drawings of icons.svg as elements, by name. The word next to an icon says what
// it means.
var icons = sync.OnceValue(func() map[string]template.HTML {
	files, _ := assets()
	out := map[string]template.HTML{}
	for _, m := range symbol.FindAllSubmatch(files["icons.svg"].Body, -1) {
		out[string(m[1])] = template.HTML(`<svg class="icon" ` + string(m[2]) + ` aria-hidden="true">` + string(m[3]) + `</svg>`)
	}
	return out
})

// icon returns a drawing by name. An unknown name is an error of the template.
func icon(name string) (template.HTML, error) {
	drawing, ok := icons()[name]
	if !ok {
		return "", fmt.Errorf("icons.svg has no drawing %q", name)
	}
	return drawing, nil
}

// Icon returns a drawing by name, for pages without templates; "" if there is none.
func Icon(name string) template.HTML { return icons()[name] }

// Icons returns the sorted names of the drawings.
func Icons() []string { return slices.Sorted(maps.Keys(icons())) }

// bootScript is the module of every page.
const bootScript = "js/boot.js"

// imported matches an import statement at the start of a module.
var imported = regexp.MustCompile(`(?m)^import (?:[^\n]* from )?'\./([\w.]+)';`)

// imports returns the modules that each module imports directly.
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

// modulesOf returns all modules that the scripts of a page need, each once, starting with those of
// every page.
func modulesOf(scripts []string) []string {
	var out []string
	todo := append([]string{bootScript}, scripts...)
	// Breadth first; modules may import each other in a circle.
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
