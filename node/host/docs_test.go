package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page of each kind of host explains each issue that the kind may have.
func TestHostPages_explainEachIssue(t *testing.T) {
	t.Parallel()
	everywhere := []Code{
		TokenRefused, TokenMissing, RateLimited, TargetNotFound, TargetEmpty, NoEffect, Forbidden, Unreachable, InvalidResponse, PartialListing, ListShrank,
	}
	for page, own := range map[string][]Code{
		"azuredevops": {NotFetchable},
		"bitbucket":   {NotFetchable},
		"gerrit":      nil,
		"gitea":       {ScopeMissing},
		"github":      {NotFetchable, SSORequired, ScopeMissing, TokenExpires, AuthenticationFallback},
		"gitlab":      {NotFetchable, ScopeMissing, TokenExpires},
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "hosts", page+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range append(own, everywhere...) {
			if strings.Count(string(text), "\n| `"+string(code)+"` |") != 1 {
				t.Errorf("%s.md has no row, or several, for %s", page, code)
			}
		}
	}
}
