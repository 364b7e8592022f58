package api

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/node/operate"
)

// state is what the routes of health and status need.
type state interface {
	Status(context.Context, catalog.Viewer, node.StatusRequest) (*node.StatusResponse, error)
	Ready() node.ReadyResponse
}

// healthRoutes are the routes of health, status and version.
type healthRoutes struct {
	state   state
	version string
	leaving <-chan struct{} // closed when the server begins to stop
	watches chan struct{}   // has one for each watch of the status that is under way
}

func (a *healthRoutes) rows() []route {
	return []route{
		row("GET", "/api/status", accessRead, statusWatchTime, a.status),
		row("GET", "/api/version", accessOpen, 0, a.tellVersion),
		row("GET", "/api/health", accessOpen, 0, a.health),
		row("GET", "/livez", accessOpen, 0, a.live),
		row("GET", "/readyz", accessOpen, 0, a.ready),
	}
}

type statusJSON struct {
	Version      string           `json:"version"`
	Node         string           `json:"node"`
	Leader       string           `json:"leader"`
	CatalogIndex uint64           `json:"catalogIndex"`
	CatalogAgeMs int64            `json:"catalogAgeMs"`
	Level        levelJSON        `json:"level"`
	Members      []memberJSON     `json:"members"`
	Repos        repoCountsJSON   `json:"repos"`
	Jobs         jobCountsJSON    `json:"jobs"`
	Connections  []connectionJSON `json:"connections"`
	Running      []jobJSON        `json:"running"`
	Failed       []jobJSON        `json:"failed"`
	Config       configJSON       `json:"config"`
	Storage      storageJSON      `json:"storage"`
	Placement    placementJSON    `json:"placement"`
	Tolerates    toleranceJSON    `json:"tolerates"`
	Verdict      verdictJSON      `json:"verdict"`
	Permissions  *permissionsJSON `json:"permissions,omitzero"`
	Warnings     []string         `json:"warnings"`
}

// permissionsJSON is how far code hosts have said who may read what.
type permissionsJSON struct {
	Sync          string                `json:"sync"`
	Hosts         []hostPermissionsJSON `json:"hosts"`
	Unlinked      int                   `json:"unlinked"`
	PeopleRunning int                   `json:"peopleRunning"`
	PeopleLimit   int                   `json:"peopleLimit"`
	ReposRunning  int                   `json:"reposRunning"`
	ReposLimit    int                   `json:"reposLimit"`
}

type hostPermissionsJSON struct {
	Host   string      `json:"host"`
	People answersJSON `json:"people"`
	Repos  answersJSON `json:"repos"`
}

type answersJSON struct {
	Wanted   int    `json:"wanted"`
	Answered int    `json:"answered"`
	Ended    int    `json:"ended"`
	Refused  int    `json:"refused"`
	Failing  int    `json:"failing"`
	Newest   string `json:"newest,omitempty"`
	Oldest   string `json:"oldest,omitempty"`
}

// permissionsOf is nil for nil: who may not know it is not told.
func permissionsOf(s *job.PermissionState) *permissionsJSON {
	if s == nil {
		return nil
	}
	out := &permissionsJSON{s.Sync.String(), []hostPermissionsJSON{}, s.Unlinked, s.PeopleRunning, s.PeopleLimit, s.ReposRunning, s.ReposLimit}
	for _, h := range s.Hosts {
		out.Hosts = append(out.Hosts, hostPermissionsJSON{h.Host, answersOf(&h.People), answersOf(&h.Repos)})
	}
	return out
}

func answersOf(a *job.Answers) answersJSON {
	return answersJSON{a.Wanted, a.Answered, a.Ended, a.Refused, a.Failing, stamp(a.Newest), stamp(a.Oldest)}
}

type placementJSON struct {
	Groups          int      `json:"groups"`
	UnderReplicated int      `json:"underReplicated"`
	Short           []string `json:"short"`
	NoLiveCopy      int      `json:"noLiveCopy"`
	Missing         []string `json:"missing"`
	Moves           int      `json:"moves"`
	Hot             int      `json:"hot"`
}

func placementOf(p *node.PlacementStatus) placementJSON {
	return placementJSON{p.Groups, p.UnderReplicated, list(p.Short), p.NoLiveCopy, list(p.Missing), p.Moves, p.Hot}
}

type levelJSON struct {
	Number   int      `json:"number"`
	Version  string   `json:"version"`
	Next     int      `json:"next"`
	WaitsFor []string `json:"waitsFor"`
}

func levelOf(l node.LevelStatus) levelJSON {
	return levelJSON{l.Number, l.Version, l.Next, list(l.WaitsFor)}
}

type toleranceJSON struct {
	Searches *int `json:"searches,omitzero"`
	Writes   int  `json:"writes"`
}

func toleranceOf(t node.Tolerance) toleranceJSON {
	out := toleranceJSON{Writes: t.Writes}

	// Absent where it is not known yet: 0 would be an alarm.
	if t.Known {
		out.Searches = &t.Searches
	}
	return out
}

type verdictJSON struct {
	State    string `json:"state"`
	Sentence string `json:"sentence"`
}

type memberJSON struct {
	ID       string  `json:"id"`
	Address  string  `json:"address"`
	API      string  `json:"api"`
	Zone     string  `json:"zone"`
	Role     string  `json:"role"`
	Health   string  `json:"health"`
	Draining bool    `json:"draining"`
	Left     int     `json:"left"`
	Drained  bool    `json:"drained"`
	Weight   float64 `json:"weight"`
	Version  string  `json:"version"`
	Level    int     `json:"level"`
	Groups   int     `json:"groups"`
	Bytes    int64   `json:"bytes"`
	Applied  uint64  `json:"applied"`
	Lag      uint64  `json:"lag"`

	ConfigHash    string `json:"configHash"`
	ConfigDiffers bool   `json:"configDiffers"`

	DiskUsed  int    `json:"diskUsed"`
	Searches  int    `json:"searches"`
	StartedAt string `json:"startedAt,omitempty"`
}

