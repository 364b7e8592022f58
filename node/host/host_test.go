package host

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

// repository creates the files that git takes for a repository, without running git.
func repository(t *testing.T, dir, origin string) {
	t.Helper()
	for _, d := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	text := "[core]\n\tbare = true\n"
	if origin != "" {
		text += "[remote \"origin\"]\n\turl = " + origin + "\n"
	}
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNameOfOrigin_isDerivedFromTheOriginURL(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]string{
		"https://github.com/acme/app.git":             "github.com/acme/app",
		"https://user:pass@Example.org:8443/a/b/c/":   "example.org:8443/a/b/c",
		"git@github.com:acme/app.git":                 "github.com/acme/app",
		"host.example:path/to/app":                    "host.example/path/to/app",
		"ssh://git@host.example:2222/acme/app.git":    "host.example:2222/acme/app",
		"https://dev.azure.com/org/my%20proj/_git/re": "dev.azure.com/org/my proj/_git/re",
		"https://example.org/../../etc/passwd.git":    "example.org/etc/passwd",
		"/srv/git/app.git":                            "",
		"../app":                                      "",
		"file:///srv/git/app.git":                     "",
		"C:\\repos\\app":                              "",
		"":                                            "",
		"https://example.org/":                        "",
		"https://example.org/.git":                    "",
		"ext/:sh -c touch% PWNED":                     "",
		"ext::sh -c touch%20PWNED":                    "",
		"https://exa mple.org/a":                      "",
		"https://example.org/a%1b[31mb":               "",
		"host.example:a\u202eb":                       "",
	} {
		if got, _ := nameOfOrigin(origin); got != want {
			t.Errorf("%q: %q, want %q", origin, got, want)
		}
	}
}

func list(t *testing.T, url string) (Listing, error) {
	t.Helper()
	h, err := Open(&config.Git{URL: url}, Tools{})
	if err != nil {
		t.Fatal(err)
	}
	return h.(*generic).Repos(t.Context())
}

// show returns the names of a listing, with directories relative to root.
func show(l Listing, root string) string {
	var b strings.Builder
	for _, r := range l.Repos {
		fmt.Fprintf(&b, "%s=%s ", r.Name, strings.TrimPrefix(strings.TrimPrefix(r.Remote.URL, "file://"), root))
	}
	return strings.TrimSpace(b.String())
}

func TestListDirectories_matchesGlobs(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "re pos")
	repository(t, filepath.Join(root, "a", "app.git"), "https://github.com/acme/app")
	repository(t, filepath.Join(root, "b", "app", ".git"), "git@github.com:acme/app.git")
	repository(t, filepath.Join(root, "b", "tool", ".git"), "")
	repository(t, filepath.Join(root, "c", "tool.git"), "/somewhere")
	repository(t, filepath.Join(root, "c", "tool", ".git"), "")
	if err := os.MkdirAll(filepath.Join(root, "c", "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	address := "file://" + strings.ReplaceAll(root, " ", "%20")
	for _, tt := range []struct{ pattern, want string }{ // no want: all five
		{"/a/app.git", "github.com/acme/app=/a/app.git"},
		{"/b/*", "github.com/acme/app=/b/app local/tool=/b/tool"},
		{"/*/*", ""},
		{"/**", ""},
		{"/@(b)/!(app)", "local/tool=/b/tool"},
		{"/+(c|x)/?(x)tool{,.git}", "local/c/tool=/c/tool.git local/tool=/c/tool"},
		{"/{a,c}/*.git", "github.com/acme/app=/a/app.git local/tool=/c/tool.git"},
	} {
		l, err := list(t, address+tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		got := show(l, strings.ReplaceAll(root, " ", "%20"))
		if tt.want == "" && len(l.Repos) != 5 || tt.want != "" && got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.pattern, got, tt.want)
		}
		if !l.Complete {
			t.Errorf("%s: the listing is not complete: %v", tt.pattern, l.Warnings)
		}
		again, _ := list(t, address+tt.pattern)
		if show(again, root) != show(l, root) {
			t.Errorf("%s: a second listing differs", tt.pattern)
		}
		seen := map[string]bool{}
		for _, r := range l.Repos {
			if seen[r.Name] {
				t.Errorf("%s: %s is there twice", tt.pattern, r.Name)
			}
			seen[r.Name] = true
		}
	}
	for pattern, want := range map[string]Code{"/c/p*": NotRepository, "/x*": TargetEmpty} {
		l, err := list(t, address+pattern)
		if err != nil || len(l.Warnings) != 1 || l.Warnings[0].Code != want || !l.Complete {
			t.Errorf("%s: %v %v", pattern, l.Warnings, err)
		}
	}
	if _, err := list(t, address+"/c/plain"); err == nil {
		t.Error("a directory that is no repository is listed")
	}
	if _, err := list(t, address+"/missing/*"); err == nil {
		t.Error("the directory to look into is missing, and that is no error")
	}
}

