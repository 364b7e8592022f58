package query

import "time"

// dates are the forms of dates that filters accept, with the period that each one names. A date
// without a zone is in UTC.
var dates = []struct {
	layout              string
	years, months, days int
}{
	{layout: time.RFC3339},
	{layout: "2006-01-02T15:04Z07:00"},
	{layout: "2006-01-02T15:04:05"},
	{layout: "2006-01-02T15:04"},
	{layout: "2006-01-02", days: 1},
	{layout: "2006-01", months: 1},
	{layout: "2006", years: 1},
}

// parseDate returns the first and the last second of the period that a date names, in UTC; ok is
// false if the text has none of the forms.
func parseDate(text string) (first, last time.Time, ok bool) {
	for _, form := range dates {
		first, err := time.Parse(form.layout, text)
		if err != nil {
			continue
		}

		last := first
		if end := first.AddDate(form.years, form.months, form.days); end.After(first) {
			last = end.Add(-time.Second)
		}

		// In UTC the year may differ. A year that has not four digits cannot be written as a date.
		first, last = first.UTC(), last.UTC()
		return first, last, min(first.Year(), last.Year()) >= 0 && last.Year() <= 9999
	}
	return time.Time{}, time.Time{}, false
}
