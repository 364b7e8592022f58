package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/nodetest"
)

func TestASignedEventBringsTheNewCommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir)})
	n.WaitIndexed(1)
	s := start(t, n.Node)
	app.Commit(map[string]string{"b.txt": "narwhal\n"})
	secret, err := n.WebhookSecret("local")
	if err != nil {
		t.Fatal(err)
	}
	const body = `{}`
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	good := hex.EncodeToString(mac.Sum(nil))
	post := func(path, header, value string) int {
		t.Helper()
		req, err := http.NewRequest("POST", "http://"+s.Addr().String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if header != "" {
			req.Header.Set(header, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	bad := strings.Repeat("0", len(good))
	for _, c := range [][3]string{
		{"/api/webhook/local", "", ""},
		{"/api/webhook/local", "X-Hub-Signature-256", "sha256=" + bad},
		{"/api/webhook/local", "X-Gitea-Signature", bad},
		{"/api/webhook/local", "X-Gitlab-Token", "wrong"},
		{"/api/webhook/other", "X-Hub-Signature-256", "sha256=" + good}, // the secret of another connection
	} {
		if status := post(c[0], c[1], c[2]); status != http.StatusUnauthorized && status != http.StatusForbidden {
			t.Errorf("%q gives %d", c, status)
		}
	}
	if got := n.Find("narwhal"); len(got) != 0 {
		t.Errorf("a refused event brought %q", got)
	}
	if status := post("/api/webhook/local", "X-Hub-Signature-256", "sha256="+good); status != http.StatusAccepted {
		t.Fatalf("a signed event gives %d", status)
	}
	n.Wait("the new commit", func() error {
		if got := n.Find("narwhal"); len(got) != 1 || got[0] != "local/app:b.txt" {
			return fmt.Errorf("found %q", got)
		}
		return nil
	})
	if status := post("/api/webhook/local", "X-Gitlab-Token", secret); status != http.StatusAccepted {
		t.Errorf("the secret as a token gives %d", status)
	}
}
