// Command assemble makes the parts of a release that need a program: the list of modules, their
// licences, and the image.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "assemble:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "sbom":
		return printSBOM(os.Stdout, args[1])
	case len(args) == 3 && args[0] == "licences":
		return printLicences(os.Stdout, args[1], args[2])
	case len(args) == 6 && args[0] == "image":
		return writeImage(image{version: args[1], arch: args[2], root: args[3], program: args[4]}, args[5])
	}
	return fmt.Errorf("want sbom PROGRAM, licences PROGRAM SOURCE, or image VERSION ARCH ROOT PROGRAM FILE")
}

// modules returns the modules of a program, sorted by path.
func modules(program string) ([]*debug.Module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	for i, m := range info.Deps {
		info.Deps[i] = cmp.Or(m.Replace, m)
	}
	slices.SortFunc(info.Deps, func(a, b *debug.Module) int { return cmp.Compare(a.Path, b.Path) })
	return info.Deps, nil
}

// component is a module in a CycloneDX document.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// printSBOM prints a CycloneDX document of the modules of a program.
func printSBOM(w io.Writer, program string) error {
	deps, err := modules(program)
	if err != nil {
		return err
	}
	parts := make([]component, 0, len(deps))
	for _, m := range deps {
		parts = append(parts, component{"library", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": parts,
		"metadata": map[string]any{"component": map[string]string{"type": "application", "name": "shoal", "version": os.Getenv("VERSION")}},
	})
}

// printLicences prints the licence files of a program's modules. A module without one is an
// error, because it must not be shipped. source is the directory of go.mod.
func printLicences(w io.Writer, program, source string) error {
	deps, err := modules(program)
	if err != nil {
		return err
	}
	for _, m := range deps {
		cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", m.Path)
		cmd.Dir, cmd.Stderr = source, os.Stderr
		dir, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("module %s: %w", m.Path, err)
		}
		files, err := licenceFiles(strings.TrimSpace(string(dir)))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("module %s: %d licence files, %w", m.Path, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "==== %s %s: %s\n\n%s\n\n", m.Path, m.Version, filepath.Base(file), strings.TrimSpace(string(text)))
		}
	}
	return nil
}

// licenceFiles returns the licence files in the top directory of a module.
func licenceFiles(dir string) (files []string, err error) {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		name := strings.ToUpper(e.Name())
		if !e.IsDir() && (strings.HasPrefix(name, "LICEN") || strings.HasPrefix(name, "COPYING") || strings.HasPrefix(name, "NOTICE")) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}

// epoch returns SOURCE_DATE_EPOCH, the time of all files in a release.
func epoch() (int64, error) {
	return strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
}
