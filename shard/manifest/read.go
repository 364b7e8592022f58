package manifest

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// readByExpr returns a function that finds uses of libraries in a text by an expression with
// groups: name, optionally version and kind, and group for a part of the name before a colon. kind
// is the kind of uses that have no such group.
func readByExpr(kind, expr string) func([]byte) ([]Use, error) {
	re := regexp.MustCompile(expr)
	return func(text []byte) (uses []Use, _ error) {
		ends := lineEnds(text)
		for _, m := range re.FindAllSubmatchIndex(text, -1) {
			u := Use{Kind: kind}
			for i, group := range re.SubexpNames() {
				if group == "" || m[2*i] < 0 {
					continue
				}
				switch value := string(text[m[2*i]:m[2*i+1]]); group {
				case "group":
					u.Name = value + ":"
				case "name":
					u.Name, u.Line = u.Name+value, ends.lineOf(m[2*i])
				case "version":
					u.Version = value
				case "kind":
					u.Kind = value
				}
			}
			uses = append(uses, u)
		}
		return uses, nil
	}
}

// place describes where uses of libraries are in a tree: keys separated by /, with * for any key.
// name, version and scope are the keys below it that have these values. If one is "", the key at the
// place is the name and its value is the version; an element of a list is a name.
type place struct {
	in, name, version, scope string

	kind  string     // the kind of uses without a scope
	split func(*Use) // removes from the name what is not part of it; nil if there is nothing to remove
}

// readPlaces returns a function that parses a text into a tree, and reads the uses of libraries at
// some places of the tree.
func readPlaces(parse func([]byte) (*node, error), places ...place) func([]byte) ([]Use, error) {
	return func(text []byte) (uses []Use, err error) {
		root, err := parse(text)
		if err != nil {
			return nil, err
		}
		for _, p := range places {
			root.eachAt(p.in, func(n *node) { uses = append(uses, p.readUse(n)) })
		}
		return uses, nil
	}
}

// readUse reads the use of a library from a node at this place.
func (p *place) readUse(n *node) Use {
	u := Use{Name: n.key, Version: n.value, Kind: p.kind, Line: n.line}
	if n.key == "" {
		u.Name, u.Version = n.value, ""
	}
	if c := n.find(p.name); c != nil {
		u.Name, u.Line = c.value, c.line
	}
	if c := n.find(p.version); c != nil {
		u.Version = c.value
	}
	if c := n.find(p.scope); c != nil {
		u.Kind = cmp.Or(c.value, u.Kind)
	}
	if p.split != nil {
		p.split(&u)
	}
	return u
}

// cargoPlace describes a place in Cargo.toml, where a library may have an alias.
func cargoPlace(in, kind string) place {
	return place{in: in, name: "package", version: "version", kind: kind}
}

// parsePom parses a pom.xml into a tree with a node "use" for each library, wherever it is in the
// file. Its name is group:artifact, as people write it. Properties are replaced by their values.
func parsePom(text []byte) (*node, error) {
	root, err := parseXML(text)
	if err != nil {
		return nil, err
	}
	pairs := []string{} // each property as it is used, and its value
	root.eachAt("project/properties/*", func(p *node) { pairs = append(pairs, "${"+p.key+"}", p.value) })
	for _, key := range []string{"groupId", "artifactId", "version"} {
		pairs = append(pairs, "${project."+key+"}", cmp.Or(root.valueAt("project/"+key), root.valueAt("project/parent/"+key)))
	}
	properties := strings.NewReplacer(pairs...)

	// dependencyKind is "managed" below dependencyManagement, which only declares versions.
	out := &node{}
	var collect func(n *node, dependencyKind string)
	collect = func(n *node, dependencyKind string) {
		for _, c := range n.children {
			kinds := map[string]string{"dependency": dependencyKind, "plugin": "plugin", "extension": "plugin", "parent": "parent"}
			kind, isUse := kinds[c.key]
			if artifact := c.find("artifactId"); isUse && artifact != nil {
				group := cmp.Or(c.valueAt("groupId"), "org.apache.maven.plugins")
				out.addChild(&node{key: "use", line: c.line, children: []*node{
					{key: "name", value: properties.Replace(group + ":" + artifact.value), line: artifact.line},
					{key: "version", value: properties.Replace(c.valueAt("version"))},
					{key: "scope", value: cmp.Or(c.valueAt("scope"), kind)},
				}})
			}
			if c.key == "dependencyManagement" {
				collect(c, "managed")
			} else {
				collect(c, dependencyKind)
			}
		}
	}
	collect(root, "")
	return out, nil
}

