package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

func (h *house) print() {
	// Columns, so that two runs can be compared line by line.
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	lines := sortedValues(h.functions, func(f function) int { return f.lines })
	toks := sortedValues(h.functions, func(f function) int { return f.tokens })
	cyc := sortedValues(h.functions, func(f function) int { return f.cyclomatic })
	files := sortedValues(h.fileSizes, func(f size) int { return f.n })
	faces := sortedValues(h.interfaces, func(f size) int { return f.n })

	row("lines of the product", "%d", h.lines)
	row("lines of tests, of each line of product", "%d, %.2f", h.testLines, ratio(h.testLines, h.lines))
	row("tests, fuzz targets, benchmarks", "%d, %d, %d", h.tests, h.fuzzes, h.benchmarks)
	row("packages", "%d", len(h.packages))
	row("functions", "%d", len(lines))
	row("lines of a function: median, p90, p99, max", "%d, %d, %d, %d", percentileOf(lines, 50), percentileOf(lines, 90), percentileOf(lines, 99), percentileOf(lines, 100))
	row("functions over 60, over 40 lines", "%.1f %%, %d", percent(countOver(lines, 60), len(lines)), countOver(lines, 40))
	row("tokens of a function: median, p90, p99, max", "%d, %d, %d, %d", percentileOf(toks, 50), percentileOf(toks, 90), percentileOf(toks, 99), percentileOf(toks, 100))

	row("tokens of a line of code", "%.1f", ratio(h.tokens, h.codeLines))
	row("blank lines in bodies", "%.1f %% (%d of %d)", percent(h.bodyBlank, h.bodyLines), h.bodyBlank, h.bodyLines)
	row("comment lines in bodies", "%.1f %% (%d)", percent(h.bodyComment, h.bodyLines), h.bodyComment)
	row("functions with over 12 lines without either", "%d", h.dense)
	row("comment lines in all", "%.1f %%", percent(h.commentLines, h.lines))
	row("exported functions with a comment", "%.0f %%", percent(h.documented, h.exported))
	row("files over 500, over 800, longest", "%d, %d, %d", countOver(files, 500), countOver(files, 800), percentileOf(files, 100))

	row("branches (McCabe) over 15, max", "%d (%.1f %%), %d", countOver(cyc, 15), percent(countOver(cyc, 15), len(cyc)), percentileOf(cyc, 100))
	row("functions of more than five parameters", "%.2f %%", percent(h.overFive, len(lines)))
	row("interfaces, of at most three methods, largest", "%d, %d, %d", len(faces), len(faces)-countOver(faces, 3), percentileOf(faces, 100))
	row("structs with JSON names in api and cmd", "%d", len(h.jsonStructs))
	row("package variables that are no errors, init", "%d, %d", h.vars, h.inits)
	row("any in a thousand lines", "%.1f", ratio(1000*h.anys, h.lines))
	row("panics, gotos, sleeps in tests", "%d, %d, %d", h.panics, h.gotos, h.sleeps)
	row("lines over 120 columns", "%.1f %%", percent(h.wide, h.lines))
	w.Flush()

	fmt.Println()
	h.printAreas(w)

	// The largest packages come first.
	fmt.Fprintln(w, "package\tlines\tfiles\texported\tlargest knot\ttests/product")
	rooms := slices.SortedFunc(maps.Values(h.packages), func(a, b *room) int { return cmp.Compare(b.lines, a.lines) })
	for _, p := range rooms {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d of %d\t%.2f\n", p.dir, p.lines, len(p.files), p.exported, p.knot, p.typedFiles, ratio(p.testLines, p.lines))
	}

	w.Flush()

	fmt.Println("\nmost exported methods, promoted ones too")
	printLargest(h.methods, 10)
	fmt.Println("\nnames of types in more than two packages")
	crowded := h.repeatedTypeNames()
	printLargest(crowded, len(crowded))
	fmt.Println("\nlargest interfaces")
	printLargest(h.interfaces, 5)
	fmt.Println("\nlongest functions")

	var long []size
	for _, f := range h.functions {
		long = append(long, size{f.name, f.lines})
	}

	printLargest(long, 15)
	fmt.Println("\nmost branches")
	var tangled []size
	for _, f := range h.functions {
		tangled = append(tangled, size{f.name, f.cyclomatic})
	}

	printLargest(tangled, 10)
}

// printAreas compares each area with its earlier size.
func (h *house) printAreas(w io.Writer) {
	lines, tests := map[string]int{}, map[string]int{}
	for _, p := range h.packages {
		lines[p.area] += p.lines
		tests[p.area] += p.testLines
	}
	fmt.Fprintln(w, "area\tbefore\tnow\tchange\ttests")
	for _, a := range areas {
		fmt.Fprintf(w, "%s\t%d\t%d\t%+d\t%d\n", a.name, a.before, lines[a.name], lines[a.name]-a.before, tests[a.name])
	}
	fmt.Fprintln(w)
}

func printLargest(sizes []size, most int) {
	slices.SortFunc(sizes, func(a, b size) int { return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name)) })
	for _, s := range sizes[:min(most, len(sizes))] {
		fmt.Printf("%6d  %s\n", s.n, s.name)
	}
}

func sortedValues[T any](all []T, of func(T) int) []int {
	out := make([]int, len(all))
	for i, x := range all {
		out[i] = of(x)
	}
	slices.Sort(out)
	return out
}

func percentileOf(sorted []int, percentile int) int {
	if len(sorted) == 0 {
		// The nearest rank, so the value is in the list.
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*percentile/100)]
}

func countOver(sorted []int, limit int) int {
	i, _ := slices.BinarySearch(sorted, limit+1)
	return len(sorted) - i
}

func ratio(a, b int) float64   { return float64(a) / float64(max(1, b)) }
func percent(a, b int) float64 { return 100 * ratio(a, b) }
