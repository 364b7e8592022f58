// Package docs has the documentation for users, as each node serves it at /docs.
package docs

import "embed"

// Files are the pages, without pictures, by their paths below docs/.
//
//go:embed *.md */*.md
var Files embed.FS
