package symbol

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-enry/go-enry/v2"
	"github.com/tailscale/hujson"
)

// Keys of configuration are symbols, which ctags does not find. They must not outnumber the symbols
// of code, so these are left out:
//
//   - files that are generated or locked, larger than maxKeyBytes, or with more than maxKeys keys
//   - keys below elements of a list, and more than maxKeyLevels deep
//   - keys with blanks, as texts that are translated have
//   - libraries that a manifest depends on
//   - keys of objects of Kubernetes, which are the same in all: the object is a symbol with its kind and name
const (
	maxKeyBytes  = 256 << 10
	maxKeys      = 1000
	maxKeyLevels = 3
	maxKeyName   = 100
)

// keyReaders has a row for each language whose keys are symbols.
var keyReaders = map[string]func(*keys, []byte){
	"YAML":               (*keys).readYAML,
	"JSON":               (*keys).readJSON,
	"JSON with Comments": (*keys).readJSON,
	"JSON5":              (*keys).readJSON,
	"TOML":               (*keys).readTOML,
	"INI":                (*keys).readTOML,
	"Java Properties":    (*keys).readTOML,
	"HCL":                (*keys).readHCL,
	"Dockerfile":         (*keys).readDocker,
}

// blockKinds are the kinds of blocks of HCL and of objects of Kubernetes. Blocks and objects of
// other kinds get the kind "key", because a file of symbols has a bounded number of kinds.
var blockKinds = strings.Fields(`check data ephemeral job locals module output provider resource task variable
	configmap cronjob customresourcedefinition clusterrole clusterrolebinding daemonset deployment gateway
	horizontalpodautoscaler ingress kustomization namespace networkpolicy persistentvolume persistentvolumeclaim pod
	poddisruptionbudget replicaset role rolebinding secret service serviceaccount statefulset storageclass`)

// blockKind returns the kind of a block of HCL or an object of Kubernetes, given its word in the
// file.
func blockKind(word string) string {
	if word = strings.ToLower(word); slices.Contains(blockKinds, word) {
		return word
	}
	return "key"
}

// hasKeys reports whether the keys of a file are symbols.
func hasKeys(file, language string) bool {
	return HasKeys(language) && !strings.Contains(path.Base(file), "lock") && !strings.HasSuffix(file, ".min.json")
}

// keys collects the keys of a file.
type keys struct {
	found   []key
	open    []int // indexes in found of the keys that enclose the current line, the deepest last
	tooMany bool  // there are more than maxKeys

	lastLine int // the last line so far that can belong to an open key
}

// key is a symbol.
type key struct {
	name, parent, kind string
	value              string // in YAML, if it is one word
	line, last         int    // first and last line; last is 0 if it is the first one
	depth              int    // in YAML the column, else the number of levels
}

// findKeys calls use with the keys of a file, in their order. It calls it for none if the file is
// generated, too large or has too many keys.
func findKeys(f *File, use func(Symbol)) {
	if len(f.Content) > maxKeyBytes || enry.IsGenerated(f.Path, f.Content) {
		return
	}
	k := &keys{}
	keyReaders[f.Language](k, f.Content)
	if k.tooMany {
		return
	}
	for _, x := range k.found {
		s := Symbol{Name: []byte(x.name), Kind: x.kind, Line: uint32(x.line), End: uint32(x.last)}
		if x.parent != "" {
			s.ParentName, s.ParentKind = []byte(x.parent), "key"
		}
		use(s)
	}
}

// closeKeys ends the open keys of a depth and all deeper ones, in k.lastLine.
func (k *keys) closeKeys(depth int) {
	for n := len(k.open); n > 0 && k.found[k.open[n-1]].depth >= depth; n-- {
		if x := &k.found[k.open[n-1]]; k.lastLine > x.line {
			x.last = k.lastLine
		}
		k.open = k.open[:n-1]
	}
}

// addKey adds a symbol of kind "key" as addSymbol does.
func (k *keys) addKey(name string, line, depth int) {
	k.addSymbol(name, "key", line, depth)
}

// addSymbol closes the keys of a depth and all deeper ones, and adds a symbol, unless keys of its
// sort are left out. The symbol stays open until the next symbol that is not deeper.
func (k *keys) addSymbol(name, kind string, line, depth int) {
	k.closeKeys(depth)
	k.lastLine = line
	parent, level := "", len(k.open)
	if level > 0 {
		outer := k.found[k.open[level-1]]
		parent = strings.TrimPrefix(outer.parent+"."+outer.name, ".")
		if strings.HasSuffix(strings.ToLower(outer.name), "dependencies") { // the key is a library
			return
		}
	}
	switch {
	case level >= maxKeyLevels, name == "", len(name) > maxKeyName, strings.ContainsAny(name, " \t\"'`"):
		return
	case len(k.found) >= maxKeys:
		k.tooMany = true
		return
	}
	k.found = append(k.found, key{name: name, parent: parent, kind: kind, line: line, depth: depth})
	k.open = append(k.open, len(k.found)-1)
}