// An unreadable directory makes the listing partial. The issue says what to do.
func TestListDirectories_issueOfAnUnreadableDirectorySaysWhatToDo(t *testing.T) {
	t.Parallel()
	l := Listing{Complete: true}
	l.addUnreadable(&fs.PathError{Op: "open", Path: "/srv/git/closed", Err: fs.ErrPermission})
	if text := l.Warnings[0].Text; l.Complete || !strings.Contains(text, "/srv/git/closed") || !strings.Contains(text, "let the user") || Advice(l.Warnings[0].Code) != "" {
		t.Errorf("%+v", l)
	}
}

// Each of these paths leads to a repository outside the connection.
func TestListDirectories_skipsSymlinksLeadingOutside(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	users, secret := filepath.Join(top, "users"), filepath.Join(top, "priv", "secret")
	repository(t, filepath.Join(secret, ".git"), "")
	repository(t, filepath.Join(users, "ann", "good", ".git"), "")
	repository(t, filepath.Join(users, "mallory", "alt", ".git"), "")
	repository(t, filepath.Join(users, "mallory", "objlink", ".git"), "")
	for path, text := range map[string]string{
		"alt/.git/objects/info/alternates": secret + "/.git/objects\n",
		"cd/.git/commondir":                secret + "/.git\n",
		"cd/.git/HEAD":                     "ref: refs/heads/main\n",
		"gitfile/.git":                     "gitdir: " + secret + "/.git\n",
	} {
		path = filepath.Join(users, "mallory", path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	objects := filepath.Join(users, "mallory", "objlink", ".git", "objects")
	err := errors.Join(os.RemoveAll(objects), os.Symlink(filepath.Join(secret, ".git", "objects"), objects), os.Symlink(secret, filepath.Join(users, "mallory", "link")))
	if err != nil {
		t.Fatal(err)
	}

	l, err := list(t, "file://"+users+"/*/*")
	if err != nil {
		t.Fatal(err)
	}
	if got := show(l, users); got != "local/good=/ann/good" || !l.Complete {
		t.Errorf("listed %s, complete %v", got, l.Complete)
	}
	for _, name := range []string{"alt", "cd", "gitfile", "objlink", "link"} {
		if !slices.ContainsFunc(l.Warnings, func(i Issue) bool {
			return i.Code == NotRepository && strings.Contains(i.Text, "mallory/"+name+" was left out")
		}) {
			t.Errorf("no warning of %s: %v", name, l.Warnings)
		}
		if _, err := list(t, "file://"+users+"/mallory/"+name); !errors.Is(err, git.ErrOutside) {
			t.Errorf("%s by its own address: %v", name, err)
		}
	}
	conn := &config.Git{URL: "file://" + users + "/*/*"}
	if got := Within(conn, "file://"+users+"/ann/good"); got != users {
		t.Errorf("nothing leads out of %q, want %q", got, users)
	}
}

// Two local repositories have the same origin. Each also has a name by directory.
func TestLocalRepositories_withOneOriginGetNamesByDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	repository(t, filepath.Join(root, "a", "app"), "https://github.com/acme/app")
	repository(t, filepath.Join(root, "b", "app"), "")
	l, err := list(t, "file://"+root+"/*/*")
	if err != nil || len(l.Repos) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	claim, own := l.Repos[0], l.Repos[1]
	if claim.Name != "github.com/acme/app" || claim.OwnName != "local/a/app" || own.Name != "local/app" || own.OwnName != "" {
		t.Errorf("listed %+v", l.Repos)
	}
}

func TestListDirectories_listingWithAnUnreadableDirectoryIsIncomplete(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	root := t.TempDir()
	repository(t, filepath.Join(root, "a", "one.git"), "")
	shut := filepath.Join(root, "b")
	repository(t, filepath.Join(shut, "two.git"), "")
	if err := os.Chmod(shut, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(shut, 0o755) })
	l, err := list(t, "file://"+root+"/*/*")
	if err != nil || l.Complete || len(l.Repos) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestGenericGitURL_hidesCredentials(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != "ann" || p != "p@ss" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		for _, line := range []string{"# service=git-upload-pack\n", "", strings.Repeat("0", 40) + " capabilities^{}\x00agent=git/2\n", ""} {
			if line == "" {
				fmt.Fprint(w, "0000")
			} else {
				fmt.Fprintf(w, "%04x%s", len(line)+4, line)
			}
		}
	}))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	conn := &config.Git{URL: "http://ann:p%40ss@" + host + "/acme/app.git"}
	h, err := Open(conn, Tools{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.(*generic).Repos(t.Context())
	if err != nil || !l.Complete || len(l.Repos) != 1 || l.Repos[0].Name != host+"/acme/app" || strings.Contains(fmt.Sprintf("%+v", l), "p%40ss") {
		t.Errorf("%+v, %v", l, err)
	}
	cred, err := Credential(t.Context(), conn, "http://"+host+"/acme/app.git", Tools{})
	if err != nil || cred != (git.Credential{User: "ann", Password: "p@ss"}) {
		t.Errorf("the credential is not found again: %#v, %v", cred, err)
	}
	if cred, _ := Credential(t.Context(), conn, "http://elsewhere/acme/app.git", Tools{}); cred != (git.Credential{}) {
		t.Error("the credential is given to another address")
	}
	_, err = list(t, "http://ann:wrong@"+host+"/acme/app.git")
	if !errors.Is(err, git.ErrAuth) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("error %v", err)
	}
}
