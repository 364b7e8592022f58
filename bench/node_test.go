package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/auth"
)

// A run on the data of an earlier one gets a key although that one made a key
// of the same name.
func TestAKeptDirectoryGivesAKeyAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket, err := auth.ListenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	keys, made := map[string]bool{}, 0
	mux := http.NewServeMux()
	mux.HandleFunc("DELETE /api/keys/{name}", func(_ http.ResponseWriter, r *http.Request) {
		delete(keys, r.PathValue("name"))
	})
	mux.HandleFunc("POST /api/keys", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Name string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		if keys[body.Name] {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"message": "there is a key of that name"}`)
			return
		}
		keys[body.Name] = true
		made++
		fmt.Fprintf(w, `{"key": "k%d"}`, made)
	})
	node := &http.Server{Handler: mux}
	go node.Serve(socket)
	defer node.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, want := range []string{"k1", "k2"} {
		s := &server{dir: dir}
		if err := s.makeKey(ctx); err != nil || s.key != want {
			t.Fatalf("key %q, %v; want %q", s.key, err, want)
		}
	}
}
