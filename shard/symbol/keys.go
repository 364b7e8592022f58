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

// Keys of configuration are symbols, which ctags does not find. Data must not flood those of
// code, so these are left out:
//
//   - files that are generated or locked, larger than mostKeyBytes, or with more than mostKeys keys
//   - keys below elements of a list, and more than keyLevels deep
//   - keys with blanks, as texts that are translated have
//   - libraries that a manifest depends on
//   - keys of objects of Kubernetes, which are the same in all: the object is a symbol with its kind and name
const (
	mostKeyBytes = 256 << 10
	mostKeys     = 1000
	keyLevels    = 3
	mostKeyName  = 100
)

// keyReaders has a row for each language whose keys are symbols.
var keyReaders = map[string]func(*keys, []byte){
	"YAML":               (*keys).yaml,
	"JSON":               (*keys).json,
	"JSON with Comments": (*keys).json,
	"JSON5":              (*keys).json,
	"TOML":               (*keys).toml,
	"INI":                (*keys).toml,
	"Java Properties":    (*keys).toml,
	"HCL":                (*keys).hcl,
	"Dockerfile":         (*keys).docker,
}

// blockKinds are the kinds of blocks of HCL and of objects of Kubernetes. Any other one is called
// "key", since a file of symbols has a bounded number of kinds.
var blockKinds = strings.Fields(`check data ephemeral job locals module output provider resource task variable
	configmap cronjob customresourcedefinition clusterrole clusterrolebinding daemonset deployment gateway
	horizontalpodautoscaler ingress kustomization namespace networkpolicy persistentvolume persistentvolumeclaim pod
	poddisruptionbudget replicaset role rolebinding secret service serviceaccount statefulset storageclass`)

// blockKind returns the kind of a block that a file calls by a word.
func blockKind(word string) string {
	if word = strings.ToLower(word); slices.Contains(blockKinds, word) {
		return word
	}
	return "key"
}

// hasKeys reports whether keys of a file are symbols.
func hasKeys(file, language string) bool {
	return HasKeys(language) && !strings.Contains(path.Base(file), "lock") && !strings.HasSuffix(file, ".min.json")
}

// keys collects the keys of a file.
type keys struct {
	found []key
	open  []int // indexes of keys around the line, the deepest last
	over  bool  // there are more than mostKeys

	before int // the last line that says something
}

// key is a symbol, and how deep it is: in the columns of YAML, else in levels.
type key struct {
	name, parent, kind string
	value              string // of YAML, if it is one word
	line, last         int
	depth              int
}

