package catalog

import "bytes"

// The bytes of a configuration may hold secrets: passwords in URLs, overrides of the environment.
// In the log and in snapshots they are sealed under a key that is stored elsewhere:
//	mark of 8 bytes | the file, encrypted with the cluster's key
// No plain file begins with the mark. So old entries and snapshots, which hold the plain file, can
// still be read.

var sealMark = []byte("\x00sealed\x01")

// sealRoom is by how many bytes sealing lengthens a file at most.
const sealRoom = 64

// Unsealer decrypts what a cluster has sealed.
type Unsealer func(box []byte) (plain []byte, err error)

// SealedConfig returns the form of a sealed file for [SetConfig] and [SealConfig].
func SealedConfig(box []byte) []byte { return append(bytes.Clone(sealMark), box...) }

// Sealed returns the sealed bytes of the configuration. ok is false if it is not sealed.
func (c *Config) Sealed() (box []byte, ok bool) { return sealedBox(c.Raw) }

func sealedBox(raw []byte) (box []byte, ok bool) { return bytes.CutPrefix(raw, sealMark) }
