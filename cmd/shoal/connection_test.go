package main

import (
	"net/http"
	"strings"
	"testing"
)

// sync waits for its listing and shows the result, not an older one.
func TestConnectionSync_waitsAndPrintsItsResult(t *testing.T) {
	t.Parallel()
	const before = `{"name":"main","type":"gitea","state":"failed","message":"old","repos":1,"attempt":7,"endedAt":"2026-11-02T10:00:00Z"}`
	const queued = `{"name":"main","type":"gitea","state":"failed","message":"old","repos":1,"attempt":7,"queued":true,"endedAt":"2026-11-02T10:00:00Z"}`
	const running = `{"name":"main","type":"gitea","state":"syncing","listed":7,"repos":1,"attempt":8,"queued":true,"endedAt":"2026-11-02T10:00:00Z"}`
	const after = `{"name":"main","type":"gitea","state":"STATE","message":"MESSAGE","repos":9812,"held":4,"kept":1,"excluded":[{"reason":"archived","repos":28},{"reason":"forks","repos":90}],
		"calls":103,"limit":{"calls":5000,"remaining":4871,"resetAt":"2020-01-02T10:00:00Z"},"tokenExpiresAt":"2026-12-01T00:00:00Z",
		"issues":[{"code":"FORBIDDEN","target":"orgs/acme","text":"it may not be read","hint":"Let it.","since":"2026-01-02T03:04:05Z"}],"warnings":["orgs/acme: it may not be read","and a local one"],
		"following":{"by":"signal","signal":"updated_at","everySeconds":30,"lastAt":"2026-11-02T10:00:09Z","webhookAt":"2020-01-02T10:00:00Z"},
		"syncedAt":"2020-01-02T10:00:00Z","attempt":8,"endedAt":"2026-11-02T10:00:00Z"}` // in the same second
	for verb, c := range map[string]struct {
		state, message string
		err            error
	}{
		"sync":   {"synced", "", nil},
		"accept": {"failed", "it cannot be reached", exitCode(1)},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			answers := []string{before, queued, "", running, strings.NewReplacer("STATE", c.state, "MESSAGE", c.message).Replace(after)}
			asked := 0
			node := http.NewServeMux()
			node.HandleFunc("POST /api/connections/main/"+verb, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusAccepted)
				_, _ = w.Write([]byte(before))
			})
			node.HandleFunc("GET /api/connections", func(w http.ResponseWriter, _ *http.Request) {
				answer := answers[min(asked, len(answers)-1)]
				asked++
				if answer == "" {
					w.WriteHeader(http.StatusServiceUnavailable) // like a node that is restarting
					return
				}
				_, _ = w.Write([]byte("[" + answer + "]"))
			})
			stdout, _, err := run(t, node, "connection", verb, "main")
			if err != c.err {
				t.Fatalf("%v, want %v", err, c.err)
			}
			for _, want := range []string{
				c.state, c.message, "9812, 4 held, 1 kept, 118 left out (archived 28, forks 90)", "103 calls, 4871 of 5000 left until 2020-01-02", "token ends 2026-12-01", "webhook at 2020-01-02", "updated_at each 30 s",
				"main, orgs/acme: it may not be read (FORBIDDEN, since 2026-01-0", "\n    Let it.\n", "main: and a local one",
			} {
				if !strings.Contains(stdout, want) {
					t.Errorf("no %q in:\n%s", want, stdout)
				}
			}
			if n := strings.Count(stdout, "it may not be read"); n != 1 || strings.Contains(stdout, "old") {
				t.Errorf("an issue is told %d times, or an old answer was taken:\n%s", n, stdout)
			}
		})
	}
}

// While the host refuses the token, the listing is stale, then hidden. The state says so, with
// one explanation.
func TestConnectionList_explainsARefusedToken(t *testing.T) {
	t.Parallel()
	for times, want := range map[string]string{
		"": "failed  1 ",
		`"tokenRefusedAt":"2026-01-02T03:04:05Z","hidesAt":"2026-02-01T03:04:05Z",`:  "failed, stale  1 ",
		`"tokenRefusedAt":"2026-01-02T03:04:05Z","hiddenAt":"2026-02-01T03:04:05Z",`: "failed, hidden  1 ",
	} {
		node := http.NewServeMux()
		node.HandleFunc("GET /api/connections", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`[{"name":"main","type":"gitea","state":"failed","message":"it is refused","repos":1,` + times + `
				"issues":[{"code":"TOKEN_REFUSED","text":"what that means","hint":"Make a new one.","since":"2026-01-02T03:04:05Z"}],"warnings":["what that means","another"]}]`))
		})
		stdout, _, err := run(t, node, "connection", "list")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stdout, "gitea  "+want) || strings.Count(stdout, "what that means") != 1 || !strings.Contains(stdout, "(TOKEN_REFUSED, since 2026-01-02") || !strings.Contains(stdout, "main: another") {
			t.Errorf("no %q in:\n%s", want, stdout)
		}
	}
}

// The webhook command shows what to enter at a host, and only replaces the secret on request.
func TestConnectionWebhook_printsWhatToEnterAtTheHost(t *testing.T) {
	t.Parallel()
	const answer = `{"url":"https://shoal/api/webhook/main","secret":"SECRET","signingToken":"whsec_x","steps":"Enter it there.","previousUntil":"2020-01-02T10:00:00Z"}`
	node := http.NewServeMux()
	node.HandleFunc("GET /api/webhook/main", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Replace(answer, "SECRET", "old", 1)))
	})
	node.HandleFunc("POST /api/webhook/main/rotate", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Replace(answer, "SECRET", "new", 1)))
	})
	for _, args := range [][]string{{"old"}, {"new", "--rotate"}} {
		stdout, _, err := run(t, node, append([]string{"connection", "webhook", "main"}, args[1:]...)...)
		for _, want := range []string{"address  https://shoal/api/webhook/main\n", "secret   " + args[0] + "\n", "signing  whsec_x\n", "Enter it there.\n", "good until 2020-01-02"} {
			if err != nil || !strings.Contains(stdout, want) {
				t.Errorf("%v: %v; no %q in:\n%s", args[1:], err, want, stdout)
			}
		}
	}
}

// The output for one connection has the results of its last listings.
func TestConnectionShow_printsTheLastListings(t *testing.T) {
	t.Parallel()
	node := http.NewServeMux()
	node.HandleFunc("GET /api/connections/main", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"name":"main","type":"gitea","state":"synced","repos":7,"syncs":[
			{"beganAt":"2020-01-02T10:00:00Z","tookMs":1500,"state":"synced","repos":7},{"beganAt":"2020-01-01T10:00:00Z","tookMs":30,"state":"failed","error":"it cannot be reached"}]}`))
	})

	stdout, _, err := run(t, node, "connection", "show", "main")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(stdout) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	got := strings.Join(rows[len(rows)-3:], "\n")
	for _, want := range []string{"BEGAN STATE TOOK REPOSITORIES ERROR\n", " synced 1.5s 7\n", " failed 30ms it cannot be reached"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, stdout)
		}
	}
	if !strings.HasPrefix(rows[1], "main gitea synced 7 ") {
		t.Errorf("the connection is told as %q", rows[1])
	}
}
