package census

// Options of New. Zero means the default.
type Options struct {
	// Keys is how many keys an interval has when it is made.
	Keys int
	// LogBytes bounds what logs take, and IntervalBytes what intervals take without them.
	LogBytes, IntervalBytes int
}

// Defaults of Options. 4 MiB are room for the intervals of 60 million keys with bounds of 40 bytes; beyond that they get
// longer. 8 MiB are room for half a million creations and deletions.
const (
	DefaultKeys          = 2048
	DefaultLogBytes      = 8 << 20
	DefaultIntervalBytes = 4 << 20
)

// divideAt is how many times as long an interval gets before it is divided unasked; divideWanted, if a range ended in it.
const (
	divideAt     = 8
	divideWanted = 2
)
