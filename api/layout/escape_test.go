package layout

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestRepoName_standsBackWithItsHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"host.example/acme/app", `<bdi><span class="dir">host.example/</span><wbr>acme/<wbr>app</bdi>`},
		{"app", "<bdi>app</bdi>"},
		{"<a>/b", `<bdi><span class="dir">&lt;a&gt;/</span><wbr>b</bdi>`},
	} {
		if got := string(RepoName(c.in)); got != c.want {
			t.Errorf("RepoName(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestText_showsInvisibleCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"<script>&'\"", "&lt;script&gt;&amp;&#39;&#34;"},
		{"evil\u202egpj.sh", `evil<bdi class="hid" data-c="U+202E">&#x202E;</bdi>gpj.sh`},
		{"a\u200bb", `a<bdi class="hid" data-c="U+200B">&#x200B;</bdi>b`},
		{"\x1b[1m\x00\r", `<bdi class="hid" data-c="U+001B"></bdi>[1m<bdi class="hid" data-c="U+0000"></bdi><bdi class="hid" data-c="U+000D"></bdi>`},
		{"caf\xe9", "caf\uFFFD"}, {"\ttab\nline é 🎣", "\ttab\nline é 🎣"},
	} {
		if got := string(AppendText(nil, []byte(c.in))); got != c.want {
			t.Errorf("AppendText(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := Plain("a\u202eb\xff"); got != "a[U+202E]b\uFFFD" {
		t.Errorf("Plain = %q", got)
	}
	if got := string(Name("a\nb")); got != `<bdi>a<bdi class="hid" data-c="U+000A"></bdi>b</bdi>` {
		t.Errorf("Name = %s: a line break in a name is shown", got)
	}
	if n := CountForged([]byte("a\u202eb\u2066c\U000e0041 \u200d é")); n != 3 {
		t.Errorf("Forged counts %d, want 3: joiners and accents are no forgery", n)
	}
}

// Whatever goes in, a reader of HTML finds no elements but ours.
func FuzzText_neverMakesMarkup(f *testing.F) {
	f.Add([]byte("<a href=x>\u202e\xff\x00&lt;"))
	f.Fuzz(func(t *testing.T, text []byte) {
		z := html.NewTokenizer(strings.NewReader(string(AppendText(nil, text))))
		for {
			switch z.Next() {
			case html.ErrorToken:
				return
			case html.StartTagToken:
				if tok := z.Token(); tok.Data != "bdi" || len(tok.Attr) != 2 || tok.Attr[0].Val != "hid" {
					t.Fatalf("%q makes the element %v", text, tok)
				}
			case html.CommentToken, html.DoctypeToken, html.SelfClosingTagToken:
				t.Fatalf("%q makes markup", text)
			}
		}
	})
}

func TestScripts_insertMarkupInOneModuleOnly(t *testing.T) {
	t.Parallel()
	files, _ := assets()
	for name, f := range files {
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", ".style."} {
			if strings.Contains(string(f.Body), bad) && (name != "js/part.js" || bad != "innerHTML") {
				t.Errorf("%s has %s", name, bad)
			}
		}
		for _, m := range regexp.MustCompile(`from '\./([^']+)'`).FindAllStringSubmatch(string(f.Body), -1) {
			if _, ok := files["js/"+m[1]]; !ok {
				t.Errorf("%s imports %s, which is not there", name, m[1])
			}
		}
	}
}

func TestStaticFile_ofAnotherVersionIsNotCachedByBrowsers(t *testing.T) {
	t.Parallel()
	if _, lasting, ok := Static(Asset("css/site.css")); !lasting || !ok {
		t.Error("a file of this version is there, and lasting")
	}
	if _, lasting, ok := Static("/static/old/css/site.css"); lasting || !ok {
		t.Error("a file of another version is there, and not lasting")
	}
	if _, _, ok := Static("/static/old/../layout.go"); ok {
		t.Error("only what is embedded is served")
	}
}

// Each colour of code can be read on each ground that it may stand on.
func TestColours_haveEnoughContrast(t *testing.T) {
	t.Parallel()
	files, _ := assets()
	themes := [2]map[string]string{{}, {}}
	for _, m := range regexp.MustCompile(`--(\w+):light-dark\((#[0-9a-f]{6}),(#[0-9a-f]{6})\)`).FindAllStringSubmatch(string(files["css/site.css"].Body), -1) {
		themes[0][m[1]], themes[1][m[1]] = m[2], m[3]
	}
	for i, vars := range themes {
		for _, fg := range []string{"fg", "c", "s", "n", "k", "t", "d"} {
			for _, bg := range []string{"bg", "panel", "mark", "hit", "add", "del", "added", "removed"} {
				if r := contrast(vars[fg], vars[bg]); r < 4.5 {
					t.Errorf("theme %d: %s on %s has a contrast of %.2f, want 4.5", i, fg, bg, r)
				}
			}
		}
		if r := contrast(vars["on"], vars["accent"]); r < 4.5 {
			t.Errorf("theme %d: a primary button has a contrast of %.2f, want 4.5", i, r)
		}
		if r := contrast(vars["good"], vars["add"]); r < 4.5 {
			t.Errorf("theme %d: what is good has a contrast of %.2f on its ground, want 4.5", i, r)
		}
		for _, bg := range []string{"page", "bg", "panel"} {
			if r := contrast(vars["edge"], vars[bg]); r < 3 {
				t.Errorf("theme %d: the edge of a field on %s has a contrast of %.2f, want 3", i, bg, r)
			}
		}
		for _, fg := range []string{"fg", "dim", "accent", "good", "warn", "bad"} {
			for _, bg := range []string{"page", "bg", "panel", "hit", "tint"} {
				if r := contrast(vars[fg], vars[bg]); r < 4.5 {
					t.Errorf("theme %d: %s on %s has a contrast of %.2f, want 4.5", i, fg, bg, r)
				}
			}
		}
	}
}

func contrast(a, b string) float64 {
	la, lb := luminance(a), luminance(b)
	return (math.Max(la, lb) + 0.05) / (math.Min(la, lb) + 0.05)
}

func luminance(hex string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		if err != nil {
			panic(fmt.Sprintf("colour %q: %v", hex, err))
		}
		v := float64(n) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}
