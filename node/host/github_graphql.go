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
	fewNamed  = 20  // repositories named one by one; from here on many are asked for at once
	batchSize = 100 // repositories of one question
)

// githubFields are what a question asks of each repository: what a listing has.
const githubFields = `databaseId nameWithOwner description visibility isFork isArchived isDisabled diskUsage stargazerCount pushedAt ` +
	`defaultBranchRef{name} repositoryTopics(first:20){nodes{topic{name}}}`

// githubNode is a repository in an answer.
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

// repo is the repository as a listing has it.
func (n *githubNode) repo() *githubRepo {
	// An internal one is private as well, as the other listing of GitHub says it.
	r := &githubRepo{
		ID: n.ID, FullName: n.Name, Description: n.Description, Visibility: strings.ToLower(n.Visibility), Private: n.Visibility != "PUBLIC",
		Fork: n.Fork, Archived: n.Archived, Disabled: n.Disabled, Size: n.DiskUsage, Stars: n.Stars, PushedAt: n.PushedAt,
	}

	// An empty repository has none.
	if n.DefaultBranch != nil {
		r.DefaultBranch = n.DefaultBranch.Name
	}
	for _, t := range n.Topics.Nodes {
		r.Topics = append(r.Topics, t.Topic.Name)
	}
	return r
}

// githubBatch is up to a hundred repositories that are asked for by one question,
// when the first of them is wanted.
type githubBatch struct {
	github *github
	asker  *client
	names  []string

	once  sync.Once
	known map[string]*githubRepo // by name; what is missing is asked for by itself
	err   error                  // after which asking one by one is of no use
}

// batches are the batches of the repositories that are named one by one, by
// name. Without a credential there is no such question.
func (g *github) batches(ctx context.Context) map[string]*githubBatch {
	if len(g.conn.Repos) < fewNamed {
		return nil
	}

	// What an app does not open is left to a call of its own, which tells of it.
	by := map[*client][]string{}
	for _, name := range g.conn.Repos {
		if c, _, issue := g.by(ctx, firstOf(name, "/")); issue == nil {
			by[c] = append(by[c], name)
		}
	}

	// Each credential has questions of its own, and without one there are none.
	out := map[string]*githubBatch{}
	for c, names := range by {
		if value, err := c.authorize(ctx); err != nil || value == "" || len(names) < fewNamed {
			continue
		}

		for some := range slices.Chunk(names, batchSize) {
			b := &githubBatch{github: g, asker: g.graph(c), names: some}
			for _, name := range some {
				out[name] = b
			}
		}
	}
	return out
}

// graph asks in the place of a client for many things at once. GitHub counts
// such questions apart.
func (g *github) graph(c *client) *client {
	key := c.key + " by graphql"
	return githubClient(g.tools, g.web, g.name, key, c.authorize)
}

// Allowance is that of the credential, with the questions counted in.
func (g *github) Allowance() Allowance {
	one, many := g.client.Allowance(), g.graph(g.client).Allowance()
	calls := one.Calls + many.Calls
	if one.Limit == 0 {
		one = many
	}
	one.Calls = calls
	return one
}

// graphAt is where questions go.
func (g *github) graphAt() *url.URL {
	at := *g.base
	at.Path = strings.TrimSuffix(at.Path, "/v3") + "/graphql"
	return &at
}

// get returns a repository of the batch: nil where it has to be asked for by
// itself, as only that answer says what is wrong.
func (b *githubBatch) get(ctx context.Context, name string) (*githubRepo, error) {
	b.once.Do(func() { b.known, b.err = b.ask(ctx) })
	return b.known[name], b.err
}

// ask asks the question. A limit or a refused token is an error; what else fails
// leaves all of the batch to be asked for one by one.
func (b *githubBatch) ask(ctx context.Context) (map[string]*githubRepo, error) {
	var answer struct {
		Data   map[string]*githubNode `json:"data"`
		Errors []struct {
			Type string `json:"type"`
		} `json:"errors"`
	}

	body, err := json.Marshal(map[string]string{"query": b.question()})
	if err != nil {
		return nil, err
	}
	head, err := b.asker.retry(ctx, question{at: b.github.graphAt(), method: http.MethodPost, body: body}, &answer)
	if r := (*Refusal)(nil); err != nil && (ctx.Err() != nil || errors.As(err, &r) && (r.Code == RateLimited || r.Code == TokenRefused)) {
		return nil, err
	} else if err != nil {
		return nil, nil
	}

	// A limit that is used up is told in an answer of status 200.
	for _, e := range answer.Errors {
		if e.Type == "RATE_LIMITED" {
			_, _, reset := githubLimits(head)
			r := b.asker.budget.later(b.asker.ours(reset).Add(time.Second))
			b.asker.budget.pause(r.Until)
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

// question is the text of the question:
//
//	query{r0:repository(owner:"acme",name:"app",followRenames:true){...f} ...} fragment f on Repository{...}
func (b *githubBatch) question() string {
	var text strings.Builder
	text.WriteString("query{")
	for i, name := range b.names {
		owner, repo, _ := strings.Cut(name, "/")
		fmt.Fprintf(&text, "%s:repository(owner:%q,name:%q,followRenames:true){...f} ", alias(i), owner, repo)
	}
	text.WriteString("} fragment f on Repository{" + githubFields + "}")
	return text.String()
}

// alias is the name of a repository in a question and its answer.
func alias(i int) string { return fmt.Sprint("r", i) }
