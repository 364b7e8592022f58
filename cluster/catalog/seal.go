package catalog

import "bytes"

// The bytes of a configuration may hold secrets: passwords in addresses,
// overrides of the environment. In the log and in snapshots they are sealed
// under a key that is not there:
//
//	mark of 8 bytes | what the cluster made of the file with its key
//
// No file begins with the mark, so that entries and snapshots of before, which
// have the file as it is, are still read.

var sealMark = []byte("\x00sealed\x01")

// sealRoom is how much longer than a file its sealed form may be.
const sealRoom = 64

// Unsealer opens what a cluster has sealed.
type Unsealer func(box []byte) (plain []byte, err error)

// SealedConfig is the form in which the sealed bytes of a file stand in a
// [SetConfig] or [SealConfig].
func SealedConfig(box []byte) []byte { return append(bytes.Clone(sealMark), box...) }

// Sealed is what the cluster has made of the file; ok is false for one of
// before, which is not sealed.
func (c *Config) Sealed() (box []byte, ok bool) { return sealedBox(c.Raw) }

func sealedBox(raw []byte) (box []byte, ok bool) { return bytes.CutPrefix(raw, sealMark) }
