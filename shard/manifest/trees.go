package manifest

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// node is a value in a file: a scalar, or one with children. The elements of a list have no key.
type node struct {
	key, value string
	line       int
	children   []*node

	tables map[string]*node // for TOML: the children by key, because a file may have very many
}

// addChild adds a child and returns it.
func (n *node) addChild(child *node) *node {
	n.children = append(n.children, child)
	return child
}

// find returns the last node at a path of keys, see eachAt; nil if there is none.
func (n *node) find(path string) (found *node) {
	if path != "" {
		n.eachAt(path, func(c *node) { found = c })
	}
	return found
}

// valueAt returns the value at a path; "" if there is none.
func (n *node) valueAt(path string) string {
	if c := n.find(path); c != nil {
		return c.value
	}
	return ""
}

// eachAt calls fn for the nodes at a path of keys separated by /. The key * stands for any key.
func (n *node) eachAt(path string, fn func(*node)) {
	key, rest, more := strings.Cut(path, "/")
	for _, c := range n.children {
		switch {
		case key != "*" && key != c.key:
		case more:
			c.eachAt(rest, fn)
		default:
			fn(c)
		}
	}
}

// lineOffsets are the offsets of the newlines in a text.
type lineOffsets []int

// lineEnds returns the offsets of the newlines in a text.
func lineEnds(text []byte) (ends lineOffsets) {
	for i, c := range text {
		if c == '\n' {
			ends = append(ends, i)
		}
	}
	return ends
}

// lineOf returns the number of the line of an offset, from 1.
func (l lineOffsets) lineOf(offset int) int { return sort.SearchInts(l, offset) + 1 }

// parseJSON reads JSON, in which comments and commas at the end are allowed.
func parseJSON(text []byte) (*node, error) {
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	return jsonNode("", v, lineEnds(text)), nil
}

// jsonNode converts a JSON value to a node.
func jsonNode(key string, v hujson.Value, ends lineOffsets) *node {
	n := &node{key: key, line: ends.lineOf(v.StartOffset)}
	switch v := v.Value.(type) {
	case hujson.Literal:
		if n.value = string(v); v.Kind() == '"' {
			n.value = v.String()
		}
	case *hujson.Object:
		for _, m := range v.Members {
			c := n.addChild(jsonNode(m.Name.Value.(hujson.Literal).String(), m.Value, ends))
			c.line = ends.lineOf(m.Name.StartOffset)
		}
	case *hujson.Array:
		for _, e := range v.Elements {
			n.addChild(jsonNode("", e, ends))
		}
	}
	return n
}

// parseYAML parses YAML. It joins all documents of a file in one tree.
func parseYAML(text []byte) (*node, error) {
	root := &node{}
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return root, nil
		} else if err != nil {
			return nil, err
		}
		for _, d := range doc.Content {
			root.children = append(root.children, yamlNode("", d).children...)
		}
	}
}

// yamlNode converts a YAML value to a node.
func yamlNode(key string, y *yaml.Node) *node {
	n := &node{key: key, value: y.Value, line: y.Line}
	// Follow an alias only to a scalar: a few lines of aliases can expand to billions of nodes.
	if y.Kind == yaml.AliasNode && y.Alias != nil {
		n.value = y.Alias.Value
	}
	for i := 0; i < len(y.Content); i++ {
		if y.Kind == yaml.MappingNode {
			c := n.addChild(yamlNode(y.Content[i].Value, y.Content[i+1]))
			c.line = y.Content[i].Line
			i++
		} else {
			n.addChild(yamlNode("", y.Content[i]))
		}
	}
	return n
}

// parseTOML parses TOML.
func parseTOML(text []byte) (*node, error) {
	root := &node{}
	table, ends := root, lineEnds(text)
	var p unstable.Parser
	for p.Reset(text); p.NextExpression(); {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = tomlKey(root, e.Key(), ends)
			if e.Kind == unstable.ArrayTable {
				table = table.addChild(&node{line: table.line})
			}
		case unstable.KeyValue:
			tomlValue(tomlKey(table, e.Key(), ends), e.Value(), ends)
		}
	}
	return root, p.Error()
}

// tomlKey returns the node of a dotted key below a table. For a list of tables it uses the last.
func tomlKey(n *node, key unstable.Iterator, ends lineOffsets) *node {
	for key.Next() {
		if last := len(n.children) - 1; last >= 0 && n.children[last].key == "" {
			n = n.children[last]
		}
		name, line := string(key.Node().Data), ends.lineOf(int(key.Node().Raw.Offset))
		c := n.tables[name]
		if c == nil {
			c = n.addChild(&node{key: name, line: line})
			if n.tables == nil {
				n.tables = map[string]*node{}
			}
			n.tables[name] = c
		}
		n = c
	}
	return n
}

// tomlValue sets a node to a TOML value.
func tomlValue(n *node, v *unstable.Node, ends lineOffsets) {
	for it := v.Children(); it.Next(); {
		c := it.Node()
		switch {
		case v.Kind == unstable.Array && c.Kind != unstable.Comment:
			e := n.addChild(&node{line: n.line})
			if c.Raw.Length > 0 {
				e.line = ends.lineOf(int(c.Raw.Offset))
			}
			tomlValue(e, c, ends)
		case v.Kind == unstable.InlineTable:
			tomlValue(tomlKey(n, c.Key(), ends), c.Value(), ends)
		}
	}
	if v.Kind != unstable.Array && v.Kind != unstable.InlineTable {
		n.value = string(v.Data)
	}
}

// parseXML parses XML. Attributes become children, and namespaces are left out.
func parseXML(text []byte) (*node, error) {
	root := &node{}
	stack := []*node{root}
	dec := xml.NewDecoder(bytes.NewReader(text))
	dec.Strict = false
	// The index has the text in UTF-8 already, whatever the file declares.
	dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		line, _ := dec.InputPos()
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return root, nil
		} else if err != nil {
			return nil, err
		}
		top := stack[len(stack)-1]
		switch t := token.(type) {
		case xml.StartElement:
			e := top.addChild(&node{key: t.Name.Local, line: line})
			for _, a := range t.Attr {
				e.addChild(&node{key: a.Name.Local, value: a.Value, line: line})
			}
			stack = append(stack, e)
		case xml.EndElement:
			stack = stack[:max(1, len(stack)-1)]
		case xml.CharData:
			top.value += strings.TrimSpace(string(t))
		}
		if len(stack) > maxDepth {
			return nil, fmt.Errorf("its elements are nested more than %d deep", maxDepth)
		}
	}
}
