package browser

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// shown is the states that the documents show a picture of, and the names of the
// pictures.
var shown = map[string]string{
	"home": "home", "results with filters": "results", "no results": "nothing", "a bad query": "mistake", "suggestions": "suggestions", "the palette": "palette",
	"a file": "file", "a directory": "directory", "blame": "blame", "history": "history", "a commit side by side": "change", "the panel of a name": "name",
	"repositories": "repositories", "overview for an owner": "overview", "nodes": "nodes", "connections": "connections", "jobs": "jobs", "keys": "keys",
}

// pictureScale is how large the pictures are beside the window.
const pictureScale = 0.6

// TestPictures_areTakenForTheDocumentation draws the pictures of the documents, each in light, dark and on a
// phone, into the directory of SHOAL_TEST_PICTURES.
func TestPictures_areTakenForTheDocumentation(t *testing.T) {
	dir := os.Getenv("SHOAL_TEST_PICTURES")
	if dir == "" {
		t.Skip("NOT RUN: SHOAL_TEST_PICTURES names no directory for the pictures (make pictures does)")
	}
	s := siteOf(t, false)
	for _, l := range []look{{name: "light", width: 1280}, {name: "dark", width: 1280, dark: true}, {name: "phone", width: 390}} {
		t.Run(l.name, func(t *testing.T) {
			guest, owner := s.open(t, ""), s.open(t, s.owner)
			guest.wear(l)
			owner.wear(l)
			for _, st := range s.states() {
				name, ok := shown[st.name]
				if !ok {
					continue
				}
				b := st.open(guest, owner)
				b.picture(filepath.Join(dir, name+"-"+strings.ReplaceAll(l.name, " ", "-")+".webp"), l)
			}
		})
	}
}

// picture writes what the window shows into a file.
func (b *tab) picture(file string, l look) {
	b.t.Helper()
	quality := int64(60)
	clip := &page.Viewport{Width: float64(l.width), Height: 800, Scale: pictureScale}
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality, Clip: clip})
	b.must(err)
	b.must(os.WriteFile(file, shot.Data, 0o644))
}

// drawnFont is the font of the kept pictures: the first of the style that Debian has.
const drawnFont = `(() => {
  const c = document.createElement('canvas').getContext('2d'), wide = f => { c.font = '40px ' + f; return c.measureText('Shoal finds it').width; };
  return wide('"Liberation Sans", monospace') !== wide('monospace');
})()`

// Every component looks as in its kept picture, in light, dark and forced colours. Small
// differences of letters pass; a part of the page that moved, or has another colour, does
// not. -rewrite draws the pictures anew, and their author looks at them.
func componentsLookAsDrawn(t *testing.T, s *site) {
	for _, l := range []look{looks[0], looks[2], looks[3]} {
		b := s.open(t, "")
		b.wear(l)
		b.goTo("/help/looks", 200)
		if !eval[bool](b, drawnFont) {
			t.Skip("NOT RUN: there is no Liberation Sans, in which the pictures are drawn")
		}
		got := b.drawing(l)
		file := filepath.Join("testdata", "looks-"+strings.ReplaceAll(l.name, " ", "-")+".png")
		if *rewrite {
			b.must(os.WriteFile(file, got, 0o644))
			continue
		}
		want, err := os.ReadFile(file)
		b.must(err)
		if share := different(t, got, want); share > 0.003 {
			to := filepath.Join(t.ArtifactDir(), filepath.Base(file))
			b.must(os.WriteFile(to, got, 0o644))
			t.Errorf("%.1f %% of the components look other than in %s: see %s", 100*share, file, to)
		}
	}
}

// drawing is a picture of the whole page, at a third of its size.
func (b *tab) drawing(l look) []byte {
	b.t.Helper()
	height := eval[float64](b, `document.documentElement.scrollHeight`)
	all := true
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Format: page.CaptureScreenshotFormatPng, Clip: &page.Viewport{Width: float64(l.width), Height: height, Scale: 1.0 / 3}, CaptureBeyondViewport: &all,
	})
	b.must(err)
	return shot.Data
}

// different is the share of squares whose colour differs between two pictures, among
// those in which one of them has something; 1 where their sizes differ by more than a line.
func different(t testing.TB, a, b []byte) float64 {
	t.Helper()
	const side, colour = 4, 24 // pixels; of 255
	var pictures [2]image.Image
	for i, data := range [][]byte{a, b} {
		p, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		pictures[i] = p
	}
	size, other := pictures[0].Bounds().Size(), pictures[1].Bounds().Size()
	if size.X != other.X || max(size.Y-other.Y, other.Y-size.Y) > 7 {
		return 1
	}

	mean := func(p image.Image, x, y int) (sum [3]int) {
		for dx := range side {
			for dy := range side {
				r, g, b, _ := p.At(x+dx, y+dy).RGBA()
				sum[0], sum[1], sum[2] = sum[0]+int(r>>8), sum[1]+int(g>>8), sum[2]+int(b>>8)
			}
		}
		for i := range sum {
			sum[i] /= side * side
		}
		return sum
	}
	ground := mean(pictures[0], 0, min(size.Y, other.Y)-side)
	apart := func(a, b [3]int) bool {
		for i := range a {
			if d := a[i] - b[i]; d > colour || d < -colour {
				return true
			}
		}
		return false
	}
	drawn, changed := 0, 0
	for y := 0; y+side <= min(size.Y, other.Y); y += side {
		for x := 0; x+side <= size.X; x += side {
			a, b := mean(pictures[0], x, y), mean(pictures[1], x, y)
			if a == ground && b == ground {
				continue
			}
			drawn++
			if apart(a, b) {
				changed++
			}
		}
	}
	return float64(changed) / float64(max(1, drawn))
}
