package census

// Options of New. Zero means the default.
type Options struct {
	// Keys is the number of keys of a new interval.
	Keys int
	// LogBytes bounds the memory of logs, and IntervalBytes that of intervals without them.
	LogBytes, IntervalBytes int
}

// Defaults of Options. 4 MiB suffice for the intervals of 60 million keys with bounds of 40 bytes; beyond that intervals get
// longer. 8 MiB suffice for half a million creations and deletions.
const (
	DefaultKeys          = 2048
	DefaultLogBytes      = 8 << 20
	DefaultIntervalBytes = 4 << 20
)

// An interval is divided at divideAt times its length, or at divideWanted times if a range ended in it.
const (
	divideAt     = 8
	divideWanted = 2
)
