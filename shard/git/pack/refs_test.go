package pack

import (
	"os/exec"
	"testing"
)

func TestPlainReferenceName_agreesWithGit(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refs/heads/a", "refs/heads/a/b.c", "refs/heads/.a", "refs/heads/a.lock", "refs/heads/a..b", "refs/heads/a b", "refs/heads/a@{1}",
		"refs/heads/a.", "refs/heads//a", "refs/heads/a/", "refs/heads/ä", "refs/heads/a~1", "refs/heads/a[1]", "refs/tags/@", "heads/a"} {
		if err := exec.Command("git", "check-ref-format", name).Run(); PlainRef(name) && err != nil {
			t.Errorf("%q: git refuses what is taken here: %v", name, err)
		}
	}
	if !PlainRef("refs/heads/feature/x-1_2.3+ä") {
		t.Error("an ordinary name is refused")
	}
}
