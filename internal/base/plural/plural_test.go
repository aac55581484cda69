package plural_test

import (
	"testing"

	"github.com/quorate/quorate/internal/base/plural"
)

func TestOf(t *testing.T) {
	for _, row := range []struct{ got, want string }{
		{plural.Of(0, "alarm"), "0 alarms"},
		{plural.Of(uint64(1), "alarm"), "1 alarm"},
		{plural.Of(int64(2), "alarm"), "2 alarms"},
		{plural.Of(1, "entry", "entries"), "1 entry"},
		{plural.Of(7, "entry"), "7 entries"},
		{plural.Of(2, "key"), "2 keys"},
		{plural.Of(uint32(7), "entry", "entries"), "7 entries"},
		{plural.Word(1, "stands", "stand"), "stands"},
		{plural.Word(3, "stands", "stand"), "stand"},
	} {
		if row.got != row.want {
			t.Errorf("got %q, want %q", row.got, row.want)
		}
	}
}
