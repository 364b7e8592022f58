package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Who comes from elsewhere sees a page before anything else is asked for: the page has
// its style and its drawing in it, and the policy allows that one style. Within the
// site pages name the style, which a browser keeps.
func TestPage_carriesItsStyleForVisitorsFromOtherSites(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{true, false} {
		v := &Visit{Method: "GET", Arrives: arrives}
		var page bytes.Buffer
		v.Begin(&page, Head{Page: "file", Scripts: []string{"js/search.js"}})

		if strings.Contains(page.String(), "<img") || !strings.Contains(page.String(), `<svg width="20"`) {
			t.Errorf("arrives %v: the drawing beside the name is asked for", arrives)
		}
		if named := strings.Contains(page.String(), `rel="stylesheet"`); named == arrives {
			t.Errorf("arrives %v: the page names its style: %v", arrives, named)
		}

		inside := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindAllStringSubmatch(page.String(), -1)
		if !arrives {
			if inside != nil || v.Policy() != CSP {
				t.Errorf("within the site a page has the policy %s, and carries %d styles", v.Policy(), len(inside))
			}
			continue
		}
		if len(inside) != 2 {
			t.Fatalf("the page has %d styles in it, want 2", len(inside))
		}
		allowed := "style-src 'self'"
		for _, css := range inside {
			sum := sha256.Sum256([]byte(css[1]))
			allowed += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		}
		if want := strings.Replace(CSP, "style-src 'self'", allowed, 1); v.Policy() != want {
			t.Errorf("the policy is\n%s, want\n%s", v.Policy(), want)
		}
	}
}

// The bytes that stand before the first paint of results, and all of what is read: a browser gets
// them compressed.
func TestStyles_stayWithinTheirByteBudget(t *testing.T) {
	t.Parallel()
	files, _ := assets()
	size := 0
	for _, name := range stylesOf("search") {
		size += len(files[name].Gzip)
	}
	if most := 6_200; size > most {
		t.Errorf("the style of results has %d bytes, at most %d", size, most)
	}
	if size += len(files[readStyle].Gzip); size > 10_000 {
		t.Errorf("the styles of a file have %d bytes, at most 10,000", size)
	}
}

func TestFirstVisit_isRecognizedByItsHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why     string
		sent    map[string]string
		arrives bool
	}{
		{"an address that was typed", map[string]string{"Sec-Fetch-Site": "none"}, true},
		{"a link of another site", map[string]string{"Sec-Fetch-Site": "cross-site", "Referer": "https://wiki.example.com/"}, true},
		{"a link of a page of ours", map[string]string{"Sec-Fetch-Site": "same-origin"}, false},
		{"no TLS, an address that was typed", map[string]string{"Host": "code:3000"}, true},
		{"no TLS, a link of a page of ours", map[string]string{"Host": "code:3000", "Referer": "http://code:3000/repos"}, false},
		{"no TLS, a link of another site", map[string]string{"Host": "code:3000", "Referer": "http://wiki/code:3000"}, true},
		{"a part of a page", map[string]string{"Sec-Fetch-Site": "none", "X-Shoal-Part": "typed"}, false},
	} {
		if got := Arrives(func(name string) string { return c.sent[name] }); got != c.arrives {
			t.Errorf("%s: arrives %v, want %v", c.why, got, c.arrives)
		}
	}
}

// A guest who may not see a page is shown the way in, and back.
func TestErrorPage_offersGuestsToSignIn(t *testing.T) {
	t.Parallel()
	for role, want := range map[catalog.Role]bool{catalog.RoleGuest: true, catalog.RoleMember: false} {
		v := &Visit{Method: "GET", Path: "/settings/jobs", Viewer: catalog.Viewer{Role: role}}
		if err := v.ShowError(403, "This needs a key of an owner.", 0); err != nil {
			t.Fatal(err)
		}
		_, page, _ := strings.Cut(string(v.Body), "<main")
		if got := strings.Contains(page, `href="/login?next=%2Fsettings%2Fjobs"`); got != want {
			t.Errorf("%v is led to the sign-in: %v", role, got)
		}
	}
}