// yamlKey matches a line with a key, yamlName the value of a key if it is one word, and yamlBlock
// the end of a line with a key whose value is a text on the lines below.
var (
	yamlKey   = regexp.MustCompile(`^( *)("[^"]*"|'[^']*'|[^\s#'"{}\[\],&*!|>%@-][^#'"{}\[\],&*!|>%@]*?|[\w.$/-]+)\s*:(?:\s|$)`)
	yamlName  = regexp.MustCompile(`:\s+["']?([\w.-]+)["']?\s*(?:#.*)?$`)
	yamlBlock = regexp.MustCompile(`:\s+(?:[&!]\S+\s+)*[|>][-+0-9]*\s*(?:#.*)?$`)
)

// readYAML adds the keys of a YAML file. It reads lines and builds no tree, because many files are
// templates, which no parser accepts.
func (k *keys) readYAML(text []byte) {
	number, start := 0, 0 // number of the line; index in found of the first key of this document
	skipBelow := -1       // indentation of a list or a text: deeper lines belong to it; -1 for none
	for row := range bytes.Lines(text) {
		number++
		line := strings.TrimRight(string(row), "\r\n")
		content := strings.TrimLeft(line, " ")
		indent := len(line) - len(content)
		switch {
		case content == "" || content[0] == '#' || strings.HasPrefix(content, "{{") || strings.HasPrefix(content, "{%"):
			continue
		case indent == 0 && (strings.HasPrefix(line, "---") || line == "..."):
			k.closeKeys(0)
			k.replaceByObject(start)
			start, skipBelow = len(k.found), -1
			continue
		case skipBelow >= 0 && indent > skipBelow:
			k.lastLine = number
			continue
		}
		skipBelow = -1
		// The elements of a list may be indented like the key of the list.
		if strings.HasPrefix(content, "- ") || content == "-" {
			skipBelow, k.lastLine = indent, number
			continue
		}
		if m := yamlKey.FindStringSubmatch(line); m != nil {
			k.addKey(strings.Trim(m[2], `"'`), number, indent)
			if v := yamlName.FindStringSubmatch(line); v != nil && len(k.open) > 0 {
				k.found[k.open[len(k.open)-1]].value = v[1]
			}
			if yamlBlock.MatchString(line) {
				skipBelow = indent
			}
		}
		k.lastLine = number
	}
	k.closeKeys(0)
	k.replaceByObject(start)
}

// replaceByObject removes the keys from start on if they are those of an object of Kubernetes, and
// adds one symbol for the object.
func (k *keys) replaceByObject(start int) {
	var version, kind, name key
	for _, x := range k.found[start:] {
		switch x.parent + "." + x.name {
		case ".apiVersion":
			version = x
		case ".kind":
			kind = x
		case "metadata.name":
			name = x
		}
	}
	if version.name == "" || kind.name == "" {
		return
	}
	k.found = k.found[:start]
	if name.value != "" && kind.value != "" {
		k.found = append(k.found, key{name: name.value, kind: blockKind(kind.value), line: name.line, last: k.lastLine})
	}
}

// readJSON adds the keys of a JSON file, which may have comments.
func (k *keys) readJSON(text []byte) {
	// Comments become blanks, so lines stay the same.
	plain, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	line, at := 1, 0
	lists := 0         // open lists
	var objects []bool // for each open bracket, the innermost last: whether it opens an object
	name := true       // the next string is a key, if it is in an object
	for {
		t, err := d.Token()
		if err != nil {
			return
		}
		offset := int(d.InputOffset())
		line += bytes.Count(plain[at:offset], newline)
		at = offset
		isName := name && len(objects) > 0 && objects[len(objects)-1]
		if !isName && t != json.Delim('}') {
			k.lastLine = line
		}
		switch t := t.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				objects = append(objects, t == '{')
				if t == '[' {
					lists++
				}
				name = true
				continue
			case ']':
				lists--
			case '}':
				if lists == 0 {
					k.closeKeys(len(objects))
					k.lastLine = line
					k.closeKeys(len(objects) - 1)
				}
			}
			objects = objects[:len(objects)-1]
			name = true
			continue
		case string:
			if isName {
				if lists == 0 {
					k.addKey(t, line, len(objects))
				}
				name = false
				continue
			}
		}
		name = true
	}
}

var (
	tomlTable = regexp.MustCompile(`^\s*\[{1,2}\s*([^\[\]]+?)\s*\]{1,2}\s*(?:[#;].*)?$`)
	tomlKey   = regexp.MustCompile(`^\s*("[^"]+"|'[^']+'|[\w.$/@*-]+)\s*[=:]\s*(.*)$`)
)

