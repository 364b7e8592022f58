package manifest

import "regexp"

// format is one kind of file that names libraries.
type format struct {
	files string // matches the end of a path, from the start of a name
	read  func(text []byte) ([]Use, error)

	path *regexp.Regexp // compiled from files
}

// formats has a row for each kind of file. To add one, add a row, and an example file to testdata.
var formats = compileFormats([]format{
	// Go.
	{files: `go\.mod`, read: readGoMod},

	// JavaScript.
	{files: `package\.json`, read: readPlaces(parseJSON,
		place{in: "dependencies/*"}, place{in: "devDependencies/*", kind: Dev}, place{in: "peerDependencies/*", kind: Peer},
		place{in: "optionalDependencies/*", kind: "optional"}, place{in: "overrides/*", kind: "override"}, place{in: "pnpm/overrides/*", kind: "override"}, place{in: "resolutions/*", kind: "override"})},
	{files: `package-lock\.json|npm-shrinkwrap\.json`, read: readPlaces(parseJSON,
		place{in: "packages/*", version: "version", kind: Locked, split: cutNodeModules}, place{in: "dependencies/*", version: "version", kind: Locked})},
	{files: `pnpm-lock\.yaml`, read: readPlaces(parseYAML, place{in: "packages/*", kind: Locked, split: splitAtSign})},
	{files: `pnpm-workspace\.yaml`, read: readPlaces(parseYAML, place{in: "catalog/*"}, place{in: "catalogs/*/*"}, place{in: "overrides/*", kind: "override"})},
	{files: `yarn\.lock`, read: readByExpr(Locked, `(?m)^"?(?P<name>@?[^@\s"#]+)@[^\n]*:\n\s+version:? "?(?P<version>[^"\s]+)`)},
	{files: `bun\.lock`, read: readPlaces(parseJSON, place{in: "packages/*/*", kind: Locked, split: splitAtSign})},
	{files: `deno\.jsonc?`, read: readPlaces(parseJSON, place{in: "imports/*"})},

	// Python.
	{files: `pyproject\.toml`, read: readPlaces(parseTOML,
		place{in: "project/dependencies/*", split: splitRequirement}, place{in: "project/optional-dependencies/*/*", kind: "optional", split: splitRequirement},
		place{in: "dependency-groups/*/*", kind: Dev, split: splitRequirement}, place{in: "build-system/requires/*", kind: "build", split: splitRequirement},
		place{in: "tool/poetry/dependencies/*", version: "version"}, place{in: "tool/poetry/dev-dependencies/*", version: "version", kind: Dev},
		place{in: "tool/poetry/group/*/dependencies/*", version: "version", kind: Dev}, place{in: "tool/pdm/dev-dependencies/*/*", kind: Dev, split: splitRequirement})},
	{files: `(?:poetry|uv|pdm)\.lock`, read: readPlaces(parseTOML, place{in: "package/*", name: "name", version: "version", kind: Locked})},
	{files: `Pipfile`, read: readPlaces(parseTOML, place{in: "packages/*", version: "version"}, place{in: "dev-packages/*", version: "version", kind: Dev})},
	{files: `Pipfile\.lock`, read: readPlaces(parseJSON, place{in: "default/*", version: "version", kind: Locked}, place{in: "develop/*", version: "version", kind: Locked})},
	{files: `[^/]*requirements[^/]*\.(?:txt|in)|requirements/[^/]+\.(?:txt|in)`, read: readByExpr("", `(?m)^[ \t]*(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]\n]*\])?[ \t]*(?:@[ \t]*)?(?P<version>(?:[=<>~!][^;#\\\n]*|\S+://[^;\s]+)?)[ \t]*(?:[;#\\].*)?$`)},
	{files: `environment\.ya?ml`, read: readPlaces(parseYAML, place{in: "dependencies/*", split: splitConda}, place{in: "dependencies/*/pip/*", split: splitRequirement})},

	// Rust.
	{files: `Cargo\.toml`, read: readPlaces(parseTOML, cargoPlace("dependencies/*", ""), cargoPlace("dev-dependencies/*", Dev), cargoPlace("build-dependencies/*", "build"),
		cargoPlace("workspace/dependencies/*", "workspace"), cargoPlace("target/*/dependencies/*", ""), cargoPlace("target/*/dev-dependencies/*", Dev), cargoPlace("target/*/build-dependencies/*", "build"))},
	{files: `Cargo\.lock`, read: readPlaces(parseTOML, place{in: "package/*", name: "name", version: "version", kind: Locked})},

	// Java and Kotlin.
	{files: `pom\.xml`, read: readPlaces(parsePom, place{in: "use", name: "name", version: "version", scope: "scope"})},
	{files: `[^/]*\.gradle(?:\.kts)?`, read: readGradle},
	{files: `[^/]*\.versions\.toml`, read: readPlaces(parseCatalog, place{in: "libraries/*", name: "module", version: "version"}, place{in: "plugins/*", name: "id", version: "version", kind: "plugin"})},
	{files: `gradle\.lockfile`, read: readByExpr(Locked, `(?m)^(?P<name>[\w.-]+:[\w.-]+):(?P<version>[^=\s]+)=`)},
	{files: `[^/]*\.sbt|project/[^/]*\.scala`, read: readByExpr("", `"(?P<group>[\w.-]+)"[ \t]*%%?%?[ \t]*"(?P<name>[\w.-]+)"[ \t]*%[ \t]*"?(?P<version>\w[^"\s,)]*)"?(?:[ \t]*%[ \t]*"?(?P<kind>\w+))?`)},
	{files: `project\.clj|deps\.edn`, read: readByExpr("", `[\[{\s](?P<name>[\w.-]+/?[\w.-]*)\s+(?:\{:mvn/version )?"(?P<version>\d[^"\s]*)"`)},

	// Ruby and PHP.
	{files: `Gemfile|[^/]*\.gemfile`, read: readByExpr("", `(?m)^[ \t]*gem[ \t(]+["'](?P<name>[^"'\n]+)["'](?:,[ \t]*["'](?P<version>[^"'\n]+)["'])?`)},
	{files: `[^/]*\.gemspec`, read: readByExpr("", `(?m)^[ \t]*\w+\.add_(?:(?P<kind>dev)elopment_|runtime_)?dependency[ \t(]+["'](?P<name>[^"'\n]+)["'](?:,[ \t]*["'](?P<version>[^"'\n]+)["'])?`)},
	{files: `Gemfile\.lock`, read: readByExpr(Locked, `(?m)^    (?P<name>[\w.-]+) \((?P<version>[^)\n]+)\)$`)},
	{files: `composer\.json`, read: readPlaces(parseJSON, place{in: "require/*"}, place{in: "require-dev/*", kind: Dev})},
	{files: `composer\.lock`, read: readPlaces(parseJSON, place{in: "packages/*", name: "name", version: "version", kind: Locked}, place{in: "packages-dev/*", name: "name", version: "version", kind: Locked})},

	// .NET.
	{files: `[^/]*\.(?:cs|fs|vb)proj|[^/]*\.(?:props|targets)`, read: readPlaces(parseXML, place{in: "Project/ItemGroup/PackageReference", name: "Include", version: "Version"},
		place{in: "Project/ItemGroup/PackageVersion", name: "Include", version: "Version", kind: "central"}, place{in: "Project/ItemGroup/GlobalPackageReference", name: "Include", version: "Version", kind: "central"})},
	{files: `packages\.config`, read: readPlaces(parseXML, place{in: "packages/package", name: "id", version: "version"})},
	{files: `packages\.lock\.json`, read: readPlaces(parseJSON, place{in: "dependencies/*/*", version: "resolved", kind: Locked})},

	// Other languages.
	{files: `pubspec\.yaml`, read: readPlaces(parseYAML, place{in: "dependencies/*"}, place{in: "dev_dependencies/*", kind: Dev})},
	{files: `pubspec\.lock`, read: readPlaces(parseYAML, place{in: "packages/*", version: "version", kind: Locked})},
	{files: `mix\.exs`, read: readByExpr("", `\{:(?P<name>\w+),\s*"(?P<version>[^"\n]+)"`)},
	{files: `mix\.lock`, read: readByExpr(Locked, `(?m)^\s*"(?P<name>\w+)": \{:hex, :\w+, "(?P<version>[^"]+)"`)},
	{files: `Package\.swift`, read: readByExpr("", `\.package\([^()]*url:\s*"(?:https?://|git@)?(?P<name>[^"]+?)(?:\.git)?"\s*,\s*(?P<version>(?:[^()]|\([^()]*\))*)\)`)},
	{files: `Package\.resolved`, read: readPlaces(parseJSON, place{in: "pins/*", name: "identity", version: "state/version", kind: Locked}, place{in: "object/pins/*", name: "package", version: "state/version", kind: Locked})},
	{files: `Podfile`, read: readByExpr("", `(?m)^[ \t]*pod[ \t]+["'](?P<name>[^"'\n]+)["'](?:,[ \t]*["'](?P<version>[^"'\n]+)["'])?`)},
	{files: `MODULE\.bazel`, read: readByExpr("", `bazel_dep\(\s*name\s*=\s*"(?P<name>[^"]+)"(?:\s*,\s*version\s*=\s*"(?P<version>[^"]*)")?`)},
	{files: `vcpkg\.json`, read: readPlaces(parseJSON, place{in: "dependencies/*", name: "name", version: "version>="})},
	{files: `conanfile\.txt`, read: readByExpr("", `(?m)^(?P<name>[\w.+-]+)/(?P<version>[\w.+\[\]<>=~^ -]+)`)},
	{files: `cpanfile`, read: readByExpr("", `(?m)^[ \t]*requires[ \t]+["'](?P<name>[\w:]+)["'](?:[ \t]*(?:,|=>)[ \t]*["']?(?P<version>[\w.]+))?`)},

	// Deployments and builds.
	{files: `Chart\.yaml|requirements\.yaml`, read: readPlaces(parseYAML, place{in: "dependencies/*", name: "name", version: "version", kind: "chart"})},
	{files: `Chart\.lock|requirements\.lock`, read: readPlaces(parseYAML, place{in: "dependencies/*", name: "name", version: "version", kind: Locked})},
	{files: `requirements\.yml|galaxy\.yml`, read: readPlaces(parseYAML,
		place{in: "roles/*", name: "name", version: "version", kind: "role"}, place{in: "collections/*", name: "name", version: "version", kind: "collection"}, place{in: "dependencies/*", kind: "collection"})},
	{files: `[^/]*\.tf`, read: readByExpr("", `(?m)^[ \t]*(?:(?P<kind>module)[ \t]+"[^"\n]*"|[\w-]+)[ \t]*=?[ \t]*\{[^{}]*?\bsource[ \t]*=[ \t]*"(?P<name>[^".\n][^"\n]*)"(?:[^{}]*?\bversion[ \t]*=[ \t]*"(?P<version>[^"\n]+)")?`)},
	{files: `\.terraform\.lock\.hcl`, read: readByExpr(Locked, `(?m)^provider "(?:registry\.terraform\.io/)?(?P<name>[^"\n]+)" \{\s*version\s*=\s*"(?P<version>[^"\n]+)"`)},
	{files: `\.github/workflows/[^/]+\.ya?ml|action\.ya?ml`, read: readByExpr("workflow", `(?m)^[ \t]*(?:-[ \t]+)?uses:[ \t]*["']?(?:docker://)?(?P<name>[^@:\s"'#.][^@:\s"'#]*)[@:](?P<version>[^\s"'#]+)`)},
	{files: `\.gitlab-ci\.yml|(?:docker-)?compose[^/]*\.ya?ml`, read: readByExpr("image", `(?m)^[ \t]*(?:-[ \t]+)?image:[ \t]*["']?(?P<name>(?:[\w.-]+:\d+/)?[\w./-]+)(?::(?P<version>[^\s"'@#]+))?`)},
	{files: `(?:Dockerfile|Containerfile)[^/]*|[^/]*\.[Dd]ockerfile`, read: readDockerfile},
	{files: `\.pre-commit-config\.ya?ml`, read: readPlaces(parseYAML, place{in: "repos/*", name: "repo", version: "rev", kind: Dev})},
})

// compileFormats compiles the expressions for paths.
func compileFormats(rows []format) []format {
	for i := range rows {
		rows[i].path = regexp.MustCompile(pathExpr(rows[i].files))
	}
	return rows
}
