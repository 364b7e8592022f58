package api

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A browser without scripts sends all of a query that the box takes, with up to nine bytes for a
// letter. The rest of the head has cookies and what the browser says of itself.
func TestSearchBox_takesNoMoreThanTheHeadOfARequestHolds(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{guests: true}).parts())
	box := regexp.MustCompile(`id="query"[^>]*maxlength="([0-9]+)"`).FindStringSubmatch(fetch(t, s, "GET", "/").body)
	if box == nil {
		t.Fatal("the box takes any number of letters")
	}
	most, err := strconv.Atoi(box[1])
	if err != nil {
		t.Fatal(err)
	}
	target := "/search?query=" + strings.Repeat("%E6%9F%A5", most)
	if got := fetch(t, s, "GET", target, "Cookie", strings.Repeat("c", 1000), "User-Agent", strings.Repeat("u", 500)); got.status != 200 {
		t.Errorf("a query of %d letters is answered with %d: %.300s", most, got.status, got.body)
	}
}