// parseCatalog parses a version catalog of Gradle. A library or a plugin can be written in three
// ways. parseCatalog turns each of them into the children module or id, and version.
func parseCatalog(text []byte) (*node, error) {
	root, err := parseTOML(text)
	if err != nil {
		return nil, err
	}
	normalize := func(n *node) {
		// version.ref names a version of the table versions.
		if ref := n.find("version/ref"); ref != nil {
			found := cmp.Or(root.find("versions/"+ref.value), &node{})
			n.find("version").value = cmp.Or(found.value, found.valueAt("strictly"), found.valueAt("require"), found.valueAt("prefer"))
		}
		if group, name := n.find("group"), n.find("name"); group != nil && name != nil {
			n.addChild(&node{key: "module", value: group.value + ":" + name.value, line: n.line})
		}
		// The value may be a string "group:name:version" or "id:version".
		if parts := strings.SplitN(n.value, ":", 3); len(parts) > 1 {
			version := parts[len(parts)-1]
			name := strings.TrimSuffix(n.value, ":"+version)
			n.addChild(&node{key: "module", value: name, line: n.line})
			n.addChild(&node{key: "id", value: name, line: n.line})
			n.addChild(&node{key: "version", value: version, line: n.line})
		}
	}
	root.eachAt("libraries/*", normalize)
	root.eachAt("plugins/*", normalize)
	return root, nil
}

// readGoMod reads the requirements and the replacements of a go.mod.
func readGoMod(text []byte) (uses []Use, err error) {
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		// A go.mod for a newer version of Go may have statements that this version does not know.
		if f, err = modfile.ParseLax("go.mod", text, nil); err != nil {
			return nil, err
		}
	}
	for _, r := range f.Require {
		u := Use{Name: r.Mod.Path, Version: r.Mod.Version, Line: r.Syntax.Start.Line}
		if r.Indirect {
			u.Kind = "indirect"
		}
		uses = append(uses, u)
	}
	for _, r := range f.Replace {
		uses = append(uses, Use{Name: r.Old.Path, Version: strings.TrimSpace(r.New.Path + " " + r.New.Version), Kind: "replace", Line: r.Syntax.Start.Line})
	}
	return uses, nil
}

// gradleUses find the libraries and the plugins in a build script of Gradle.
var gradleUses = []func([]byte) ([]Use, error){
	readByExpr("", `(?m)^[ \t]*["']?(?P<kind>\w+)["']?[ \t(]+(?:\w+[ (]+)?["'](?P<name>[\w.-]+:[\w.-]+)(?::(?P<version>[^"'@:\n]+))?["'@:]`),
	readByExpr("plugin", `(?m)^[ \t]*id[ \t(]+["'](?P<name>[\w.-]+)["']\)?[ \t]+version[ \t(]+["']?(?P<version>[^"'\n)]+)`),
}

// readGradle reads a build script of Gradle, first the libraries and then the plugins.
func readGradle(text []byte) (uses []Use, _ error) {
	for _, read := range gradleUses {
		more, _ := read(text) // never fails
		uses = append(uses, more...)
	}
	return uses, nil
}

var (
	dockerUses  = readByExpr("image", `(?mi)^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)?(?P<name>(?:[\w.-]+:\d+/)?[\w./-]+)(?:[:@](?P<version>[^\s@]+))?`)
	dockerStage = regexp.MustCompile(`(?mi)^[ \t]*FROM[ \t][^\n]*[ \t]AS[ \t]+(\S+)`)
)

// readDockerfile reads the images of a Dockerfile, without those that are stages of the same file.
func readDockerfile(text []byte) ([]Use, error) {
	stages := []string{"scratch"}
	for _, m := range dockerStage.FindAllSubmatch(text, -1) {
		stages = append(stages, string(m[1]))
	}
	uses, err := dockerUses(text)
	return slices.DeleteFunc(uses, func(u Use) bool { return slices.Contains(stages, u.Name) }), err
}

var requirement = regexp.MustCompile(`^([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?:@\s*)?(.*)$`)

// splitRequirement splits the name of a use that is a requirement of Python, such as
// requests[socks]>=2.8; python_version < "3".
func splitRequirement(u *Use) {
	text, _, _ := strings.Cut(u.Name, ";")
	u.Name, u.Version = "", ""
	if m := requirement.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		u.Name, u.Version = m[1], strings.Trim(m[2], "() ")
	}
}

// splitConda splits a name such as numpy=1.26 or conda-forge::numpy>=1 into the name and the version.
func splitConda(u *Use) {
	_, name, ok := strings.Cut(u.Name, "::")
	if !ok {
		name = u.Name
	}
	if i := strings.IndexAny(name, "=<>! "); i > 0 {
		name, u.Version = name[:i], strings.TrimLeft(name[i:], " =")
	}
	u.Name = name
}

// splitAtSign splits a name such as zod@3.2.1, /@trpc/server@10.0.0(react@18.0.0) or the older
// /zod/3.2.1 into the name and the version. Without a version there is no name.
func splitAtSign(u *Use) {
	name, _, _ := strings.Cut(strings.TrimPrefix(u.Name, "/"), "(")
	i := strings.LastIndexByte(name, '@')
	if i <= 0 {
		i = strings.LastIndexByte(name, '/')
	}
	if u.Name = ""; i > 0 {
		u.Name, u.Version = name[:i], name[i+1:]
	}
}

// cutNodeModules makes the directory in which a package is installed the name of the package.
func cutNodeModules(u *Use) {
	if i := strings.LastIndex(u.Name, "node_modules/"); i >= 0 {
		u.Name = u.Name[i+len("node_modules/"):]
	} else {
		u.Name = "" // a package of the project itself
	}
}
