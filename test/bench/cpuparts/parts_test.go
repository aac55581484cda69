package cpuparts

import (
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

func TestPartOf(t *testing.T) {
	full := strings.NewReplacer("OURS/", ours, "ETCD/", etcd, "GRPC.", "google.golang.org/grpc/internal/transport.")
	for _, row := range []struct {
		leafFirst string
		want      Part
	}{
		{"runtime.memmove,google.golang.org/grpc/mem.Copy,google.golang.org/grpc.(*Server).handleStream", Calls},
		{"runtime.mallocgc,ETCD/storage/mvcc.(*storeTxnWrite).put,ETCD/etcdserver.(*EtcdServer).run", Apply},
		{"google.golang.org/protobuf/proto.Marshal,ETCD/storage/mvcc.(*storeTxnWrite).put", Apply},
		{"go.etcd.io/bbolt.(*Bucket).Put,ETCD/storage/mvcc.(*storeTxnWrite).put", Store},
		{"syscall.write,GRPC.(*loopyWriter).run,GRPC.NewHTTP2Client.func6", Members},
		{"syscall.write,GRPC.(*loopyWriter).run,GRPC.NewServerTransport.func3", Calls},
		{"syscall.read,net/http.(*persistConn).Read,ETCD/etcdserver/api/rafthttp.(*streamReader).run", Members},
		{"runtime.memmove,OURS/kv/apply.(*Machine).put,OURS/transport.serve", Apply},
		{"syscall.fdatasync,github.com/cockroachdb/pebble/v2/vfs.(*linuxFile).SyncData,OURS/storage/wal.(*WAL).sync,OURS/logwriter.(*Writer).Sync", Log},
		{"github.com/cockroachdb/pebble/v2.(*DB).Apply,OURS/storage/engine.(*lsmBatch).Commit,OURS/kv/mvcc.(*Writer).Commit", Store},
		{"runtime.scanobject,runtime.gcDrain,runtime.gcAssistAlloc1,runtime.mallocgc,go.etcd.io/raft/v3.(*raft).Step", Runtime},
		{"runtime.futex,runtime.findRunnable,runtime.schedule,runtime.mcall", Runtime},
		{"internal/runtime/syscall/linux.Syscall6,runtime.netpoll,runtime.schedule", Runtime},
		{"runtime.mallocgc,main.main", Other},
	} {
		frames := strings.Split(full.Replace(row.leafFirst), ",")
		if got := partOf(frames, map[string]Part{}); got != row.want {
			t.Errorf("%s: got %s, want %s", row.leafFirst, got, row.want)
		}
	}
}

// The parts of several profiles are weighed by time, and add up to one.
func TestShares(t *testing.T) {
	stack := func(names ...string) (locations []*profile.Location) {
		for _, name := range names {
			locations = append(locations, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		return locations
	}
	of := func(nanos int64, names ...string) *profile.Profile {
		return &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
			Sample:     []*profile.Sample{{Location: stack(names...), Value: []int64{1, nanos}}},
		}
	}
	got := Shares([]*profile.Profile{of(30, "runtime.memmove", "go.etcd.io/bbolt.Open"), of(10, "runtime.schedule")})
	if got[Store] != 0.75 || got[Runtime] != 0.25 {
		t.Errorf("got %v", got)
	}
	if got := Shares(nil); got != [Count]float64{} {
		t.Errorf("of nothing: got %v", got)
	}
}
