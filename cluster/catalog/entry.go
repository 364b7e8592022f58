package catalog

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
)

// MaxEntry is the size of the largest entry, in bytes.
const MaxEntry = 16 << 20

// recordKind is a kind of record in snapshots and in the state hash.
type recordKind struct {
	tag   byte // its number in snapshots, which never changes
	name  string
	coder codec.Coder
	typ   reflect.Type
}

func kindOf[T any](tag byte, name string) *recordKind {
	t := reflect.TypeFor[T]()
	return &recordKind{tag: tag, name: name, coder: codec.Compile(t), typ: t}
}

// append encodes a record, which must be a pointer to a struct of this kind.
func (k *recordKind) append(b []byte, rec any) []byte {
	return k.coder.Encode(b, reflect.ValueOf(rec).Elem())
}

// hash returns the record's part of the state hash.
func (k *recordKind) hash(rec any) uint64 {
	var buf [1024]byte
	return k.hashOf(k.append(buf[:0], rec))
}

// hashOf hashes an encoded record. The tag makes equal bytes of different kinds differ.
func (k *recordKind) hashOf(b []byte) uint64 {
	return (xxhash.Sum64(b) ^ uint64(k.tag)*0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9
}

// decode reads a record of this kind from exactly these bytes.
func (k *recordKind) decode(b []byte, rec any) error {
	// Bytes left over would give one record two encodings, and two hashes.
	r := &codec.Reader{Rest: b}
	k.coder.Decode(r, reflect.ValueOf(rec).Elem())
	if r.Err == nil && len(r.Rest) > 0 {
		r.Err = fmt.Errorf("%d bytes too many", len(r.Rest))
	}
	if r.Err != nil {
		return fmt.Errorf("catalog: %s: %w", k.name, r.Err)
	}
	return nil
}

// commandKind is a row of the table of commands.
type commandKind struct {
	number uint64 // in entries; never changes and is never reused
	coder  codec.Coder
	typ    reflect.Type // of the struct
	level  uint64       // lowest level of the catalog that may write it; 0: any
	tagged bool         // some field has a level
}

func commandOf[T any](number uint64) commandKind {
	t := reflect.TypeFor[T]()
	return commandKind{number: number, coder: codec.Compile(t), typ: t, tagged: hasLevelTag(t)}
}

// commandKinds is the table of commands. To add one, write a struct with an apply method in
// command.go, and add a row at the end.
var commandKinds = []commandKind{
	commandOf[Noop](1),
	commandOf[InitCluster](2),
	commandOf[SetConfig](3),
	commandOf[EnqueueJob](4),
	commandOf[GrantJob](5),
	commandOf[FinishJob](6),
	commandOf[ReleaseJob](7),
	commandOf[RevokeJob](8),
	commandOf[SyncPage](9),
	commandOf[FinishSync](10),
	commandOf[FinishIndex](11),
	commandOf[FinishCollect](12),
	commandOf[CreateKey](13),
	commandOf[RevokeKey](14),
	commandOf[TouchKeys](15),
	commandOf[PutMember](16),
	commandOf[SetMemberState](17),
	commandOf[RemoveMember](18),
	commandOf[Place](19),
	commandOf[Confirm](20),
	commandOf[SetSecret](21),
	commandOf[CheckHash](22),
	commandOf[FinishPack](23),
	commandOf[AcceptListing](24),
	commandOf[FinishListing](30),
	commandOf[PutAccount](40),
	commandOf[DeleteAccount](41),
	commandOf[SetGrants](42),
	commandOf[PutSession](43),
	commandOf[EndSessions](44),
	commandOf[TouchSessions](45),
	commandOf[SetPassword](46),
	commandOf[PutLink](47),
	commandOf[LinkIdentity](48),
	commandOf[UnlinkIdentity](49),
	commandOf[Join](50),
	commandOf[Attribute](51),
	commandOf[NoteEvent](52),
	commandOf[FinishRepoAccess](55),
	commandOf[FinishReaderAccess](56),
	commandOf[RefuseReader](57),
	commandOf[AgeAccess](58),
	commandOf[SayPermissionSync](59),
	commandOf[PutHostToken](60),
	commandOf[PutConsent](63),
	commandOf[RotateConsent](64),
	commandOf[EndConsents](65),
	commandOf[DropSecrets](66),
	commandOf[BeginTurn](70),
	commandOf[EndTurn](72),
	commandOf[ChangeThread](73),
	commandOf[DeleteThread](74),
	commandOf[ForkThread](75),
	commandOf[SealConfig](85),
	commandOf[CancelJob](86),
	commandOf[SetHistory](87),
	commandOf[RaiseLevel](90),
	commandOf[PutWatch](91),
	commandOf[DeleteWatch](92),
	commandOf[FinishChecks](93),
	commandOf[NoteDeliveries](94),
}

// kindOfCommand returns the row of a command.
func kindOfCommand(c Command) (commandKind, error) {
	t := reflect.TypeOf(c)
	for _, k := range commandKinds {
		if t == reflect.PointerTo(k.typ) {
			return k, nil
		}
	}
	return commandKind{}, fmt.Errorf("catalog: no command of type %T", c)
}

// kindOfNumber returns the row with a number; false if this version does not know it.
func kindOfNumber(n uint64) (commandKind, bool) {
	for _, k := range commandKinds {
		if k.number == n {
			return k, true
		}
	}
	return commandKind{}, false
}

// CommandName returns the name of a command's type, for logs and metrics.
func CommandName(c Command) string { return reflect.TypeOf(c).Elem().Name() }

// An entry in the log is an envelope and the commands in it:
//
//	version u8 | request 16 bytes | time varint | node string |
//	number of commands uvarint | for each: number, length, body
//
// The time is 0 until the leader stamps it.
//
// For example, of the node n1, stamped at 2023-11-14 22:13:20, with the command
// RevokeKey{ID: "k7"}:
//
//	01                                                version
//	00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f   request
//	80 a0 ab fe f9 62                                 1,700,000,000,000 ms
//	04 6e 31                                          "n1"
//	01                                                one command
//	0e 04  01 04 6b 37                                number 14, 4 bytes: one field, "k7"
const entryVersion = 1

// stampAt is the offset of the time in an entry.
const stampAt = 1 + len(Entry{}.Request)

// MaxCommands is the largest number of commands in an entry.
const MaxCommands = 1024

// Encode encodes an entry without its index, for the log. Equal entries give equal bytes.
func (e *Entry) Encode() ([]byte, error) {
	if len(e.Commands) > MaxCommands {
		return nil, fmt.Errorf("catalog: %d commands in one entry, at most %d are allowed", len(e.Commands), MaxCommands)
	}

	b := append(make([]byte, 0, 512), entryVersion)
	b = append(b, e.Request[:]...)
	b = binary.AppendVarint(b, codec.ToMillis(e.At))
	b = codec.AppendString(b, e.Node)

	b = binary.AppendUvarint(b, uint64(len(e.Commands)))
	var body []byte
	for _, c := range e.Commands {
		kind, err := kindOfCommand(c)
		if err != nil {
			return nil, err
		}

		// The length keeps a misread command from reaching into the next one.
		body = kind.coder.Encode(body[:0], reflect.ValueOf(c).Elem())
		b = binary.AppendUvarint(b, kind.number)
		b = binary.AppendUvarint(b, uint64(len(body)))
		b = append(b, body...)
	}

	if len(b) > MaxEntry {
		return nil, fmt.Errorf("catalog: an entry of %d bytes, at most %d are allowed", len(b), MaxEntry)
	}
	return b, nil
}

// Stamp replaces the time in an encoded entry. It does not decode the commands.
func Stamp(data []byte, at time.Time) ([]byte, error) {
	if len(data) > 0 && data[0] != entryVersion {
		return nil, fmt.Errorf("catalog: entry of version %d: %w", data[0], codec.ErrNewer)
	}
	if len(data) < stampAt {
		return nil, fmt.Errorf("catalog: entry: %w", codec.ErrShort)
	}

	_, old := binary.Varint(data[stampAt:])
	if old <= 0 {
		return nil, fmt.Errorf("catalog: entry: %w", codec.ErrShort)
	}

	// The new time may have another length.
	out := make([]byte, stampAt, len(data)+binary.MaxVarintLen64)
	copy(out, data)
	out = binary.AppendVarint(out, codec.ToMillis(at))
	if out = append(out, data[stampAt+old:]...); len(out) > MaxEntry {
		return nil, fmt.Errorf("catalog: an entry of %d bytes, at most %d are allowed", len(out), MaxEntry)
	}
	return out, nil
}

// DecodeEntry decodes an entry. The result does not alias data.
func DecodeEntry(index uint64, data []byte) (Entry, error) {
	e := Entry{Index: index}
	r := &codec.Reader{Rest: data}
	if v := r.Take(1); r.Err == nil && v[0] != entryVersion {
		return e, fmt.Errorf("catalog: entry %d of version %d: %w", index, v[0], codec.ErrNewer)
	}

	copy(e.Request[:], r.Take(uint64(len(e.Request))))
	e.At = codec.FromMillis(r.Varint())
	e.Node = r.Text()

	n := r.Length()
	if n > MaxCommands {
		r.Fail(fmt.Errorf("%d commands", n))
	}
	for i := 0; i < n && r.Err == nil; i++ {
		e.Commands = append(e.Commands, readCommand(r))
	}

	// Extra bytes come from another version. All nodes must read an entry alike.
	if r.Err == nil && len(r.Rest) > 0 {
		r.Err = fmt.Errorf("%d bytes too many", len(r.Rest))
	}
	if r.Err != nil {
		return Entry{Index: index}, fmt.Errorf("catalog: entry %d: %w", index, r.Err)
	}
	return e, nil
}

// longCommand is the size in bytes from which on decoding shares equal strings, as in a page of
// repositories.
const longCommand = 16 << 10

// readCommand reads one command of an entry. Its length keeps a misread command from reaching into
// the next one.
func readCommand(r *codec.Reader) Command {
	// An unknown command stops the node: skipping it would make its state differ.
	number := r.Uvarint()
	kind, ok := kindOfNumber(number)
	if !ok {
		r.Fail(fmt.Errorf("command number %d: %w", number, codec.ErrNewer))
		return nil
	}

	// Share strings within one command only, so that they do not outlive its records.
	body := &codec.Reader{Rest: r.Take(r.Uvarint())}
	if len(body.Rest) >= longCommand {
		body.Words = &codec.Words{}
	}

	v := reflect.New(kind.typ)
	kind.coder.Decode(body, v.Elem())
	if body.Err == nil && len(body.Rest) > 0 {
		body.Err = fmt.Errorf("%d bytes too many", len(body.Rest))
	}
	if body.Err != nil {
		r.Fail(fmt.Errorf("command %s: %w", kind.typ.Name(), body.Err))
	}
	return v.Interface().(Command)
}

// reply is the leader's answer to a node that forwarded an entry.
type reply struct {
	Index   uint64
	Results []Result
}

// EncodeReply encodes the index and results of an entry for another node.
func EncodeReply(index uint64, results []Result) []byte {
	return codec.StructCoder(reflect.TypeFor[reply]()).Encode(nil, reflect.ValueOf(reply{index, results}))
}

// DecodeReply decodes what EncodeReply encoded.
func DecodeReply(b []byte) (index uint64, results []Result, err error) {
	var out reply
	r := &codec.Reader{Rest: b}
	codec.StructCoder(reflect.TypeFor[reply]()).Decode(r, reflect.ValueOf(&out).Elem())
	if r.Err != nil {
		return 0, nil, fmt.Errorf("catalog: reply: %w", r.Err)
	}
	return out.Index, out.Results, nil
}
