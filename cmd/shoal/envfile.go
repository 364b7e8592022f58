package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/shoalsearch/shoal/cluster/config"
)

// assignment matches a line of an environment file, as docker, compose and systemd read it.
var assignment = regexp.MustCompile(`^\s*(export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$`)

// variableReport says what a node does with a variable of the environment.
type variableReport struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Good    bool   `json:"good"` // false: its value stops the start
}

// setting is a variable of an environment file.
type setting struct{ name, value string }

// readEnvFile reads the variables of a file, without the quotes around values. It skips lines without a
// variable. exported has the names of the variables whose line begins with "export".
func readEnvFile(path string) (all []setting, exported []string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := assignment.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		if m[1] != "" {
			exported = append(exported, m[2])
		}
		value := strings.TrimSpace(m[3])
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		all = append(all, setting{m[2], value})
	}
	return all, exported, lines.Err()
}

// checkEnvFile prints what a node does with each variable of a file, and warns about exported variables
// and about secrets that the configuration names and the file lacks. good is false if a variable would
// stop a node.
func checkEnvFile(cmd *cobra.Command, path string, named []string, report *checkReport) (good bool, err error) {
	all, exported, err := readEnvFile(path)
	if err != nil {
		return false, err
	}
	good = true
	flags := flagsOfVariables()
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "\n%s: %d variables\n", path, len(all))
	for _, s := range all {
		verdict, ok := variableVerdict(s, flags, named)
		good = good && ok
		report.Variables = append(report.Variables, variableReport{s.name, verdict, ok})
		fmt.Fprintf(out, "  %s: %s\n", s.name, verdict)
	}
	report.Exported = exported
	if len(exported) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: systemd and docker skip lines that begin with \"export\": %s\n", path, strings.Join(exported, ", "))
	}
	report.Unset = warnMissing(cmd.ErrOrStderr(), path, all, named)
	return good, nil
}

// warnMissing warns about the secrets that the configuration names and the file lacks, and returns them.
// It skips the standard variables of model providers: of several one is enough.
func warnMissing(w io.Writer, path string, all []setting, named []string) (missing []string) {
	for _, name := range named {
		isStandard := slices.ContainsFunc(config.Variables(), func(v config.Variable) bool { return v.Name == name })
		if !isStandard && !slices.ContainsFunc(all, func(s setting) bool { return s.name == name && s.value != "" }) {
			missing = append(missing, name)
			fmt.Fprintf(w, "%s: warning: the configuration names %s, which is not set here\n", path, name)
		}
	}
	return missing
}

// warnUnset warns about the secrets that the configuration names and this shell lacks, and returns them.
// A node may still have them.
func warnUnset(w io.Writer, path string, named []string, getenv func(string) string) (unset []string) {
	for _, name := range named {
		if getenv(name) == "" {
			unset = append(unset, name)
			fmt.Fprintf(w, "%s: %s is not set in this shell; each node needs it\n", path, name)
		}
	}
	return unset
}

// variableVerdict says what a node does with a variable. ok is false if the value would stop its
// start.
func variableVerdict(s setting, flags map[string]string, named []string) (verdict string, ok bool) {
	for _, v := range config.Refused() {
		if err := v.Check(s.value); v.Name == s.name && err != nil {
			return fmt.Sprintf("stops the start: %v", err), false
		}
	}
	for _, v := range config.Variables() {
		if v.Name == s.name {
			if err := v.Check(s.value); err != nil {
				return fmt.Sprintf("stops the start: %v", err), false
			}
			return "works: " + v.Means, true
		}
	}
	switch flag := flags[s.name]; {
	case flag != "":
		return "works: is " + flag, true
	case slices.Contains(named, s.name):
		return "works: the configuration names it", true
	case slices.Contains(networkVariables, strings.ToUpper(s.name)):
		return "works: the way to code hosts", true
	case config.WhyUnread(s.name) != "":
		return strings.TrimPrefix(config.WhyUnread(s.name), "It has "), true
	}
	if strings.HasPrefix(s.name, "AUTH_EE_") {
		return "no effect: name the provider in identityProviders of the configuration, which may read its secret from this variable", true
	}
	return "no effect: no node reads it", true
}

// networkVariables are the variables that Go or git read to connect to code hosts.
var networkVariables = []string{"ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_DIR", "SSL_CERT_FILE"}

// variablesInUsage matches the variables at the end of a flag's usage.
var variablesInUsage = regexp.MustCompile(`\[([A-Z_, ]+)\]$`)

// flagsOfVariables returns the flags of `shoal serve` by their variables.
func flagsOfVariables() map[string]string {
	flags := map[string]string{}
	newServe(func(string) string { return "" }).Flags().VisitAll(func(f *pflag.Flag) {
		if m := variablesInUsage.FindStringSubmatch(f.Usage); m != nil {
			for name := range strings.SplitSeq(m[1], ", ") {
				flags[name] = "--" + f.Name
			}
		}
	})
	return flags
}

// namedVariables returns the variables that a configuration names as secrets.
func namedVariables(text []byte, f *config.File) (names []string) {
	for _, r := range config.Reaches(text, f) {
		inManager := strings.Contains(r.Secret, "/") // projects/..., which a node reads from a secret manager
		if r.Secret != "" && !inManager && !slices.Contains(names, r.Secret) {
			names = append(names, r.Secret)
		}
	}
	return names
}
