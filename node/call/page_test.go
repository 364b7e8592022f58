package call

import (
	"errors"
	"testing"
)

func TestPage_refusesInvalidNumbersAndSizes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		page, perPage         int
		wantPage, wantPerPage int // 0: refused
	}{
		{0, 0, 1, 30},
		{7, 0, 7, 30},
		{1, 1, 1, 1},
		{1, 100, 1, 100},
		{-1, 10, 0, 0},
		{1, -1, 0, 0},
		{1, 101, 0, 0},
	} {
		page, perPage := tt.page, tt.perPage
		err := CheckPage(&page, &perPage, 30)
		if tt.wantPage == 0 {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("page %d of %d: %v, want invalid", tt.page, tt.perPage, err)
			}
			continue
		}
		if err != nil || page != tt.wantPage || perPage != tt.wantPerPage {
			t.Errorf("page %d of %d: %d of %d, %v; want %d of %d", tt.page, tt.perPage, page, perPage, err, tt.wantPage, tt.wantPerPage)
		}
	}
}
