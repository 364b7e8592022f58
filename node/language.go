package node

import "github.com/shoalsearch/shoal/shard"

// languageOf names the language of a file that was read from a mirror, as the
// index would.
func languageOf(path string, content []byte) string { return shard.Language(path, content) }
