package observe

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/base/histogram"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/transport"
)

// tallyPause is between two tallies, and history for how long they are kept: what is rare is told of that time.
const (
	tallyPause = 5 * time.Second
	history    = 10 * time.Minute
)

// tallies are counts since the member started. The difference of two says what happened between them.
type tallies struct {
	at                        time.Time
	commit, late              uint64
	withheld, outrun          uint64
	syncs, applies            readings
	putsTook, readsTook       readings
	offered, oneTrip          uint64 // writes on the fast path
	stalls, reclaimFailures   uint64
	puts, putBytes            uint64
	granted, revoked, stoodMS uint64
	services                  rpc.Tally
	connectionsRefused        uint64
	linesDropped              uint64
	sinks                     []trail.SinkStatus
	processor                 time.Duration // that the process has used; zero: not known
	behind                    int           // watchers, at that moment
	peers                     map[consensus.MemberID]peerTallies
}

// peerTallies are the same of a peer. match is how far its log is known to be.
type peerTallies struct {
	transport.PeerStats
	match uint64
}

// readings are what a histogram has counted.
type readings struct {
	count   uint64
	seconds float64
	within  map[float64]uint64
}

func read(h *histogram.Histogram) (r readings) {
	r.count, r.seconds, r.within = h.Read()
	return r
}

// quantile is about the time within which a share of the observations after an earlier reading stayed; 0: there were none.
// Between two bounds they are taken for spread evenly; beyond the last bound it is that bound.
func (r readings) quantile(before readings, share float64) time.Duration {
	count := grown(r.count, before.count)
	if count == 0 {
		return 0
	}
	wanted := float64(count) * share
	lower, below := 0.0, 0.0
	for _, bound := range slices.Sorted(maps.Keys(r.within)) {
		up := float64(grown(r.within[bound], before.within[bound]))
		if up >= wanted {
			return time.Duration((lower + (bound-lower)*(wanted-below)/(up-below)) * float64(time.Second))
		}
		lower, below = bound, up
	}
	return time.Duration(lower * float64(time.Second))
}

// since are the observations after an earlier reading.
func (r readings) since(before readings) (count uint64, mean time.Duration, p99 time.Duration) {
	count = r.count - before.count
	if count == 0 {
		return 0, 0, 0
	}
	mean = time.Duration((r.seconds - before.seconds) / float64(count) * float64(time.Second))
	return count, mean, r.quantile(before, 0.99)
}

// residentBytes is the memory that this process has, by the system; 0: not known.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// processorTime is the time for which processors have worked for this process; zero: not known.
func processorTime() time.Duration {
	const tick = time.Second / 100 // USER_HZ, which is the same on all of Linux
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	_, after, found := strings.Cut(string(text), ") ") // the name of the program may have blanks
	fields := strings.Fields(after)
	if !found || len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(user+system) * tick
}

// filesOpen is how many files this process has open; 0: not known.
func filesOpen() uint64 {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return uint64(len(open))
}

// grown is by how much a count grew. One that begins anew, as those of a peer that was removed and added, or of a store that
// a snapshot replaced, has not.
func grown(now, before uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}
