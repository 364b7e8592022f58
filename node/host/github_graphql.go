package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	minBatched = 20  // number of single repositories from which batches are used
	batchSize  = 100 // repositories per query
)

// githubFields are the fields of a repository in a query, the same as in a list.
const githubFields = `databaseId nameWithOwner description visibility isFork isArchived isDisabled diskUsage stargazerCount pushedAt ` +
	`defaultBranchRef{name} repositoryTopics(first:20){nodes{topic{name}}}`

// githubNode is a repository in a query's answer.
type githubNode struct {
	ID            hostID     `json:"databaseId"`
	Name          string     `json:"nameWithOwner"`
	Description   string     `json:"description"`
	Visibility    string     `json:"visibility"`
	Fork          bool       `json:"isFork"`
	Archived      bool       `json:"isArchived"`
	Disabled      bool       `json:"isDisabled"`
	DiskUsage     int64      `json:"diskUsage"` // kB
	Stars         uint32     `json:"stargazerCount"`
	PushedAt      *time.Time `json:"pushedAt"`
	DefaultBranch *struct {
		Name string `json:"name"`
	} `json:"defaultBranchRef"`
	Topics struct {
		Nodes []struct {
			Topic struct {
				Name string `json:"name"`
			} `json:"topic"`
		} `json:"nodes"`
	} `json:"repositoryTopics"`
}

// repo converts a repository of the GraphQL API to the form in which the REST API lists it.
func (n *githubNode) repo() *githubRepo {
	// Lists of GitHub mark internal repositories as private, too.
	r := &githubRepo{
		ID: n.ID, FullName: n.Name, Description: n.Description, Visibility: strings.ToLower(n.Visibility), Private: n.Visibility != "PUBLIC",
		Fork: n.Fork, Archived: n.Archived, Disabled: n.Disabled, Size: n.DiskUsage, Stars: n.Stars, PushedAt: n.PushedAt,
	}

	// nil for an empty repository
	if n.DefaultBranch != nil {
		r.DefaultBranch = n.DefaultBranch.Name
	}
	for _, t := range n.Topics.Nodes {
		r.Topics = append(r.Topics, t.Topic.Name)
	}
	return r
}

// githubBatch is up to a hundred repositories in one query. The first call of get sends the query.
type githubBatch struct {
	github *github
	asker  *client
	names  []string

	once  sync.Once
	known map[string]*githubRepo // by name; missing ones are asked for separately
	err   error                  // asking separately is of no use then
}

// makeBatches returns the batches of the single repositories, by name. Without a credential there are
// none.
func (g *github) makeBatches(ctx context.Context) map[string]*githubBatch {
	if len(g.conn.Repos) < minBatched {
		return nil
	}

	// If an app fails for an owner, leave the repository to a separate call, which reports the
	// problem.
	by := map[*client][]string{}
	for _, name := range g.conn.Repos {
		if c, _, issue := g.clientFor(ctx, textBefore(name, "/")); issue == nil {
			by[c] = append(by[c], name)
		}
	}

	// Each credential has its own queries. Without a credential there are none.
	out := map[string]*githubBatch{}
	for c, names := range by {
		if value, err := c.authorize(ctx); err != nil || value == "" || len(names) < minBatched {
			continue
		}

		for some := range slices.Chunk(names, batchSize) {
			b := &githubBatch{github: g, asker: g.queryClient(c), names: some}
			for _, name := range some {
				out[name] = b
			}
		}
	}
	return out
}

// queryClient returns a client for queries with the same credential. GitHub counts queries
// separately.
func (g *github) queryClient(c *client) *client {
	key := c.key + " by graphql"
	return githubClient(g.tools, g.web, g.name, key, c.authorize)
}

// Allowance returns the limit of the credential, with queries counted too.
func (g *github) Allowance() Allowance {
	one, many := g.client.Allowance(), g.queryClient(g.client).Allowance()
	calls := one.Calls + many.Calls
	if one.Limit == 0 {
		one = many
	}
	one.Calls = calls
	return one
}

// queryURL returns the URL for queries.
func (g *github) queryURL() *url.URL {
	at := *g.base
	at.Path = strings.TrimSuffix(at.Path, "/v3") + "/graphql"
	return &at
}

// get returns a repository of the batch, or nil if it must be asked for separately, to learn what
// is wrong.
func (b *githubBatch) get(ctx context.Context, name string) (*githubRepo, error) {
	b.once.Do(func() { b.known, b.err = b.sendQuery(ctx) })
	return b.known[name], b.err
}

// sendQuery sends the query. It fails for a limit or a refused token. For other errors it returns
// nothing, so that all are asked for separately.
func (b *githubBatch) sendQuery(ctx context.Context) (map[string]*githubRepo, error) {
	var answer struct {
		Data   map[string]*githubNode `json:"data"`
		Errors []struct {
			Type string `json:"type"`
		} `json:"errors"`
	}

	body, err := json.Marshal(map[string]string{"query": b.queryText()})
	if err != nil {
		return nil, err
	}
	head, err := b.asker.callWithRetry(ctx, apiCall{at: b.github.queryURL(), method: http.MethodPost, body: body}, &answer)
	if r := (*Refusal)(nil); err != nil && (ctx.Err() != nil || errors.As(err, &r) && (r.Code == RateLimited || r.Code == TokenRefused)) {
		return nil, err
	} else if err != nil {
		return nil, nil
	}

	// A used-up limit has status 200.
	for _, e := range answer.Errors {
		if e.Type == "RATE_LIMITED" {
			_, _, reset := githubLimits(head)
			r := b.asker.budget.refuseUntil(b.asker.toOwnClock(reset).Add(time.Second))
			b.asker.budget.pauseUntil(r.Until)
			return nil, r
		}
	}

	known := map[string]*githubRepo{}
	for i, name := range b.names {
		if n := answer.Data[alias(i)]; n != nil && n.ID > 0 {
			known[name] = n.repo()
		}
	}
	return known, nil
}

// queryText returns the text of the query:
//
//	query{r0:repository(owner:"acme",name:"app",followRenames:true){...f} ...} fragment f on Repository{...}
func (b *githubBatch) queryText() string {
	var text strings.Builder
	text.WriteString("query{")
	for i, name := range b.names {
		owner, repo, _ := strings.Cut(name, "/")
		fmt.Fprintf(&text, "%s:repository(owner:%q,name:%q,followRenames:true){...f} ", alias(i), owner, repo)
	}
	text.WriteString("} fragment f on Repository{" + githubFields + "}")
	return text.String()
}

// alias returns the name of a repository in the query and its answer.
func alias(i int) string { return fmt.Sprint("r", i) }
