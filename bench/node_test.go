package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/auth"
)

// A run on old data gets a key although that run made a key of the same name.
func TestMakeKey_replacesTheKeyOfAnEarlierRun(t *testing.T) {
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

// A wait for repositories continues while the node has work, and not longer.
func TestIndexWait_lastsWhileTheNodeHasWork(t *testing.T) {
	t.Parallel()
	at := func(indexed, running int) (st status) {
		st.Repos.Indexed, st.Jobs.Running = indexed, running
		return st
	}
	began := time.Now()

	w := indexWait{repos: 2, busy: began}
	for i, step := range []struct {
		after      time.Duration
		st         status
		err        error
		done, fail bool
	}{
		{time.Minute, at(0, 1), nil, false, false},
		{time.Hour, at(2, 1), nil, false, false},
		{time.Hour + time.Second, at(1, 0), nil, false, false},
		{time.Hour + time.Minute, at(0, 0), errors.New("no answer"), false, false},
		{time.Hour + time.Minute + 5*quietTime, at(1, 0), nil, false, false},
		{time.Hour + time.Minute + 5*quietTime, at(2, 0), nil, true, false},
		{time.Hour + time.Minute + 5*quietTime + 1, at(1, 0), nil, true, true},
	} {
		if done, err := w.check(began.Add(step.after), step.st, step.err); done != step.done || (err != nil) != step.fail {
			t.Errorf("step %d: done %t, %v; want done %t, a failure %t", i+1, done, err, step.done, step.fail)
		}
	}
}
