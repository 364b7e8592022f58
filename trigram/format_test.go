package trigram

import "testing"

// TestTheExampleOfTheFormat holds the segment drawn above its constants.
func TestTheExampleOfTheFormat(t *testing.T) {
	t.Parallel()
	var e encoder
	e.reset(512)
	e.add(0x616263, []uint16{5, 9})
	e.add(0x616264, []uint16{3, 4, 300})

	for _, part := range []struct {
		name      string
		got, want string
	}{
		{"blocks", string(e.blocks), "\x63\x62\x61\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"},
		{"entries", string(e.entries), "\x01\x05\x00\x09\x00" + "\x0a\x03\x04"},
		{"lists", string(e.lists), "\x03\x00\xa7\x02"},
		{"sliced list", string(appendSliced(nil, []uint16{3, 4, 300})), "\x03" + string(make([]byte, 31)) + "\x01\x03\x04" + "\x00\x2c"},
	} {
		if part.got != part.want {
			t.Errorf("%s % x, want % x", part.name, part.got, part.want)
		}
	}
}
