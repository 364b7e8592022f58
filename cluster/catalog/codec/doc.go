// Package codec encodes plain structs. Equal values give equal bytes:
//
//	struct    number of fields up to the last that is not zero, those fields
//	slice     number of elements, elements; nil and empty are equal
//	string    length*2, bytes; or length*2+1, half as many bytes for long
//	          lower-case hexadecimal
//	uint      uvarint          int   zigzag varint       bool  0 or 1
//	time      zigzag varint of milliseconds since 1970, in UTC; 0 is the zero time
//	[n]byte   n bytes
//
// A field may be added at the end of a struct. Older bytes decode to its zero value. While it is
// zero, the bytes equal those of the older version. Decoding fails if the bytes have more fields
// than this version knows.
//
// For example, FormerName{Name: "a/b"}, whose second field At is zero:
//
//	01 06 61 2f 62      one field; a string of 3 bytes, "a/b"
//
// Package catalog defines the structs.
package codec
