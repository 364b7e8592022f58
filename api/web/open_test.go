package web

import "testing"

func TestRemoteName_isReadFromACloneURL(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"https://github.com/acme/app.git":             "github.com/acme/app",
		"https://me:secret@github.com/acme/app/":      "github.com/acme/app",
		"https://git.example.com:8443/acme/app.git":   "git.example.com/acme/app",
		"git@github.com:acme/app.git":                 "github.com/acme/app",
		"github.com:acme/app":                         "github.com/acme/app",
		"ssh://git@git.example.com:2222/acme/app.git": "git.example.com/acme/app",
		"git@gitlab.example.com:group/sub/app.git":    "gitlab.example.com/group/sub/app",
		"file:///srv/git/app":                         "srv/git/app",
		"":                                            "",
	} {
		if got := remoteName(remote); got != want {
			t.Errorf("%q is %q, want %q", remote, got, want)
		}
	}
}