// readTOML adds the keys of a TOML file, or of a similar format with sections and keys.
func (k *keys) readTOML(text []byte) {
	number := 0
	lists, quote := 0, "" // open brackets of a list, and the quotes that end a text
	inList := false       // in a table that is an element of a list
	for row := range bytes.Lines(text) {
		number++
		line := strings.TrimSpace(string(row))
		if quote != "" {
			if k.lastLine = number; strings.Contains(line, quote) {
				quote = ""
			}
			continue
		}
		if lists > 0 {
			k.lastLine = number
			lists += strings.Count(line, "[") - strings.Count(line, "]")
			continue
		}
		if m := tomlTable.FindStringSubmatch(line); m != nil {
			k.closeKeys(0)
			if inList = strings.HasPrefix(line, "[["); !inList {
				k.addKey(strings.Trim(m[1], `"'`), number, 0)
			}
			continue
		}
		m := tomlKey.FindStringSubmatch(line)
		if m == nil || inList {
			continue
		}
		k.addKey(strings.Trim(m[1], `"'`), number, 1)
		for _, q := range []string{`"""`, "'''"} {
			if strings.Count(m[2], q)%2 == 1 {
				quote = q
			}
		}
		if strings.HasPrefix(m[2], "[") {
			lists = strings.Count(m[2], "[") - strings.Count(m[2], "]")
		}
	}
	k.closeKeys(0)
}

var (
	hclBlock   = regexp.MustCompile(`^\s*([\w-]+)((?:\s+(?:"[^"]*"|[\w-]+))*)\s*\{\s*(?:(?:#|//).*)?$`)
	hclKey     = regexp.MustCompile(`^\s*"?([\w.-]+)"?\s*[=:][^=].*?([\[{(]?)\s*$`)
	hclHeredoc = regexp.MustCompile(`<<-?\s*"?(\w+)"?\s*$`)
	hclLabel   = regexp.MustCompile(`"([^"]*)"|([\w-]+)`)
)

// readHCL adds the blocks of an HCL file and the keys in them. The name of a block is its last label.
func (k *keys) readHCL(text []byte) {
	number, until := 0, "" // until is the line that ends a text of several lines
	var brackets []byte    // the open brackets, the innermost last
	for row := range bytes.Lines(text) {
		number++
		line := strings.TrimSpace(string(row))
		switch {
		case until != "":
			if k.lastLine = number; line == until {
				until = ""
			}
			continue
		case line == "" || line[0] == '#' || strings.HasPrefix(line, "//"):
			continue
		case strings.ContainsRune("}])", rune(line[0])) && len(brackets) > 0:
			if line[0] == '}' {
				k.closeKeys(len(brackets))
			}
			brackets, k.lastLine = brackets[:len(brackets)-1], number
			k.closeKeys(len(brackets))
			continue
		}
		if m := hclHeredoc.FindStringSubmatch(line); m != nil {
			until = m[1]
		}
		outsideLists := !bytes.ContainsAny(brackets, "[(")
		if m := hclBlock.FindStringSubmatch(line); m != nil && outsideLists {
			name, kind := m[1], "key"
			if labels := hclLabel.FindAllStringSubmatch(m[2], -1); labels != nil {
				last := labels[len(labels)-1]
				name, kind = last[1]+last[2], blockKind(m[1])
			}
			k.addSymbol(name, kind, number, len(brackets))
			brackets = append(brackets, '{')
			continue
		}
		if m := hclKey.FindStringSubmatch(line); m != nil && outsideLists {
			k.addKey(m[1], number, len(brackets))
		}
		if c := line[len(line)-1]; strings.IndexByte("{[(", c) >= 0 {
			brackets = append(brackets, c)
		}
		k.lastLine = number
	}
	k.closeKeys(0)
}

var (
	dockerSet  = regexp.MustCompile(`(?i)^\s*(?:ARG|ENV)\s+(\w+)`)
	dockerFrom = regexp.MustCompile(`(?i)^\s*FROM\s(?:.*\sAS\s+([\w.-]+)\s*$)?`)
)

// readDocker adds the stages, arguments and variables of a Dockerfile.
func (k *keys) readDocker(text []byte) {
	number := 0
	for row := range bytes.Lines(text) {
		number++
		if m := dockerFrom.FindSubmatch(row); m != nil {
			k.closeKeys(0)
			k.addSymbol(string(m[1]), "stage", number, 0)
		} else if m := dockerSet.FindSubmatch(row); m != nil {
			k.addKey(string(m[1]), number, 1)
			k.closeKeys(1)
		}
		if len(bytes.TrimSpace(row)) > 0 {
			k.lastLine = number
		}
	}
	k.closeKeys(0)
}
