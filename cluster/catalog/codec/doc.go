// Package codec writes plain structs as bytes, the same bytes for the same value:
//
//	struct    number of fields up to the last that is not zero, those fields
//	slice     number of elements, elements; nil and empty are one
//	string    length*2, bytes; or length*2+1, half as many bytes for long
//	          lower-case hexadecimal
//	uint      uvarint          int   zigzag varint       bool  0 or 1
//	time      zigzag varint of milliseconds since 1970, in UTC; 0 is the zero time
//	[n]byte   n bytes
//
// A field may be added at the end of a struct: older bytes decode with its
// zero value, and while it is zero the bytes are those of the older
// version. Bytes with fields that this version does not know are refused.
//
// For example, FormerName{Name: "a/b"}, whose second field At is zero:
//
//	01 06 61 2f 62      one field; a string of 3 bytes, "a/b"
//
// What the structs are is package catalog's.
package codec
