package wording

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/quorate/quorate/api/quoratepb"
)

// LimitBound is one bound of a limit of users and prefixes.
type LimitBound struct {
	Flag  string // of `quorate limit set`, without its dashes
	Help  string // that of the flag
	Word  string // behind a number of it, as in a list
	Bytes bool   // it is a size
	// Field is where a limit has it; nil there: it bounds nothing.
	Field func(l *quoratepb.Limit) **int64
}

// LimitBounds are all bounds, in the order in which they are shown.
var LimitBounds = []LimitBound{
	{"writes", "requests a second that write, at each member", "writes/s", false,
		func(l *quoratepb.Limit) **int64 { return &l.WritesPerSecond }},
	{"write-bytes", "bytes a second of the keys and values that they write, at each member", "written/s", true,
		func(l *quoratepb.Limit) **int64 { return &l.WriteBytesPerSecond }},
	{"reads", "requests a second that only read, at each member", "reads/s", false,
		func(l *quoratepb.Limit) **int64 { return &l.ReadsPerSecond }},
	{"read-bytes", "bytes a second of their answers, at each member", "read/s", true,
		func(l *quoratepb.Limit) **int64 { return &l.ReadBytesPerSecond }},
	{"value-bytes", "bytes of the largest value", "a value", true,
		func(l *quoratepb.Limit) **int64 { return &l.ValueBytes }},
	{"quota-bytes", "bytes of all keys and values with the prefix, in the cluster", "in all", true,
		func(l *quoratepb.Limit) **int64 { return &l.QuotaBytes }},
	{"quota-keys", "keys with the prefix, in the cluster", "keys", false,
		func(l *quoratepb.Limit) **int64 { return &l.QuotaKeys }},
}

// ParseBound reads a number, or a size.
func ParseBound(text string, size bool) (int64, error) {
	digits, unit := text, int64(1)
	for i, suffix := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, ok := strings.CutSuffix(text, suffix); ok && size {
			digits, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	switch {
	case err != nil && size:
		return 0, fmt.Errorf("give a number of bytes, such as 65536 or 64KiB")
	case err != nil:
		return 0, fmt.Errorf("give a whole number, such as 100")
	case n > math.MaxInt64/uint64(unit):
		return 0, fmt.Errorf("it is too large")
	}
	return int64(n) * unit, nil
}
