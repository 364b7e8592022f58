package settings

import (
	"context"
	"net/url"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/shard/query"
)

var (
	configTemplate   = parse("config.html")
	contextsTemplate = parse("contexts.html")
)

// config shows the configuration in force, its effects, and the nodes whose file differs. It
// shows names of properties, never their values.
func (p *Pages) config(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	r, err := p.Config.Configuration(ctx, by)
	if err != nil {
		return err
	}

	// The settings that weaken security come first: a valid file may do more than its owner wants.
	type list struct {
		About string
		Mark  mark
		Rows  []config.Error
	}

	type file struct {
		*configure.NodeFile
		Mark         mark
		Loaded, Told layout.When
	}

	data := struct {
		*configure.ConfigurationResponse
		Since layout.When
		Has   string // how many connections and contexts the configuration has
		Lists []list
		Rows  []file
	}{ConfigurationResponse: r, Since: p.when(r.At), Has: layout.Counted(r.Connections, "connection", "connections") + ", " + layout.Counted(r.Contexts, "search context", "search contexts"), Lists: []list{
		{"It weakens security. Check that you want it.", warn("unsafe"), r.Effects.Unsafe},
		{"It does nothing in this version.", busy("no effect"), r.Effects.None},
		{"", good("works"), r.Effects.Works},
	}}

	// A file's mark shows its worst problem.
	for i := range r.Files {
		f := file{NodeFile: &r.Files[i], Mark: good("in force"), Loaded: p.when(r.Files[i].LoadedAt), Told: p.when(r.Files[i].RefusedAt)}

		switch {
		case len(f.Errors) > 0:
			f.Mark = bad("refused")
		case f.Differs:
			f.Mark = warn("differs")
		case f.Path == "":
			f.Mark = busy("none")
		}

		data.Rows = append(data.Rows, f)
	}
	return p.show(v, "config", "Configuration", configTemplate, data)
}

// contexts shows the list of search contexts.
func (p *Pages) contexts(ctx context.Context, v *layout.Visit) error {
	// Contexts counts only the repositories that the viewer may search.
	all, err := p.Config.Contexts(ctx, v.Viewer)
	if err != nil {
		return err
	}

	type row struct {
		configure.ContextInfo
		Filter, URL, Count string
	}

	rows := make([]row, len(all))
	for i, c := range all {
		// After the filter comes a space, so that the user can continue the query.
		filter := "context:" + query.Quote(c.Name)
		rows[i] = row{c, filter, "/search?" + url.Values{"query": {filter + " "}}.Encode(), layout.Counted(c.Repos, "repository", "repositories")}
	}
	return p.show(v, "contexts", "Search contexts", contextsTemplate, rows)
}
