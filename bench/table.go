package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Part is one part of a report.
type Part struct {
	Title   string
	Notes   []string
	Columns []string
	Rows    [][]string
}

func (p *Part) row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = cell(c)
	}
	p.Rows = append(p.Rows, row)
}

func (p *Part) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// cell formats a value of a table: a duration in milliseconds or seconds, a ratio with a cross, bytes in
// MB, and whether a target is met.
func cell(v any) string {
	switch v := v.(type) {
	case time.Duration:
		if v < time.Millisecond {
			return fmt.Sprintf("%.2f ms", float64(v)/1e6)
		}
		if v < 10*time.Second {
			return fmt.Sprintf("%.1f ms", float64(v)/1e6)
		}
		return fmt.Sprintf("%.1f s", v.Seconds())

	case ratio:
		return fmt.Sprintf("%.3g×", float64(v))
	case bytesize:
		return fmt.Sprintf("%.1f MB", float64(v)/1e6)

	case float64:
		return fmt.Sprintf("%.3g", v)
	case bool:
		if v {
			return "met"
		}
		return "missed"
	}

	return fmt.Sprint(v)
}

type (
	ratio    float64
	bytesize int64
)

// Text returns the part as Markdown.
func (p *Part) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", p.Title)
	if len(p.Rows) > 0 {
		fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(p.Columns, " | "), strings.Repeat("---|", len(p.Columns)))
		for _, row := range p.Rows {
			escaped := make([]string, len(row))
			for i, c := range row {
				escaped[i] = strings.ReplaceAll(c, "|", `\|`)
			}

			fmt.Fprintf(&b, "| %s |\n", strings.Join(escaped, " | "))
		}

		b.WriteByte('\n')
	}

	for _, n := range p.Notes {
		fmt.Fprintf(&b, "* %s\n", n)
	}
	b.WriteByte('\n')
	return b.String()
}

func median(ds []time.Duration) time.Duration {
	return quantile(ds, 0.5)
}

// quantile returns the q-quantile of ds; 0 if ds is empty.
func quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(ds))
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(len(sorted)-1, max(0, i))]
}

// exponent returns e of the best fit y = c·x^e, by least squares of logarithms. It ignores points that are
// not positive, and returns NaN if less than two different ones are left.
func exponent(xs, ys []float64) float64 {
	var sx, sy, sxx, sxy, n float64
	for i := range xs {
		if xs[i] <= 0 || ys[i] <= 0 {
			continue
		}

		// In logarithms a power is a line, and the exponent its slope.
		x, y := math.Log(xs[i]), math.Log(ys[i])
		sx, sy, sxx, sxy, n = sx+x, sy+y, sxx+x*x, sxy+x*y, n+1
	}

	if n < 2 || n*sxx == sx*sx {
		return math.NaN()
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
