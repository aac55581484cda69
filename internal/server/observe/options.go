package observe

import (
	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit/trail"
	"github.com/quorate/quorate/internal/base/histogram"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/kv/counts"
	"github.com/quorate/quorate/internal/limits/memory"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/rpc"
	"github.com/quorate/quorate/internal/server/certs"
	"github.com/quorate/quorate/internal/storage/reserve"
	"github.com/quorate/quorate/internal/transport"
)

// Options are the parts of a process that are observed.
type Options struct {
	Config     *config.Config
	Member     *member.Member
	Transport  *transport.Transport
	Reserve    *reserve.Watch
	Shares     *memory.Shares
	Syncs      *histogram.Histogram // seconds of syncs of the log
	Applies    *histogram.Histogram // seconds of batches that were applied
	Counted    *counts.Counts
	Services   func() rpc.Tally
	Busiest    func() int64                         // hundredths of the processor time of calls that go to one prefix of keys
	Refused    func() uint64                        // connections of clients that were refused
	Sinks      func() []trail.SinkStatus            // outputs of records of calls
	Keys       func() *quoratepb.ObservedKeys       // of an encrypted data directory; nil: it is not encrypted
	Encryption func() *quoratepb.ObservedEncryption // how the data directory is encrypted; at once
	Dropped    func() uint64                        // lines of the log that no output took
	Parts      func() []*quoratepb.ObservedPart
	Expiries   func() []certs.Expiry
	// OwnAlarms are those of the member's alarms that an observation has numbers for.
	OwnAlarms func() []string
	// RefusesPlace says why the member would not ship a backup to a place; empty: it would.
	RefusesPlace func(url string) string
	OpenFiles    uint64 // that the process may have; 0: not known
}
