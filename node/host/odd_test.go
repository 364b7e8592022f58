package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A repository without a usable name or id is left out, with an issue. The others are listed, and
// missing ones are kept.
func TestList_leavesOutARepositoryWithoutAUsableName(t *testing.T) {
	t.Parallel()
	for kind, list := range map[string]func(found func(Repo, string) error) error{
		"Gitea":      func(found func(Repo, string) error) error { return (&gitea{}).passOn(&giteaRepo{}, found) },
		"GitHub":     func(found func(Repo, string) error) error { return (&github{}).passOn(&githubRepo{}, found) },
		"GitLab":     func(found func(Repo, string) error) error { return (&gitlab{}).passOn(&gitlabProject{}, found) },
		"Azure":      func(found func(Repo, string) error) error { return (&azure{}).passOn(&azureRepo{}, "o", found) },
		"Cloud":      func(found func(Repo, string) error) error { return (&bitbucketCloud{}).passOn(&cloudRepo{}, found) },
		"DataCenter": func(found func(Repo, string) error) error { return (&bitbucketServer{}).passOn(&serverRepo{}, found) },
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

// An id that is no number of 63 bits makes one entry unusable. The entries beside it are read.
func TestList_leavesOutARepositoryWithAnInvalidID(t *testing.T) {
	t.Parallel()
	for kind, list := range map[string]func(text string) ([]error, error){
		"Gitea":  foundOf(func(r *giteaRepo, found func(Repo, string) error) error { return (&gitea{}).passOn(r, found) }),
		"GitHub": foundOf(func(r *githubRepo, found func(Repo, string) error) error { return (&github{}).passOn(r, found) }),
		"GitLab": foundOf(func(r *gitlabProject, found func(Repo, string) error) error { return (&gitlab{}).passOn(r, found) }),
		"DataCenter": foundOf(func(r *serverRepo, found func(Repo, string) error) error {
			return (&bitbucketServer{}).passOn(r, found)
		}),
	} {
		for _, id := range []string{"9223372036854775808", "-9223372036854775809", "1e300", "1.5", `"7"`, "null", "{}", "[1]", "0", "-1"} {
			entry := `{"id": ` + id + `, "full_name": "a/b", "path_with_namespace": "a/b", "slug": "b", "project": {"key": "a"}}`
			errs, err := list("[" + entry + "," + entry + "]")
			if err != nil || len(errs) != 2 {
				t.Errorf("%s, %s: %v, %v", kind, id, errs, err)
			}
			for _, err := range errs {
				if err != nil {
					t.Errorf("%s, %s: %v", kind, id, err)
				}
			}
		}
	}
}

// foundOf returns a function that decodes a page and passes each entry to use. Its result has an
// error for each listed entry.
func foundOf[T any](use func(r *T, found func(Repo, string) error) error) func(text string) ([]error, error) {
	return func(text string) (out []error, err error) {
		var page []T
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			return nil, err
		}
		for i := range page {
			out = append(out, use(&page[i], func(r Repo, _ string) error {
				if r.Name == "" { // counted as unusable
					return nil
				}
				return fmt.Errorf("%q was listed", r.Name)
			}))
		}
		return out, nil
	}
}
