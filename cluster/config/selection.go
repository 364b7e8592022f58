package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// selectors are the properties that select what a connection lists, in the words of a sentence.
// topics narrows the selection; the others add to it.
var selectors = []struct{ property, text string }{
	{"all", "everything there"},
	{"orgs", "organisations"},
	{"groups", "groups with their subgroups"},
	{"workspaces", "workspaces"},
	{"projects", "projects"},
	{"users", "users"},
	{"repos", "repositories"},
	{"topics", "of these, with topics"},
}

// Selection describes what a connection lists and leaves out, in phrases without secrets. It does
// not ask the host.
func Selection(c Connection) (lists, leavesOut []string) {
	var ignored []string
	for _, x := range (&File{Connections: []Connection{c}}).ignoredProperties() {
		ignored = append(ignored, strings.TrimPrefix(x.Path, childPath("connections", c.Shared().Name)+"."))
	}

	var file map[string]any
	if err := json.Unmarshal([]byte(c.Shared().Raw), &file); err != nil {
		return nil, nil // cannot happen: Parse made Raw
	}

	if g, ok := c.(*Git); ok {
		return []string{withoutUser(g.URL)}, nil
	}

	// A property selects if it is true or a list that is not empty.
	for _, s := range selectors {
		if slices.Contains(ignored, s.property) {
			continue
		}
		switch v := file[s.property].(type) {
		case bool:
			if v {
				lists = append(lists, s.text)
			}

		case []any:
			if len(v) > 0 {
				lists = append(lists, s.text+" "+joinFirst(v))
			}
		}
	}

	// A Gerrit connection without projects lists all.
	if len(lists) == 0 && c.Kind() == KindGerrit {
		lists = []string{"all projects"}
	}

	// Describe what is left out; for a size its bounds.
	exclude, _ := file["exclude"].(map[string]any)
	for _, property := range []string{"archived", "forks", "disabled", "hidden", "readOnly", "userOwnedProjects", "projects", "repos", "topics", "size"} {
		switch v := exclude[property].(type) {
		case bool:
			if v && !slices.Contains(ignored, "exclude."+property) {
				leavesOut = append(leavesOut, property)
			}

		case []any:
			if len(v) > 0 {
				leavesOut = append(leavesOut, property+" "+joinFirst(v))
			}
		case map[string]any:
			leavesOut = append(leavesOut, property+" "+sizesOutside(v))
		}
	}
	return lists, leavesOut
}

// isTooLargeForAll reports whether the property all has no effect: gitlab.com is too large to be
// listed completely.
func isTooLargeForAll(c *GitLab) bool { return c.URL == "" || hostOf(c.URL) == "gitlab.com" }

// joinFirst joins the first members of a list, and says how many more there are.
func joinFirst(list []any) string {
	const maxNamed = 10
	var names []string
	for _, v := range list[:min(maxNamed, len(list))] {
		names = append(names, fmt.Sprint(v))
	}
	text := strings.Join(names, ", ")
	if more := len(list) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// sizesOutside describes the sizes outside a range.
func sizesOutside(size map[string]any) string {
	bytes := func(v any) string { n, _ := v.(float64); return strconv.FormatFloat(n, 'f', -1, 64) + " bytes" }
	var bounds []string
	if v, ok := size["min"]; ok {
		bounds = append(bounds, "below "+bytes(v))
	}
	if v, ok := size["max"]; ok {
		bounds = append(bounds, "above "+bytes(v))
	}
	return strings.Join(bounds, " and ")
}

// withoutUser returns a URL without user name and password.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}

	u.User = nil
	return u.String()
}
