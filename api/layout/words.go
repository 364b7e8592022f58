package layout

import (
	"fmt"
	"html/template"
	"time"
)

// Size formats a number of bytes: 512 B, 3.4 MB.
func Size(n int64) string {
	f, unit := float64(n), 0
	for ; f >= 999.95 && unit < 6; unit++ {
		f /= 1000
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %cB", f, " kMGTPE"[unit])
}

// Counted formats a number of things: 1 file, 1,234 files.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouping(n) + " " + many
}

// Grouping formats a number with commas between groups of three digits: 1,234.
func Grouping(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Distance says how far a time is from now: "3 hours ago", "in 5 minutes"; "" for the zero time.
func Distance(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if d := t.Sub(now); d >= time.Second {
		return "in " + Span(d)
	}
	d := now.Sub(t)
	if d < time.Minute {
		return "just now"
	}
	return Span(d) + " ago"
}

// When is a time as a page shows it: Text for people, and Stamp for programs and as a tooltip. The
// zero value shows nothing.
type When struct{ Text, Stamp string }

// At returns the When of a time; the zero When for the zero time.
func At(now, t time.Time) When {
	if t.IsZero() {
		return When{}
	}
	return When{Distance(now, t), t.UTC().Format(time.RFC3339)}
}

// element returns the time as HTML.
func (w When) element() template.HTML {
	if w.Text == "" {
		return ""
	}
	// Stamp and Text contain no characters that need escaping.
	return template.HTML(`<time datetime="` + w.Stamp + `" title="` + w.Stamp + `">` + w.Text + `</time>`)
}

// Span formats a duration in its largest unit: "3 hours".
func Span(d time.Duration) string {
	for _, u := range []struct {
		size time.Duration
		name string
	}{{365 * 24 * time.Hour, "year"}, {30 * 24 * time.Hour, "month"}, {24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if d >= u.size {
			return Counted(int(d/u.size), u.name, u.name+"s")
		}
	}
	return Counted(int(d/time.Second), "second", "seconds")
}
