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
func TestAPageCarriesItsStyleForWhoArrives(t *testing.T) {
	t.Parallel()
	for _, arrives := range []bool{true, false} {
		v := &Visit{Method: "GET", Arrives: arrives}
		var page bytes.Buffer
		v.Begin(&page, Head{Page: "search", Scripts: []string{"js/search.js"}})

		if strings.Contains(page.String(), "<img") || !strings.Contains(page.String(), `<svg width="20"`) {
			t.Errorf("arrives %v: the drawing beside the name is asked for", arrives)
		}
		if named := strings.Contains(page.String(), `rel="stylesheet"`); named == arrives {
			t.Errorf("arrives %v: the page names its style: %v", arrives, named)
		}

		carried := regexp.MustCompile(`(?s)<style>(.*?)</style>`).FindStringSubmatch(page.String())
		if !arrives {
			if carried != nil || v.Policy() != CSP {
				t.Errorf("within the site a page has the policy %s, and carries %d bytes", v.Policy(), len(carried))
			}
			continue
		}
		if carried == nil {
			t.Fatal("the page has no style in it")
		}
		sum := sha256.Sum256([]byte(carried[1]))
		allowed := "style-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"
		if want := strings.Replace(CSP, "style-src 'self';", allowed, 1); v.Policy() != want {
			t.Errorf("the policy is\n%s, want\n%s", v.Policy(), want)
		}
	}
}

func TestWhoArrives(t *testing.T) {
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
func TestErrors_offerToSignIn(t *testing.T) {
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
