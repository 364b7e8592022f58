package main

import (
	"net/http"
	"strings"
	"testing"
)

// A user who hides progress still needs the thread for the next question. A script gets all as JSON.
func TestAskCommand_alwaysPrintsTheThread(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("POST /api/chat", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte(`{"id":"5b0c7a4e","after":0}`))
	})
	node.HandleFunc("GET /api/chat/5b0c7a4e/events", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Join([]string{
			`data: {"n":1,"kind":"call","text":"grep"}`, `data: {"n":2,"kind":"text","text":"In store.go."}`, `data: {"n":3,"kind":"done","text":"done"}`, "",
		}, "\n\n")))
	})

	for args, want := range map[string]string{
		"ask Where?":         "· grep\nthread: 5b0c7a4e\n",
		"ask --quiet Where?": "thread: 5b0c7a4e\n",
	} {
		stdout, stderr, err := run(t, node, strings.Fields(args)...)
		if err != nil || stdout != "In store.go.\n" || stderr != want {
			t.Errorf("%s: %v\n%s%s, want %s", args, err, stdout, stderr, want)
		}
	}

	// A script gets the thread and each event, and nothing else.
	stdout, stderr, err := run(t, node, "ask", "--json", "Where?")
	want := `{"thread":"5b0c7a4e"}` + "\n" + `{"n":1,"kind":"call","text":"grep"}` + "\n" + `{"n":2,"kind":"text","text":"In store.go."}` + "\n" + `{"n":3,"kind":"done","text":"done"}` + "\n"
	if err != nil || stdout != want || stderr != "" {
		t.Errorf("ask --json: %v\n%s%s", err, stdout, stderr)
	}
}
