package main

import (
	"net/http"
	"strings"
	"testing"
)

// With --json every list of the API is printed unchanged.
func TestListCommands_printTheAnswerUnchangedWithJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, path, answer, lines string }{
		{"key list", "/api/keys", `[{"id":"k1","name":"laptop","role":"member","prefix":"shoal_a","createdAt":"2020-01-02T10:00:00Z","more":1}]`, "laptop  k1  member  shoal_a…  nobody  2020-01-02T10:00:00Z  never"},
		{"user list", "/api/users", `[{"id":"u1","email":"a@b.c","role":"owner","state":"active","keys":2,"name":"Ann"}]`, "a@b.c  u1  owner  active  2     Ann"},
		{"agent list", "/api/agents", `[{"id":"a1","name":"editor","user":"a@b.c","redirectHost":"localhost","kind":"registered"}]`, "editor  a1  a@b.c  localhost"},
		{"models list", "/api/models", `[{"provider":"openai","model":"m","usable":true}]`, "openai/m  -     yes"},
		{"models list", "/api/models", `[]`, "No language model is configured"},
		{"jobs list", "/api/jobs", `[{"id":"index:7","state":"done","subject":"a/b"}]`, "index:7  done   a/b"},
		{"connection list", "/api/connections", `[{"name":"work","type":"gitea"}]`, "work"},
		{"events", "/api/events", `{"since":"2020-01-01T10:00:00Z","events":[]}`, "the nodes remember since 2020-01-01"},
	} {
		node := http.NewServeMux()
		node.HandleFunc("GET "+c.path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.answer)) })

		out, _, err := run(t, node, strings.Fields(c.command)...)
		if err != nil || !strings.Contains(out, c.lines) {
			t.Errorf("shoal %s: %v\n%swant %s", c.command, err, out, c.lines)
		}
		out, _, err = run(t, node, append(strings.Fields(c.command), "--json")...)
		if err != nil || out != c.answer+"\n" {
			t.Errorf("shoal %s --json: %v\n%swant %s", c.command, err, out, c.answer)
		}
	}
}
