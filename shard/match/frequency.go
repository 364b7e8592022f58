package match

// frequency is how often each byte stands in 64 KiB of source code, at least
// once. It was counted over the C, the assembly and the prose of a large
// kernel; all that matters is which of two bytes is the rarer one.
var frequency = [256]uint16{
	1, 1, 1, 1, 1, 1, 1, 1, 1, 2309, 2139, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	9036, 37, 311, 233, 15, 44, 129, 22, 621, 621, 616, 58, 870, 530, 291, 304,
	1390, 473, 396, 252, 216, 151, 174, 111, 189, 100, 142, 632, 106, 449, 333, 7,
	26, 651, 251, 657, 512, 795, 335, 258, 181, 633, 10, 123, 469, 472, 469, 432,
	501, 53, 634, 665, 682, 266, 162, 103, 159, 92, 27, 74, 65, 74, 3, 3244,
	10, 1710, 503, 1472, 1474, 3348, 1001, 540, 585, 2096, 26, 309, 1113, 852, 1795, 1477,
	982, 120, 2031, 1867, 2574, 1025, 506, 262, 614, 251, 67, 181, 51, 181, 8, 1,
	4, 2, 2, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 2,
	1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 2, 1, 2, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 2, 2,
	1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 2, 2, 3, 2, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 3, 5, 9, 6, 5, 4, 2, 1, 1, 1, 1, 1, 2,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
}

// chance returns the probability that a byte of code is b, or its other case
// too where the bits of fold are set.
func chance(b, fold byte) float64 {
	n := int(frequency[b])
	if fold != 0 {
		n += int(frequency[b&^fold])
	}
	return float64(n) / (1 << 16)
}
