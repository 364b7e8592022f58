package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Chart compares series of values: bars for named cases, lines over numbers.
// The value axis is logarithmic, so that equal ratios are equal lengths.
type Chart struct {
	Unit   string
	Labels []string // one for each case
	Series []Series
	Lines  bool // cases are points of a line
}

// Series is one engine's values, one for each case; 0 where there is none.
type Series struct {
	Name   string
	Values []float64
}

const (
	chartWidth = 900
	labelWidth = 280
	barHeight  = 9
	lineHeight = 320
)

var colours = [...]string{"#0b6e99", "#d9730d", "#6940a5", "#448361", "#ad1a72"}

// SVG draws the chart.
func (c *Chart) SVG() string {
	low, high := c.extent()
	if c.Lines {
		return c.lines(low, high)
	}
	return c.bars(low, high)
}

// extent returns the decades that hold every positive value.
func (c *Chart) extent() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range c.Series {
		for _, v := range s.Values {
			if v > 0 {
				low, high = min(low, math.Log10(v)), max(high, math.Log10(v))
			}
		}
	}

	if math.IsInf(low, 1) {
		return 0, 1
	}

	// The same decade twice would be a chart without a width.
	low, high = math.Floor(low), math.Ceil(high)
	if low == high {
		high++
	}
	return low, high
}

func (c *Chart) bars(low, high float64) string {
	group := barHeight*len(c.Series) + 6
	height := group*len(c.Labels) + 50

	var b strings.Builder
	c.open(&b, height)
	scale := func(v float64) float64 {
		return (math.Log10(v) - low) / (high - low) * (chartWidth - labelWidth - 60)
	}

	// A line for each decade.
	for d := low; d <= high; d++ {
		x := labelWidth + scale(math.Pow(10, d))
		fmt.Fprintf(&b, `<line x1="%.1f" y1="24" x2="%.1f" y2="%d" stroke="#ddd"/><text x="%.1f" y="%d" font-size="10">%g %s</text>`, x, x, height-20, x, height-6, math.Pow(10, d), c.Unit)
	}

	// A value of one decade's beginning would have no length: a bar is one pixel at least.
	for i, label := range c.Labels {
		y := 26 + i*group
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="10" text-anchor="end">%s</text>`, labelWidth-6, y+group/2, html.EscapeString(label))
		for k, s := range c.Series {
			if i < len(s.Values) && s.Values[i] > 0 {
				fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, labelWidth, y+k*barHeight, max(1, scale(s.Values[i])), barHeight-1, colours[k%len(colours)])
			}
		}
	}

	b.WriteString("</svg>\n")
	return b.String()
}

func (c *Chart) lines(low, high float64) string {
	var b strings.Builder
	c.open(&b, lineHeight+60)

	at := func(i int, v float64) (float64, float64) {
		x := 80 + float64(i)*(chartWidth-160)/float64(max(1, len(c.Labels)-1))
		return x, 30 + (high-math.Log10(v))/(high-low)*lineHeight
	}

	// As of bars: equal distances are equal ratios.
	for d := low; d <= high; d++ {
		_, y := at(0, math.Pow(10, d))
		fmt.Fprintf(&b, `<line x1="80" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/><text x="74" y="%.1f" font-size="10" text-anchor="end">%g %s</text>`, y, chartWidth-80, y, y+3, math.Pow(10, d), html.EscapeString(c.Unit))
	}

	for i, label := range c.Labels {
		x, _ := at(i, 1)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" font-size="10" text-anchor="middle">%s</text>`, x, lineHeight+50, html.EscapeString(label))
	}

	// What was not measured leaves a gap in the points, not a point at zero.
	for k, s := range c.Series {
		var points []string
		for i, v := range s.Values {
			if v > 0 {
				x, y := at(i, v)
				points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
			}
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, strings.Join(points, " "), colours[k%len(colours)])
	}

	b.WriteString("</svg>\n")
	return b.String()
}

func (c *Chart) open(b *strings.Builder, height int) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif">`, chartWidth, height)
	for k, s := range c.Series {
		x := labelWidth + k*140
		fmt.Fprintf(b, `<rect x="%d" y="4" width="10" height="10" fill="%s"/><text x="%d" y="13" font-size="11">%s</text>`, x, colours[k%len(colours)], x+14, html.EscapeString(s.Name))
	}
}
