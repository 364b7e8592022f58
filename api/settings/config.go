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

// config says which configuration counts, what it does, and whose file is
// another one. It shows paths of properties, never a value.
func (p *Pages) config(ctx context.Context, v *layout.Visit) error {
	by, err := account.AsOwner(v.Viewer)
	if err != nil {
		return err
	}

	r, err := p.Config.Configuration(ctx, by)
	if err != nil {
		return err
	}

	// By what it does, the dangerous first: a file that is accepted may still not do what one thinks.
	type list struct {
		Name, About string
		Mark        mark
		Rows        []config.Error
	}

	type file struct {
		*configure.NodeFile
		Mark         mark
		Loaded, Told layout.When
	}

	data := struct {
		*configure.ConfigurationResponse
		Since layout.When
		Has   string // of how many things it has
		Lists []list
		Rows  []file
	}{ConfigurationResponse: r, Since: p.when(r.At), Has: layout.Counted(r.Connections, "connection", "connections") + ", " + layout.Counted(r.Contexts, "search context", "search contexts"), Lists: []list{
		{"Unsafe", "These settings weaken security, and they are in effect. Check that you want each.", warn("unsafe"), r.Effects.Unsafe},
		{"Accepted without an effect", "These do nothing in this version.", busy("no effect"), r.Effects.None},
		{"Works", "These have an effect.", good("works"), r.Effects.Works},
	}}

	// In force unless something is wrong, the worst first.
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

// contexts is the list of search contexts.
func (p *Pages) contexts(ctx context.Context, v *layout.Visit) error {
	// As the viewer may see them: the counts are of repositories that he may search.
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
		// With a blank behind it, so that the query goes on from there.
		filter := "context:" + query.Quote(c.Name)
		rows[i] = row{c, filter, "/search?" + url.Values{"query": {filter + " "}}.Encode(), layout.Counted(c.Repos, "repository", "repositories")}
	}
	return p.show(v, "contexts", "Search contexts", contextsTemplate, rows)
}
