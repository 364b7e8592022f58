package main

import (
	"net/http"
	"testing"
)

func TestAccessWhy_printsEachReason(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("GET /api/users/{user}/access", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("user") != "ann@example.com" || r.URL.Query().Get("repo") != "acme/secret" {
			t.Errorf("asked %s", r.URL)
		}
		_, _ = w.Write([]byte(`{"user":{"email":"ann@example.com"},"repository":"github.com/acme/secret","sees":false,"hostsAsked":true,"reasons":[
			{"kind":"account","sees":false,"stops":true,"detail":"The account is suspended: it sees nothing."},
			{"kind":"closed","sees":false,"stops":false,"detail":"It is closed."},
			{"kind":"grant","sees":true,"stops":false,"detail":"An owner granted it.","asOf":"2020-01-02T10:00:00Z"}]}`))
	})

	const want = `ann@example.com does not see github.com/acme/secret
- The account is suspended: it sees nothing.
  It is closed.
+ An owner granted it. (as of 2020-01-02 10:00)
`
	if stdout, _, err := run(t, node, "user", "access", "ann@example.com", "acme/secret"); err != nil || stdout != want {
		t.Errorf("got %q, %v, want %q", stdout, err, want)
	}
}
