package host

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// A repository that has no usable name or id is left out and told of. The others are listed,
// and those that did not come are kept.
func TestListing_ofAnOddRepository(t *testing.T) {
	t.Parallel()
	for kind, list := range map[string]func(found func(Repo, string) error) error{
		"Gitea":      func(found func(Repo, string) error) error { return (&gitea{}).found(&giteaRepo{}, found) },
		"GitHub":     func(found func(Repo, string) error) error { return (&github{}).found(&githubRepo{}, found) },
		"GitLab":     func(found func(Repo, string) error) error { return (&gitlab{}).found(&gitlabProject{}, found) },
		"Azure":      func(found func(Repo, string) error) error { return (&azure{}).found(&azureRepo{}, "o", found) },
		"Cloud":      func(found func(Repo, string) error) error { return (&bitbucketCloud{}).found(&cloudRepo{}, found) },
		"DataCenter": func(found func(Repo, string) error) error { return (&bitbucketServer{}).found(&serverRepo{}, found) },
	} {
		var sink recorder
		c := newCollector(&sink, &choice{})
		err := c.run(t.Context(), []target{{name: "org:a", list: func(_ context.Context, found func(Repo, string) error) error {
			for i := range 3 {
				if err := list(found); err != nil {
					return err
				}
				if err := found(Repo{ExternalID: fmt.Sprint("id", i), Name: fmt.Sprint("h/a/", i)}, fmt.Sprint("a/", i)); err != nil {
					return err
				}
			}
			return nil
		}}})
		if err != nil || len(sink.repos) != 3 {
			t.Errorf("%s: %d repositories, %v", kind, len(sink.repos), err)
		}
		if len(sink.issues) != 1 || sink.issues[0].Code != InvalidResponse || !sink.issues[0].Partial || !strings.Contains(sink.issues[0].Text, "3 repositories") {
			t.Errorf("%s: %+v", kind, sink.issues)
		}
	}
}