func memberOf(m *node.MemberStatus) memberJSON {
	return memberJSON{
		ID: m.ID, Address: m.Address, API: m.API, Zone: m.Zone, Role: m.Role, Health: m.Health, Draining: m.Draining, Left: m.Left, Drained: m.Drained,
		Weight: m.Weight, Version: m.Version, Level: m.Level, Groups: m.Groups, Bytes: m.Bytes, Applied: m.Applied, Lag: m.Lag,
		ConfigHash: m.ConfigHash, ConfigDiffers: m.ConfigDiffers, DiskUsed: m.DiskUsed, Searches: m.Searches, StartedAt: stamp(m.StartedAt),
	}
}

type repoCountsJSON struct {
	Total   int `json:"total"`
	Indexed int `json:"indexed"`
	Failed  int `json:"failed"`

	Unfetchable int `json:"unfetchable"`
}

type jobCountsJSON struct {
	Pending  int `json:"pending"`
	Running  int `json:"running"`
	Failed   int `json:"failed"`
	Retrying int `json:"retrying"`
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
	FileHash  string   `json:"fileHash"`
	Differs   bool     `json:"differs"`
	LoadedAt  string   `json:"loadedAt,omitempty"`
	Errors    []string `json:"errors"`
	RefusedAt string   `json:"refusedAt,omitempty"`
}

func configOf(c *configure.FileStatus) configJSON {
	return configJSON{c.Path, c.Hash, c.FileHash, c.Differs, stamp(c.LoadedAt), list(c.Errors), stamp(c.RefusedAt)}
}

type storageJSON struct {
	Shards      int   `json:"shards"`
	ShardBytes  int64 `json:"shardBytes"`
	MirrorBytes int64 `json:"mirrorBytes"`
	Quarantined int   `json:"quarantined"`
	DiskFree    int64 `json:"diskFree"`
	DiskTotal   int64 `json:"diskTotal"`

	UnknownSymbols int `json:"unknownSymbols"`
}

// list is s, or the empty list for nil: JSON has a list in any case.
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// status is GET /api/status.
func (a *healthRoutes) status(ctx context.Context, c *call) error {
	p := c.params()
	watched := p.flag("watch", false)
	if err := p.err(); err != nil {
		return err
	}
	if watched {
		return a.watch(ctx, c)
	}

	// The route lasts as long as a watch may: one look is quick.
	ctx, cancel := context.WithTimeout(ctx, quickTimeout)
	defer cancel()
	r, err := a.state.Status(ctx, c.viewer, node.StatusRequest{})
	if err != nil {
		return err
	}
	return c.json(statusOf(r))
}

func statusOf(r *node.StatusResponse) *statusJSON {
	out := &statusJSON{
		Version: r.Version, Node: r.Node, Leader: r.Leader, CatalogIndex: r.CatalogIndex, CatalogAgeMs: r.CatalogAge.Milliseconds(),
		Level:   levelOf(r.Level),
		Members: make([]memberJSON, len(r.Members)), Repos: repoCountsJSON(r.Repos), Jobs: jobCountsJSON(r.Jobs),
		Connections: make([]connectionJSON, len(r.Connections)), Running: jobsOf(r.Running), Failed: jobsOf(r.Failed),
		Config:  configOf(&r.Config),
		Storage: storageJSON(r.Storage), Permissions: permissionsOf(r.Permissions), Warnings: list(r.Warnings),
		Placement: placementOf(&r.Placement), Tolerates: toleranceOf(r.Tolerates),
		Verdict: verdictJSON{string(r.Verdict.State), r.Verdict.Sentence},
	}

	for i := range r.Members {
		out.Members[i] = memberOf(&r.Members[i])
	}

	for i, k := range r.Connections {
		out.Connections[i] = connectionOf(&k)
	}
	return out
}

func jobsOf(jobs []operate.JobStatus) []jobJSON {
	out := make([]jobJSON, len(jobs))
	for i := range jobs {
		out[i] = jobOf(&jobs[i])
	}
	return out
}

func jobOf(j *operate.JobStatus) jobJSON {
	return jobJSON{j.Kind, j.Subject, j.Node, j.Attempt, stamp(j.Started), stamp(j.Deadline), j.Step, j.Done, j.Total, j.Bytes, j.Error, stamp(j.NextTry)}
}

// tellVersion is GET /api/version.
func (a *healthRoutes) tellVersion(_ context.Context, c *call) error {
	return c.json(struct {
		Version string `json:"version"`
	}{a.version})
}

// health is GET /api/health: the process answers.
func (a *healthRoutes) health(_ context.Context, c *call) error {
	return c.json(struct {
		Status string `json:"status"`
	}{"ok"})
}

// live is GET /livez: the process answers, whatever its state.
func (a *healthRoutes) live(_ context.Context, c *call) error {
	c.mime, c.body = mimeText, []byte("ok\n")
	return nil
}

// ready is GET /readyz: a load balancer should send requests here.
func (a *healthRoutes) ready(_ context.Context, c *call) error {
	// The server stops before its node does, and the node does not know.
	r := a.state.Ready()
	select {
	case <-a.leaving:
		r.Ready, r.Reasons = false, append(r.Reasons, "stopping")
	default:
	}
	if !r.Ready {
		return &failure{Status: 503, Code: codeNotReady, Message: "Not ready: " + strings.Join(r.Reasons, "; ")}
	}
	c.mime, c.body = mimeText, []byte("ok\n")
	return nil
}
