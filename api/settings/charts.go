package settings

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node"
)

// chart is a value on the overview with a drawing.
type chart struct {
	Name, Value, About, URL string
	Bars                    []rect
}

// rect is a part of a drawing. A drawing is 200 wide and 40 high.
type rect struct {
	X, Y, W, H float64
	Class      string // main, good, warn, bad or dim; "" for the background
}

// The size of a drawing and its bars.
const (
	chartWidth, chartHeight = 200.0, 40.0
	barHeight               = 10.0
	chartGap                = 2.0
)

// part is a share of a bar, or a column.
type part struct {
	size  float64
	class string
}

// barChart draws the parts of a whole side by side. What they leave of the whole is background.
func barChart(whole float64, parts ...part) []rect {
	out := []rect{{0, chartHeight - barHeight, chartWidth, barHeight, ""}}
	at := 0.0
	for _, p := range parts {
		if p.size <= 0 || whole <= 0 {
			continue
		}
		w := min(chartWidth*p.size/whole, chartWidth-at)
		out = append(out, rect{at, chartHeight - barHeight, w, barHeight, p.class})
		at += w
	}
	return out
}

// columnChart draws each part as a column, the largest at full height.
func columnChart(parts []part) []rect {
	largest := 0.0
	for _, p := range parts {
		largest = max(largest, p.size)
	}
	if largest == 0 {
		return barChart(0)
	}

	// Leave room for eight columns, so that a single one does not fill the drawing.
	room := chartWidth / float64(max(len(parts), 8))
	out := make([]rect, len(parts))
	for i, p := range parts {
		h := max(2, chartHeight*p.size/largest)
		out[i] = rect{float64(i) * room, chartHeight - h, max(1, room-chartGap), h, p.class}
	}
	return out
}

// charts returns the charts of the overview.
func charts(s *node.StatusResponse, owner bool) []chart {
	alive, bytes := 0, int64(0)
	var health, holds []part
	for _, m := range s.Members {
		class := "bad"
		if m.Health == "alive" {
			class = "good"
			alive++
		}
		health = append(health, part{1, class})
		holds = append(holds, part{float64(m.Bytes), "main"})
		bytes += m.Bytes
	}

	// Sort healthy nodes first, and large ones: the order of ids says nothing to a reader.
	slices.SortFunc(health, func(a, b part) int { return cmp.Compare(b.class, a.class) })
	slices.SortFunc(holds, func(a, b part) int { return cmp.Compare(b.size, a.size) })

	repos := s.Repos
	out := []chart{
		{"Nodes", fmt.Sprintf("%d of %d answer", alive, len(s.Members)), "one block a node", "/settings/nodes", columnChart(health)},
		{"Repositories", fmt.Sprintf("%s of %s indexed", layout.Grouping(repos.Indexed), layout.Grouping(repos.Total)), layout.Grouping(repos.Failed) + " failed", "/settings/repos",
			barChart(float64(repos.Total), part{float64(repos.Indexed), "main"}, part{float64(min(repos.Failed, repos.Total-repos.Indexed)), "bad"})},
		{"Index", layout.Size(bytes), "one column a node", "/settings/nodes", columnChart(holds)},
	}

	// Disk usage reveals repositories that the viewer may not see.
	if disk := s.Storage; owner {
		used := disk.DiskTotal - disk.DiskFree
		out = append(out, chart{"Disk of this node", layout.Size(disk.DiskFree) + " free", "index, mirrors, others", "/settings/nodes", barChart(float64(disk.DiskTotal),
			part{float64(disk.ShardBytes), "main"}, part{float64(disk.MirrorBytes), "good"}, part{float64(used - disk.ShardBytes - disk.MirrorBytes), "dim"})})
	}
	return out
}
