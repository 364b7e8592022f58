package host

import "testing"

func TestLocalName_ofACommonNameHasItsParent(t *testing.T) {
	t.Parallel()
	taken := map[string]string{"local/app": "/a/app"}
	for dir, want := range map[string]string{
		"/mirrors/redis+redis/repo": "local/redis+redis/repo", "/srv/app.git": "local/srv/app",
		"/srv/lib.git": "local/lib", "/repo": "local/repo", "/x/tool/src": "local/tool/src", "/srv/git": "local/srv/git", "/srv/git.git": "local/git",
	} {
		if got := localName(dir, taken); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}
