package browser

import (
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

// TestPictures draws the pictures of the documents, each in light, dark and on a
// phone, into the directory of SHOAL_TEST_PICTURES.
func TestPictures(t *testing.T) {
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
