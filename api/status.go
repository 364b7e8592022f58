package api

import (
	"bytes"
	"context"
	"sort"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/shoalsearch/shoal/node"
)

type statusJSON struct {
	Version      string           `json:"version"`
	Node         string           `json:"node"`
	Leader       string           `json:"leader"`
	CatalogIndex uint64           `json:"catalogIndex"`
	CatalogAgeMs int64            `json:"catalogAgeMs"`
	Members      []memberJSON     `json:"members"`
	Repos        repoCountsJSON   `json:"repos"`
	Jobs         jobCountsJSON    `json:"jobs"`
	Connections  []connectionJSON `json:"connections"`
	Running      []jobJSON        `json:"running"`
	Failed       []jobJSON        `json:"failed"`
	Config       configJSON       `json:"config"`
	Storage      storageJSON      `json:"storage"`
	Placement    placementJSON    `json:"placement"`
	Warnings     []string         `json:"warnings"`
}

type placementJSON struct {
	Groups          int      `json:"groups"`
	UnderReplicated int      `json:"underReplicated"`
	Short           []string `json:"short"`
	Moves           int      `json:"moves"`
	Hot             int      `json:"hot"`
}

type memberJSON struct {
	ID       string  `json:"id"`
	Address  string  `json:"address"`
	API      string  `json:"api"`
	Zone     string  `json:"zone"`
	Role     string  `json:"role"`
	Health   string  `json:"health"`
	Draining bool    `json:"draining"`
	Weight   float64 `json:"weight"`
	Version  string  `json:"version"`
	Groups   int     `json:"groups"`
	Bytes    int64   `json:"bytes"`
	Applied  uint64  `json:"applied"`
	Lag      uint64  `json:"lag"`
}

type repoCountsJSON struct {
	Total   int `json:"total"`
	Indexed int `json:"indexed"`
	Failed  int `json:"failed"`
}

type jobCountsJSON struct {
	Pending int `json:"pending"`
	Running int `json:"running"`
	Failed  int `json:"failed"`
}

type connectionJSON struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	State    string   `json:"state"`
	Message  string   `json:"message"`
	Warnings []string `json:"warnings"`
	Repos    int      `json:"repos"`
	SyncedAt string   `json:"syncedAt,omitempty"`
}

type jobJSON struct {
	Kind      string `json:"kind"`
	Subject   string `json:"subject"`
	Node      string `json:"node"`
	Attempt   int    `json:"attempt"`
	StartedAt string `json:"startedAt,omitempty"`
	Deadline  string `json:"deadline,omitempty"`
	Step      string `json:"step"`
	Done      int64  `json:"done"`
	Total     int64  `json:"total"`
	Bytes     int64  `json:"bytes"`
	Error     string `json:"error"`
	NextTry   string `json:"nextTry,omitempty"`
}

type configJSON struct {
	Path      string   `json:"path"`
	Hash      string   `json:"hash"`
	LoadedAt  string   `json:"loadedAt,omitempty"`
	Errors    []string `json:"errors"`
	RefusedAt string   `json:"refusedAt,omitempty"`
}

type storageJSON struct {
	Shards      int   `json:"shards"`
	ShardBytes  int64 `json:"shardBytes"`
	MirrorBytes int64 `json:"mirrorBytes"`
	Quarantined int   `json:"quarantined"`
	DiskFree    int64 `json:"diskFree"`
	DiskTotal   int64 `json:"diskTotal"`
}

// list is s, or the empty list for nil: JSON has a list in any case.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// status is GET /api/status.
func (s *Server) status(ctx context.Context, c *call) error {
	r, err := s.node.Status(ctx, c.viewer, node.StatusRequest{})
	if err != nil {
		return err
	}
	out := statusJSON{
		Version: r.Version, Node: r.Node, Leader: r.Leader, CatalogIndex: r.CatalogIndex, CatalogAgeMs: r.CatalogAge.Milliseconds(),
		Members: make([]memberJSON, len(r.Members)), Repos: repoCountsJSON(r.Repos), Jobs: jobCountsJSON(r.Jobs),
		Connections: make([]connectionJSON, len(r.Connections)), Running: jobsOf(r.Running), Failed: jobsOf(r.Failed),
		Config:  configJSON{r.Config.Path, r.Config.Hash, stamp(r.Config.LoadedAt), list(r.Config.Errors), stamp(r.Config.RefusedAt)},
		Storage: storageJSON(r.Storage), Warnings: list(r.Warnings),
		Placement: placementJSON{r.Placement.Groups, r.Placement.UnderReplicated, list(r.Placement.Short), r.Placement.Moves, r.Placement.Hot},
	}
	for i, m := range r.Members {
		out.Members[i] = memberJSON(m)
	}
	for i, k := range r.Connections {
		out.Connections[i] = connectionJSON{k.Name, k.Type, k.State, k.Message, list(k.Warnings), k.Repos, stamp(k.SyncedAt)}
	}
	return c.json(out)
}

func jobsOf(jobs []node.JobStatus) []jobJSON {
	out := make([]jobJSON, len(jobs))
	for i, j := range jobs {
		out[i] = jobJSON{j.Kind, j.Subject, j.Node, j.Attempt, stamp(j.Started), stamp(j.Deadline), j.Step, j.Done, j.Total, j.Bytes, j.Error, stamp(j.NextTry)}
	}
	return out
}

// version is GET /api/version.
func (s *Server) version(_ context.Context, c *call) error {
	return c.json(struct {
		Version string `json:"version"`
	}{s.opt.Version})
}

// health is GET /api/health: the process answers.
func (s *Server) health(_ context.Context, c *call) error {
	return c.json(struct {
		Status string `json:"status"`
	}{"ok"})
}

// live is GET /livez: the process answers, whatever its state.
func (s *Server) live(_ context.Context, c *call) error {
	c.mime, c.body = mimeText, []byte("ok\n")
	return nil
}

// ready is GET /readyz: a load balancer should send requests here.
func (s *Server) ready(_ context.Context, c *call) error {
	r := s.node.Ready()
	select {
	case <-s.leaving:
		r.Ready, r.Reasons = false, append(r.Reasons, "stopping")
	default:
	}
	if !r.Ready {
		return &failure{Status: 503, Code: codeNotReady, Message: "Not ready: " + strings.Join(r.Reasons, "; ")}
	}
	c.mime, c.body = mimeText, []byte("ok\n")
	return nil
}

// models is GET /api/models.
func (s *Server) models(ctx context.Context, c *call) error {
	models, err := s.node.Models(ctx, c.viewer)
	if err != nil {
		return err
	}
	type modelJSON struct {
		Provider    string `json:"provider"`
		Model       string `json:"model"`
		DisplayName string `json:"displayName,omitempty"`
	}
	out := make([]modelJSON, len(models))
	for i, m := range models {
		out[i] = modelJSON(m)
	}
	return c.json(out)
}

// metrics is GET /metrics in the text format of Prometheus.
func (s *Server) metrics(_ context.Context, c *call) error {
	var families []*dto.MetricFamily
	var gathering error
	if s.opt.Gatherer != nil {
		families, gathering = s.opt.Gatherer.Gather()
	}
	if gathering != nil { // what could be gathered is still shown
		s.log.Warn("gather metrics", "error", gathering)
	}
	sort.Slice(families, func(i, k int) bool { return families[i].GetName() < families[k].GetName() })
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var b bytes.Buffer
	enc := expfmt.NewEncoder(&b, format)
	for _, family := range families {
		if err := enc.Encode(family); err != nil {
			return err
		}
	}
	c.mime, c.body = string(format), b.Bytes()
	return nil
}
