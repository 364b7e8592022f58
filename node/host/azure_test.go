package host

import (
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
)

// The path of an old server is in a repository's URL but not in its name.
func TestAzure_repositoryNamesOmitTheServerPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url   string
		path  bool
		name  string
		clone string
	}{
		{"https://ado.example.com", true, "ado.example.com/c/P q/r", "https://ado.example.com/tfs/c/P%20q/_git/r"},
		{"https://ado.example.com/tfs/", true, "ado.example.com/c/P q/r", "https://ado.example.com/tfs/c/P%20q/_git/r"},
		{"https://ADO.example.com/tfs", false, "ado.example.com/c/P q/r", "https://ado.example.com/tfs/c/P%20q/_git/r"},
		{"https://ado.example.com/own/tfs", false, "ado.example.com/own/c/P q/r", "https://ado.example.com/own/tfs/c/P%20q/_git/r"},
		{"https://ado.example.com/mytfs", false, "ado.example.com/mytfs/c/P q/r", "https://ado.example.com/mytfs/c/P%20q/_git/r"},
		{"https://ado.example.com", false, "ado.example.com/c/P q/r", "https://ado.example.com/c/P%20q/_git/r"},
	} {
		h, err := openAzure(&config.AzureDevOps{URL: c.url, UseTFSPath: c.path, Deployment: config.Server}, tools(t))
		if err != nil {
			t.Fatal(err)
		}
		r := &azureRepo{ID: "1", Name: "r"}
		r.Project.Name = "P q"
		if got := h.(*azure).convert(r, "c"); got.Name != c.name || got.Remote.URL != c.clone || got.WebURL != c.clone {
			t.Errorf("%s: %s at %s; want %s at %s", c.url, got.Name, got.Remote.URL, c.name, c.clone)
		}
	}
}
