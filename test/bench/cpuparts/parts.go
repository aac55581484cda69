package cpuparts

import (
	"strings"

	"github.com/google/pprof/profile"
)

// Part is a duty.
type Part int

const (
	Calls Part = iota
	Members
	Consensus
	Apply
	Store
	Log
	Runtime
	Other
	Count // of parts
)

var titles = [Count]string{
	"gRPC and HTTP/2", "between members", "requests and Raft", "apply and MVCC", "store, its compaction", "log and syncs",
	"GC and scheduler", "other",
}

// String implements fmt.Stringer.
func (p Part) String() string { return titles[p] }

const neutral Part = -1 // belongs to its caller

const (
	ours = "github.com/quorate/quorate/internal/"
	etcd = "go.etcd.io/etcd/server/v3/"
)

// table has the part of each function by a prefix of its name; the longest one counts.
var table = map[string]Part{
	"google.golang.org/grpc":                Calls,
	"golang.org/x/net/http2":                Calls,
	"net/http":                              Calls,
	"github.com/soheilhy/cmux":              Calls,
	"go.etcd.io/etcd/api/v3/etcdserverpb._": Calls, // the handlers
	etcd + "etcdserver/api/v3rpc":           Calls,
	ours + "rpc":                            Calls,
	ours + "h2":                             Calls,
	ours + "admission":                      Calls,
	etcd + "etcdserver/api/rafthttp":        Members,
	ours + "transport":                      Members,
	ours + "peercall":                       Members,
	"google.golang.org/grpc/internal/transport.(*http2Client)": Members, // servers are clients of each other only
	"google.golang.org/grpc/internal/transport.NewHTTP2Client": Members,
	"google.golang.org/grpc/internal/transport.newHTTP2Client": Members,
	"go.etcd.io/raft/v3":                    Consensus,
	etcd + "etcdserver":                     Consensus,
	ours + "consensus":                      Consensus,
	ours + "node":                           Consensus,
	ours + "member":                         Consensus,
	ours + "clients":                        Consensus,
	ours + "proposals":                      Consensus,
	ours + "offers":                         Consensus,
	etcd + "etcdserver/apply":               Apply,
	etcd + "etcdserver/txn":                 Apply,
	etcd + "etcdserver.(*EtcdServer).apply": Apply,
	etcd + "storage/mvcc":                   Apply,
	etcd + "auth":                           Apply,
	etcd + "lease":                          Apply,
	ours + "applier":                        Apply,
	ours + "kv":                             Apply,
	ours + "auth":                           Apply,
	ours + "expiry":                         Apply,
	ours + "integrity":                      Apply,
	"go.etcd.io/bbolt":                      Store,
	etcd + "storage/backend":                Store,
	"github.com/cockroachdb/pebble/v2":      Store,
	"github.com/cockroachdb/pebble/v2/vfs":  neutral, // the log's files, too
	ours + "storage/engine":                 Store,
	etcd + "storage/wal":                    Log,
	etcd + "storage.(*storage)":             Log,
	etcd + "etcdserver/api/snap":            Log,
	ours + "storage/wal":                    Log,
	ours + "logwriter":                      Log,
	"runtime.gcBgMarkWorker":                Runtime,
	"runtime.gcAssistAlloc":                 Runtime,
	"runtime.gcStart":                       Runtime,
	"runtime.bgsweep":                       Runtime,
	"runtime.bgscavenge":                    Runtime,
}

// Shares says which share of the processor time in profiles is whose.
func Shares(profiles []*profile.Profile) (shares [Count]float64) {
	known := map[string]Part{}
	sum := 0.0
	for _, p := range profiles {
		value := len(p.SampleType) - 1 // nanoseconds; the first one counts samples
		for _, sample := range p.Sample {
			weight := float64(sample.Value[value])
			shares[partOf(framesOf(sample), known)] += weight
			sum += weight
		}
	}
	for i := range shares {
		if sum > 0 {
			shares[i] /= sum
		}
	}
	return shares
}

// framesOf are the functions of a sample, the leaf first.
func framesOf(sample *profile.Sample) (frames []string) {
	for _, location := range sample.Location {
		for _, line := range location.Line {
			if line.Function != nil {
				frames = append(frames, line.Function.Name)
			}
		}
	}
	return frames
}

// partOf applies the rule to one stack, the leaf first. It keeps the parts of functions in known.
func partOf(frames []string, known map[string]Part) Part {
	found, foreign := neutral, false
	for _, frame := range frames {
		part, ok := known[frame]
		if !ok {
			part = partOfFunction(frame)
			known[frame] = part
		}
		switch {
		case part == Members && (found == neutral || found == Calls):
			return Members
		case found == neutral:
			found = part
		}
		foreign = foreign || !strings.HasPrefix(frame, "runtime.") && !strings.HasPrefix(frame, "internal/runtime/")
	}
	switch {
	case found != neutral:
		return found
	case foreign:
		return Other
	default:
		return Runtime
	}
}

func partOfFunction(name string) Part {
	for end := len(name); end > 0; end-- {
		if part, ok := table[name[:end]]; ok {
			return part
		}
	}
	return neutral
}