// keysOf calls use with the keys of a file.
func keysOf(f *File, use func(Symbol)) {
	if len(f.Content) > mostKeyBytes || enry.IsGenerated(f.Path, f.Content) {
		return
	}
	k := &keys{}
	keyReaders[f.Language](k, f.Content)
	if k.over {
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

// close ends the keys that are at least as deep, with the last line that says something.
func (k *keys) close(depth int) {
	for n := len(k.open); n > 0 && k.found[k.open[n-1]].depth >= depth; n-- {
		if x := &k.found[k.open[n-1]]; k.before > x.line {
			x.last = k.before
		}
		k.open = k.open[:n-1]
	}
}

// add takes a key of a line. It stays open until one comes that is as deep.
func (k *keys) add(name string, line, depth int) {
	k.addKind(name, "key", line, depth)
}

// addKind adds a symbol of a kind, and closes those at its depth or deeper.
func (k *keys) addKind(name, kind string, line, depth int) {
	k.close(depth)
	k.before = line
	parent, level := "", len(k.open)
	if level > 0 {
		around := k.found[k.open[level-1]]
		parent = strings.TrimPrefix(around.parent+"."+around.name, ".")
		if strings.HasSuffix(strings.ToLower(around.name), "dependencies") {
			return
		}
	}
	switch {
	case level >= keyLevels, name == "", len(name) > mostKeyName, strings.ContainsAny(name, " \t\"'`"):
		return
	case len(k.found) >= mostKeys:
		k.over = true
		return
	}
	k.found = append(k.found, key{name: name, parent: parent, kind: kind, line: line, depth: depth})
	k.open = append(k.open, len(k.found)-1)
}

// yamlKey is a line that begins with a key; yamlBlock ends one whose value is a text on the
// lines below.
var (
	yamlKey   = regexp.MustCompile(`^( *)("[^"]*"|'[^']*'|[^\s#'"{}\[\],&*!|>%@-][^#'"{}\[\],&*!|>%@]*?|[\w.$/-]+)\s*:(?:\s|$)`)
	yamlName  = regexp.MustCompile(`:\s+["']?([\w.-]+)["']?\s*(?:#.*)?$`)
	yamlBlock = regexp.MustCompile(`:\s+(?:[&!]\S+\s+)*[|>][-+0-9]*\s*(?:#.*)?$`)
)

// yaml reads lines, not a tree: many files are templates, which no parser takes.
func (k *keys) yaml(text []byte) {
	number, start := 0, 0 // start: the first key of this document
	quiet := -1           // lines deeper than this are of a list or a text; -1 for none
	for row := range bytes.Lines(text) {
		number++
		line := strings.TrimRight(string(row), "\r\n")
		content := strings.TrimLeft(line, " ")
		indent := len(line) - len(content)
		switch {
		case content == "" || content[0] == '#' || strings.HasPrefix(content, "{{") || strings.HasPrefix(content, "{%"):
			continue
		case indent == 0 && (strings.HasPrefix(line, "---") || line == "..."):
			k.close(0)
			k.kubernetes(start)
			start, quiet = len(k.found), -1
			continue
		case quiet >= 0 && indent > quiet:
			k.before = number
			continue
		}
		quiet = -1
		// The elements of a list may be indented like the key of the list.
		if strings.HasPrefix(content, "- ") || content == "-" {
			quiet, k.before = indent, number
			continue
		}
		if m := yamlKey.FindStringSubmatch(line); m != nil {
			k.add(strings.Trim(m[2], `"'`), number, indent)
			if v := yamlName.FindStringSubmatch(line); v != nil && len(k.open) > 0 {
				k.found[k.open[len(k.open)-1]].value = v[1]
			}
			if yamlBlock.MatchString(line) {
				quiet = indent
			}
		}
		k.before = number
	}
	k.close(0)
	k.kubernetes(start)
}

// kubernetes puts one symbol in place of the keys from start on, if they are an object of Kubernetes.
func (k *keys) kubernetes(start int) {
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
		k.found = append(k.found, key{name: name.value, kind: blockKind(kind.value), line: name.line, last: k.before})
	}
}

func (k *keys) json(text []byte) {
	// It keeps the offsets: comments become blanks.
	plain, err := hujson.Standardize(bytes.Clone(text))
	if err != nil {
		return
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	line, at := 1, 0
	lists := 0
	var objects []bool // of the brackets that are open; the top one is the last
	name := true       // the next string in an object is a name
	for {
		t, err := d.Token()
		if err != nil {
			return
		}
		now := int(d.InputOffset())
		line += bytes.Count(plain[at:now], newline)
		at = now
		isName := name && len(objects) > 0 && objects[len(objects)-1]
		if !isName && t != json.Delim('}') {
			k.before = line
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
					k.close(len(objects))
					k.before = line
					k.close(len(objects) - 1)
				}
			}
			objects = objects[:len(objects)-1]
			name = true
			continue
		case string:
			if isName {
				if lists == 0 {
					k.add(t, line, len(objects))
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

// toml adds the keys of a TOML file, or of a similar format with sections and keys.
func (k *keys) toml(text []byte) {
	number, lists, quote, inList := 0, 0, "", false
	for row := range bytes.Lines(text) {
		number++
		line := strings.TrimSpace(string(row))
		if quote != "" { // in a text of several lines
			if k.before = number; strings.Contains(line, quote) {
				quote = ""
			}
			continue
		}
		if lists > 0 { // in a list of several lines
			k.before = number
			lists += strings.Count(line, "[") - strings.Count(line, "]")
			continue
		}
		if m := tomlTable.FindStringSubmatch(line); m != nil {
			k.close(0)
			if inList = strings.HasPrefix(line, "[["); !inList {
				k.add(strings.Trim(m[1], `"'`), number, 0)
			}
			continue
		}
		m := tomlKey.FindStringSubmatch(line)
		if m == nil || inList {
			continue
		}
		k.add(strings.Trim(m[1], `"'`), number, 1)
		for _, q := range []string{`"""`, "'''"} {
			if strings.Count(m[2], q)%2 == 1 {
				quote = q
			}
		}
		if strings.HasPrefix(m[2], "[") {
			lists = strings.Count(m[2], "[") - strings.Count(m[2], "]")
		}
	}
	k.close(0)
}

var (
	hclBlock   = regexp.MustCompile(`^\s*([\w-]+)((?:\s+(?:"[^"]*"|[\w-]+))*)\s*\{\s*(?:(?:#|//).*)?$`)
	hclKey     = regexp.MustCompile(`^\s*"?([\w.-]+)"?\s*[=:][^=].*?([\[{(]?)\s*$`)
	hclHeredoc = regexp.MustCompile(`<<-?\s*"?(\w+)"?\s*$`)
	hclLabel   = regexp.MustCompile(`"([^"]*)"|([\w-]+)`)
)

// hcl reads blocks, which are called by their last label, and the keys in them.
func (k *keys) hcl(text []byte) {
	number, until := 0, ""
	var brackets []byte // that are open: { of a block or an object, anything else of a list
	for row := range bytes.Lines(text) {
		number++
		line := strings.TrimSpace(string(row))
		switch {
		case until != "":
			if k.before = number; line == until {
				until = ""
			}
			continue
		case line == "" || line[0] == '#' || strings.HasPrefix(line, "//"):
			continue
		case strings.ContainsRune("}])", rune(line[0])) && len(brackets) > 0:
			if line[0] == '}' {
				k.close(len(brackets))
			}
			brackets, k.before = brackets[:len(brackets)-1], number
			k.close(len(brackets))
			continue
		}
		if m := hclHeredoc.FindStringSubmatch(line); m != nil {
			until = m[1]
		}
		plain := !bytes.ContainsAny(brackets, "[(")
		if m := hclBlock.FindStringSubmatch(line); m != nil && plain {
			name, kind := m[1], "key"
			if labels := hclLabel.FindAllStringSubmatch(m[2], -1); labels != nil {
				last := labels[len(labels)-1]
				name, kind = last[1]+last[2], blockKind(m[1])
			}
			k.addKind(name, kind, number, len(brackets))
			brackets = append(brackets, '{')
			continue
		}
		if m := hclKey.FindStringSubmatch(line); m != nil && plain {
			k.add(m[1], number, len(brackets))
		}
		if c := line[len(line)-1]; strings.IndexByte("{[(", c) >= 0 {
			brackets = append(brackets, c)
		}
		k.before = number
	}
	k.close(0)
}

var (
	dockerSet  = regexp.MustCompile(`(?i)^\s*(?:ARG|ENV)\s+(\w+)`)
	dockerFrom = regexp.MustCompile(`(?i)^\s*FROM\s(?:.*\sAS\s+([\w.-]+)\s*$)?`)
)

// docker reads stages, arguments and variables.
func (k *keys) docker(text []byte) {
	number := 0
	for row := range bytes.Lines(text) {
		number++
		if m := dockerFrom.FindSubmatch(row); m != nil {
			k.close(0)
			k.addKind(string(m[1]), "stage", number, 0)
		} else if m := dockerSet.FindSubmatch(row); m != nil {
			k.add(string(m[1]), number, 1)
			k.close(1)
		}
		if len(bytes.TrimSpace(row)) > 0 {
			k.before = number
		}
	}
	k.close(0)
}
