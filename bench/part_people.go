package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// partPeople asks the table of queries of thousands of repositories as somebody
// for whom nothing is enforced, and as people whose grants are.
func partPeople(ctx context.Context, r *run) (*Part, error) {
	p := &Part{Title: "Searches of people whose permissions are enforced (M)",
		Columns: []string{"query", "all, not enforced", "all, granted", "half, granted", "granted / not enforced", ""}}
	root, repos, err := r.corpora.many(ctx)
	if err != nil {
		return nil, err
	}

	open := connection{"type": "git", "url": "file://" + root + "/*"}
	s, _, err := r.indexAnew(ctx, "P", "off", len(repos), map[string]connection{"P": open})
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := s.settled(ctx); err != nil {
		return nil, err
	}

	askers, err := s.hire(ctx, r.configOf("P"), open)
	if err != nil {
		return nil, err
	}

	var all [3][]time.Duration
	for _, q := range baseline() {
		// In turn, so that what else the machine does meets all of them, and each of them
		// first as often as the others: what one leaves to be collected the next one pays.
		var took [3][]time.Duration
		for round := range 3 * r.Repeat {
			for k := range askers {
				i := (round + k) % len(askers)
				_, d, err := askers[i].exchange(ctx, q.body(100, true))
				if err != nil {
					return nil, err
				}
				took[i] = append(took[i], d)
			}
		}

		for i := range took {
			all[i] = append(all[i], took[i]...)
		}
		share := float64(median(took[1])) / float64(median(took[0]))
		p.row(q.Text, median(took[0]), median(took[1]), median(took[2]), ratio(share), share <= 1.05)
	}

	share := float64(median(all[1])) / float64(median(all[0]))
	p.note("%d repositories; each query %d times by each, in turn. Medians of all queries: %s not enforced, %s granted (%s), %s with half of them.",
		len(repos), 3*r.Repeat, cell(median(all[0])), cell(median(all[1])), cell(ratio(share)), cell(median(all[2])))
	return p, nil
}

// hire has permissions enforced, and makes one who sees all repositories
// whatever is enforced, one who was granted all, and one who was granted half.
func (s *server) hire(ctx context.Context, config string, open connection) ([]*server, error) {
	names, err := s.names(ctx)
	if err != nil {
		return nil, err
	}

	unbound, err := s.as(ctx, map[string]any{"name": "all", "allRepositories": true})
	if err != nil {
		return nil, err
	}
	askers := []*server{unbound}
	for i, email := range []string{"all@example.com", "half@example.com"} {
		if err := s.employ(ctx, email, names[:len(names)/(i+1)]); err != nil {
			return nil, err
		}
		a, err := s.as(ctx, map[string]any{"name": email, "user": email})
		if err != nil {
			return nil, err
		}
		askers = append(askers, a)
	}

	// The file is watched: what is enforced takes effect in a moment.
	closed := connection{"enforcePermissions": true}
	for k, v := range open {
		closed[k] = v
	}
	data, err := json.Marshal(map[string]any{
		"environmentOverrides": map[string]any{"PERMISSION_SYNC_ENABLED": map[string]any{"type": "boolean", "value": true}},
		"connections":          map[string]connection{"P": closed},
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, data, 0o600); err != nil {
		return nil, err
	}

	return askers, poll(ctx, time.Minute, 100*time.Millisecond, "permissions to be enforced", func() bool {
		half, err := askers[2].repositories(ctx)
		whole, err2 := askers[1].repositories(ctx)
		return errors.Join(err, err2) == nil && half == len(names)/2 && whole == len(names)
	})
}

// as is the same node for who has a new key.
func (s *server) as(ctx context.Context, body map[string]any) (*server, error) {
	var made struct{ Key string }
	if err := s.send(ctx, "/api/keys", body, &made); err != nil {
		return nil, err
	}
	other := *s
	other.key = made.Key
	return &other, nil
}

// employ makes an account and grants it repositories.
func (s *server) employ(ctx context.Context, email string, names []string) error {
	if err := s.send(ctx, "/api/users", map[string]any{"email": email}, nil); err != nil {
		return err
	}

	// A request has a bound.
	for len(names) > 0 {
		n := min(len(names), 500)
		if err := s.send(ctx, "/api/users/"+email+"/grants", map[string]any{"add": names[:n]}, nil); err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}

// send posts JSON.
func (s *server) send(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return s.post(ctx, path, body, out)
}

// repositories is how many the asker may see.
func (s *server) repositories(ctx context.Context) (int, error) {
	st, err := s.status(ctx)
	return st.Repos.Total, err
}

// names are those of all repositories.
func (s *server) names(ctx context.Context) (names []string, err error) {
	for page := 1; ; page++ {
		var list []struct{ RepoName string }
		if err := s.get(ctx, fmt.Sprintf("/api/repos?perPage=100&page=%d", page), &list); err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return names, nil
		}
		for _, r := range list {
			names = append(names, r.RepoName)
		}
	}
}
